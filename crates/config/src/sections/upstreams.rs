//! `upstreams`: where requests are sent on to.

use std::collections::HashMap;
use std::time::Duration;

use crate::base_url::{BaseUrl, is_plain_path};
use crate::cursor::{Cursor, Read};
use crate::kinds::{some_time, text, whole};
use crate::path::quote;

/// Where requests are sent on to, and when that is given up.
///
/// ```
/// use loopbreaker_config::{Config, Dialect};
/// let text = "upstreams: { routes: [{ prefix: /groq, base_url: https://api.groq.com/openai }] }";
/// let upstreams = Config::parse(text).unwrap().upstreams;
/// assert_eq!(upstreams.openai.host(), "api.openai.com");
/// assert_eq!((&*upstreams.routes[0].prefix, upstreams.routes[0].dialect), ("/groq/", Dialect::OpenAi));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstreams {
    /// For chat completions and Responses.
    pub openai: BaseUrl,
    /// For Anthropic messages.
    pub anthropic: BaseUrl,
    /// For Gemini.
    pub gemini: BaseUrl,
    /// Other places, each behind a path prefix of its own.
    pub routes: Vec<Route>,
    /// How long an answer may take before the request is given up.
    pub timeout: Duration,
    /// When an upstream that fails is left alone.
    pub breaker: Breaker,
}

/// Requests below a path prefix go to a place of their own; the prefix is taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The prefix, with a slash at its start and at its end.
    pub prefix: String,
    /// Where its requests go.
    pub base_url: BaseUrl,
    /// What is spoken there.
    pub dialect: Dialect,
}

/// Whose API is spoken.
///
/// ```
/// use loopbreaker_config::Dialect;
/// assert_eq!(Dialect::OpenAi.as_str(), "openai");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Chat completions and Responses of `OpenAI`.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

/// When an upstream that fails is left alone for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row after which nothing is sent there any more.
    pub failures: u32,
    /// How long nothing is sent before one request tries again.
    pub open_for: Duration,
}

impl Upstreams {
    /// The same settings with one place for all three dialects, as `--upstream` asks for.
    ///
    /// ```
    /// use loopbreaker_config::{BaseUrl, Upstreams};
    /// let local = BaseUrl::parse("http://localhost:4000").unwrap();
    /// assert_eq!(Upstreams::default().all_at(&local).gemini, local);
    /// ```
    #[must_use]
    pub fn all_at(self, url: &BaseUrl) -> Self {
        Self { openai: url.clone(), anthropic: url.clone(), gemini: url.clone(), ..self }
    }

    /// The place of a dialect where no route is more exact.
    pub const fn of(&self, dialect: Dialect) -> &BaseUrl {
        match dialect {
            Dialect::OpenAi => &self.openai,
            Dialect::Anthropic => &self.anthropic,
            Dialect::Gemini => &self.gemini,
        }
    }
}

impl Dialect {
    /// Every dialect, in the order of the config.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// The name in the config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn usual_url(self) -> BaseUrl {
        BaseUrl::https(match self {
            Self::OpenAi => "api.openai.com",
            Self::Anthropic => "api.anthropic.com",
            Self::Gemini => "generativelanguage.googleapis.com",
        })
    }
}

impl Default for Upstreams {
    fn default() -> Self {
        Self {
            openai: Dialect::OpenAi.usual_url(),
            anthropic: Dialect::Anthropic.usual_url(),
            gemini: Dialect::Gemini.usual_url(),
            routes: Vec::new(),
            timeout: Duration::from_secs(600),
            breaker: Breaker::default(),
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(30) }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Upstreams> {
    let default = Upstreams::default();
    let mut fields = section.map()?;
    let openai = fields.field("openai", default.openai, place);
    let anthropic = fields.field("anthropic", default.anthropic, place);
    let gemini = fields.field("gemini", default.gemini, place);
    let routes = fields.field("routes", default.routes, routes);
    let timeout = fields.field("timeout", default.timeout, some_time);
    let breaker = fields.field("breaker", default.breaker, breaker);
    fields.finish();
    Ok(Upstreams {
        openai: openai?,
        anthropic: anthropic?,
        gemini: gemini?,
        routes: routes?,
        timeout: timeout?,
        breaker: breaker?,
    })
}

/// The place of a whole dialect. Clients bring `/v1` along, so a place that ends with it is rarely meant.
fn place(value: Cursor<'_>) -> Read<BaseUrl> {
    let url = base_url(value)?;
    if let Some(version) = ["/v1beta", "/v1"].into_iter().find(|end| url.path().ends_with(end)) {
        let message = format!("requests bring `{version}` along, so they go to `{url}{version}/…`");
        value.notice(message, format!("remove `{version}` from the end"));
    }
    Ok(url)
}

fn base_url(value: Cursor<'_>) -> Read<BaseUrl> {
    BaseUrl::parse(&text(value)?)
        .map_err(|error| value.refuse(error.to_string(), "write it like `https://api.openai.com`"))
}

fn routes(value: Cursor<'_>) -> Read<Vec<Route>> {
    let mut seen = HashMap::new();
    value.list(|route| {
        let mut fields = route.map()?;
        let prefix = fields.required("prefix", "write the start of a path, such as `prefix: /groq/`", |at| {
            let prefix = prefix(at)?;
            match seen.insert(prefix.clone(), at.line()) {
                Some(line) => Err(at.refuse(
                    format!("the prefix {} stands twice, first on line {line}", quote(&prefix)),
                    "remove one of the routes, or give it another prefix",
                )),
                None => Ok(prefix),
            }
        });
        let hint = "write where its requests go, such as `base_url: https://api.groq.com/openai`";
        let base_url = fields.required("base_url", hint, base_url);
        let dialect = fields.field("dialect", Dialect::OpenAi, |value| {
            value.choice(&Dialect::ALL.map(|dialect| (dialect.as_str(), dialect)))
        });
        fields.finish();
        Ok(Route { prefix: prefix?, base_url: base_url?, dialect: dialect? })
    })
}

fn prefix(value: Cursor<'_>) -> Read<String> {
    let text = text(value)?;
    let refuse = |message: String, hint| Err(value.refuse(message, hint));
    if !text.starts_with('/') {
        return refuse(
            format!("the prefix {} does not begin with `/`", quote(&text)),
            "write it like `/groq/`",
        );
    }
    if text == "/" {
        let hint =
            "set `openai`, `anthropic` and `gemini` under `upstreams`, or write a prefix like `/groq/`";
        return refuse("the prefix `/` would take every request".to_owned(), hint);
    }
    if !is_plain_path(&text) {
        return refuse(format!("{} cannot be the start of a path", quote(&text)), "write it like `/groq/`");
    }
    Ok(if text.ends_with('/') { text } else { text + "/" })
}

fn breaker(value: Cursor<'_>) -> Read<Breaker> {
    let default = Breaker::default();
    let mut fields = value.map()?;
    let failures = fields.field("failures", default.failures, |value| match whole(value)? {
        0 => Err(value.refuse("after 0 failures nothing would ever be sent", "write at least 1, 5 is usual")),
        failures => Ok(failures),
    });
    let open_for = fields.field("open_for", default.open_for, some_time);
    fields.finish();
    Ok(Breaker { failures: failures?, open_for: open_for? })
}
