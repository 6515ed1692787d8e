//! Chat completions: chunks, and a last word.

use super::template::Template;
use crate::Answer;
use crate::answer::Scribe;
use crate::answer::chat::{Chunk, Indices};
use crate::json::Json;
use crate::splice::quoted;

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) complete: bool,
    indices: Indices,
    /// When the answer was begun, as the provider wrote it.
    created: Option<String>,
    /// The form of the last chunk that had nothing but words, and whether they were thought.
    plain: Option<(Template, bool)>,
}

impl Stream {
    pub(super) fn hear(&mut self, data: &str, scribe: &mut Scribe) {
        if let Some((template, is_thought)) = &self.plain
            && let Some([words, _, _]) = template.values(data)
        {
            scribe.words(words, *is_thought);
            return;
        }
        if data == "[DONE]" {
            self.complete = true;
            return;
        }
        let Some(chunk) = Chunk::parse(data) else { return };
        chunk.read(scribe, &mut self.indices);
        if let Some((words, is_thought)) = chunk.only_words() {
            let template = Template::of(data, [Some(words), chunk.obfuscation, None]);
            self.plain = template.map(|template| (template, is_thought));
        }
        if self.created.is_none() {
            let is_number = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit());
            self.created = chunk.created.map(Json::get).filter(is_number).map(str::to_owned);
        }
    }

    pub(super) fn closing(&self, answer: &Answer) -> String {
        let text = |value: &Option<String>| quoted(value.as_deref().unwrap_or_default());
        let (id, model) = (text(&answer.id), text(&answer.model));
        let created = self.created.as_deref().unwrap_or("0");
        let choice = r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}"#;
        format!(
            "data: {{\"id\":{id},\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":{model},\
             \"choices\":[{choice}]}}\n\ndata: [DONE]\n\n"
        )
    }
}
