//! The last steps of one session, newest last, with what cuts a count short.

use std::collections::VecDeque;

use crate::outcome::Outcome;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::vocabulary::Vocabulary;
use crate::saved::saved;

/// So many steps more than it should hold are held until their round is over.
const BESIDE: usize = 8;

/// A bounded window of prints.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    prints: VecDeque<Print>,
    /// The words of its steps.
    pub(super) vocabulary: Vocabulary,
    /// Steps before this index stand behind new words from outside: only failures still count.
    fresh_from: usize,
    /// The last words from outside ask for a new look.
    asked_again: bool,
}

saved!(Window { prints, vocabulary, fresh_from, asked_again });

impl Window {
    /// Adds a step. What it is too many for goes when its round is over, so that steps side by side are compared with the
    /// same ones, whichever comes first.
    pub(super) fn push(&mut self, print: Print, capacity: usize) {
        self.forget_beyond(capacity + BESIDE);
        if self.prints.len() == self.prints.capacity() && self.prints.len() >= capacity {
            self.prints.reserve_exact(1 + BESIDE);
        }
        self.prints.push_back(print);
    }

    /// Forgets the oldest steps, as far as there are more than these.
    pub(super) fn forget_beyond(&mut self, capacity: usize) {
        while self.prints.len() > capacity
            && let Some(oldest) = self.prints.pop_front()
        {
            self.vocabulary.release(&oldest.words);
        }
    }

    /// Steps from newest to oldest.
    pub(super) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Print> + Clone {
        self.prints.iter().rev()
    }

