//! What a harness puts around each result, told from what the tool brought.
//!
//! A counter of steps, the name of a call, how full the context is, a line that says that here is the output: they stand
//! around every result, whatever was asked, and many change with each. No two results would ever be equal, and no
//! failure would begin with its own words. There is no list of such lines, since each harness has its own: a line
//! belongs to the frame when calls of several kinds were answered with it, and it either changed with every answer, also
//! where nothing can have changed, or never. What changes now and then (a folder, an open file, a score), or up and down
//! (a price, a pose), tells of the world, and is news.
//!
//! An agent with one tool makes calls of one kind. There, a number counts as frame that says how many answers there were,
//! from the first one on and to several calls, whose numbers it does not repeat. An answer that is one object has members
//! for lines, and no frame but what counts or is drawn anew each time: any other number in it may be what was asked for.
//!
//! What never changes hinders no comparison, so it stays, and only tells where the tool's own words begin.

mod spans;

use crate::config::Effect;
use crate::fingerprint::Fingerprint;
use crate::outcome::{Compared, Outcome, SCANNED, hash_of_a_line, hash_of_lines, tells_of_the_call};
use crate::redundancy::print::Print;
use crate::redundancy::window::Window;
use crate::saved::saved;
use crate::words::{fnv1a, hash_bytes};
use spans::{Shape, Spans};

/// So many lines at the start of a result may belong to the frame, and so many at its end.
const HEAD: usize = 5;
const TAIL: usize = 12;
/// A longer line is what a tool brought.
const LONGEST: usize = 200;
/// So many kinds of calls must have been answered with a line: the progress of three jobs is told by one kind.
const KINDS: usize = 3;
/// Of a number that counts the answers from the first one on, so many calls of whatever kind are enough.
const CALLS: usize = 3;
/// And so many answers must have had it.
const SIGHTINGS: u16 = 4;
/// So many times it must have changed although nothing else can have.
const IDLE_CHANGES: u16 = 2;
/// So many answers must have had other words than a number that counts the answers, before it may stand for an empty one.
const BESIDE: u16 = 2;
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
    call: u32,
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
    /// The calls that were answered with it.
    calls: [u32; CALLS],
    /// Every answer since the first has had it, with a number that counts them.
    counts: bool,
    /// Where the last round ended that was answered with it.
    seen_until: usize,
    sightings: u16,
    /// How many answers had other words too.
    beside: u16,
    /// How often it said something else than the last time, and how often of that in answer to a mere look.
    changes: u16,
    idle_changes: u16,
    /// How often its number was larger than the last time, and how often smaller.
    moved: [u16; 2],
    missed: u8,
    /// It tells how a call went, which is no business of a frame.
    tells: bool,
    /// It is a member of an object.
    is_member: bool,
}

saved!(Frame { lines, round, overflows, first, answers });
saved!(Answer { index, kind, call, looks, edges });
saved!(Line {
    shape,
    said,
    number,
    kinds,
    calls,
    counts,
    seen_until,
    sightings,
    beside,
    changes,
    idle_changes,
    moved,
    missed,
    tells,
    is_member
});

/// The lines at both ends of a result, or its members.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Edges {
    seen: [Seen; HEAD + TAIL],
    count: usize,
    /// The hash of what stands between them; 0 when nothing does.
    between: u128,
    /// They are the members of an object.
    are_members: bool,
}

/// A line at an end of a result; a shape of 0 is that of a line without words, which belongs to no frame.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    shape: u32,
    said: u64,
    number: u32,
    tells: bool,
    /// The call names its number.
    asked: bool,
}

saved!(Edges { seen, count, between, are_members });
saved!(Seen { shape, said, number, tells, asked });

