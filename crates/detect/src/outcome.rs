//! What a result says about itself: did the call fail, how, and is asking again worth anything?
//!
//! Recorded runs seldom carry a status, and tools that fail politely answer with words, so the words are read. The
//! signals are data, searched for all at once; where the caller knows the status, its word counts.

mod answer;
mod class;
mod heading;
mod lines;
mod record;
mod report;
mod screen;
mod signals;
mod stems;

use std::cell::RefCell;

use crate::fingerprint::Fingerprint;
use crate::harness::take_off_its_words;
use crate::normalise::Normaliser;
use crate::outcome::answer::Answer;
use crate::outcome::class::error_class;
use crate::outcome::heading::{header, is_heading, without_label};
pub(crate) use crate::outcome::lines::{hash_of_a_line, hash_of_lines};
use crate::outcome::lines::{last_line, lines};
use crate::outcome::record::is_record;
use crate::outcome::report::tallies;
use crate::outcome::screen::answer_on_screen;
use crate::outcome::signals::{Signal, bit, matching};
use crate::outcome::stems::Stems;
use crate::saved::saved;
use crate::step::{Status, Step};
use crate::words::EMPTY;

/// The outcome of a call, reduced to what detectors keep: hashes and a few facts, never the text.
///
/// Reading a result costs time that grows with its length (up to a limit); what the detectors do with it afterwards
/// does not. [`Redundancy::read`](crate::Redundancy::read) makes one ahead of
/// [`Redundancy::observe_read`](crate::Redundancy::observe_read).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The first half of the normalised result's fingerprint; 0 when there is no result.
    pub(crate) result: u128,
    /// Its lines without regard to their order: what runs side by side answers in another order each time.
    pub(crate) lines: u64,
    /// What kind of error it is, with names, numbers and paths folded; 0 when it is none.
    pub(crate) class: u64,
    pub(crate) facts: Facts,
}

/// What came of a call, as far as two calls can be compared by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Upshot {
    /// It failed, in a way that has this hash: names, numbers and paths aside.
    Failed(u64),
    /// It gave a result that has this hash: what changes on every run aside.
    Gave(u128),
}

/// Facts read off a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which may hold or not")]
pub(crate) struct Facts {
    /// The call has answered at all.
    pub(crate) known: bool,
    /// The call failed, by its status or by plain words.
    pub(crate) failed: bool,
    /// It says so itself: by its status, its exit code, or in its very first words. The rest of a text may quote what
    /// failed elsewhere: a ticket, a log, a source file.
    pub(crate) failed_plainly: bool,
    /// A bare exit code, or a flag, says that it failed, and nothing says how: two different calls that end so need have nothing in
    /// common (a search without a match does).
    pub(crate) unexplained: bool,
    /// It counts what failed, as a report on tests does.
    pub(crate) tallied: bool,
    /// The words of a long result hint at a failure; a file that talks about errors does the same.
    pub(crate) maybe_failed: bool,
    /// Asking again later may help: rate limits, outages, time-outs, connections.
    pub(crate) transient: bool,
    /// Nothing that the agent does to its files will help: a missing command, a denied permission, a tool that is
    /// called in the wrong way.
    pub(crate) environmental: bool,
    /// Nothing came back, or "no matches".
    pub(crate) empty: bool,
    /// No more than a few words, or none at all.
    pub(crate) brief: bool,
    /// A word or two.
    pub(crate) terse: bool,
    /// A bare "ok".
    pub(crate) acknowledged: bool,
    /// The tool does not exist, or the agent may not use it.
    pub(crate) unknown_tool: bool,
    /// A person, or a guard, kept the call from running: nothing was learned.
    pub(crate) prevented: bool,
    /// The command was put aside before it answered.
    pub(crate) put_aside: bool,
    /// What was asked about is still under way.
    pub(crate) in_progress: bool,
    /// What was asked about has ended.
    pub(crate) terminal: bool,
    /// A line that changes with every answer was taken off it.
    pub(crate) trimmed: bool,
}

/// How a result is compared with others, by whoever knows what stands around it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Compared {
    /// Its hash and that of its lines, where they are not those of the text as it is read.
    pub(crate) hashes: Option<(u128, u64)>,
    /// So many lines at its start are no words of the tool.
    pub(crate) headings: usize,
    /// Something was taken off.
    pub(crate) trimmed: bool,
}

