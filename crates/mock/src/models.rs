//! The lists of models, one per provider.

use bytes::Bytes;

use crate::answer::CREATED;
use crate::json::{Json, object};
use crate::provider::Provider;

/// What `GET …/models` answers.
pub(crate) fn list(provider: Provider) -> Bytes {
    match provider {
        Provider::OpenAi => {
            let model =
                object! { "id": "gpt-mock", "object": "model", "created": CREATED, "owned_by": "mock" };
            object! { "object": "list", "data": vec![model] }.pretty().into()
        }
        Provider::Anthropic => {
            let model = object! {
                "type": "model",
                "id": "claude-mock",
                "display_name": "Claude Mock",
                "created_at": "2025-11-15T00:00:00Z",
            };
            let list = object! {
                "data": vec![model],
                "has_more": false,
                "first_id": "claude-mock",
                "last_id": "claude-mock",
            };
            list.compact().into()
        }
        Provider::Gemini => {
            let methods: Vec<Json> = vec!["generateContent".into()];
            let model = object! {
                "name": "models/gemini-mock",
                "version": "001",
                "displayName": "Gemini Mock",
                "inputTokenLimit": 1_048_576u64,
                "outputTokenLimit": 65_536u64,
                "supportedGenerationMethods": methods,
            };
            object! { "models": vec![model] }.pretty().into()
        }
    }
}
