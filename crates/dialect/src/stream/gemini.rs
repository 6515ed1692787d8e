//! Gemini: chunks, of which the last one has a reason.

use super::template::Template;
use crate::answer::Scribe;
use crate::answer::gemini::Chunk;
use crate::json::Json;
use crate::splice::quoted;
use crate::{Answer, Usage};

#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The last report of usage, as the provider wrote it.
    usage: String,
    /// The form of the last chunk that had nothing but words, and whether they were thought.
    plain: Option<(Template, bool)>,
}

/// A report of usage is small; more than this is something else.
const MAX_USAGE: usize = 4 << 10;

impl Stream {
    pub(super) fn hear(&mut self, data: &str, scribe: &mut Scribe) {
        if let Some((template, is_thought)) = &self.plain
            && let Some([words, usage, _]) = template.values(data)
        {
            scribe.words(words, *is_thought);
            return self.note_usage(usage);
        }
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else { return };
        chunk.read(scribe);
        self.note_usage(chunk.usage_metadata.map_or("", Json::get));
        if let Some((words, is_thought)) = chunk.only_words() {
            let template = Template::of(data, [Some(words), chunk.usage_metadata, None]);
            self.plain = template.map(|template| (template, is_thought));
        }
    }

    /// The usage that was reported last.
    pub(super) fn usage(&self) -> Option<Usage> {
        Usage::gemini(serde_json::from_str(&self.usage).ok()?)
    }

    fn note_usage(&mut self, usage: &str) {
        if (1..=MAX_USAGE).contains(&usage.len()) {
            self.usage.clear();
            self.usage.push_str(usage);
        }
    }

    pub(super) fn closing(&self, answer: &Answer, is_list: bool) -> String {
        let content = r#"{"parts":[{"text":""}],"role":"model"}"#;
        let mut chunk =
            format!(r#"{{"candidates":[{{"content":{content},"finishReason":"STOP","index":0}}]"#);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                chunk.extend([",\"", name, "\":", &value]);
            }
        };
        add("usageMetadata", (!self.usage.is_empty()).then(|| self.usage.clone()));
        add("modelVersion", answer.model.as_deref().map(quoted));
        add("responseId", answer.id.as_deref().map(quoted));
        if is_list { format!(",\n{chunk}}}]") } else { format!("data: {chunk}}}\r\n\r\n") }
    }
}
