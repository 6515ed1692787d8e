//! The built-in engine: no library, no download.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rten::{Model, ModelOptions, NodeId, NodeInfo, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use crate::correction::Correction;
use crate::embedder::{EmbedError, Embedder, Embedding};
use crate::model::Bytes;
use crate::pooling::pool;
use crate::tokens::Tokens;

/// A model on the built-in engine.
pub(crate) struct PureRust {
    model: Model,
    inputs: Vec<(NodeId, Input)>,
    output: NodeId,
    tokens: Tokens,
    correction: Correction,
    dimensions: usize,
    /// All threads, for one text.
    together: Arc<ThreadPool>,
    /// A thread each, for several texts: a small matrix is multiplied faster by one thread than by two that wait for
    /// each other.
    lanes: Vec<Arc<ThreadPool>>,
}

/// What a model wants to know about each token.
#[derive(Debug, Clone, Copy)]
enum Input {
    Ids,
    Mask,
    Types,
}

impl PureRust {
    pub(crate) fn load(
        model: Bytes,
        tokens: Tokens,
        correction: Correction,
        threads: NonZeroUsize,
    ) -> Result<Self, EmbedError> {
        let refused = |error: &dyn std::fmt::Display| EmbedError::Model(error.to_string());
        let mut options = ModelOptions::with_all_ops();
        // Constants are computed once here, the full weights of a compressed model among them.
        options.enable_optimization(true).prepack_weights(true);
        let model = match model {
            Cow::Borrowed(bytes) => options.load_static_slice(bytes),
            Cow::Owned(bytes) => options.load(bytes),
        };
        let model = model.map_err(|error| refused(&error))?;
        let inputs = model.input_ids().iter().map(|id| {
            let info = model.node_info(*id);
            let name = info.as_ref().and_then(NodeInfo::name).unwrap_or_default();
            let input =
                Input::named(name).ok_or_else(|| refused(&format_args!("it wants the input `{name}`")))?;
            Ok((*id, input))
        });
        let inputs = inputs.collect::<Result<Vec<_>, EmbedError>>()?;
        let output = *model.output_ids().first().ok_or_else(|| refused(&"it has no output"))?;
        let lane = || Arc::new(ThreadPool::with_num_threads(1));
        let mut loaded = Self {
            model,
            inputs,
            output,
            tokens,
            correction,
            dimensions: 0,
            together: Arc::new(ThreadPool::with_num_threads(threads.get())),
            lanes: (0..threads.get()).map(|_| lane()).collect(),
        };
        // A model that can be read may still not run.
        let first = loaded.run("warm", &loaded.together).map_err(|error| refused(&error))?;
        loaded.dimensions = first.as_slice().len();
        Ok(loaded)
    }

    fn run(&self, text: &str, threads: &Arc<ThreadPool>) -> Result<Embedding, EmbedError> {
        let failed = |error: &dyn std::fmt::Display| EmbedError::Inference(error.to_string());
        let ids = self.tokens.of(text)?;
        let shape = [1, ids.len()];
        let (mask, types) = (NdTensor::<i32, 2>::full(shape, 1), NdTensor::<i32, 2>::zeros(shape));
        let ids = NdTensor::from_data(shape, ids);
        let inputs: Vec<(NodeId, ValueOrView<'_>)> = self
            .inputs
            .iter()
            .map(|(id, input)| (*id, input.of(&ids, &mask, &types).view().into()))
            .collect();
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(threads)));
        let [output] =
            self.model.run_n(inputs, [self.output], Some(options)).map_err(|error| failed(&error))?;
        let output =
            output.into_tensor::<f32>().ok_or_else(|| failed(&"the output is not made of floats"))?;
        pool(output.shape(), &output.to_vec())
    }
}

impl Embedder for PureRust {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, EmbedError> {
        if let [text] = texts {
            return Ok(vec![self.run(text, &self.together)?]);
        }
        let next = AtomicUsize::new(0);
        let slots: Vec<_> = texts.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for lane in self.lanes.iter().take(texts.len()) {
                scope.spawn(|| {
                    while let Some(at) = claim(&next, texts.len()) {
                        *slots[at].lock().unwrap_or_else(PoisonError::into_inner) =
                            Some(self.run(texts[at], lane));
                    }
                });
            }
        });
        let unfilled = || Err(EmbedError::Inference("a thread ended early".to_owned()));
        let filled = slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
        filled.map(|result| result.unwrap_or_else(unfilled)).collect()
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn correction(&self) -> Correction {
        self.correction
    }
}

fn claim(next: &AtomicUsize, end: usize) -> Option<usize> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    (at < end).then_some(at)
}

impl Input {
    fn named(name: &str) -> Option<Self> {
        match name {
            "input_ids" => Some(Self::Ids),
            "attention_mask" => Some(Self::Mask),
            "token_type_ids" => Some(Self::Types),
            _ => None,
        }
    }

    fn of<'a, T>(self, ids: &'a T, mask: &'a T, types: &'a T) -> &'a T {
        match self {
            Self::Ids => ids,
            Self::Mask => mask,
            Self::Types => types,
        }
    }
}
