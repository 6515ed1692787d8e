//! Writes an answer down while it comes.

use loopbreaker::Chant;
use serde::de::IgnoredAny;

use super::{Answer, Call, Ran};
use crate::json::{Json, has_escapes, hash, push_unescaped, string, words};
use crate::stream::Watch;
use crate::written::Called;

/// What has been read of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Scribe {
    pub(crate) answer: Answer,
    /// Listens for a chant, in a stream that is watched.
    pub(crate) watch: Option<Watch>,
    /// Whether something is under way whose end must come from the provider: a call, above all.
    pub(crate) is_under_way: bool,
    /// Whether no end of ours would fit any more.
    has_no_end: bool,
    /// Where the text begins that is being said.
    text_begins: usize,
    /// Bytes of all calls so far.
    call_bytes: usize,
    /// Where strings with escapes are decoded.
    scratch: String,
}

/// How much of what is said is kept.
const MAX_TEXT: usize = 64 << 10;

/// How many bytes of calls are kept: beyond it no tool would run them.
const MAX_CALL_BYTES: usize = 1 << 20;

/// How much is kept of a result, the rest of which is hashed.
const MAX_RESULT: usize = 4 << 10;

/// How many calls are kept.
const MAX_CALLS: usize = 512;

impl Scribe {
    pub(crate) fn new(watch: Option<Watch>) -> Self {
        Self { watch, ..Self::default() }
    }

    pub(crate) fn finish(self) -> Answer {
        self.answer
    }

