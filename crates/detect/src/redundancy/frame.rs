//! What a harness puts around each result, told from what the tool brought.
//!
//! A counter of steps, the name of a call, how full the context is, a line that says that here is the output: they stand
//! around every result, whatever was asked, and many change with each. No two results would ever be equal, and no
//! failure would begin with its own words. There is no list of such lines, since each harness has its own: a line
//! belongs to the frame when calls of several kinds were answered with it, and it either changed with every answer, also
//! where nothing can have changed, or never. What changes now and then (a folder, an open file, a score), or up and down
//! (a price, a pose), tells of the world, and is news.
//!
//! What never changes hinders no comparison, so it stays, and only tells where the tool's own words begin.

use crate::config::Effect;
use crate::fingerprint::Fingerprint;
use crate::outcome::{Compared, Outcome, SCANNED, hash_of_a_line, hash_of_lines, tells_of_the_call};
use crate::redundancy::print::Print;
use crate::redundancy::window::Window;
use crate::saved::saved;
use crate::words::{EMPTY, fnv1a, hash_bytes};

/// So many lines at the start of a result may belong to the frame, and so many at its end.
const HEAD: usize = 5;
const TAIL: usize = 12;
/// A longer line is what a tool brought.
const LONGEST: usize = 200;
/// So many kinds of calls must have been answered with a line: the progress of three jobs is told by one kind.
const KINDS: usize = 3;
/// And so many answers must have had it.
const SIGHTINGS: u16 = 4;
/// So many times it must have changed although nothing else can have.
const IDLE_CHANGES: u16 = 2;
/// What changes with every answer may look the same by chance, once in so many times.
const CHANGES_FOR_ONE: u16 = 8;
/// So many lines are watched.
const WATCHED: usize = 40;
/// After so many answers without it, a line is watched no more; one of the frame may be missing for longer, where long
/// results are cut.
const MISSES: u8 = 2;
const MISSES_OF_THE_FRAME: u8 = 8;
/// A round with more calls than this teaches nothing.
const MOST_IN_A_ROUND: usize = 8;
/// So many of a session's first answers are kept by their lines, so that the frame can be taken off them when it is known.
const FIRST: usize = 8;

/// What is known of the lines around the results of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    lines: Vec<Line>,
    /// The answers of the round that is under way. They are learnt from together, so that their order never matters.
    round: Vec<Answer>,
    /// There were too many of them.
    overflows: bool,
    /// The first answers of the session, until there are enough of them.
    first: Vec<Answer>,
    /// How many answers there were.
    answers: usize,
}

/// An answer to a call, as far as its lines are looked at.
#[derive(Debug, Clone, Copy)]
struct Answer {
    /// The index of its step.
    index: usize,
    kind: u32,
    /// The call looked at something, or failed: nothing has changed by it.
    looks: bool,
    edges: Edges,
}

/// A line that is watched.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// What it says, without what may change.
    shape: u32,
    /// What it said last, as a hash, and its number.
    said: u64,
    number: u32,
    /// The kinds of calls that were answered with it; 0 for a place that is free.
    kinds: [u32; KINDS],
    sightings: u16,
    /// How often it said something else than the last time, and how often of that in answer to a mere look.
    changes: u16,
    idle_changes: u16,
    /// How often its number was larger than the last time, and how often smaller.
    moved: [u16; 2],
    missed: u8,
    /// It tells how a call went, which is no business of a frame.
    tells: bool,
}

saved!(Frame { lines, round, overflows, first, answers });
saved!(Answer { index, kind, looks, edges });
saved!(Line { shape, said, number, kinds, sightings, changes, idle_changes, moved, missed, tells });

/// The lines at both ends of a result.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Edges {
    seen: [Seen; HEAD + TAIL],
    count: usize,
    /// The hash of what stands between them; 0 when nothing does.
    between: u128,
}

/// A line at an end of a result; a shape of 0 is that of a line without words, which belongs to no frame.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    shape: u32,
    said: u64,
    number: u32,
    tells: bool,
}

saved!(Edges { seen, count, between });
saved!(Seen { shape, said, number, tells });

