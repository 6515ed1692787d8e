//! The result cache: an answer that is still good is given again, and the provider is not asked.
//!
//! It is off unless a policy turns it on. Equal requests of one tenant share an answer, and with `similarity: semantic`
//! requests whose last words say the same do. Whatever is in doubt goes to the provider: a session with an open finding,
//! an operator's order, a tool that writes, a sampled answer, a transcript that the provider keeps.

mod kept;
mod shelf;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use loopbreaker::{Action, Effect, Fingerprint, Request, Timestamp, effect_of_call, name_the_same};
use loopbreaker_config::{Cache as CachePolicy, Similarity};
use loopbreaker_dialect::{Answer, Event, read_request};
use loopbreaker_telemetry::CacheUse;

pub(crate) use kept::{Kept, Recording, Replay};
pub(crate) use shelf::Cache;
pub(crate) use words::only_words;

use crate::answer::{End, Ended};
use crate::consider::{Case, Looked};
use crate::pipeline::{Worker, add_verdict};
use crate::reply::Reply;
use crate::send::Sending;
use crate::settings::Settings;
use crate::state::Shared;

/// A request whose answer may be given again, or kept.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    policy: Arc<str>,
    /// Two requests with the same key get the same answer.
    key: u128,
    ttl: Duration,
    max_bytes: usize,
    /// Where the last words may be others, too.
    alike: Option<Alike>,
    /// Whether the client wants a new answer.
    is_fresh_wanted: bool,
}

/// Everything that a request says but its last words, and those.
#[derive(Debug, Clone)]
struct Alike {
    frame: u128,
    words: Arc<str>,
    threshold: f64,
}

/// An answer as it is kept.
#[derive(Debug)]
pub(crate) struct Stored {
    head: Head,
    kept: Kept,
    /// What was read of it.
    answer: Answer,
    at: Timestamp,
    alike: Option<(u128, Arc<str>)>,
}

/// What belongs to an answer beside its body.
#[derive(Debug, Clone)]
struct Head {
    status: StatusCode,
    content_type: Option<HeaderValue>,
    content_encoding: Option<HeaderValue>,
}

/// An answer that is kept when it has ended well.
#[derive(Debug)]
pub(crate) struct Keeping {
    asked: Asked,
    head: Head,
}

impl Asked {
    /// Longer answers are no answers of a model; nobody asks for them twice.
    const MAX_ANSWER: usize = 8 << 20;

    /// Records an answer on its way.
    pub(crate) fn recording(&self, is_streamed: bool) -> Recording {
        Recording::new(self.max_bytes.min(Self::MAX_ANSWER), is_streamed)
    }

    /// The answer is to be kept when it has ended well.
    pub(crate) fn keeping(self, status: StatusCode, headers: &HeaderMap) -> Keeping {
        let header = |name: HeaderName| headers.get(name).cloned();
        let head =
            Head { status, content_type: header(CONTENT_TYPE), content_encoding: header(CONTENT_ENCODING) };
        Keeping { asked: self, head }
    }
}

impl Keeping {
    /// Keeps an answer that has come to its end, if it is one that may be given again.
    pub(crate) fn keep(self, shared: &Shared, kept: Kept, answer: &Answer) {
        let Self { asked, head } = self;
        let settings = shared.settings();
        let caching = |id: &str| policy_of(&settings, id);
        shared.cache.keep_only(|id| caching(id).is_some());
        let Some(policy) = caching(&asked.policy) else { return };
        let ended_well = answer.finish.as_deref().is_some_and(|reason| ENDED_WELL.contains(&reason));
        if !ended_well || !has_only_repeatable_calls(&settings, policy, answer) {
            return;
        }
        let alike = asked.alike.as_ref().map(|alike| (alike.frame, Arc::clone(&alike.words)));
        let stored = Stored { head, kept, answer: answer.clone(), at: shared.now(), alike };
        let metrics = &shared.telemetry.metrics;
        if shared.cache.put(&asked, stored) {
            metrics.cached(CacheUse::Stored);
        }
        metrics.set_cache_bytes(shared.cache.bytes() as u64);
    }
}