    /// Notes who answers; what comes first counts.
    pub(crate) fn identify(&mut self, id: Option<Json<'_>>, model: Option<Json<'_>>) {
        let note = |known: &mut Option<String>, value: Option<Json<'_>>| {
            if known.is_none() {
                *known = value.and_then(string).filter(|text| !text.is_empty()).map(String::from);
            }
        };
        note(&mut self.answer.id, id);
        note(&mut self.answer.model, model);
    }

    pub(crate) fn ended(&mut self, reason: Option<Json<'_>>) {
        if let Some(reason) = reason.and_then(string) {
            self.answer.finish = Some(reason.into_owned());
        }
    }

    /// Takes words of the answer, a JSON string.
    pub(crate) fn said(&mut self, text: Json<'_>) {
        if let Some(inside) = text.inside() {
            self.words(inside, false);
        }
    }

    /// Takes what the model thinks, a JSON string.
    pub(crate) fn thought(&mut self, text: Json<'_>) {
        if let Some(inside) = text.inside() {
            self.words(inside, true);
        }
    }

    /// Takes what stands between the quotes of a string that was said or thought.
    pub(crate) fn words(&mut self, inside: &str, is_thought: bool) {
        let text = decoded(inside, &mut self.scratch);
        self.answer.text_bytes += text.len() as u64;
        if !is_thought {
            let room = MAX_TEXT.saturating_sub(self.answer.text.len());
            // A character has four bytes at most, so one of these is the end of one.
            let fits = (0..4).find_map(|less| text.get(..text.len().min(room).saturating_sub(less)));
            self.answer.text.push_str(fits.unwrap_or_default());
        }
        if let Some(watch) = &mut self.watch {
            watch.listen(text, is_thought);
        }
    }

    /// Takes words that count but that nobody follows, like those of a second choice.
    pub(crate) fn murmured(&mut self, text: Json<'_>) {
        self.answer.text_bytes += text.get().len() as u64;
    }

    /// From here on no end of ours would fit: a chant is only told of.
    pub(crate) fn leave_whole(&mut self) {
        self.has_no_end = true;
    }

    /// Whether the stream may be cut some time.
    pub(crate) fn may_be_cut(&self) -> bool {
        self.watch.is_some() && !self.has_no_end
    }

    /// The chant that was heard, if any, and whether the stream may end here.
    pub(crate) fn heard(&mut self) -> Option<(Chant, bool)> {
        let chant = self.watch.as_mut()?.heard()?;
        Some((chant, !self.is_under_way && !self.has_no_end && !self.is_inside_of_json()))
    }

    /// Whether what is being said is a JSON document that has not come to its end. Half of one is no answer to a client
    /// that asked for JSON: its SDK would fail on it.
    fn is_inside_of_json(&self) -> bool {
        let said = self.answer.text.get(self.text_begins..).unwrap_or_default().trim_ascii_start();
        said.starts_with(['{', '['])
            && serde_json::from_str::<IgnoredAny>(said).is_err_and(|error| error.is_eof())
    }

    /// A call, whoever runs it: what was said before and what is said behind it are two texts.
    pub(crate) fn begin_anew(&mut self) {
        self.watch.iter_mut().for_each(Watch::begin_anew);
        self.text_begins = self.answer.text.len();
    }

    /// Begins a call, and returns its place for [`Self::arguments`].
    pub(crate) fn call(&mut self, id: Option<Json<'_>>, tool: Option<Json<'_>>) -> usize {
        let text = |value: Option<Json<'_>>| value.and_then(string).unwrap_or_default().into_owned();
        self.call_named(text(id), text(tool))
    }

    /// The same, with words instead of JSON.
    pub(crate) fn call_named(&mut self, id: String, tool: String) -> usize {
        self.begin_anew();
        let call = Call { id, tool, args: String::new() };
        self.call_bytes += call.id.len() + call.tool.len();
        if self.answer.calls.len() < MAX_CALLS && self.call_bytes <= MAX_CALL_BYTES {
            self.answer.calls.push(call);
            return self.answer.calls.len() - 1;
        }
        usize::MAX
    }

    /// Notes a call that ran at the provider.
    pub(crate) fn ran(&mut self, called: Called<'_>) {
        self.keep(Ran {
            tool: called.tool.into_owned(),
            args: called.args.map(|args| args.into_words().into_owned()),
            result: called.result.map(|result| shortened(&words(result))),
            failed: called.failed,
        });
    }

    /// Notes the result of a call that came before: it has run at the provider, and nobody waits for it.
    pub(crate) fn returned(&mut self, id: &str, result: Option<Json<'_>>, failed: bool) {
        let Some(at) = self.answer.calls.iter().position(|call| call.id == id) else { return };
        let Call { tool, args, .. } = self.answer.calls.remove(at);
        let result = result.map(|result| shortened(&words(result)));
        self.keep(Ran { tool, args: Some(args), result, failed });
    }

    fn keep(&mut self, ran: Ran) {
        let lengths = [&ran.args, &ran.result].map(|text| text.as_ref().map_or(0, String::len));
        self.call_bytes += ran.tool.len() + lengths.iter().sum::<usize>();
        if self.answer.ran.len() < MAX_CALLS && self.call_bytes <= MAX_CALL_BYTES {
            self.answer.ran.push(ran);
        }
    }

    /// Appends to the arguments of a call: a string is decoded, anything else is its JSON text.
    pub(crate) fn arguments(&mut self, call: usize, args: Json<'_>) {
        let inside = args.inside();
        let text = inside.map_or(args.get(), |inside| decoded(inside, &mut self.scratch));
        self.answer.text_bytes += text.len() as u64;
        self.call_bytes += text.len();
        if let Some(call) = self.answer.calls.get_mut(call)
            && self.call_bytes <= MAX_CALL_BYTES
        {
            call.args.push_str(text);
        }
    }
}

/// A result that may be long, so that it still differs from every other one.
fn shortened(result: &str) -> String {
    let end = (0..4).find_map(|less| result.get(..MAX_RESULT.min(result.len()).saturating_sub(less)));
    let (begin, rest) = result.split_at(end.unwrap_or_default().len());
    if rest.is_empty() { begin.to_owned() } else { format!("{begin}… {:016x}", hash(rest.as_bytes())) }
}

/// What the inside of a JSON string means; decoded into `scratch` only where it has escapes.
fn decoded<'t>(inside: &'t str, scratch: &'t mut String) -> &'t str {
    if !has_escapes(inside) {
        return inside;
    }
    scratch.clear();
    push_unescaped(inside, scratch);
    scratch
}