saved!(Outcome { result, lines, class, facts });
saved!(Facts {
    known,
    failed,
    failed_plainly,
    unexplained,
    tallied,
    maybe_failed,
    transient,
    environmental,
    empty,
    brief,
    terse,
    acknowledged,
    unknown_tool,
    prevented,
    put_aside,
    in_progress,
    terminal,
    trimmed,
});

impl Outcome {
    /// Reads a result of a tool that nothing is known about.
    ///
    /// ```
    /// use loopbreaker::Outcome;
    /// assert!(Outcome::of("Error: no such file or directory").failed());
    /// assert!(!Outcome::of("3 files changed").failed());
    /// ```
    pub fn of(result: &str) -> Self {
        Self::read(&Step { result: Some(result), ..Step::default() }, Normaliser::built_in(), |_| {
            Compared::default()
        })
    }

    /// Whether the result says that the call failed.
    pub const fn failed(&self) -> bool {
        self.facts.failed
    }

    /// Whether two calls were answered alike: in the same words, or in the same lines in another order.
    pub(crate) const fn answers_as(&self, other: &Self) -> bool {
        self.result == other.result || (self.lines != 0 && self.lines == other.lines)
    }

    /// What two outcomes are compared by; `None` when nothing can be told by this one: trouble that passes, a call that
    /// never ran or has not ended, an empty answer, a bare "ok".
    ///
    /// ```
    /// use loopbreaker::{Outcome, Upshot};
    /// let failure = Outcome::of("Error: no such file or directory: /srv/a.txt").upshot();
    /// assert!(matches!(failure, Some(Upshot::Failed(_))));
    /// assert_eq!(failure, Outcome::of("Error: no such file or directory: /srv/b.txt").upshot());
    /// assert_ne!(Outcome::of("3 files changed").upshot(), Outcome::of("4 files changed").upshot());
    /// assert_eq!(Outcome::of("").upshot(), None);
    /// ```
    pub fn upshot(&self) -> Option<Upshot> {
        let facts = &self.facts;
        if !facts.known || facts.transient || facts.prevented || facts.in_progress || facts.put_aside {
            return None;
        }
        if facts.failed_plainly && self.class != 0 {
            return (!facts.unexplained).then_some(Upshot::Failed(self.class));
        }
        (!facts.empty && !facts.acknowledged).then_some(Upshot::Gave(self.result))
    }

    /// Reads the result of a step with the rules of its tool. What is not the tool's own is taken off before that, by who may
    /// also say what it is to be compared by.
    pub(crate) fn read(
        step: &Step<'_>,
        normaliser: &Normaliser,
        take_off: impl FnOnce(&mut Vec<u8>) -> Compared,
    ) -> Self {
        match step.result {
            Some(result) => SCRATCH.with(|cell| match cell.try_borrow_mut() {
                Ok(mut normal) => {
                    let result = answer_on_screen(result, step.args.unwrap_or_default());
                    normaliser.normalise(result, &mut normal);
                    let was_table = take_off_its_words(&mut normal);
                    let mut compared = take_off(&mut normal);
                    compared.trimmed |= was_table;
                    Self::of_normal(&normal, compared, step.status, step.args.unwrap_or_default())
                }
                Err(_) => Self::default(),
            }),
            None => Self::without_result(step.status),
        }
    }

    fn without_result(status: Option<Status>) -> Self {
        let known = matches!(status, Some(Status::Success | Status::Failure));
        let failed = status == Some(Status::Failure);
        let class = if failed { EMPTY } else { 0 };
        let prevented = status == Some(Status::Skipped);
        Self {
            result: 0,
            lines: 0,
            class,
            facts: Facts { known, failed, prevented, brief: true, ..Facts::default() },
        }
    }

