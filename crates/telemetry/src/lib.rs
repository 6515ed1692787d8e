//! What operators see: metrics, log lines and OpenTelemetry spans of one [`Record`] per request.
//!
//! ```text
//!                 ┌─► Metrics   at once: atomics, Prometheus text on demand
//! Record ─► record├─► Log       bounded queue ─► one thread ─► JSON or human lines
//!                 └─► Spans     bounded queue ─► one thread ─► OTLP over HTTP or gRPC
//! ```
//!
//! Nothing here ever delays a request: a full queue drops and counts, and whatever is behind a queue (a closed pipe, a
//! full disk, a dead collector) is shown as a degraded [`Part`] until it works again. No prompt goes in, and whatever
//! looks like a credential is masked on the way out ([`mask`]).

mod decimal;
mod log;
mod mask;
mod metrics;
mod part;
mod queue;
mod record;
mod spans;
mod telemetry;
mod trace_context;

pub use log::{Level, Log, LogFormat};
pub use mask::mask;
pub use metrics::{CacheUse, Held, Metrics, ReloadResult, Resume, SpanResult, Unit, UpstreamError};
pub use part::{Degraded, Part};
pub use record::{Check, Dialect, FindingNote, Mode, Record, TenantClass, Tokens};
pub use spans::{SettingProblem, SpanSettings, Spans};
pub use telemetry::Telemetry;
pub use trace_context::TraceContext;