impl Frame {
    /// Takes off a result what of the frame changes, notes the lines that stood at both ends of it, and gives what it is to be
    /// compared by, where there are several: what stands between them is hashed once, and they can be left out later.
    pub(super) fn take_off(&self, normal: &mut Vec<u8>, edges: &mut Edges) -> Compared {
        let spans = Spans::of(normal);
        edges.between = spans.between(normal);
        for (start, end) in spans.iter() {
            let line = &normal[start..end];
            let mut seen = Seen::of(line);
            if self.known(seen.shape).is_some_and(Line::is_to_be_read) {
                seen.tells = tells_of_the_call(&line[..line.len().min(SCANNED)]);
            }
            edges.seen[edges.count] = seen;
            edges.count += 1;
        }
        let mut compared = Compared::default();
        if edges.count > 1 {
            compared.hashes = Some((self.result_of(edges), self.lines_of(edges, hash_of_lines(normal))));
        }
        if self.leaves_something(edges) {
            let takes_off = self.takes_off();
            for (at, (start, end)) in spans.iter().enumerate().rev().filter(|_| takes_off) {
                if self.changes(&edges.seen[at]) {
                    let end = if normal.get(end) == Some(&b'\n') { end + 1 } else { end };
                    normal.drain(start..end);
                    compared.trimmed = true;
                }
            }
            let end = normal.trim_ascii_end().len();
            normal.truncate(end);
            let left = edges.seen().filter(|seen| !self.changes(seen));
            compared.headings = left.take_while(|seen| self.stays(seen)).count();
        }
        compared
    }

    /// Notes the ends of an answer until its round is over.
    pub(super) fn note(&mut self, print: &Print, edges: &Edges) {
        if edges.count == 0 {
            return;
        }
        let looks =
            matches!(print.does.effect, Some(Effect::Read | Effect::Poll)) || print.outcome.facts.failed;
        let answer = Answer { index: print.index, kind: kind_of(print), looks, edges: *edges };
        if self.round.len() < MOST_IN_A_ROUND {
            self.round.push(answer);
        } else {
            self.overflows = true;
        }
    }

    /// Learns from the answers of a round. What is learnt is true of the first answers, too.
    pub(super) fn learn(&mut self, window: &mut Window) {
        if self.round.is_empty() {
            return;
        }
        if !std::mem::take(&mut self.overflows) {
            let round = std::mem::take(&mut self.round);
            let mut is_wiser = false;
            for line in &mut self.lines {
                let was = line.changes_for_nothing();
                line.see(&round);
                is_wiser |= !was && line.changes_for_nothing();
            }
            self.lines.retain(|line| line.missed < line.patience());
            for seen in round.iter().flat_map(|answer| answer.edges.seen()) {
                if seen.shape != 0 && self.known(seen.shape).is_none() && self.lines.len() < WATCHED {
                    self.lines.push(Line::new(seen.shape, &round));
                }
            }
            self.round = round;
            self.keep_the_first();
            if is_wiser {
                for answer in self.first.iter().filter(|answer| self.leaves_something(&answer.edges)) {
                    window.read_again(answer.index, |outcome| self.take_off_later(&answer.edges, outcome));
                }
            }
        }
        // The room is kept, so that the next round asks for none.
        self.round.clear();
    }

    /// Keeps the answers of this round, if it is among the first.
    fn keep_the_first(&mut self) {
        if self.answers < FIRST {
            self.first.extend(&self.round);
            self.answers += self.round.len();
        } else if self.first.capacity() > 0 {
            self.first = Vec::new();
        }
    }

    /// Takes the frame off what was read before it was known.
    fn take_off_later(&self, edges: &Edges, outcome: &mut Outcome) {
        // One line is no frame around another, and where a debugger stands is told by more than its lines.
        if outcome.lines == 0 {
            return;
        }
        outcome.result = self.result_of(edges);
        outcome.lines = self.lines_of(edges, outcome.lines);
        outcome.facts.trimmed |= edges.seen().any(|seen| self.changes(seen));
    }

    /// The sum of the hashes of all lines without those that change.
    fn lines_of(&self, edges: &Edges, all: u64) -> u64 {
        if !self.takes_off() || !self.leaves_something(edges) {
            return all;
        }
        let gone = edges.seen().filter(|seen| self.changes(seen)).map(|seen| hash_of_a_line(seen.said));
        gone.fold(all, u64::wrapping_sub)
    }

    /// What a result without its frame is compared by: what stands between the lines at its ends, and those that are left.
    fn result_of(&self, edges: &Edges) -> u128 {
        let takes_off = self.takes_off() && self.leaves_something(edges);
        let left = edges.seen().filter(|seen| !(takes_off && self.changes(seen)));
        left.fold(edges.between, |hash, seen| {
            (hash ^ u128::from(seen.said)).wrapping_mul(MIX).rotate_left(47)
        })
    }