impl Worker {
    /// What may be given again or kept of a request; `None` when it is none of the cache's business. A bug in here stops
    /// no request.
    pub(crate) fn asked(
        &self,
        settings: &Settings,
        case: &Case<'_>,
        looked: &Looked<'_>,
        upstream: &str,
    ) -> Option<Asked> {
        let looking = AssertUnwindSafe(|| self.read_asked(settings, case, looked, upstream));
        catch_unwind(looking).unwrap_or_else(|_| {
            self.shared.telemetry.metrics.panicked();
            None
        })
    }

    fn read_asked(
        &self,
        settings: &Settings,
        case: &Case<'_>,
        looked: &Looked<'_>,
        upstream: &str,
    ) -> Option<Asked> {
        let (dialect, body) = (looked.dialect?, looked.body?);
        let mut enforced = case.policies.iter().filter(|applied| applied.enforced);
        let (policy, cache) =
            enforced.find_map(|applied| Some((applied.policy, applied.policy.policy.cache.as_ref()?)))?;
        let is_sampled = case.facts.temperature.is_some_and(|temperature| temperature > 0.0);
        let may_be_sampled = cache.allow_sampled && cache.similarity == Similarity::Exact;
        // What the provider keeps of a conversation is not seen here, and may be another tomorrow.
        let is_kept_there = case.facts.previous_response_id.is_some() || case.facts.conversation.is_some();
        let has_finding = !case.verdict.notes.is_empty() || case.verdict.action > Action::Warn;
        let wish =
            looked.headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if (is_sampled && !may_be_sampled)
            || is_kept_there
            || has_finding
            || wish.contains("no-store")
            || !self.edits(case, dialect, body).is_empty()
        {
            return None;
        }
        let (mut repeatable, mut last) = (true, None);
        let read = read_request(dialect, body, None, &mut |message| {
            message.events(&mut |event| {
                if let Event::Called { step, .. } = &event
                    && let Some(tool) = &step.tool
                {
                    repeatable &= may_be_repeated(settings, cache, tool, step.args.as_deref());
                }
            });
            last = Some(message.span.clone());
        });
        if read.is_err() || !repeatable {
            return None;
        }
        let key = |body: &[u8]| key_of(case, looked, &policy.id, upstream, body);
        let alike = last.filter(|_| cache.similarity == Similarity::Semantic).and_then(|last| {
            let words = only_words(&body[last.clone()])?;
            let frame = key(&[&body[..last.start], b"null", &body[last.end..]].concat());
            Some(Alike {
                frame,
                words: words.into(),
                threshold: settings.config.detectors.semantic.threshold,
            })
        });
        Some(Asked {
            policy: Arc::clone(&policy.id),
            key: key(body),
            ttl: cache.ttl,
            max_bytes: usize::try_from(cache.max_bytes).unwrap_or(usize::MAX),
            alike,
            is_fresh_wanted: wish.contains("no-cache"),
        })
    }

    /// The answer that an equal request got, or one that says the same.
    pub(crate) async fn recall(&self, settings: &Settings, asked: &Asked) -> Option<Arc<Stored>> {
        if asked.is_fresh_wanted {
            return None;
        }
        let now = self.shared.now();
        let equal = self.shared.cache.get(asked, asked.key, now);
        let found = match (equal, &asked.alike) {
            (None, Some(alike)) => self.recall_alike(asked, alike, now).await,
            (equal, _) => equal,
        };
        // Tools may have been marked since it was kept.
        let policy = policy_of(settings, &asked.policy)?;
        let found = found.filter(|stored| has_only_repeatable_calls(settings, policy, &stored.answer));
        self.shared.telemetry.metrics.cached(if found.is_some() { CacheUse::Hit } else { CacheUse::Miss });
        found
    }

    /// The answer to other words for the same. Whatever fails on the way is a miss.
    async fn recall_alike(&self, asked: &Asked, alike: &Alike, now: Timestamp) -> Option<Arc<Stored>> {
        let meaning = self.shared.meaning()?;
        let mut known = self.shared.cache.alike(asked, alike.frame);
        known.retain(|(words, _)| name_the_same(words, &alike.words));
        if known.is_empty() {
            return None;
        }
        let texts: Vec<Arc<str>> = known.iter().map(|(words, _)| Arc::clone(words)).collect();
        let (at, similarity) = meaning.checker.most_similar(&alike.words, &texts).await?;
        let (_, key) = known.get(at).filter(|_| similarity > alike.threshold)?;
        self.shared.cache.get(asked, *key, now)
    }
}

