//! Which requests a policy is for.

use loopbreaker::ToolPattern;

use crate::base_url::is_host_name;
use crate::cursor::{Cursor, Read};
use crate::header_name::is_token;
use crate::kinds::{filled, flag, text};
use crate::path::quote;

/// Which requests a policy is for. What is empty does not narrow it down.
///
/// ```
/// use loopbreaker_config::{Config, Subject};
/// let text = "policies: [{ id: a, spec: { selector: { pathPrefix: /v1/, methods: [post] } } }]";
/// let selector = &Config::parse(text).unwrap().policies[0].selector;
/// let subject = Subject { method: "POST", path: "/v1/messages", ..Subject::default() };
/// assert!(selector.matches(&subject));
/// assert!(!selector.matches(&Subject { path: "/v1", ..subject }));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Paths, of which one must fit.
    pub paths: Vec<PathPattern>,
    /// Methods in upper case.
    pub methods: Vec<String>,
    /// Host names in lower case, without a port, or globs of them.
    pub hosts: Vec<String>,
    /// Tenants, names or globs.
    pub tenants: Vec<ToolPattern>,
    /// Models, names or globs; a request that names no model fits none.
    pub models: Vec<ToolPattern>,
}

/// A part of all paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPattern {
    /// One path.
    Exact(String),
    /// A path and what stands below it: `/v1` fits `/v1` and `/v1/messages`, but not `/v10/messages`. With a slash at the
    /// end only what stands below.
    Prefix(String),
    /// The paths of the dialects that are understood, wherever a route has put them.
    Dialects,
}

/// What a selector looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The method, as it came.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
    /// Whether it is the path of a dialect that is understood.
    pub is_dialect: bool,
    /// The host that the client asked, with or without a port.
    pub host: Option<&'a str>,
    /// Whose request it is.
    pub tenant: &'a str,
    /// The model that it names.
    pub model: Option<&'a str>,
}

impl Selector {
    /// Whether a request is one of those.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        let path = |pattern: &PathPattern| pattern.matches(subject);
        let host = || subject.host.map(without_port);
        let fits = |patterns: &[ToolPattern], name| patterns.iter().any(|pattern| pattern.matches(name));
        (self.paths.is_empty() || self.paths.iter().any(path))
            && (self.methods.is_empty() || self.methods.iter().any(|method| method == subject.method))
            && (self.hosts.is_empty()
                || host().is_some_and(|host| self.hosts.iter().any(|known| is_called(host, known))))
            && (self.tenants.is_empty() || fits(&self.tenants, subject.tenant))
            && (self.models.is_empty() || subject.model.is_some_and(|model| fits(&self.models, model)))
    }
}

/// Whether a host has this name, or one that this glob fits.
fn is_called(host: &str, known: &str) -> bool {
    if known.contains('*') {
        return ToolPattern::new(known).matches(&host.to_ascii_lowercase());
    }
    known.eq_ignore_ascii_case(host)
}

impl PathPattern {
    fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Exact(path) => path == subject.path,
            Self::Prefix(prefix) if prefix == "/" => true,
            Self::Prefix(prefix) => subject.path.strip_prefix(&**prefix).is_some_and(|rest| {
                if prefix.ends_with('/') {
                    !rest.is_empty()
                } else {
                    rest.is_empty() || rest.starts_with('/')
                }
            }),
            Self::Dialects => subject.is_dialect,
        }
    }
}

pub(super) fn read(value: Cursor<'_>) -> Read<Selector> {
    let mut fields = value.map()?;
    let exact = fields.optional("pathExact", |value| path(value).map(PathPattern::Exact));
    let prefix = fields.optional("pathPrefix", |value| path(value).map(PathPattern::Prefix));
    let dialects = fields.field("dialects", false, flag);
    let methods = fields.field("methods", Vec::new(), |value| some(value, method));
    let hosts = fields.field("hosts", Vec::new(), |value| some(value, host));
    let tenants = fields.field("tenants", Vec::new(), |value| some(value, pattern));
    let models = fields.field("models", Vec::new(), |value| some(value, pattern));
    fields.finish();
    let dialects = dialects?.then_some(PathPattern::Dialects);
    let paths = exact?.into_iter().chain(prefix?).chain(dialects).collect();
    Ok(Selector { paths, methods: methods?, hosts: hosts?, tenants: tenants?, models: models? })
}

/// The path of a request.
pub(in crate::sections) fn path(value: Cursor<'_>) -> Read<String> {
    let text = text(value)?;
    let sound =
        text.starts_with('/') && !text.contains(|c: char| c.is_whitespace() || matches!(c, '?' | '#'));
    if sound {
        return Ok(text);
    }
    let message = format!("{} is no path: it begins with `/` and ends before `?`", quote(&text));
    Err(value.refuse(message, "write it like `/v1/chat/completions`"))
}