    /// Whether there is a line that is taken off wherever it stands: in most sessions there is none, and nothing to look for.
    fn takes_off(&self) -> bool {
        self.lines.iter().any(Line::changes_for_nothing)
    }

    /// Whether there is more to a result than its frame: an answer that is nothing but its lines is the answer.
    fn leaves_something(&self, edges: &Edges) -> bool {
        edges.between != 0 || edges.seen().any(|seen| !self.changes(seen) && !self.stays(seen))
    }

    fn known(&self, shape: u32) -> Option<&Line> {
        self.lines.iter().find(|line| line.shape == shape)
    }

    /// Whether it is a line of the frame that changes with every answer.
    fn changes(&self, seen: &Seen) -> bool {
        seen.shape != 0 && !seen.tells && self.known(seen.shape).is_some_and(Line::changes_for_nothing)
    }

    /// Whether it is a line of the frame that says the same each time.
    fn stays(&self, seen: &Seen) -> bool {
        let says_the_same =
            |line: &Line| line.said == seen.said && line.changes == 0 && line.is_established();
        seen.shape != 0 && !seen.tells && self.known(seen.shape).is_some_and(says_the_same)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn bytes(&self) -> usize {
        let answers = self.round.capacity() + self.first.capacity();
        self.lines.capacity() * size_of::<Line>() + answers * size_of::<Answer>()
    }
}

/// Spreads what a line says over the whole hash; an odd number without a pattern.
const MIX: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;

impl Line {
    fn new(shape: u32, round: &[Answer]) -> Self {
        let mut line = Self {
            shape,
            said: 0,
            number: 0,
            kinds: [0; KINDS],
            sightings: 0,
            changes: 0,
            idle_changes: 0,
            moved: [0; 2],
            missed: 0,
            tells: false,
        };
        line.see(round);
        line
    }

    /// Takes in whether the answers of a round have it.
    fn see(&mut self, round: &[Answer]) {
        let before = (self.sightings > 0).then_some(*self);
        let (mut said, mut number) = (0, 0);
        for answer in round {
            let Some(seen) = answer.edges.seen().find(|seen| seen.shape == self.shape) else { continue };
            note_one_more(&mut self.kinds, answer.kind);
            self.tells |= seen.tells;
            let is_other = before.is_some_and(|before| seen.said != before.said);
            self.changes = self.changes.saturating_add(u16::from(is_other));
            self.idle_changes = self.idle_changes.saturating_add(u16::from(is_other && answer.looks));
            self.sightings = self.sightings.saturating_add(1);
            // Of calls side by side, which one comes first is chance.
            (said, number) = (said, number).max((seen.said, seen.number));
        }
        if said == 0 {
            self.missed = self.missed.saturating_add(1);
            return;
        }
        if let Some(before) = before {
            let [more, less] = &mut self.moved;
            *more = more.saturating_add(u16::from(number > before.number));
            *less = less.saturating_add(u16::from(number < before.number));
        }
        (self.said, self.number, self.missed) = (said, number, 0);
    }

    /// Whether it stands around answers to calls of several kinds.
    const fn is_established(&self) -> bool {
        self.sightings >= SIGHTINGS && self.kinds[KINDS - 1] != 0
    }

    /// Whether it is about to be of the frame, so that it has to be read what it says. Reading takes longer than all else here,
    /// and most lines come back with one kind of call only.
    const fn is_to_be_read(&self) -> bool {
        !self.tells && self.sightings.saturating_add(1) >= SIGHTINGS && self.kinds[KINDS - 2] != 0
    }

    /// Whether it changes with every answer, also with those of calls that change nothing, and its number goes one way only,
    /// if it goes anywhere: it tells how many answers there were, and nothing about any.
    fn changes_for_nothing(&self) -> bool {
        let stays = self.sightings.saturating_sub(1).saturating_sub(self.changes);
        let is_regular = self.changes > 0 && stays.saturating_mul(CHANGES_FOR_ONE) <= self.changes;
        let goes_one_way = self.moved.contains(&0);
        !self.tells
            && is_regular
            && goes_one_way
            && self.idle_changes >= IDLE_CHANGES
            && self.is_established()
    }

