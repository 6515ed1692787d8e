//! What turns texts into vectors, whoever does it.

use std::path::PathBuf;

use crate::correction::Correction;

/// Turns texts into vectors. A new model or a new engine is a new implementation.
///
/// The vector of a text never depends on the texts beside it: the same text has the same vector in every batch.
///
/// ```
/// use loopbreaker_embed::{Embedder, ModelOptions};
///
/// let embedder = ModelOptions::default().load()?;
/// let vectors = embedder.embed(&["let me look at the logs", "I will read the logs"])?;
/// assert_eq!(vectors[0].as_slice().len(), 384);
/// assert!(loopbreaker::similarity(vectors[0].as_slice(), vectors[1].as_slice()) > 0.8);
/// # Ok::<(), loopbreaker_embed::EmbedError>(())
/// ```
pub trait Embedder: Send + Sync {
    /// One vector for each text, in their order.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, EmbedError>;

    /// How many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// What makes similarities of its vectors mean what those of the full model do.
    fn correction(&self) -> Correction {
        Correction::NONE
    }
}

/// The vector of one text, of length 1, or of length 0 if the model gave nothing that has a direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding(Box<[f32]>);

impl Embedding {
    /// The vector, brought to length 1.
    pub fn new(mut vector: Vec<f32>) -> Self {
        let squares: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        let norm = squares.sqrt();
        if norm.is_normal() {
            for value in &mut vector {
                *value = (f64::from(*value) / norm) as f32;
            }
        } else {
            vector.fill(0.0);
        }
        Self(vector.into())
    }

    /// Its numbers.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// A file of the model cannot be read.
    #[error(
        "cannot read {path}: {reason}; give a folder with model.onnx and tokenizer.json, or the .onnx file itself"
    )]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The tokenizer's file is not one.
    #[error("the tokenizer cannot be used: {0}; it has to be a tokenizer.json of the model")]
    Tokenizer(String),
    /// The model cannot be used.
    #[error(
        "the model cannot be used: {0}; it has to be an ONNX text encoder with input_ids and attention_mask"
    )]
    Model(String),
    /// ONNX Runtime was asked for, but its library is not there.
    #[error(
        "ONNX Runtime cannot be loaded from {path}: {reason}; set ORT_DYLIB_PATH to libonnxruntime.so, or unset it for the built-in engine"
    )]
    OnnxRuntime {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// ONNX Runtime was asked for by name, and nothing says where it is.
    #[error(
        "ONNX Runtime is not installed in any usual place; set ORT_DYLIB_PATH to libonnxruntime.so, or choose the engine `pure` or `auto`"
    )]
    NoOnnxRuntime,
    /// One inference failed.
    #[error("the model gave no vectors: {0}")]
    Inference(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Embedding;

    #[test]
    fn what_has_no_direction_is_all_zero() {
        for vector in [vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 0.0], vec![]] {
            assert!(Embedding::new(vector).as_slice().iter().all(|value| *value == 0.0));
        }
    }

    proptest! {
        #[test]
        fn every_other_vector_has_length_one(vector in prop::collection::vec(-1e6_f32..1e6, 1..9)) {
            prop_assume!(vector.iter().any(|value| value.abs() > 1e-3));
            let embedding = Embedding::new(vector);
            let squares: f32 = embedding.as_slice().iter().map(|value| value * value).sum();
            prop_assert!((squares - 1.0).abs() < 1e-5);
        }
    }
}
