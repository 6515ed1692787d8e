//! Texts to vectors, and the memory of vectors: the semantic side of Loopbreaker, in process or as a sidecar.
//!
//! [`Checker`] is what the gateway asks. It looks at the exact text first, then at its words, and embeds only what may
//! be similar; [`serve`] is the sidecar that does the same for several gateways.

mod checker;
mod correction;
mod counters;
mod delta;
mod desk;
mod embedder;
mod excerpt;
mod history;
mod keyed;
mod model;
mod onnx_runtime;
mod phrases;
mod pooling;
mod proto;
mod pure_rust;
mod reading;
mod recent;
mod sidecar;
mod sidecars;
mod tokens;
mod words;

pub use checker::{Backend, Checker, CheckerError, CheckerOptions};
pub use correction::Correction;
pub use counters::{Counters, Counts};
pub use delta::Delta;
pub use embedder::{EmbedError, Embedder, Embedding};
pub use history::{
    Entry, History, HistoryError, HistoryLimits, Key, MemoryHistory, Neighbour, Pending, RedisList,
    RedisStack, open_history,
};
pub use model::{Engine, ModelOptions};
pub use reading::{Degraded, How, Question, Reading, Results, Rule, Skipped};
pub use sidecar::{Observer, OptionsError, Served, SidecarError, SidecarOptions, serve, serve_observed};
pub use sidecars::{AddressError, SidecarAddress};
