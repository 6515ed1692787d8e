//! From a text to at most 128 tokens.

use tokenizers::Tokenizer;

use crate::embedder::EmbedError;
use crate::excerpt::excerpt;

/// Tokens that are taken from the beginning of a text, and as many from its end.
const END: usize = 64;

/// Cuts texts into the tokens of one model.
#[derive(Debug)]
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
}

impl Tokens {
    /// From the content of a `tokenizer.json`.
    pub(crate) fn new(json: &[u8]) -> Result<Self, EmbedError> {
        let mut tokenizer =
            Tokenizer::from_bytes(json).map_err(|error| EmbedError::Tokenizer(error.to_string()))?;
        // The file may ask for a cut at the end or for padding; what is cut is decided here.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| EmbedError::Tokenizer(error.to_string()))?;
        Ok(Self { tokenizer })
    }

    /// The tokens of a text with those that the model wants around them: all of them, or 64 of the head and 64 of the
    /// tail. Never none.
    pub(crate) fn of(&self, text: &str) -> Result<Vec<i32>, EmbedError> {
        let failed =
            |error: &dyn std::fmt::Display| EmbedError::Inference(format!("not cut into tokens: {error}"));
        let encoding = self.tokenizer.encode_fast(excerpt(text), true).map_err(|error| failed(&error))?;
        let ids = encoding.get_ids();
        let kept: Vec<i32> = if ids.len() > 2 * END {
            ids[..END].iter().chain(&ids[ids.len() - END..]).map(|id| id.cast_signed()).collect()
        } else {
            ids.iter().map(|id| id.cast_signed()).collect()
        };
        if kept.is_empty() { Err(failed(&"the tokenizer gave no token at all")) } else { Ok(kept) }
    }
}

#[cfg(test)]
mod tests {
    use super::Tokens;
    use crate::model::BUNDLED_TOKENIZER;

    const CLS: i32 = 101;
    const SEP: i32 = 102;

    fn tokens(text: &str) -> Vec<i32> {
        Tokens::new(BUNDLED_TOKENIZER).unwrap().of(text).unwrap()
    }

    #[test]
    fn a_short_text_is_taken_whole() {
        assert_eq!(tokens("hello world"), [CLS, 7592, 2088, SEP]);
        assert_eq!(tokens(""), [CLS, SEP]);
    }

    #[test]
    fn of_a_long_text_64_tokens_of_each_end_are_taken() {
        let kept = tokens(&format!("hello {} world", "and ".repeat(10_000)));
        assert_eq!(kept.len(), 128);
        assert_eq!((kept[0], kept[1], kept[126], kept[127]), (CLS, 7592, 2088, SEP));
    }

    #[test]
    fn what_is_not_a_tokenizer_says_so() {
        let error = Tokens::new(b"{}").unwrap_err().to_string();
        assert!(error.contains("tokenizer.json"), "{error}");
    }
}