    /// What the agent did or said before the round of `now`, newest first, as far as no new words came between.
    pub(super) fn earlier<'a>(&'a self, now: &Print) -> impl Iterator<Item = &'a Print> + Clone + use<'a> {
        let round = now.round;
        let fresh_from = self.fresh_from;
        self.newest_first()
            .take_while(move |print| print.index >= fresh_from)
            .filter(move |print| print.round != round && print.is_agents())
    }

    /// What the agent did before the round of `now`, newest first, words from outside notwithstanding.
    pub(super) fn earlier_despite_words<'a>(
        &'a self,
        now: &Print,
    ) -> impl Iterator<Item = &'a Print> + Clone + use<'a> {
        let round = now.round;
        self.newest_first().filter(move |print| print.round != round && print.is_agents())
    }

    /// Whether this very text has come from outside before.
    pub(super) fn has_heard(&self, words: &Print) -> bool {
        self.prints.iter().any(|print| print.form == Form::Outside && print.call == words.call)
    }

    /// Takes note of whether these words ask for a new look: they had come before, and the agent has looked at something
    /// and reported since the last words.
    pub(super) fn ask_again(&mut self, heard: bool) {
        let looked_and_reported = {
            let mut turn = self.newest_first().take_while(|print| print.form != Form::Outside);
            let reported = turn.next().is_some_and(|print| print.form == Form::Text);
            reported && turn.any(|print| print.form == Form::Call)
        };
        self.asked_again = heard && looked_and_reported;
    }

    /// Whether a step belongs to the answer to such words: whoever asks the same again wants to know how it is now.
    pub(super) fn is_asked_again(&self, now: &Print) -> bool {
        let mut turn = self.newest_first().take_while(|print| print.form != Form::Outside);
        self.asked_again && (now.form == Form::Call || turn.any(|print| print.form == Form::Call))
    }

    /// Whether anything came from outside after a step. No count crosses new words, so where a count asks, these are
    /// words that had come before.
    pub(super) fn was_answered_since(&self, step: &Print) -> bool {
        self.newest_first()
            .take_while(|print| print.index > step.index)
            .any(|print| print.form == Form::Outside)
    }

    /// What the last step says to the speaker of `now`, as a hash: the words of a user or of another agent. 0 when it says
    /// nothing, or no more than a word or two. A person who lets a writer go on says the same each time and gets something new
    /// each time, so the words of a user count only where tools are used, or where they are an error that a harness reports.
    pub(super) fn says_to(&self, now: &Print) -> u64 {
        let uses_tools = || self.prints.iter().any(|print| print.form == Form::Call);
        let is_said = |last: &&Print| match last.form {
            Form::Outside => !last.terse && (last.outcome.facts.failed || uses_tools()),
            Form::Text => !last.terse && last.speaker != now.speaker,
            Form::Call | Form::Compaction => false,
        };
        self.last_before(now).filter(is_said).map_or(0, |last| last.call.short() as u64 | 1)
    }

    /// Whether the last step before `now` is words from outside that read as an error.
    pub(super) fn is_refused(&self, now: &Print) -> bool {
        self.last_before(now).is_some_and(|last| last.form == Form::Outside && last.outcome.facts.failed)
    }

    /// The last step before the round of `now`, whoever made it.
    fn last_before(&self, now: &Print) -> Option<&Print> {
        self.newest_first().find(|print| print.round != now.round)
    }

    /// Whether a text was answered in these very words before.
    pub(super) fn has_reply(&self, reply: u128) -> bool {
        self.prints.iter().any(|print| print.form == Form::Text && print.outcome.result == reply)
    }

    /// Whether a text was refused, and no text was refused in another way since new words came: a refusal says no more
    /// than that what was said will not do.
    pub(super) fn is_only_refusal(&self, text: &Print) -> bool {
        let refusals =
            || self.earlier(text).filter(|print| print.form == Form::Text && print.failed_for_good());
        text.failed_for_good() && refusals().all(|print| print.outcome.class == text.outcome.class)
    }

    /// Whether a call stands in an earlier round.
    pub(super) fn has_call(&self, now: &Print) -> bool {
        self.prints.iter().any(|print| print.round != now.round && print.call == now.call)
    }

    /// Whether a call stands in an earlier round with the same result.
    pub(super) fn has_step(&self, now: &Print) -> bool {
        self.prints.iter().any(|print| print.round != now.round && print.equals(now))
    }

    /// Whether several other calls of the same tool were answered in the same words.
    pub(super) fn has_given_this_to_others(&self, now: &Print) -> bool {
        let is_other = |print: &&Print| print.tool == now.tool && print.call != now.call;
        let alike =
            || self.prints.iter().filter(is_other).filter(|print| print.outcome.answers_as(&now.outcome));
        alike().next().is_some_and(|first| alike().any(|print| print.call != first.call))
    }

    /// Whether a step asked what had been asked before, and was told something new.
    pub(super) fn shows_a_change(&self, look: &Print) -> bool {
        let before = || self.prints.iter().take_while(|print| print.round < look.round);
        look.again
            && look.outcome.result != 0
            && !look.outcome.facts.failed
            && before().any(|print| print.call == look.call)
            && !before().any(|print| print.equals(look))
    }

    /// Whether a step asked what had been asked before, and was not told the same as the last time: what is watched
    /// moves, and waiting for it is worth the while.
    pub(super) fn shows_a_move(&self, look: &Print) -> bool {
        let asked = || self.newest_first().find(|print| print.round < look.round && print.call == look.call);
        look.again
            && !look.is_write()
            && look.outcome.result != 0
            && !look.outcome.facts.failed
            && asked().is_some_and(|print| !print.outcome.answers_as(&look.outcome))
    }

    /// Whether the agent called a tool in its last round.
    pub(super) fn called_in_last_round(&self) -> bool {
        let last = self.prints.back().map(|print| print.round);
        let mut round = self.newest_first().take_while(|print| Some(print.round) == last);
        round.any(|print| print.form == Form::Call)
    }

    /// Whether these are the last steps before the round of `now`, newest first.
    pub(super) fn ends_with(&self, newest_first: &[&Print], now: &Print) -> bool {
        self.earlier(now).zip(newest_first).all(|(a, b)| a.index == b.index)
    }

    /// Reads the outcome of a step again, by what is known now.
    pub(super) fn read_again(&mut self, index: usize, read: impl FnOnce(&mut Outcome)) {
        if let Some(print) = self.prints.iter_mut().find(|print| print.index == index) {
            read(&mut print.outcome);
        }
    }

    /// From this step on, counts start anew.
    pub(super) fn start_afresh(&mut self, index: usize) {
        self.fresh_from = index;
    }

    /// Forgets the steps of `round` and later ones: the round is played again.
    pub(super) fn roll_back(&mut self, round: u64) {
        while let Some(last) = self.prints.back().filter(|print| print.round >= round) {
            self.vocabulary.release(&last.words);
            self.prints.pop_back();
        }
    }

    /// Puts the steps of the last round into an order of their own, so that the order of parallel calls never
    /// matters to what is compared in sequence. Words beside a call are no answer without one.
    pub(super) fn settle_last_round(&mut self) {
        let Some(round) = self.prints.back().map(|print| print.round) else { return };
        let size = self.prints.iter().rev().take_while(|print| print.round == round).count();
        if size > 1 {
            let from = self.prints.len() - size;
            let steps = &mut self.prints.make_contiguous()[from..];
            if steps.iter().any(|print| print.form == Form::Call) {
                for print in &mut *steps {
                    print.narrates = print.form == Form::Text;
                }
            }
            steps.sort_unstable_by_key(|print| {
                (print.call, print.outcome.result, print.outcome.class, print.outcome.facts.failed)
            });
        }
    }

    /// The index behind the newest step, in a round that is under way.
    pub(super) fn end(&self) -> usize {
        self.prints.back().map_or(0, |print| print.index + 1)
    }

    /// The newest steps of the agent as a sequence, newest first, as far as no new words came between.
    pub(super) fn sequence(&self) -> impl Iterator<Item = &Print> + Clone {
        let fresh_from = self.fresh_from;
        self.newest_first()
            .take_while(move |print| print.index >= fresh_from)
            .filter(|print| print.is_agents())
    }

    /// The first step that stands behind no new words.
    pub(super) const fn fresh_from(&self) -> usize {
        self.fresh_from
    }

    /// How many bytes the prints take.
    pub(super) fn bytes(&self) -> usize {
        self.prints.capacity() * size_of::<Print>() + self.vocabulary.bytes()
    }

    pub(super) fn clear(&mut self) {
        self.prints.clear();
        self.vocabulary.clear();
        self.fresh_from = 0;
        self.asked_again = false;
    }
}