    fn of_normal(normal: &[u8], compared: Compared, status: Option<Status>, asked: &str) -> Self {
        let text = normal.trim_ascii();
        let mut signals = Signals::of(normal, compared.headings.max(header(normal)));
        let answers_no = signals.read_answer(text);
        let has = |signal| signals.has(signal);
        let short = text.len() <= SHORT;
        let wordless = short && !text.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        let empty =
            wordless || (short && (has(Signal::Nothing) || (has(Signal::Bare) && !has(Signal::Tells))));
        let error_line = signals.error_line;
        let (failed, maybe_failed) = match status {
            Some(Status::Failure) => (true, false),
            Some(Status::Success) => (false, false),
            _ if has(Signal::ExitZero) && !has(Signal::ExitNonZero) => (false, false),
            _ if has(Signal::ExitNonZero) || has(Signal::Traceback) || answers_no => (true, false),
            _ if short && !empty => (error_line.is_some(), false),
            _ => (signals.error_first && error_line.is_some(), error_line.is_some()),
        };
        let failed_plainly = failed
            && (status == Some(Status::Failure)
                || has(Signal::ExitNonZero)
                || has(Signal::Traceback)
                || answers_no
                || signals.says_error_first
                || (text.len() <= BRIEF && has(Signal::Missing)));
        let class = if failed || maybe_failed {
            error_class(error_line.unwrap_or_else(|| last_line(text)), asked.as_bytes())
        } else {
            0
        };
        let facts = Facts {
            known: status != Some(Status::Pending),
            failed,
            failed_plainly,
            unexplained: failed && error_line.is_none() && (has(Signal::ExitNonZero) || answers_no),
            tallied: failed && error_line.is_some_and(tallies),
            maybe_failed,
            transient: (failed || (status.is_none() && text.len() <= BRIEF))
                && short
                && (has(Signal::Transient) || is_bare_status(text, asked)),
            environmental: has(Signal::Environmental),
            empty,
            brief: text.len() <= BRIEF,
            terse: text.len() <= TERSE,
            acknowledged: short && !failed && has(Signal::Acknowledged),
            unknown_tool: (failed || short) && has(Signal::UnknownTool),
            prevented: status == Some(Status::Skipped) || (short && has(Signal::Prevented)),
            put_aside: has(Signal::PutAside),
            in_progress: short && has(Signal::InProgress),
            terminal: short && has(Signal::Terminal) && !has(Signal::InProgress),
            trimmed: compared.trimmed,
        };
        let as_it_is = || (Fingerprint::of_bytes(b"result", normal).short(), hash_of_lines(text));
        let (result, lines) = compared.hashes.unwrap_or_else(as_it_is);
        Self { result, lines, class, facts }
    }
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether the whole answer is the number of a passing HTTP status, and HTTP was asked for: anywhere else the same
/// number is a line, a count or a target.
fn is_bare_status(text: &[u8], asked: &str) -> bool {
    matches!(text, b"429" | b"502" | b"503" | b"504") && asked.contains("http")
}

/// Results up to this length are taken at their word; longer ones quote files, logs and pages.
const SHORT: usize = 600;
/// Results up to this length acknowledge rather than tell.
const BRIEF: usize = 120;
/// Replies up to this length are a word or two: "no", "user: no", "continue".
pub(crate) const TERSE: usize = 12;
/// Of a longer result this much of head and tail is read for signals.
const EDGE: usize = 1_500;
/// An error's line says what it is in its first part.
pub(crate) const SCANNED: usize = 240;

/// So long is what tells of a thing that passes: it may stand across the end of a line's first part.
const WORD: usize = 40;
/// What tells that something is under way, or passes: it is told of wherever it stands.
const PASSING: u32 = bit(Signal::InProgress) | bit(Signal::Transient);
/// What tells how something ended that was begun in a line before.
const ENDED: u32 = bit(Signal::Fine)
    | bit(Signal::ExitZero)
    | bit(Signal::ExitNonZero)
    | bit(Signal::Error)
    | bit(Signal::Complaint);

/// The signals of one result.
struct Signals<'a> {
    found: u32,
    /// The last line that says "error", else the last one that complains.
    error_line: Option<&'a [u8]>,
    /// Whether that line says "error".
    is_error: bool,
    /// The very first line tells of an error.
    error_first: bool,
    /// The very first words say "error".
    says_error_first: bool,
}

impl<'a> Signals<'a> {
    fn of(normal: &'a [u8], headings: usize) -> Self {
        let mut signals =
            Self { found: 0, error_line: None, is_error: false, error_first: false, says_error_first: false };
        // In a long result only what tells of a failure counts.
        let is_short = normal.trim_ascii().len() <= SHORT;
        let stems = |stretch| if is_short { None } else { Stems::of(stretch) };
        if normal.len() <= 2 * EDGE {
            signals.read(normal, stems(normal), Some(headings));
            if is_short {
                signals.read_on(normal);
            }
        } else {
            let (head, tail) = (&normal[..EDGE], &normal[normal.len() - EDGE..]);
            signals.read(head, stems(head), Some(headings));
            signals.read(tail, stems(tail), None);
        }
        signals
    }

