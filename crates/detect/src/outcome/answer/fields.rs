//! The fields of an answer that speak of the call, whatever their order.

use crate::outcome::answer::Answer;

/// What a field tells, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `"ok": false`: of the call, or of what was checked.
    Ok,
    /// `"success": false`.
    Success,
    /// `"isError": true`.
    IsError,
    Error,
    Status,
    /// Words beside an error or a status.
    Message,
    /// The name of an error.
    Code,
    /// A thing's own name or number.
    Thing,
    /// Calls have numbers here, and no things.
    Rpc,
    /// Data, whether there are any or not.
    Data,
    /// Another answer, or a text.
    Wrap,
    /// The same in a list.
    Parts,
    Other,
}

/// Names without regard to case, underscores and hyphens.
const NAMES: &[(&[u8], Kind)] = &[
    (b"ok", Kind::Ok),
    (b"success", Kind::Success),
    (b"succeeded", Kind::Success),
    (b"successful", Kind::Success),
    (b"iserror", Kind::IsError),
    (b"error", Kind::Error),
    (b"errors", Kind::Error),
    (b"errormessage", Kind::Error),
    (b"errormsg", Kind::Error),
    (b"errordescription", Kind::Error),
    (b"exception", Kind::Error),
    (b"status", Kind::Status),
    (b"statuscode", Kind::Status),
    (b"message", Kind::Message),
    (b"msg", Kind::Message),
    (b"reason", Kind::Message),
    (b"detail", Kind::Message),
    (b"details", Kind::Message),
    (b"problem", Kind::Message),
    (b"cause", Kind::Message),
    (b"explanation", Kind::Message),
    (b"code", Kind::Code),
    (b"errorcode", Kind::Code),
    (b"errortype", Kind::Code),
    (b"id", Kind::Thing),
    (b"name", Kind::Thing),
    (b"uuid", Kind::Thing),
    (b"jsonrpc", Kind::Rpc),
    (b"data", Kind::Data),
    (b"text", Kind::Wrap),
    (b"result", Kind::Wrap),
    (b"response", Kind::Wrap),
    (b"output", Kind::Wrap),
    (b"body", Kind::Wrap),
    (b"payload", Kind::Wrap),
    (b"structuredcontent", Kind::Wrap),
    (b"content", Kind::Parts),
];

impl Kind {
    pub(super) fn of(key: &[u8]) -> Self {
        let is_named = |name: &[u8]| {
            let mut letters = key.iter().filter(|byte| !matches!(byte, b'_' | b'-'));
            name.iter().all(|letter| letters.next().is_some_and(|other| other.eq_ignore_ascii_case(letter)))
                && letters.next().is_none()
        };
        NAMES.iter().find(|(name, _)| is_named(name)).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Whether a string under that name may hold another answer.
    pub(super) const fn wraps(self) -> bool {
        matches!(self, Self::Data | Self::Wrap | Self::Parts)
    }

    /// Whether what stands under that name speaks, whatever it is called there.
    const fn speaks(self) -> bool {
        matches!(self, Self::Error | Self::Message)
    }
}

/// What the fields of one object say.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which may hold or not")]
pub(super) struct Fields<'a> {
    is_error: bool,
    not_ok: bool,
    no_success: bool,
    /// A flag or a status says that all went well.
    agrees: bool,
    bad_status: bool,
    error: bool,
    /// A list of errors: of the call, or of what was checked.
    errors: bool,
    is_thing: bool,
    is_rpc: bool,
    has_data: bool,
    /// It stands in an error, or in a message.
    speaks: bool,
    error_words: Option<&'a [u8]>,
    message: Option<&'a [u8]>,
    code: Option<&'a [u8]>,
    /// Whatever else a field says.
    other: Option<&'a [u8]>,
    /// A text that is wrapped.
    text: Option<&'a [u8]>,
    /// What an answer inside of this one says.
    pub(super) inner: Answer<'a>,
}

