//! What a call says about itself: fields in which the model explains what it is about to do, or that name the call.
//!
//! Many tools ask for them (`explanation`, `description`, `reason`, a call's id), and the model words them anew each time.
//! Nothing is done by them, so two calls that differ in nothing else do the same. The same names stand for what is wanted
//! where nothing else says it, so each is a remark only beside what a call is done by or to.

/// What a field of a call is to it, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It tells of the call as such: which one it is, in a few words for who looks on.
    Label,
    /// It says why. Where nothing says what the call is done by or to, it is the content: a verdict has its reasons.
    Reason,
    /// It says what a command is for, and elsewhere what is wanted: a ticket has a description, too. Or how long the harness
    /// is to wait for it, and how much to show of it: where the answer is the same, that was enough before.
    BesideCommand,
    /// It says in words which place on a page is meant.
    BesideSpot,
    /// A command line, a script.
    Command,
    /// A place on a page, by a name that a machine has given it.
    Spot,
    /// Something else that a call is done by or to: code, a path, a question.
    Target,
    /// Anything else.
    Deed,
}

/// The longest name, with its underscores.
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
        // Each maker writes them in another way, so they stand here in lower case and without underscores.
        match &plain[..length] {
            b"toolsummary"
            | b"toolaction"
            | b"toolcallid"
            | b"tooluseid"
            | b"securityrisk"
            | b"requiresapproval"
            | b"waitforprevioustools" => Self::Label,
            b"explanation" | b"reason" | b"reasoning" | b"rationale" | b"justification" | b"thought"
            | b"thoughts" | b"thinking" => Self::Reason,
            b"description" | b"brief" | b"purpose" | b"intent" | b"intention" | b"timeout" | b"timeoutms"
            | b"timeoutsec" | b"timeoutsecs" | b"timeoutseconds" | b"yieldtimems" | b"maxoutputtokens"
            | b"maxoutputlength" => Self::BesideCommand,
            b"element" => Self::BesideSpot,
            b"command" | b"commands" | b"commandline" | b"cmd" | b"script" | b"sql" | b"keystrokes" => {
                Self::Command
            }
            b"ref" | b"selector" => Self::Spot,
            b"code"
            | b"query"
            | b"path"
            | b"filepath"
            | b"file"
            | b"filename"
            | b"targetfile"
            | b"absolutepath"
            | b"relativeworkspacepath"
            | b"directory"
            | b"targetdirectory"
            | b"dirpath"
            | b"pattern"
            | b"regex"
            | b"url" => Self::Target,
            _ => Self::Deed,
        }
    }
}

/// Which parts a call has, and so which of them are only said.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "which parts there are, each for itself")]
pub(crate) struct Parts {
    has_deed: bool,
    has_target: bool,
    has_command: bool,
    has_spot: bool,
    has_remarks: bool,
}

impl Parts {
    /// Takes a field in.
    pub(crate) fn add(&mut self, part: Part) {
        let is_target = matches!(part, Part::Command | Part::Spot | Part::Target);
        let is_deed = is_target || part == Part::Deed;
        self.has_deed |= is_deed;
        self.has_target |= is_target;
        self.has_command |= part == Part::Command;
        self.has_spot |= part == Part::Spot;
        self.has_remarks |= !is_deed;
    }

    /// Whether a field is left out: only where what the call does is left.
    pub(crate) const fn leave_out(self, part: Part) -> bool {
        match part {
            Part::Label => self.has_deed,
            Part::Reason => self.has_target,
            Part::BesideCommand => self.has_command,
            Part::BesideSpot => self.has_spot,
            Part::Command | Part::Spot | Part::Target | Part::Deed => false,
        }
    }

    /// Whether any field may have to be left out.
    pub(crate) const fn have_remarks(self) -> bool {
        self.has_remarks && self.has_deed
    }
}