    fn patience(&self) -> u8 {
        if self.is_established() { MISSES_OF_THE_FRAME } else { MISSES }
    }
}

/// Notes something among a few, unless it stands there or they are full.
fn note_one_more(known: &mut [u32; KINDS], new: u32) {
    if !known.contains(&new)
        && let Some(free) = known.iter_mut().find(|known| **known == 0)
    {
        *free = new;
    }
}

impl Edges {
    fn seen(&self) -> impl Iterator<Item = &Seen> {
        // What was carried here by somebody else is believed no further than it can be.
        self.seen.iter().take(self.count)
    }
}

impl Seen {
    fn of(line: &[u8]) -> Self {
        let Shape { hash, number } = if line.len() > LONGEST { Shape::default() } else { Shape::of(line) };
        Self { shape: hash, said: hash_bytes(line), number, tells: false }
    }
}

/// Where the lines at both ends of a text stand, those of white space left out.
struct Spans {
    lines: [(usize, usize); HEAD + TAIL],
    count: usize,
    /// What stands between those of the head and those of the tail.
    between: (usize, usize),
}

impl Spans {
    fn of(text: &[u8]) -> Self {
        let mut spans = Self { lines: [(0, 0); HEAD + TAIL], count: 0, between: (0, 0) };
        let mut from = 0;
        while from < text.len() && spans.count < HEAD {
            let end = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at);
            spans.add(text, from, end);
            from = end + 1;
        }
        let head = spans.count;
        let mut until = text.len();
        while from < until {
            if spans.count == head + TAIL {
                spans.between = (from, until);
                break;
            }
            let start = memchr::memrchr(b'\n', &text[from..until]).map_or(from, |at| from + at + 1);
            spans.add(text, start, until);
            until = start.saturating_sub(1);
        }
        spans.lines[head..spans.count].reverse();
        spans
    }

    fn add(&mut self, text: &[u8], start: usize, end: usize) {
        if !text[start..end].trim_ascii().is_empty() {
            self.lines[self.count] = (start, end);
            self.count += 1;
        }
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator {
        self.lines[..self.count].iter().copied()
    }

    /// The hash of what stands between them; 0 when nothing does.
    fn between(&self, text: &[u8]) -> u128 {
        match &text[self.between.0..self.between.1] {
            [] => 0,
            between => Fingerprint::of_bytes(b"result", between).short(),
        }
    }
}

/// What a line says, numbers and made-up names aside: each run of letters and digits with a digit in it counts as one
/// and the same.
#[derive(Default)]
struct Shape {
    /// 0 when there are no words.
    hash: u32,
    /// The first number.
    number: u32,
}

impl Shape {
    fn of(line: &[u8]) -> Self {
        let (mut hash, mut letters, mut number) = (EMPTY, 0, 0);
        let mut rest = line;
        while let Some(first) = rest.first() {
            // A word is hashed while its end is looked for: most have no digit, and are what they say.
            let (mut run, mut said, mut has_digit) = (0, hash, false);
            for byte in rest {
                match IN_WORDS[usize::from(*byte)] {
                    InWords::Never => break,
                    letter_or_digit => has_digit |= letter_or_digit == InWords::Digit,
                }
                said = fnv1a(said, *byte);
                run += 1;
            }
            if run == 0 {
                hash = fnv1a(hash, *first);
                rest = &rest[1..];
                continue;
            }
            let (word, behind) = rest.split_at(run);
            rest = behind;
            if has_digit {
                hash = fnv1a(hash, b'0');
                if number == 0 {
                    number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0);
                }
                // `12,731`, `9,731` and `0.3` are a number each.
                while let [b',' | b'.' | b':', digit, ..] = rest
                    && digit.is_ascii_digit()
                {
                    rest = &rest[1..];
                    rest = &rest[rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()..];
                }
            } else {
                letters += run;
                hash = said;
            }
        }
        let hash = if letters >= 2 { (hash ^ hash >> 32) as u32 | 1 } else { 0 };
        Self { hash, number }
    }
}

/// What a byte is to words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InWords {
    Never,
    Letter,
    Digit,
}

/// Of each byte. A line of a result is read byte by byte, so there is a table.
const IN_WORDS: [InWords; 256] = {
    let mut kinds = [InWords::Letter; 256];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b'0'..=b'9' => InWords::Digit,
            b'a'..=b'z' | b'A'..=b'Z' => InWords::Letter,
            _ => InWords::Never,
        };
        byte += 1;
    }
    kinds
};

