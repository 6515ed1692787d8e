//! What the gateway says about itself.

use http_body_util::Full;
use hyper::Request;
use loopbreaker_config::BaseUrl;
use serde::Deserialize;

use super::trouble::Trouble;
use crate::http::{self, Answer};

/// `/livez` and `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) live: bool,
    /// `ready`, `degraded` or `draining`.
    pub(super) status: String,
    /// Parts that do not work as they should.
    pub(super) degraded: Vec<String>,
    /// Upstreams that nothing is sent to at present.
    pub(super) open_breakers: Vec<String>,
}

/// Asks for it; `None` where health has an address of its own (`admin_listen`).
pub(super) async fn ask(url: &BaseUrl) -> Result<Option<Health>, Trouble> {
    let live = get(url, "/livez").await?;
    let ready = get(url, "/readyz").await?;
    Ok(Readiness::of(&ready).map(|Readiness { status, degraded, parts }| Health {
        live: live.status == 200,
        status,
        degraded,
        open_breakers: parts.open_breakers,
    }))
}

async fn get(url: &BaseUrl, path: &str) -> Result<Answer, Trouble> {
    let request = Request::get(path).body(Full::default()).map_err(Trouble::Request)?;
    Ok(http::ask(url, request).await?)
}

#[derive(Debug, Deserialize)]
struct Readiness {
    status: String,
    #[serde(default)]
    degraded: Vec<String>,
    #[serde(default)]
    parts: Parts,
}

#[derive(Debug, Default, Deserialize)]
struct Parts {
    #[serde(default)]
    open_breakers: Vec<String>,
}

impl Readiness {
    fn of(answer: &Answer) -> Option<Self> {
        // 503 is what a gateway says that is on its way out.
        let is_told = matches!(answer.status, 200 | 503);
        is_told.then(|| serde_json::from_slice(&answer.body).ok()).flatten()
    }
}
