//! What all processes know of a request: the question that is put to them, and their answer taken in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use loopbreaker::{RedundancyRules, Timestamp};
use loopbreaker_budget::{Quantity, Standing, Window};
use loopbreaker_fleet::{
    After, Ask, AttemptAsk, AttemptMissed, AttemptOver, ChargeAsk, ChargeOver, Decision, KnownPlace, Link,
    PauseState, Place, SharedKey, Sightings, Struck, Told, Unit,
};

use crate::consider::{Case, Whose};
use crate::judge::Past;
use crate::limits::Charges;
use crate::sessions::{AfterRefusal, Session};
use crate::state::Shared;
use crate::ticket::Common;
use crate::transcripts::Transcript;

/// The question of a request, and what it was asked with.
pub(crate) struct Asked {
    /// Whom it is put to.
    link: Arc<Link>,
    ask: Ask,
    pub(crate) told: Option<Told>,
}

/// Numbers attempts, so that each can be taken back.
#[derive(Debug)]
pub(crate) struct AttemptIds(AtomicU64);

impl AttemptIds {
    /// Numbers that no other process uses.
    pub(crate) const fn from(random: u64) -> Self {
        Self(AtomicU64::new(random))
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// How long a pause is remembered. It is no time after which a session goes on: nobody is approved by waiting.
const PAUSE_KEPT_MILLIS: u64 = 7 * 24 * 3_600 * 1_000;

/// The decision that pauses a session, or did so some milliseconds ago; `held` is the transcript that it holds up from the
/// first.
pub(crate) const fn pausing(held: Option<u128>, ago: u64) -> Decision {
    Decision::Pause { millis: PAUSE_KEPT_MILLIS, held, ago }
}

impl Asked {
    /// The question of a request.
    pub(crate) fn of(
        shared: &Shared,
        link: &Arc<Link>,
        case: &Case<'_>,
        attempts: &[(u128, AttemptKind)],
    ) -> Self {
        let (place, probable) = match &case.whose {
            Whose::Named { key, name } => (Place::Named { key: key.0, name: name.to_string() }, *key),
            Whose::Transcript { anchor, chain, tails } => {
                let found = shared.sessions.find(*anchor, chain, tails.newest_first());
                let is_known = !found.is_new || found.key != found.account;
                let place = Place::Transcript {
                    anchor: *anchor,
                    links: chain.iter().rev().take(MAX_LOOK_BACK).copied().collect(),
                    tails: tails.newest_first().take(MAX_LOOK_BACK).collect(),
                    known: is_known.then(|| KnownPlace {
                        key: found.key.0,
                        account: found.account.0,
                        name: shared.sessions.given(found.account).map(|name| name.to_string()),
                    }),
                };
                (place, found.key)
            }
        };
        let strikes: Vec<(u128, u32)> =
            case.loops().map(|ruled| (ruled.finding.identity.short(), ruled.strikes)).collect();
        let thread = case.inspection.as_ref().and_then(|inspection| inspection.elsewhere);
        let is_asked = |identity| thread.is_some() || strikes.iter().any(|(shown, _)| *shown == identity);
        let remembers = |session: &mut Session| session.remembered(is_asked, case.now);
        let may_loop = thread.is_some() || !strikes.is_empty();
        let remembered = may_loop.then(|| shared.sessions.with(probable, remembers)).flatten();
        let attempts = attempts.iter().map(|(key, kind)| AttemptAsk {
            key: *key,
            by_session: kind.by_session,
            window_millis: kind.window_millis,
            id: shared.attempt_ids.next(),
            once_in_flight: kind.once_in_flight,
            most: kind.most,
        });
        let ask = Ask {
            tenant: case.tenant.tag,
            place,
            tip: case.tip,
            thread,
            awaits_answer: case.facts.previous_response_id.is_some(),
            is_loop: !strikes.is_empty(),
            remembered: remembered.unwrap_or_default(),
            strikes,
            attempts: attempts.collect(),
            charges: case.charges.asked().collect(),
        };
        Self { link: Arc::clone(link), ask, told: None }
    }

    /// Puts the question; says whether there was an answer in time.
    pub(crate) async fn put(&mut self) -> bool {
        self.told = self.link.ask(&self.ask).await;
        self.told.is_some()
    }

    /// Takes over what led to the answer or conversation that the request names, if others have left it; says whether
    /// there was something.
    pub(crate) fn take_over(&mut self, shared: &Shared, rules: &RedundancyRules) -> bool {
        let window = self.told.as_mut().and_then(|told| told.window.take());
        let carried =
            self.ask.thread.zip(window).and_then(|(thread, window)| Transcript::load(thread, &window, rules));
        carried.is_some_and(|transcript| {
            shared.transcripts.take_over(transcript);
            true
        })
    }

    /// The loops of a request and their strikes: the higher of what it shows and what the others have kept.
    fn strikes(&self, told: &Told, case: &Case<'_>) -> Vec<(u128, u32)> {
        if self.ask.thread.is_none() {
            let asked = self.ask.strikes.iter().map(|(identity, _)| *identity);
            return asked.zip(told.strikes.iter().copied()).collect();
        }
        // They became known with the answer.
        let loops = case.loops().map(|ruled| {
            let identity = ruled.finding.identity.short();
            let kept = told.kept.iter().find(|(known, _)| *known == identity).map_or(0, |(_, kept)| *kept);
            (identity, ruled.strikes.max(kept))
        });
        loops.collect()
    }

    /// The past of the session, as the others know it.
    pub(crate) fn past(&self, shared: &Shared, case: &Case<'_>) -> Option<Past> {
        let told = self.told.as_ref()?;
        let after = match told.after {
            After::Judge => AfterRefusal::Judge,
            After::Refuse(millis) => AfterRefusal::Refuse(millis.div_ceil(1_000)),
            After::LetThrough => AfterRefusal::LetThrough,
        };
        // They may have lost what came before.
        let is_first_here = |session: &mut Session| session.is_first(case.tip);
        let is_first = told.is_first && shared.sessions.with(case.located.key, is_first_here).unwrap_or(true);
        Some(Past { is_first, after, strikes: self.strikes(told, case) })
    }

    /// How often the request was sent, in each window that was asked about.
    pub(crate) fn attempts(&self, index: usize) -> Option<Sightings> {
        self.told.as_ref()?.attempts.get(index).copied()
    }

    /// How its budgets stood before it.
    pub(crate) fn standings(&self) -> Option<Vec<Standing>> {
        let told = self.told.as_ref()?;
        let standing = |(stood, charge): (&loopbreaker_fleet::Stood, &ChargeAsk)| Standing {
            used: stood.used,
            amount: charge.amount,
            remaining: charge.amount.saturating_sub(stood.used),
            reset_seconds: stood.reset_millis.div_ceil(1_000),
        };
        Some(told.standings.iter().zip(&self.ask.charges).map(standing).collect())
    }

    /// What is left to tell the others when the request is over.
    pub(crate) fn common(&self, shared: &Shared, case: &Case<'_>) -> Common {
        let is_reserved = self.told.as_ref().is_some_and(|told| told.is_reserved);
        let mut common = Common::new(Arc::clone(&self.link), self.ask.tenant, is_reserved);
        let session = |by_session: bool| by_session.then_some(&*case.account_name);
        let strikes = match &self.told {
            // The others have learnt of them by the question.
            Some(_) if self.ask.thread.is_none() => Vec::new(),
            Some(told) => self.strikes(told, case),
            None => case.loops().map(|ruled| (ruled.finding.identity.short(), ruled.strikes)).collect(),
        };
        if !strikes.is_empty() {
            let (session, account) = (case.located.key.0, case.located.account.0);
            common.over.strikes = Some(Struck { session, account, tip: case.tip, loops: strikes });
        }
        for attempt in &self.ask.attempts {
            let window = SharedKey::new(attempt.key, session(attempt.by_session));
            match &self.told {
                Some(_) => {
                    common.over.attempts.push(AttemptOver { window, id: attempt.id, taken_back: false });
                }
                None => common.over.missed.push(AttemptMissed {
                    window,
                    window_millis: attempt.window_millis,
                    // The question may still be answered, and is taken back then under its own number.
                    id: shared.attempt_ids.next(),
                    made: Instant::now(),
                }),
            }
        }
        // What was asked about and did not fit was not reserved, and will not be used unless somebody lets it go on.
        if is_reserved || self.told.is_none() {
            self.charge(&mut common, &case.charges, &case.account_name);
        }
        common
    }

    /// What the request uses is counted when it is over.
    pub(crate) fn charge(&self, common: &mut Common, charges: &Charges<'_>, account: &str) {
        let at = self.told.as_ref().map_or(0, |told| told.at);
        for (charge, quantity) in self.ask.charges.iter().zip(charges.quantities()) {
            common.charged(
                quantity,
                ChargeOver {
                    counter: SharedKey::new(charge.key, charge.by_session.then_some(account)),
                    window_millis: charge.window_millis,
                    estimate: charge.estimate,
                    actual: 0,
                    at,
                    used: Instant::now(),
                    unit: unit(quantity),
                    limit: charge.stops.then_some(charge.amount),
                },
            );
        }
    }

    /// Takes in what the others know, so that this process knows it too when they cannot be asked.
    pub(crate) fn take_in(&self, shared: &Shared, case: &Case<'_>) {
        let Some(told) = &self.told else { return };
        if let After::Refuse(left) = told.after {
            let until = Timestamp::from_millis(case.now.as_millis() + left);
            shared.sessions.with(case.located.key, |session| session.refuse(case.tip, until));
        } else {
            if told.after == After::LetThrough {
                shared.sessions.with(case.located.key, |session| session.let_through(case.tip, case.now));
            }
            // A last chance that is used up is no count that is kept.
            for (identity, kept) in self.strikes(told, case).into_iter().filter(|(_, kept)| *kept < u32::MAX)
            {
                shared.sessions.with(case.located.key, |session| session.strike(identity, kept));
            }
        }
        case.charges.know(&shared.ledger, told, case.now);
        if told.is_approved {
            shared.pauses.approve(case.account, case.tip);
        }
        self.take_in_pause(shared, told, case);
    }

    fn take_in_pause(&self, shared: &Shared, told: &Told, case: &Case<'_>) {
        let pauses = &shared.pauses;
        let Some(pause) = &told.pause else {
            // They may have lost what we know; a pause holds until somebody decides.
            for (run, name) in [(case.account, &case.account_name), (case.run, &case.session)] {
                if let (Some(ago), Some(fleet)) = (pauses.has_waited(run, case.now), &shared.fleet) {
                    fleet.decide(self.ask.tenant, name, pausing(Some(case.tip), ago), None);
                }
            }
            return;
        };
        let run = if pause.is_own { case.run } else { case.account };
        match &pause.state {
            PauseState::Waiting(ago) => drop(pauses.paused_for(run, *ago, case.now)),
            PauseState::Rejected(message) => {
                pauses.pause(run, case.now);
                pauses.reject(run, message);
            }
            // It was decided elsewhere, and we have not heard of it; one that began since is on its way to them.
            PauseState::Ended(ago) => {
                if pauses.has_waited(run, case.now).is_some_and(|waited| waited > *ago) {
                    pauses.resume(run);
                }
            }
        }
    }
}

const fn unit(quantity: Quantity) -> Unit {
    match quantity {
        Quantity::Requests => Unit::Requests,
        Quantity::Tokens => Unit::Tokens,
        Quantity::Money => Unit::MicroDollars,
    }
}

/// How attempts of a policy are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptKind {
    pub(crate) by_session: bool,
    pub(crate) window_millis: u64,
    pub(crate) once_in_flight: bool,
    pub(crate) most: u32,
}

/// The length of a window, as it is asked about.
pub(crate) fn window_millis(window: Window) -> Option<u64> {
    match window {
        Window::Seconds(seconds) => Some(u64::from(seconds.max(1)) * 1_000),
        Window::Session => None,
    }
}

/// How many links are asked about at most: between two requests lie an answer and its results.
const MAX_LOOK_BACK: usize = 64;
