//! Why nothing could be learnt, and what to do about it.

use std::time::Duration;

use loopbreaker_config::BaseUrl;

use crate::http::{Answer, Unanswered};

/// Why nothing could be learnt.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// No answer at all.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// An answer of somebody else.
    #[error("another program answers at {url}: it says {status}{} to `POST /v1/decision`", named(.server.as_deref()))]
    Foreign {
        /// Where we asked.
        url: BaseUrl,
        /// What it said.
        status: u16,
        /// What it calls itself.
        server: Option<String>,
    },
    /// Too slow.
    #[error("{0} has not answered within {limit} s", limit = .1.as_secs())]
    TimedOut(BaseUrl, Duration),
    /// What we wanted to ask is no request.
    #[error("the request could not be made: {0}")]
    Request(hyper::http::Error),
}

impl Trouble {
    pub(super) fn foreign(url: &BaseUrl, answer: &Answer) -> Self {
        let server = answer.headers.get("server").and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self::Foreign { url: url.clone(), status: answer.status, server }
    }

    /// What to do next.
    pub(super) const fn hint(&self) -> &'static str {
        match self {
            Self::Unanswered(Unanswered::NothingListens(_)) => {
                "start it with `loopbreaker serve`, or name the address it listens on: `loopbreaker probe URL`"
            }
            Self::Unanswered(Unanswered::Tls(..)) => {
                "does the gateway have a `tls` section, and does this machine trust its certificate? \
                 SSL_CERT_FILE names one to trust"
            }
            Self::Unanswered(Unanswered::NotHttp(..)) => {
                "if the gateway has a `tls` section, write https:// instead of http://"
            }
            Self::Unanswered(_) | Self::Foreign { .. } | Self::Request(_) => {
                "name the address that `loopbreaker serve` prints: `loopbreaker probe URL`"
            }
            Self::TimedOut(..) => {
                "is the machine overloaded, or is a firewall in between? look at the log of `loopbreaker serve`"
            }
        }
    }
}

fn named(server: Option<&str>) -> String {
    server.map(|server| format!(" (server: {server})")).unwrap_or_default()
}