/// Calls of one kind do the same by the same tool, or run the same programs, whatever they are given.
fn kind_of(print: &Print) -> u32 {
    let does = &print.does;
    let mut kind = print.tool ^ u64::from(does.programs);
    for fact in [does.moves, does.notes, does.lists, does.broad, does.command, does.sends, does.bides] {
        kind = fnv1a(kind, u8::from(fact));
    }
    kind = fnv1a(kind, does.effect.map_or(0, |effect| effect as u8 + 1));
    (kind ^ kind >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::{Answer, Edges, Frame};
    use crate::redundancy::window::Window;

    /// A frame that has seen answers with these last lines, each to a call of another of so many kinds.
    fn taught(last_lines: &[&str], kinds: u32, looks: bool) -> Frame {
        let mut frame = Frame::default();
        for (index, (line, kind)) in last_lines.iter().zip((1..=kinds).cycle()).enumerate() {
            let mut normal =
                format!("answer {}\n{line}", ["a", "b", "c", "d", "e", "f"][index % 6]).into_bytes();
            let mut edges = Edges::default();
            frame.take_off(&mut normal, &mut edges);
            frame.round.push(Answer { index, kind, looks, edges });
            frame.learn(&mut Window::default());
        }
        frame
    }

    /// What is left of an answer.
    fn left(frame: &Frame, answer: &str) -> String {
        let mut normal = answer.as_bytes().to_vec();
        frame.take_off(&mut normal, &mut Edges::default());
        String::from_utf8(normal).expect("as it came")
    }

    const COUNTER: [&str; 6] = ["[step 1]", "[step 2]", "[step 3]", "[step 4]", "[step 5]", "[step 6]"];

    #[test]
    fn what_changes_with_every_answer_to_all_kinds_of_calls_is_taken_off() {
        assert_eq!(left(&taught(&COUNTER, 3, true), "words\n[step 7]"), "words");
        assert_eq!(left(&taught(&COUNTER, 3, true), "words\n[step 7]\nmore words"), "words\nmore words");
        assert_eq!(left(&taught(&COUNTER, 3, true), "words\n[stop 7]"), "words\n[stop 7]");
    }

    #[test]
    fn what_only_some_kinds_of_calls_are_answered_with_stays() {
        assert_eq!(left(&taught(&COUNTER, 2, true), "words\n[step 7]"), "words\n[step 7]");
    }

    #[test]
    fn what_changes_only_when_something_was_done_stays() {
        assert_eq!(left(&taught(&COUNTER, 3, false), "words\n[step 7]"), "words\n[step 7]");
    }

    #[test]
    fn what_goes_up_and_down_stays() {
        let prices = ["price: 10", "price: 14", "price: 12", "price: 17", "price: 11", "price: 15"];
        assert_eq!(left(&taught(&prices, 3, true), "words\nprice: 13"), "words\nprice: 13");
    }

    #[test]
    fn what_changes_now_and_then_stays() {
        let scores = ["score: 3", "score: 3", "score: 4", "score: 4", "score: 5", "score: 6"];
        assert_eq!(left(&taught(&scores, 3, true), "words\nscore: 7"), "words\nscore: 7");
    }

    #[test]
    fn how_a_call_went_stays() {
        let codes =
            ["exit code: 1", "exit code: 2", "exit code: 3", "exit code: 4", "exit code: 5", "exit code: 6"];
        assert_eq!(left(&taught(&codes, 3, true), "words\nexit code: 7"), "words\nexit code: 7");
    }

    #[test]
    fn an_answer_that_is_nothing_but_its_frame_stays() {
        assert_eq!(left(&taught(&COUNTER, 3, true), "[step 7]"), "[step 7]");
    }

    #[test]
    fn what_is_taken_off_leaves_answers_that_compare_as_equal() {
        let frame = taught(&COUNTER, 3, true);
        let compared =
            |answer: &str| frame.take_off(&mut answer.as_bytes().to_vec(), &mut Edges::default()).hashes;
        assert_eq!(compared("words\nand more\n[step 7]"), compared("words\nand more\n[step 8]"));
        assert_ne!(compared("words\nand more\n[step 7]"), compared("words\nand less\n[step 7]"));
        assert_ne!(compared("words\nand more"), compared("and more\nwords"));
    }
}