/// A list with something in it. An empty one would fit no request to its author and every request to us.
fn some<T>(value: Cursor<'_>, read: impl FnMut(Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    let items = value.list(read)?;
    if items.is_empty() {
        return Err(value.refuse("this list is empty", "write at least one, or remove the key to fit all"));
    }
    Ok(items)
}

fn method(value: Cursor<'_>) -> Read<String> {
    let text = text(value)?;
    if is_token(&text) {
        return Ok(text.to_ascii_uppercase());
    }
    Err(value.refuse(format!("{} is no HTTP method", quote(&text)), "write it like `POST`"))
}

fn host(value: Cursor<'_>) -> Read<String> {
    let text = text(value)?;
    let name = without_port(text.trim_end_matches('.'));
    // A star stands for what a name may have in its place.
    if is_host_name(&name.replace('*', "x")) {
        return Ok(name.to_ascii_lowercase());
    }
    let hint = "write it like `api.example.com` or `*.example.com`";
    Err(value.refuse(format!("{} is no name of a host", quote(&text)), hint))
}

fn pattern(value: Cursor<'_>) -> Read<ToolPattern> {
    filled(value).map(ToolPattern::new)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address stand before its bracket.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker::ToolPattern;

    use super::{PathPattern, Selector, Subject};

    fn with_path(pattern: PathPattern) -> Selector {
        Selector { paths: vec![pattern], ..Selector::default() }
    }

    fn at(path: &str) -> Subject<'_> {
        Subject { method: "POST", path, ..Subject::default() }
    }

    #[test]
    fn a_selector_without_conditions_fits_every_request() {
        assert!(Selector::default().matches(&Subject::default()));
    }

    #[test]
    fn a_prefix_fits_what_stands_below_it() {
        let below = with_path(PathPattern::Prefix("/v1/".into()));
        assert!(below.matches(&at("/v1/messages")) && below.matches(&at("/v1/a/b")));
        for path in ["/v1", "/v1/", "/v10/messages", "/", ""] {
            assert!(!below.matches(&at(path)), "{path}");
        }
        assert!(with_path(PathPattern::Prefix("/".into())).matches(&at("/")));
    }

    #[test]
    fn a_prefix_without_a_slash_at_its_end_fits_itself_too() {
        let chat = with_path(PathPattern::Prefix("/v1/chat/completions".into()));
        assert!(chat.matches(&at("/v1/chat/completions")) && chat.matches(&at("/v1/chat/completions/7")));
        for path in ["/v1/chat", "/v1/chat/completionsx"] {
            assert!(!chat.matches(&at(path)), "{path}");
        }
    }

    #[test]
    fn an_exact_path_fits_only_itself() {
        let exact = with_path(PathPattern::Exact("/v1/messages".into()));
        assert!(exact.matches(&at("/v1/messages")));
        assert!(!exact.matches(&at("/v1/messages/")));
    }

    #[test]
    fn dialect_paths_are_known_by_the_caller() {
        let dialects = with_path(PathPattern::Dialects);
        assert!(dialects.matches(&Subject { is_dialect: true, ..at("/groq/v1/chat/completions") }));
        assert!(!dialects.matches(&at("/v1/files")));
    }

    #[test]
    fn hosts_are_compared_without_case_and_port() {
        let selector = Selector { hosts: vec!["api.example.com".into()], ..Selector::default() };
        assert!(selector.matches(&Subject { host: Some("API.example.com:8080"), ..at("/") }));
        assert!(!selector.matches(&Subject { host: Some("example.com"), ..at("/") }));
        assert!(!selector.matches(&at("/")));
    }

    #[test]
    fn hosts_may_be_globs() {
        let text = "policies: [{ id: a, spec: { selector: { hosts: ['*.Example.com', 'gw-*'] } } }]";
        let selector = crate::Config::parse(text).unwrap().policies[0].selector.clone();
        for host in ["api.example.com", "API.EXAMPLE.COM:443", "a.b.example.com", "gw-1"] {
            assert!(selector.matches(&Subject { host: Some(host), ..at("/") }), "{host}");
        }
        for host in ["example.com", "example.com.evil.org", "a.gw-1"] {
            assert!(!selector.matches(&Subject { host: Some(host), ..at("/") }), "{host}");
        }
    }

    #[test]
    fn models_and_tenants_may_be_globs_and_a_request_without_a_model_fits_none() {
        let selector = Selector { models: vec![ToolPattern::new("gpt-*")], ..Selector::default() };
        assert!(selector.matches(&Subject { model: Some("gpt-5"), ..at("/") }));
        assert!(!selector.matches(&at("/")));
        let selector = Selector { tenants: vec![ToolPattern::new("team-*")], ..Selector::default() };
        assert!(selector.matches(&Subject { tenant: "team-a", ..at("/") }));
    }
}
