//! What a message amounts to, in 128 bits.

use loopbreaker::with_canonical_text;
use memchr::memmem;
use twox_hash::XxHash3_128;

use crate::content;
use crate::json::{Json, string};
use crate::members::LongText;
use crate::written::{Args, Form, Part};

/// Hashes the parts of a message, each with a mark and its length, so that no two messages run together.
///
/// Ids, cache marks, signatures and what the model only thought are left out: clients drop, renew and move them while
/// the conversation stays the same.
pub(crate) struct Digest<'d> {
    hash: u128,
    is_system: bool,
    /// A text of the message that is hashed only once, whoever asks for it.
    long: Option<&'d LongText<'d>>,
}

impl<'d> Digest<'d> {
    /// Begins with who speaks.
    pub(crate) fn of(form: Form, name: Option<&str>, long: Option<&'d LongText<'d>>) -> Self {
        let speaker = match form {
            Form::System => b's',
            Form::Outside => b'u',
            Form::Answer | Form::AnswerPart | Form::Reasoning | Form::Call => b'a',
            Form::Result | Form::CallOutput => b'r',
            Form::Compaction => b'c',
            Form::Nothing | Form::Unknown => b'-',
        };
        let mut digest = Self { hash: 0, is_system: form == Form::System, long };
        digest.frame(
            speaker,
            name.filter(|_| form != Form::Result && form != Form::Call).unwrap_or_default().as_bytes(),
        );
        digest
    }

    /// The digest of a message that could not be read.
    pub(crate) fn of_bytes(bytes: &str) -> u128 {
        let mut digest = Self::of(Form::Unknown, None, None);
        digest.frame(b'?', bytes.as_bytes());
        digest.finish()
    }

    pub(crate) fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::Said(text) => self.text(b't', *text),
            Part::Thought(_) => {}
            Part::Shown(shown) => {
                self.frame(b'k', shown.kind.as_bytes());
                self.json(b'x', &shown.written);
            }
            Part::Called(call) => {
                self.frame(b'c', call.tool.as_bytes());
                self.args(call.args.as_ref().map(Args::words).unwrap_or_default());
                if let Some(result) = call.result {
                    self.result(result, true);
                }
            }
            Part::Returned(returned) => {
                let tool = returned.tool.and_then(string).unwrap_or_default();
                self.frame(if returned.failed { b'f' } else { b'r' }, tool.as_bytes());
                if let Some(result) = returned.result {
                    self.result(result, returned.is_data);
                }
                if let Some(shown) = returned.shown {
                    self.json(b'x', shown.get());
                }
            }
            Part::Compacted => self.frame(b'-', b""),
        }
    }

    pub(crate) fn finish(self) -> u128 {
        self.hash
    }

    /// A JSON string. No words are the same as nothing.
    fn text(&mut self, mark: u8, text: Json<'_>) {
        if let Some(long) = self.long.filter(|long| long.is(text) && !self.is_system)
            && let (Some(hash), Some(inside)) = (long.hash(), text.inside())
        {
            return self.link(mark, hash, inside.len());
        }
        let Some(text) = text.canonical_string().filter(|text| !text.is_empty()) else { return };
        if self.is_system && memmem::find(text.as_bytes(), BILLING_HEADER.as_bytes()).is_some() {
            self.frame(mark, without_billing_header(&text).as_bytes());
        } else {
            self.frame(mark, text.as_bytes());
        }
    }

    /// Arguments are the same however their JSON is written, also where it stands in a string.
    fn args(&mut self, args: &str) {
        with_canonical_text(args, |canonical| match canonical {
            Some(b"{}" | b"null") => {}
            Some(canonical) => self.frame(b'j', canonical),
            None if args.trim_ascii().is_empty() => {}
            None => self.frame(b'p', args.as_bytes()),
        });
    }

    fn result(&mut self, result: Json<'_>, is_data: bool) {
        if result.is_string() {
            return self.text(b't', result);
        }
        match content::blocks(result).filter(|_| !is_data) {
            Some(blocks) => {
                for block in blocks {
                    match (block.said(), block.shown()) {
                        (Some(text), _) => self.text(b't', text),
                        (None, Some(shown)) => self.add(&Part::Shown(shown)),
                        (None, None) => {}
                    }
                }
            }
            None => self.json(b'd', result.get()),
        }
    }

    /// Data, however its JSON is written.
    fn json(&mut self, mark: u8, text: &str) {
        with_canonical_text(text, |canonical| self.frame(mark, canonical.unwrap_or(text.as_bytes())));
    }

    fn frame(&mut self, mark: u8, bytes: &[u8]) {
        self.link(mark, XxHash3_128::oneshot(bytes), bytes.len());
    }

    fn link(&mut self, mark: u8, hash: u128, length: usize) {
        // One hash in the other: most parts are a few bytes, for which a hash that takes pieces is slow to begin.
        let mut link = [mark; 41];
        link[1..17].copy_from_slice(&self.hash.to_le_bytes());
        link[17..33].copy_from_slice(&hash.to_le_bytes());
        link[33..].copy_from_slice(&(length as u64).to_le_bytes());
        self.hash = XxHash3_128::oneshot(&link);
    }
}

/// How a line begins that Claude Code puts before its system text, with numbers that change on every request.
pub(crate) const BILLING_HEADER: &str = "x-anthropic-billing-header:";

/// The text of a written string without the lines of the billing header.
fn without_billing_header(written: &str) -> String {
    // A line break is two bytes in a written string, and a backslash before it would have to be escaped itself.
    let lines = written.split("\\n").filter(|line| !line.starts_with(BILLING_HEADER));
    lines.collect::<Vec<_>>().join("\\n")
}
