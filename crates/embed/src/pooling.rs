//! From what a model says of each token to one vector.

use crate::embedder::{EmbedError, Embedding};

/// The mean over the tokens, brought to length 1. A model may pool by itself: then its output has no place for tokens.
///
/// Every text is run alone and without padding, so the mask covers all of its tokens.
pub(crate) fn pool(shape: &[usize], values: &[f32]) -> Result<Embedding, EmbedError> {
    match *shape {
        [1, width] if width == values.len() && width > 0 => Ok(Embedding::new(values.to_vec())),
        [1, tokens, width] if tokens > 0 && width > 0 && tokens * width == values.len() => {
            let mut sum = vec![0.0_f32; width];
            for token in values.chunks_exact(width) {
                for (sum, value) in sum.iter_mut().zip(token) {
                    *sum += value;
                }
            }
            Ok(Embedding::new(sum))
        }
        _ => {
            Err(EmbedError::Inference(format!("the output has the shape {shape:?}, not [1, tokens, width]")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pool;

    #[test]
    fn tokens_count_equally_and_the_length_is_one() {
        let vector = pool(&[1, 2, 2], &[3.0, 0.0, 3.0, 8.0]).unwrap();
        assert_eq!(vector.as_slice(), [0.6, 0.8]);
    }

    #[test]
    fn a_model_may_pool_by_itself() {
        assert_eq!(pool(&[1, 2], &[3.0, 4.0]).unwrap().as_slice(), [0.6, 0.8]);
    }

    #[test]
    fn another_shape_is_an_error() {
        for shape in [&[2, 2][..], &[1, 0, 4], &[4], &[]] {
            assert!(pool(shape, &[0.0; 4]).is_err(), "{shape:?}");
        }
    }
}