impl Sending<'_> {
    /// Answers with what was answered before. It is written down and counted like any other answer, but nothing was
    /// used and nothing is paid.
    pub(crate) fn give_again(mut self, stored: &Stored) -> Response<Reply> {
        let age = Duration::from_millis(self.worker.shared.now().millis_since(stored.at));
        self.record.overhead = self.times.read.elapsed().saturating_sub(self.times.held);
        self.record.cache_age = Some(age);

        let mut response = Response::new(stored.kept.body());
        *response.status_mut() = stored.head.status;
        let headers = response.headers_mut();
        for (name, value) in
            [(CONTENT_TYPE, &stored.head.content_type), (CONTENT_ENCODING, &stored.head.content_encoding)]
        {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        add_verdict(headers, &self.case);
        if let Ok(told) = HeaderValue::from_str(&format!("hit; age={}", age.as_secs())) {
            headers.insert(CACHE, told);
        }
        self.settling(stored.head.status.as_u16())(Ended {
            end: End::Complete,
            answer: Some(stored.answer.clone()),
            chant: None,
            first_chunk: Some(Instant::now()),
            kept: None,
        });
        response
    }
}

/// The cache of the policy with this name.
fn policy_of<'s>(settings: &'s Settings, id: &str) -> Option<&'s CachePolicy> {
    settings.policies.iter().find(|active| &*active.id == id)?.policy.cache.as_ref()
}

fn has_only_repeatable_calls(settings: &Settings, cache: &CachePolicy, answer: &Answer) -> bool {
    answer.calls.iter().all(|call| may_be_repeated(settings, cache, &call.tool, Some(&call.args)))
}

/// Whether a call may stand in a request or an answer that is given again: not when it writes, and where tools are
/// named only when it is one of those.
fn may_be_repeated(settings: &Settings, cache: &CachePolicy, tool: &str, args: Option<&str>) -> bool {
    let is_named = cache.tools.is_empty() || cache.tools.iter().any(|named| named.matches(tool));
    is_named && effect_of_call(tool, args, &settings.config.detectors.redundancy) != Some(Effect::Write)
}

/// What two requests have in common that may get the same answer: whose they are, who is asked, by which right and in
/// which form, and all that they say.
fn key_of(case: &Case<'_>, looked: &Looked<'_>, policy: &str, upstream: &str, body: &[u8]) -> u128 {
    let tenant = format!("{:032x}", case.tenant.key);
    let shaping = looked.headers.iter().filter(|(name, _)| shapes_the_answer(name.as_str()));
    // Two that are no text differ all the same: one of them may be a credential.
    let shaping: Vec<_> =
        shaping.map(|(name, value)| (name.as_str(), value.as_bytes().escape_ascii().to_string())).collect();
    let mut descriptors = vec![("tenant", tenant.as_str()), ("policy", policy), ("upstream", upstream)];
    descriptors.extend(shaping.iter().map(|(name, value)| (*name, value.as_str())));
    let pairs = looked.query.split('&').filter(|pair| !pair.is_empty());
    let query: Vec<(&str, &str)> = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    let request =
        Request { method: looked.method, path: looked.path, query: &query, body, descriptors: &descriptors };
    Fingerprint::of_request(&request).short()
}

fn shapes_the_answer(header: &str) -> bool {
    header.starts_with("anthropic-")
        || header.starts_with("openai-")
        || header.starts_with("x-goog-")
        || matches!(header, "accept" | "accept-encoding" | "authorization" | "x-api-key" | "api-key")
}

/// How answers end that a model has finished by itself, in the words of all dialects.
const ENDED_WELL: [&str; 8] =
    ["stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "STOP", "completed"];

const CACHE: HeaderName = HeaderName::from_static("x-loopbreaker-cache");
