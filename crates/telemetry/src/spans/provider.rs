//! Who answers, in the words of the conventions.

use crate::record::Dialect;

/// The provider's name by its host, else by the dialect that it speaks.
pub(super) fn provider(dialect: Dialect, upstream: &str) -> Option<&'static str> {
    let host = upstream.split(':').next().unwrap_or_default();
    let is_at = |domain: &str| {
        host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let by_host = HOSTS.iter().find(|(domain, _)| is_at(domain)).map(|(_, name)| *name);
    by_host.or(match dialect {
        Dialect::Chat | Dialect::Responses => Some("openai"),
        Dialect::Anthropic => Some("anthropic"),
        Dialect::Gemini => Some("gcp.gemini"),
        Dialect::Other => None,
    })
}

/// Domains whose owners the conventions have a name for.
const HOSTS: [(&str, &str); 14] = [
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("amazonaws.com", "aws.bedrock"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.x.ai", "x_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.cohere.com", "cohere"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
];

#[cfg(test)]
mod tests {
    use super::provider;
    use crate::record::Dialect;

    #[test]
    fn a_host_says_more_than_the_dialect() {
        assert_eq!(provider(Dialect::Chat, "api.groq.com"), Some("groq"));
        assert_eq!(provider(Dialect::Chat, "my-team.openai.azure.com:443"), Some("azure.ai.openai"));
        assert_eq!(provider(Dialect::Other, "api.openai.com"), Some("openai"));
    }

    #[test]
    fn an_unknown_host_is_taken_for_the_owner_of_its_dialect() {
        assert_eq!(provider(Dialect::Responses, "127.0.0.1:8000"), Some("openai"));
        assert_eq!(provider(Dialect::Anthropic, "proxy.internal"), Some("anthropic"));
        assert_eq!(provider(Dialect::Gemini, ""), Some("gcp.gemini"));
        assert_eq!(provider(Dialect::Other, "proxy.internal"), None);
    }

    #[test]
    fn a_name_that_only_ends_alike_is_another_host() {
        assert_eq!(provider(Dialect::Other, "notanthropic.com"), None);
    }
}