impl Frame {
    /// Takes off a result what of the frame changes, notes the lines that stood at both ends of it, and gives what it is to be
    /// compared by, where there are several: what stands between them is hashed once, and they can be left out later.
    pub(super) fn take_off(&self, normal: &mut Vec<u8>, edges: &mut Edges) -> Compared {
        let spans = Spans::of(normal);
        (edges.between, edges.are_members) = (spans.between(normal), spans.are_members);
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
                    let end = end + usize::from(matches!(normal.get(end), Some(b'\n' | b',')));
                    normal.drain(start..end);
                    compared.trimmed = true;
                }
            }
            let end = normal.trim_ascii_end().len();
            normal.truncate(end);
            let left = edges.seen().filter(|seen| !self.changes(seen));
            compared.headings =
                if edges.are_members { 0 } else { left.take_while(|seen| self.stays(seen)).count() };
        }
        compared
    }

    /// Notes the ends of an answer until its round is over.
    pub(super) fn note(&mut self, print: &Print, args: &str, edges: &Edges) {
        if edges.count == 0 {
            return;
        }
        let mut edges = *edges;
        edges.are_members &= !print.does.moves;
        for seen in &mut edges.seen[..edges.count.min(HEAD + TAIL)] {
            let may_count = self.known(seen.shape).is_some_and(|line| line.counts);
            seen.asked = may_count && has_number(args.as_bytes(), seen.number);
        }
        let looks =
            matches!(print.does.effect, Some(Effect::Read | Effect::Poll)) || print.outcome.facts.failed;
        let call = print.call.short() as u32 | 1;
        let answer = Answer { index: print.index, kind: kind_of(print), call, looks, edges };
        if self.round.len() < MOST_IN_A_ROUND {
            self.round.push(answer);
        } else {
            self.overflows = true;
        }
    }

    /// Learns from the answers of a round, which ends before the step with this index. What is learnt is true of the first
    /// answers, too.
    pub(super) fn learn(&mut self, window: &mut Window, end: usize) {
        if self.round.is_empty() {
            return;
        }
        if !std::mem::take(&mut self.overflows) {
            let round = std::mem::take(&mut self.round);
            let mut is_wiser = false;
            for line in &mut self.lines {
                let was = line.changes_for_nothing();
                line.see(&round, end);
                is_wiser |= !was && line.changes_for_nothing();
            }
            self.lines.retain(|line| line.missed < line.patience());
            self.watch_more(&round, end);
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

    /// Watches the lines that nobody knows yet, as far as there is room: which ones, must not hang on which of several answers
    /// came first.
    fn watch_more(&mut self, round: &[Answer], end: usize) {
        let mut shapes = [0; MOST_IN_A_ROUND * (HEAD + TAIL)];
        for (shape, seen) in shapes.iter_mut().zip(round.iter().flat_map(|answer| answer.edges.seen())) {
            *shape = seen.shape;
        }
        if round.len() > 1 {
            shapes.sort_unstable();
        }
        for shape in shapes.into_iter().filter(|shape| *shape != 0) {
            if self.lines.len() < WATCHED && self.known(shape).is_none() {
                self.lines.push(Line::new(shape, self.answers == 0, round, end));
            }
        }
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
        // Where a debugger stands is told by more than its lines.
        if outcome.lines == 0 && edges.count > 1 && !edges.are_members {
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
        let mut left = edges.seen().filter(|seen| !(takes_off && self.changes(seen))).peekable();
        if left.peek().is_none() && edges.between == 0 {
            return Fingerprint::of_bytes(b"result", b"").short();
        }
        left.fold(edges.between, |hash, seen| {
            (hash ^ u128::from(seen.said)).wrapping_mul(MIX).rotate_left(47)
        })
    }

    /// Whether there is a line that is taken off wherever it stands: in most sessions there is none, and nothing to look for.
    fn takes_off(&self) -> bool {
        self.lines.iter().any(Line::changes_for_nothing)
    }

    /// Whether there is more to a result than its frame: an answer that is nothing but its lines is the answer. Where they
    /// only count the answers, there was none.
    fn leaves_something(&self, edges: &Edges) -> bool {
        let is_more = |seen: &Seen| !self.changes(seen) && !self.stays(seen);
        let mut changing = edges.seen().filter(|seen| self.changes(seen)).peekable();
        let only_counts = changing.peek().is_some() && changing.all(|seen| self.stands_for_nothing(seen));
        edges.between != 0 || edges.seen().any(is_more) || only_counts
    }

    fn known(&self, shape: u32) -> Option<&Line> {
        self.lines.iter().find(|line| line.shape == shape)
    }

    /// Whether it is a line of the frame that changes with every answer.
    fn changes(&self, seen: &Seen) -> bool {
        seen.shape != 0 && !seen.tells && self.known(seen.shape).is_some_and(Line::changes_for_nothing)
    }

    /// Whether it only counts the answers, also where it stands alone: it has stood beside others.
    fn stands_for_nothing(&self, seen: &Seen) -> bool {
        self.known(seen.shape).is_some_and(|line| line.is_a_counter() && line.beside >= BESIDE)
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
    fn new(shape: u32, is_first: bool, round: &[Answer], end: usize) -> Self {
        let mut line = Self {
            shape,
            said: 0,
            number: 0,
            kinds: [0; KINDS],
            calls: [0; CALLS],
            counts: is_first,
            seen_until: 0,
            sightings: 0,
            beside: 0,
            changes: 0,
            idle_changes: 0,
            moved: [0; 2],
            missed: 0,
            tells: false,
            is_member: false,
        };
        line.see(round, end);
        line
    }

    /// Takes in whether the answers of a round have it, which ends before the step with this index.
    fn see(&mut self, round: &[Answer], end: usize) {
        let before = (self.sightings > 0).then_some(*self);
        let (mut said, mut number) = (0, 0);
        for answer in round {
            let Some(seen) = answer.edges.seen().find(|seen| seen.shape == self.shape) else { continue };
            note_one_more(&mut self.kinds, answer.kind);
            note_one_more(&mut self.calls, answer.call);
            self.tells |= seen.tells;
            self.is_member |= answer.edges.are_members;
            let is_other = before.is_some_and(|before| seen.said != before.said);
            self.changes = self.changes.saturating_add(u16::from(is_other));
            self.idle_changes =
                self.idle_changes.saturating_add(u16::from(is_other && answer.looks && !seen.asked));
            self.sightings = self.sightings.saturating_add(1);
            self.beside = self.beside.saturating_add(u16::from(answer.edges.count > 1));
            // Of calls side by side, which one comes first is chance.
            (said, number) = (said, number).max((seen.said, seen.number));
        }
        if said == 0 {
            self.missed = self.missed.saturating_add(1);
            self.counts = false;
            // What some objects have and others have not is what was asked for.
            self.tells |= self.is_member && round.iter().any(|answer| answer.edges.are_members);
            return;
        }
        // There may be steps that are not answers, and answers that came side by side. Some count from 0.
        let goes_up = |from: u32, steps| number > from && (number - from) as usize <= steps;
        self.counts &= match before {
            Some(before) => goes_up(before.number, end.saturating_sub(before.seen_until)),
            None => number == 0 || goes_up(0, end),
        };
        if let Some(before) = before {
            let [more, less] = &mut self.moved;
            *more = more.saturating_add(u16::from(number > before.number));
            *less = less.saturating_add(u16::from(number < before.number));
        }
        (self.said, self.number, self.seen_until, self.missed) = (said, number, end, 0);
    }

    /// Whether it stands around answers to calls of several kinds.
    const fn is_established(&self) -> bool {
        self.sightings >= SIGHTINGS && self.kinds[KINDS - 1] != 0
    }

    /// Whether it counts the answers of the session, to several calls, and nothing else: they have nothing in common but their
    /// order.
    const fn is_a_counter(&self) -> bool {
        self.counts && self.sightings >= SIGHTINGS && self.calls[CALLS - 1] != 0 && self.idle_changes > 0
    }

    /// Whether it is about to be of the frame, so that it has to be read what it says. Reading takes longer than all else here,
    /// and most lines come back with one kind of call only.
    const fn is_to_be_read(&self) -> bool {
        let is_spread = self.kinds[KINDS - 2] != 0 || (self.counts && self.calls[CALLS - 2] != 0);
        !self.tells && self.sightings.saturating_add(1) >= SIGHTINGS && is_spread
    }

    /// Whether it changes with every answer, also with those of calls that change nothing, and its number goes one way only,
    /// if it goes anywhere: it tells how many answers there were, and nothing about any.
    fn changes_for_nothing(&self) -> bool {
        let stays = self.sightings.saturating_sub(1).saturating_sub(self.changes);
        let is_regular = self.changes > 0 && stays.saturating_mul(CHANGES_FOR_ONE) <= self.changes;
        let goes_one_way = self.moved.contains(&0);
        // A number among the members of an object is what was asked for, unless it only counts. A name that is drawn anew is
        // none.
        let may_be_news = if self.is_member { self.moved != [0; 2] } else { !goes_one_way };
        !self.tells
            && is_regular
            && (self.is_a_counter()
                || (!may_be_news && self.is_established() && self.idle_changes >= IDLE_CHANGES))
    }

    fn patience(&self) -> u8 {
        if self.is_established() || self.is_a_counter() { MISSES_OF_THE_FRAME } else { MISSES }
    }
}

/// Notes something among a few, unless it stands there or they are full.
fn note_one_more(known: &mut [u32], new: u32) {
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
        Self { shape: hash, said: hash_bytes(line), number, tells: false, asked: false }
    }
}

/// Whether a number stands in a text, be it as a part of a name.
fn has_number(text: &[u8], number: u32) -> bool {
    text.split(|byte| !byte.is_ascii_digit()).any(|digits| {
        let value = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok());
        value == Some(number)
    })
}

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
mod tests;