impl<'a> Fields<'a> {
    /// What comes of them. An error, a status and `"ok": false` may tell of a thing that was asked about, which then is
    /// named beside them; a status tells of the call only where words say why.
    pub(super) fn answer(&self) -> Answer<'a> {
        let words = self.words();
        let is_thing = self.is_thing && !self.is_rpc;
        let errors = self.error || (self.errors && self.has_data);
        let refuses = self.no_success || (self.not_ok && !is_thing);
        let complains = errors || (self.bad_status && words.is_some());
        if self.is_error || (refuses && words.is_some()) || (complains && !self.agrees && !is_thing) {
            return Answer { failed: true, words: words.or(self.inner.words).or(self.text) };
        }
        if self.agrees { Answer::default() } else { self.inner }
    }

    fn words(&self) -> Option<&'a [u8]> {
        self.error_words.or(self.message).or(self.code).or(self.other)
    }

    /// Whether a group under that name is read.
    pub(super) const fn looks_into(&self, kind: Kind, opening: u8) -> bool {
        let is_list = opening == b'[';
        match kind {
            Kind::Data | Kind::Wrap => !is_list,
            Kind::Parts => true,
            _ => kind.speaks() || self.speaks,
        }
    }

    /// What a group under that name begins with.
    pub(super) fn inside(&self, kind: Kind) -> Self {
        Self { speaks: self.speaks || kind.speaks(), ..Self::default() }
    }

    /// Takes in a group.
    pub(super) fn group(&mut self, kind: Kind, is_list: bool, inside: &Self) {
        let words = inside.words();
        match kind {
            Kind::Error => {
                let holds_any = words.is_some() || inside.error;
                self.error |= holds_any && !is_list;
                self.errors |= holds_any && is_list;
                self.error_words = self.error_words.or(words);
            }
            Kind::Message => self.message = self.message.or(words),
            _ if kind.wraps() => {
                self.has_data |= kind == Kind::Data;
                self.text = self.text.or(inside.text);
                let answer = inside.answer();
                if answer.failed && !self.inner.failed {
                    self.inner = answer;
                }
            }
            _ => self.other = self.other.or(words),
        }
    }

    /// Takes in a string.
    pub(super) fn string(&mut self, kind: Kind, text: &'a [u8]) {
        let text = text.trim_ascii();
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
        if text.is_empty() || is(&["null", "none", "false", "n/a", "-"]) {
            return;
        }
        let says = Some(text);
        match kind {
            Kind::Error => {
                self.error = true;
                self.error_words = self.error_words.or(says);
            }
            Kind::Message => self.message = self.message.or(says),
            Kind::Code => self.code = self.code.or(says),
            Kind::Thing => self.is_thing = true,
            Kind::Rpc => self.is_rpc = true,
            Kind::Status if is(&["success", "succeeded", "ok"]) => self.agrees = true,
            Kind::Status | Kind::Wrap => {
                self.bad_status |= is(&["error", "fail", "failed", "failure"]);
                if kind == Kind::Wrap {
                    self.text = self.text.or(says);
                }
            }
            Kind::Parts | Kind::Data => self.text = self.text.or(says),
            Kind::Other if self.speaks => self.other = self.other.or(says),
            Kind::Ok | Kind::Success | Kind::IsError | Kind::Other => {}
        }
    }

    /// Takes in a number, `true`, `false` or `null`.
    pub(super) fn word(&mut self, kind: Kind, word: &[u8]) {
        let is_true = word.eq_ignore_ascii_case(b"true");
        let is_false = word.eq_ignore_ascii_case(b"false");
        match kind {
            Kind::Ok => self.not_ok |= is_false,
            Kind::Success => self.no_success |= is_false,
            Kind::IsError => self.is_error |= is_true,
            Kind::Error => self.error |= is_true,
            // Of HTTP.
            Kind::Status => self.bad_status |= word.len() == 3 && matches!(word[0], b'4' | b'5'),
            Kind::Thing => self.is_thing |= word.first().is_some_and(u8::is_ascii_digit),
            Kind::Data => self.has_data = true,
            _ => {}
        }
        self.agrees |= is_true && matches!(kind, Kind::Ok | Kind::Success);
    }
}
