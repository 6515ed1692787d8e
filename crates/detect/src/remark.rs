//! What a call says about itself: fields in which the model explains what it is about to do, that name the call, or say
//! how long to wait for it.
//!
//! Many tools ask for them (`explanation`, `description`, `reason`, a call's id), and the model words them anew each time.
//! Nothing is done by them, so two calls that differ in nothing else do the same.

/// What a field of a call is to it, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It says why, or names the call.
    Remark,
    /// A thought: in a tool that takes thoughts down it is what the call is about.
    Thought,
    /// It is a remark beside what the call is done by or to, and a content elsewhere: a ticket has a description, too.
    Beside,
    /// What it is done by or to: a command, code, a path, a place on a page.
    Target,
    /// Anything else.
    Deed,
}

/// Names in lower case and without underscores, since each maker writes them in another way.
const NAMES: &[(&[u8], Part)] = &[
    (b"explanation", Part::Remark),
    (b"reason", Part::Remark),
    (b"reasoning", Part::Remark),
    (b"rationale", Part::Remark),
    (b"justification", Part::Remark),
    (b"purpose", Part::Remark),
    (b"intent", Part::Remark),
    (b"intention", Part::Remark),
    (b"toolsummary", Part::Remark),
    (b"toolaction", Part::Remark),
    (b"callid", Part::Remark),
    (b"toolcallid", Part::Remark),
    (b"tooluseid", Part::Remark),
    (b"idempotencykey", Part::Remark),
    (b"securityrisk", Part::Remark),
    (b"requiresapproval", Part::Remark),
    (b"waitforprevioustools", Part::Remark),
    (b"thought", Part::Thought),
    (b"thoughts", Part::Thought),
    (b"thinking", Part::Thought),
    (b"description", Part::Beside),
    (b"brief", Part::Beside),
    (b"element", Part::Beside),
    (b"timeout", Part::Beside),
    (b"timeoutms", Part::Beside),
    (b"timeoutsec", Part::Beside),
    (b"timeoutsecs", Part::Beside),
    (b"timeoutseconds", Part::Beside),
    (b"maxoutputtokens", Part::Beside),
    (b"yieldtimems", Part::Beside),
    (b"command", Part::Target),
    (b"commands", Part::Target),
    (b"commandline", Part::Target),
    (b"cmd", Part::Target),
    (b"script", Part::Target),
    (b"code", Part::Target),
    (b"sql", Part::Target),
    (b"query", Part::Target),
    (b"keystrokes", Part::Target),
    (b"path", Part::Target),
    (b"filepath", Part::Target),
    (b"file", Part::Target),
    (b"filename", Part::Target),
    (b"targetfile", Part::Target),
    (b"absolutepath", Part::Target),
    (b"pattern", Part::Target),
    (b"regex", Part::Target),
    (b"url", Part::Target),
    (b"selector", Part::Target),
    (b"ref", Part::Target),
];

/// The longest of them, with its underscores.
const LONGEST: usize = 24;

impl Part {
    /// The part of the field with this name, as it stands in JSON.
    pub(crate) fn of(name: &[u8]) -> Self {
        let mut plain = [0; LONGEST];
        let mut length = 0;
        if name.len() > LONGEST {
            return Self::Deed;
        }
        for byte in name.iter().filter(|byte| !matches!(byte, b'_' | b'-')) {
            plain[length] = byte.to_ascii_lowercase();
            length += 1;
        }
        let plain = &plain[..length];
        NAMES.iter().find(|(known, _)| *known == plain).map_or(Self::Deed, |(_, part)| *part)
    }
}

/// Which parts a call has, and so which of them are only said.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "which parts there are, each for itself")]
pub(crate) struct Parts {
    has_deed: bool,
    /// Something that it is about is told in words: a path, a name, a question.
    has_words: bool,
    has_target: bool,
    has_remarks: bool,
}

impl Parts {
    /// Takes a field in; `in_words` says whether its value is a text.
    pub(crate) fn add(&mut self, part: Part, in_words: bool) {
        let is_deed = matches!(part, Part::Deed | Part::Target);
        self.has_deed |= is_deed;
        self.has_words |= is_deed && in_words;
        self.has_target |= part == Part::Target;
        self.has_remarks |= !is_deed;
    }

    /// Whether a field is left out: only where something is left that the call does.
    pub(crate) fn leave_out(self, part: Part) -> bool {
        match part {
            Part::Remark => self.has_deed,
            Part::Thought => self.has_words,
            Part::Beside => self.has_target,
            Part::Target | Part::Deed => false,
        }
    }

    /// Whether any field may have to be left out.
    pub(crate) const fn have_remarks(self) -> bool {
        self.has_remarks && self.has_deed
    }
}
