//! The sidecars, seen from the gateway: who is asked, and who is left alone.

mod address;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use loopbreaker::Timestamp;
use loopbreaker_budget::Breaker;
use tokio::task::AbortHandle;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

pub use address::{AddressError, SidecarAddress};

use crate::proto::{CheckLoopRequest, CheckLoopResponse, EmbeddingServiceClient};
use crate::reading::{Degraded, How, Skipped};

/// All sidecars. The healthy one with the fewest questions is asked; one that fails again and again is left alone
/// until a health check says that it works.
#[derive(Debug)]
pub(crate) struct Sidecars {
    each: Vec<Arc<Sidecar>>,
    started: Instant,
    watch: AbortHandle,
}

#[derive(Debug)]
struct Sidecar {
    channel: Channel,
    breaker: Breaker,
    healthy: AtomicBool,
    asked: AtomicUsize,
}

/// Failures in a row after which a sidecar is left alone, and for how long.
const FAILURES: u32 = 3;
const LEFT_ALONE: Duration = Duration::from_secs(2);
/// How often each sidecar is asked how it is, and how long it may think about it.
const HEALTH_EVERY: Duration = Duration::from_millis(500);
const HEALTH_WITHIN: Duration = Duration::from_millis(250);
/// The name by which the health service knows the sidecar.
pub(crate) const SERVICE: &str = "loopbreaker.embedding.v1.EmbeddingService";

impl Sidecars {
    /// Has to be called inside of a runtime. Connections are made when they are needed.
    pub(crate) fn connect(addresses: &[SidecarAddress]) -> Self {
        let sidecar = |address: &SidecarAddress| {
            Arc::new(Sidecar {
                channel: address.channel(),
                breaker: Breaker::new(FAILURES, LEFT_ALONE),
                healthy: AtomicBool::new(true),
                asked: AtomicUsize::new(0),
            })
        };
        let each: Vec<_> = addresses.iter().map(sidecar).collect();
        let watched = each.clone();
        let watch = tokio::spawn(async move {
            loop {
                for sidecar in &watched {
                    sidecar.healthy.store(sidecar.is_healthy().await, Ordering::Relaxed);
                }
                tokio::time::sleep(HEALTH_EVERY).await;
            }
        });
        Self { each, started: Instant::now(), watch: watch.abort_handle() }
    }

    /// Asks one sidecar, and another one if the first fails at once; `within` is for all of them together.
    pub(crate) async fn ask(
        &self,
        question: &CheckLoopRequest,
        trace: Option<&str>,
        within: Duration,
    ) -> Result<CheckLoopResponse, How> {
        let asked = Instant::now();
        let mut well: Vec<&Sidecar> =
            self.each.iter().map(AsRef::as_ref).filter(|sidecar| sidecar.is_well()).collect();
        well.sort_by_key(|sidecar| sidecar.asked.load(Ordering::Relaxed));
        let mut trouble = How::Degraded(Degraded::Unavailable);
        for sidecar in well {
            let Ok(permit) = sidecar.breaker.allow(self.now()) else { continue };
            let left = within.saturating_sub(asked.elapsed());
            trouble = match sidecar.ask(question, trace, left).await {
                Ok(answer) => {
                    sidecar.breaker.success(permit, self.now());
                    return Ok(answer);
                }
                Err(trouble) => trouble,
            };
            let (now, broken) = (self.now(), trouble.is_the_sidecars_fault());
            if broken {
                sidecar.breaker.failure(permit, now);
            } else {
                sidecar.breaker.success(permit, now);
            }
            if !broken || asked.elapsed() >= within {
                break;
            }
        }
        Err(trouble)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

impl Drop for Sidecars {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Sidecar {
    fn is_well(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    async fn ask(
        &self,
        question: &CheckLoopRequest,
        trace: Option<&str>,
        within: Duration,
    ) -> Result<CheckLoopResponse, How> {
        let _asked = Asked::new(&self.asked);
        let mut client = EmbeddingServiceClient::new(self.channel.clone());
        let mut request = Request::new(question.clone());
        // The sidecar turns away what it cannot answer in that time.
        request.set_timeout(within);
        if let Some(Ok(trace)) = trace.map(str::parse) {
            request.metadata_mut().insert(TRACEPARENT, trace);
        }
        match tokio::time::timeout(within, client.check_loop(request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(trouble_of(&status)),
            Err(_) => Err(How::Degraded(Degraded::Timeout)),
        }
    }

    async fn is_healthy(&self) -> bool {
        let mut client = HealthClient::new(self.channel.clone());
        let asked = client.check(HealthCheckRequest { service: SERVICE.to_owned() });
        match tokio::time::timeout(HEALTH_WITHIN, asked).await {
            Ok(Ok(answer)) => answer.get_ref().status == ServingStatus::Serving as i32,
            // A sidecar of another make may have no health service; then the breaker alone decides.
            Ok(Err(status)) => matches!(status.code(), Code::Unimplemented | Code::NotFound),
            Err(_) => false,
        }
    }
}

/// A question that is under way.
struct Asked<'a>(&'a AtomicUsize);

impl<'a> Asked<'a> {
    fn new(asked: &'a AtomicUsize) -> Self {
        asked.fetch_add(1, Ordering::Relaxed);
        Self(asked)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl How {
    /// Whether the next question would fare no better.
    fn is_the_sidecars_fault(self) -> bool {
        matches!(self, Self::Degraded(Degraded::Timeout | Degraded::Unavailable | Degraded::Garbage))
    }
}

/// What a failed call means. Its text tells a store that is away from a sidecar that is.
fn trouble_of(status: &Status) -> How {
    match status.code() {
        Code::ResourceExhausted => How::Skipped(Skipped::Busy),
        Code::DeadlineExceeded | Code::Cancelled => How::Degraded(Degraded::Timeout),
        Code::FailedPrecondition => How::Degraded(Degraded::Store),
        Code::Unavailable if status.metadata().contains_key(STORE_AWAY) => How::Degraded(Degraded::Store),
        Code::Unavailable => How::Degraded(Degraded::Unavailable),
        Code::Internal if !status.metadata().contains_key(MODEL_FAILED) => How::Degraded(Degraded::Garbage),
        Code::Internal => How::Degraded(Degraded::Model),
        _ => How::Degraded(Degraded::Garbage),
    }
}

/// By what a trace goes on in another process.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// What our sidecar adds to an error, since the transport uses the same codes for troubles of its own.
pub(crate) const STORE_AWAY: &str = "loopbreaker-store-away";
/// The same for a model that failed.
pub(crate) const MODEL_FAILED: &str = "loopbreaker-model-failed";