    /// Reads one stretch of the result line by line; the stretch's last error line wins. With `stems`, lines without
    /// any are left out.
    fn read(&mut self, stretch: &'a [u8], mut stems: Option<Stems>, start: Option<usize>) {
        let (mut first, mut headings) = (start.is_some(), start.unwrap_or(0));
        let mut is_open = false;
        for line in lines(stretch) {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let start = line.as_ptr().addr() - stretch.as_ptr().addr();
            let may_tell = stems.as_mut().is_none_or(|stems| stems.stand_in(start, start + line.len()));
            let says = if first { without_label(line) } else { line };
            let signals = if may_tell { matching(&says[..says.len().min(SCANNED)]) } else { 0 };
            let is_begun = signals & bit(Signal::Doing) != 0;
            let is_none = is_begun || signals & bit(Signal::Named) != 0;
            self.found |= if is_none { signals & !bit(Signal::InProgress) } else { signals };
            // Of several, some may have ended: "2 of 10 completed".
            let counts = || line.iter().any(u8::is_ascii_digit);
            let has_ended = signals & ENDED != 0 || (signals & bit(Signal::Terminal) != 0 && !counts());
            is_open = is_begun || (is_open && !has_ended);
            let fine = signals & bit(Signal::Fine) != 0;
            let error = signals & bit(Signal::Error) != 0 && !fine;
            let nothing = signals & (bit(Signal::Nothing) | bit(Signal::Bare)) != 0;
            let complaint = signals & bit(Signal::Complaint) != 0 && !nothing && !fine && !is_record(line);
            if !nothing && !line.ends_with(b":") {
                self.found |= bit(Signal::Tells);
            }
            self.says_error_first |= first && error && signals & bit(Signal::ErrorStart) != 0;
            if error || (complaint && !self.is_error) {
                self.error_line = Some(line);
                self.is_error = error;
                self.error_first |= first;
            }
            // A tag, or a heading that says what follows, is not what the tool says first.
            first &= headings > 0 || (signals == 0 && is_heading(line));
            headings = headings.saturating_sub(1);
        }
        if is_open {
            self.found |= bit(Signal::InProgress);
        }
        if self.found & bit(Signal::Traceback) != 0 && start.is_none() {
            self.error_first = true;
        }
    }

    /// Reads what stands far behind in the lines of a short result. An error says what it is at once; of the fields of an
    /// object the last one may be the one that is still under way.
    fn read_on(&mut self, normal: &[u8]) {
        for line in lines(normal).map(<[u8]>::trim_ascii).filter(|line| line.len() > SCANNED) {
            self.found |= matching(&line[SCANNED - WORD..]) & PASSING;
        }
    }

    /// Reads an answer in JSON: whether its fields say that the call failed, and in which words. A search that finds
    /// nothing may say so in a field for errors.
    fn read_answer(&mut self, text: &'a [u8]) -> bool {
        let Some(Answer { failed: true, words }) = Answer::of(text) else { return false };
        let Some(words) = words else { return true };
        let said = matching(&words[..words.len().min(SCANNED)]);
        let says = |signal| said & bit(signal) != 0;
        if says(Signal::Nothing) || (says(Signal::Bare) && !says(Signal::Missing)) {
            return false;
        }
        self.found |= said;
        self.error_line = Some(words);
        true
    }

    const fn has(&self, signal: Signal) -> bool {
        self.found & bit(signal) != 0
    }
}

/// Whether a line of a result says how the call went, or how far what it asks about has come.
pub(crate) fn tells_of_the_call(line: &[u8]) -> bool {
    const TELLING: u32 = bit(Signal::ExitZero)
        | bit(Signal::ExitNonZero)
        | bit(Signal::Traceback)
        | bit(Signal::Error)
        | bit(Signal::ErrorStart)
        | bit(Signal::Complaint)
        | bit(Signal::Missing)
        | bit(Signal::Transient)
        | bit(Signal::Environmental)
        | bit(Signal::Nothing)
        | bit(Signal::Bare)
        | bit(Signal::UnknownTool)
        | bit(Signal::Prevented)
        | bit(Signal::PutAside)
        | bit(Signal::InProgress)
        | bit(Signal::Terminal);
    matching(line) & TELLING != 0
}

#[cfg(test)]
mod tests;
