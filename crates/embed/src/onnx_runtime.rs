//! ONNX Runtime, from a library that is there at run time.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ort::session::Session;
use ort::value::Tensor;

use crate::correction::Correction;
use crate::embedder::{EmbedError, Embedder, Embedding};
use crate::pooling::pool;
use crate::tokens::Tokens;

/// A model on ONNX Runtime.
pub(crate) struct OnnxRuntime {
    /// A session runs one text at a time, on all of its threads.
    session: Mutex<Session>,
    inputs: Vec<String>,
    tokens: Tokens,
    correction: Correction,
    dimensions: usize,
}

impl OnnxRuntime {
    pub(crate) fn load(
        library: &Path,
        model: &[u8],
        tokens: Tokens,
        correction: Correction,
        threads: NonZeroUsize,
    ) -> Result<Self, EmbedError> {
        let absent = |reason: String| EmbedError::OnnxRuntime { path: library.to_owned(), reason };
        if !library.exists() {
            return Err(absent("there is no such file".to_owned()));
        }
        ort::init_from(library).map_err(|error| absent(error.to_string()))?.with_name("loopbreaker").commit();
        let session = open(model, threads).map_err(|error| EmbedError::Model(error.to_string()))?;
        let inputs: Vec<String> = session.inputs().iter().map(|input| input.name().to_owned()).collect();
        if let Some(name) = inputs.iter().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(EmbedError::Model(format!("it wants the input `{name}`")));
        }
        let mut loaded = Self { session: Mutex::new(session), inputs, tokens, correction, dimensions: 0 };
        // A model that can be read may still not run.
        let first = loaded.run("warm").map_err(|error| EmbedError::Model(error.to_string()))?;
        loaded.dimensions = first.as_slice().len();
        Ok(loaded)
    }

    fn run(&self, text: &str) -> Result<Embedding, EmbedError> {
        let ids: Vec<i64> = self.tokens.of(text)?.into_iter().map(i64::from).collect();
        self.infer(&ids).map_err(|error| EmbedError::Inference(error.to_string()))?
    }

    fn infer(&self, ids: &[i64]) -> ort::Result<Result<Embedding, EmbedError>> {
        let length = ids.len();
        let tensor = |values: Vec<i64>| Tensor::from_array(([1, length], values));
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for name in &self.inputs {
            let values = match name.as_str() {
                "input_ids" => ids.to_vec(),
                "attention_mask" => vec![1; length],
                _ => vec![0; length],
            };
            inputs.push((name.as_str(), tensor(values)?));
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(inputs)?;
        let (shape, values) = outputs[0].try_extract_tensor::<f32>()?;
        let shape: Vec<usize> = shape.iter().map(|size| usize::try_from(*size).unwrap_or(0)).collect();
        Ok(pool(&shape, values))
    }
}

impl Embedder for OnnxRuntime {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, EmbedError> {
        // An int8 model takes its scales over a whole batch, so neighbours would change a text's vector: one by one.
        texts.iter().map(|text| self.run(text)).collect()
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn correction(&self) -> Correction {
        self.correction
    }
}

const KNOWN: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];

fn open(model: &[u8], threads: NonZeroUsize) -> ort::Result<Session> {
    let session = Session::builder()?
        .with_intra_threads(threads.get())?
        // Within a text its threads wait for each other too shortly to sleep. Between texts they must not spin: that
        // would take the cores from the requests.
        .with_intra_op_spinning(true)?
        .with_config_entry("session.force_spinning_stop", "1")?
        // The weights of a compressed model are computed once, not with every text.
        .with_quant_qdq(false)?
        .commit_from_memory(model)?;
    Ok(session)
}
