//! Sessions: which conversation belongs to which run, and what is remembered of each run.
//!
//! A client that names its session is believed. Otherwise the transcript itself tells: a request that goes on where an
//! earlier one ended belongs to its session, one that leaves it is a fork and a session of its own, which inherits
//! budget and pause.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::Timestamp;
use loopbreaker_fleet::{Chance, RefusedBefore, Remembered};
use twox_hash::XxHash3_64;

use crate::judge::Past;
use crate::loops::Ruled;
use crate::recency::Recency;

/// Names a session among all tenants: a keyed hash of both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey(pub(crate) u128);

impl SessionKey {
    /// What a session is called that its client has no name for.
    pub(crate) fn name(self) -> Arc<str> {
        // It is made for every request, and what formats any number takes several times as long.
        let mut name = *b"lb-0000000000000000";
        let mut rest = (self.0 >> 64) as u64;
        for digit in name[3..].iter_mut().rev() {
            *digit = b"0123456789abcdef"[(rest & 0xF) as usize];
            rest >>= 4;
        }
        str::from_utf8(&name).unwrap_or_default().into()
    }
}

/// A session as people name it: hashes of its tenant's name and of its own.
///
/// Operators know no keys, and what they order holds for a session that has not been seen since the start, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct RunName {
    tenant: u64,
    session: u64,
}

impl RunName {
    /// The name of a tenant's session.
    pub(crate) fn of(tenant: &str, session: &str) -> Self {
        Self { tenant: Self::tag(tenant), session: Self::hash(session) }
    }

    /// What a tenant is called among processes that share their state.
    pub(crate) fn tag(tenant: &str) -> u64 {
        XxHash3_64::oneshot(tenant.as_bytes())
    }

    /// What a session is called there.
    pub(crate) fn hash(session: &str) -> u64 {
        XxHash3_64::oneshot(session.as_bytes())
    }

    /// The session of a tenant that is known by its tag.
    pub(crate) fn tagged(tenant: u64, session: &str) -> Self {
        Self { tenant, session: Self::hash(session) }
    }

    /// The tag of its tenant.
    pub(crate) const fn tenant(self) -> u64 {
        self.tenant
    }
}

/// The session of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Located {
    pub(crate) key: SessionKey,
    /// The session whose budget, pause and kill switch hold for this one: its own, or that which it was forked from.
    pub(crate) account: SessionKey,
    /// Whether it was never seen before.
    pub(crate) is_new: bool,
}

/// Every session that is remembered, the one that was used longest ago forgotten first.
#[derive(Debug)]
pub(crate) struct Sessions {
    runs: Box<[Mutex<Recency<Session>>]>,
    /// Where requests and answers ended, and of which session.
    ends: Box<[Mutex<Recency<SessionKey>>]>,
    max_per_shard: usize,
}

/// What is remembered of one session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The session whose budget holds for it.
    account: SessionKey,
    /// Where its last requests ended, newest first.
    tips: [u128; Session::TIPS],
    /// Hashes of the last messages of its last requests, newest first, by which a compacted transcript is recognised.
    tails: [u128; Session::TAILS],
    /// The last answer that a client may name instead of repeating what led to it; 0: none.
    answer: u128,
    /// The first transcript that was seen of it.
    first_tip: u128,
    /// The name under which people know it.
    name: RunName,
    /// What its client calls it, where it has a name for it: a later request may only name an answer of it.
    given: Option<Arc<str>>,
    /// What few sessions have.
    trouble: Option<Box<Trouble>>,
    pub(crate) last_seen: Timestamp,
}

/// What is remembered of a session that has looped.
#[derive(Debug, Default)]
struct Trouble {
    /// Strikes by loop identity.
    strikes: Vec<(u128, u32)>,
    /// The transcript that was refused last.
    refused: Option<Refused>,
}

/// A refusal that holds as long as the transcript stays as it is.
#[derive(Debug, Clone, Copy)]
struct Refused {
    tip: u128,
    until: Timestamp,
    let_through: bool,
}

/// What an unchanged transcript gets after it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterRefusal {
    /// It was not refused, or has changed since: judge it.
    Judge,
    /// Refuse it again; so many seconds are left.
    Refuse(u64),
    /// Let it through this once, with the hint.
    LetThrough,
}

impl Session {
    const TIPS: usize = 3;
    /// The request before the last one counts too: the last may have been the agent's own wish for a summary.
    const TAILS: usize = 2;
    /// More loops than this in one session: those that were struck first are forgotten.
    const MAX_STRIKES: usize = 8;

    fn new(account: SessionKey, tip: u128, now: Timestamp) -> Self {
        Self { account, tips: [tip, 0, 0], first_tip: tip, last_seen: now, ..Self::default() }
    }

    /// Whether this transcript is the first that was seen of the session, so that it is hinted before it is stopped.
    pub(crate) fn is_first(&self, tip: u128) -> bool {
        self.first_tip == tip
    }

    /// The strikes of a loop: the larger of what its transcript shows and what is kept, which is kept then.
    pub(crate) fn strike(&mut self, identity: u128, shown: u32) -> u32 {
        let strikes = &mut self.trouble.get_or_insert_default().strikes;
        if let Some((_, kept)) = strikes.iter_mut().find(|(known, _)| *known == identity) {
            *kept = shown.max(*kept);
            return *kept;
        }
        if strikes.len() == Self::MAX_STRIKES {
            strikes.remove(0);
        }
        strikes.push((identity, shown));
        shown
    }

    /// What an earlier refusal means for this transcript.
    pub(crate) fn after_refusal(&mut self, tip: u128, now: Timestamp) -> AfterRefusal {
        match self.trouble.as_mut().and_then(|trouble| trouble.refused.as_mut()) {
            Some(refused) if refused.tip == tip => {
                let left = refused.until.millis_since(now);
                if left > 0 {
                    return AfterRefusal::Refuse(left.div_ceil(1_000));
                }
                if std::mem::replace(&mut refused.let_through, true) {
                    AfterRefusal::Judge
                } else {
                    AfterRefusal::LetThrough
                }
            }
            _ => AfterRefusal::Judge,
        }
    }

    /// Whether this transcript is the next one after a refused one that was let through.
    fn goes_on_after_the_last_chance(&self, tip: u128) -> bool {
        self.refused()
            .is_some_and(|refused| refused.let_through && refused.tip != tip && self.tips[1] == refused.tip)
    }

    /// What earlier requests mean for one that shows these loops.
    pub(crate) fn past<'l>(
        &mut self,
        tip: u128,
        loops: impl Iterator<Item = &'l Ruled>,
        now: Timestamp,
    ) -> Past {
        let after = self.after_refusal(tip, now);
        let goes_on = self.goes_on_after_the_last_chance(tip);
        let strikes = loops.map(|ruled| {
            let identity = ruled.finding.identity.short();
            let strikes = match after {
                // What is refused again shows nothing new, and what it showed before is forgotten.
                AfterRefusal::Refuse(_) => ruled.strikes,
                _ if goes_on => u32::MAX,
                _ => self.strike(identity, ruled.strikes),
            };
            (identity, strikes)
        });
        let strikes = strikes.collect();
        Past { is_first: self.is_first(tip), after, strikes }
    }

    /// The transcript was refused. When it changes, the session is judged by what it shows then, so what was kept is
    /// forgotten.
    pub(crate) fn refuse(&mut self, tip: u128, until: Timestamp) {
        let trouble = self.trouble.get_or_insert_default();
        trouble.refused = Some(Refused { tip, until, let_through: false });
        trouble.strikes.clear();
    }

    /// The refused transcript was let through, here or elsewhere.
    pub(crate) fn let_through(&mut self, tip: u128, now: Timestamp) {
        if self.refused().is_none_or(|refused| refused.tip != tip) {
            self.refuse(tip, now);
        }
        if let Some(refused) = self.trouble.as_mut().and_then(|trouble| trouble.refused.as_mut()) {
            refused.let_through = true;
        }
    }

    /// What others may have lost of it: the last refusal, and the strikes of those loops that are asked about.
    pub(crate) fn remembered(&self, is_asked: impl Fn(u128) -> bool, now: Timestamp) -> Remembered {
        let refused = self.refused().map(|Refused { tip, until, let_through }| RefusedBefore {
            tip,
            left_millis: until.millis_since(now),
            chance: match let_through {
                false => Chance::Kept,
                true if self.tips[0] == tip => Chance::Newest,
                true => Chance::Past,
            },
        });
        let strikes = self.trouble.iter().flat_map(|trouble| &trouble.strikes);
        let strikes = strikes.copied().filter(|(identity, _)| is_asked(*identity)).collect();
        Remembered { refused, strikes }
    }

    fn refused(&self) -> Option<Refused> {
        self.trouble.as_ref()?.refused
    }
}

impl Sessions {
    const SHARDS: usize = 64;

    /// A table of at most about `max` sessions.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            runs: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            ends: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            max_per_shard: max.div_ceil(Self::SHARDS).max(1),
        }
    }

    /// The session that a transcript belongs to. `chain` holds the links after its messages, oldest first, from where
    /// an earlier request ended or else from the start; `tails` are hashes of a few messages that follow each other, the
    /// last ones first, by which a compacted transcript is recognised. With it comes what clients call its account, where
    /// they have a name for it.
    pub(crate) fn by_transcript(
        &self,
        anchor: u128,
        chain: &[u128],
        mut tails: impl Iterator<Item = u128> + Clone,
        now: Timestamp,
    ) -> (Located, Option<Arc<str>>) {
        let tip = chain.last().copied().unwrap_or(anchor);
        let located = self.find(anchor, chain, tails.clone());
        let (located, given) = self.touch(located, None, tip, tails.next(), now);
        let pays_itself = located.account == located.key;
        (located, if pays_itself { given } else { self.given(located.account) })
    }

    /// The session that a transcript belongs to, as far as this process knows.
    pub(crate) fn find(&self, anchor: u128, chain: &[u128], tails: impl Iterator<Item = u128>) -> Located {
        let tip = chain.last().copied().unwrap_or(anchor);
        let known =
            chain.iter().rev().take(Self::MAX_LOOK_BACK).find_map(|link| Some((*link, self.end(*link)?)));
        match known {
            Some((link, key)) => {
                let (account, is_newest) = self.standing(key, link);
                if link == tip || is_newest {
                    Located { key, account, is_new: false }
                } else {
                    Located { key: SessionKey(tip), account, is_new: true }
                }
            }
            // A compacted transcript still ends with words that were said last.
            None => match tails.take(Self::MAX_LOOK_BACK).find_map(|tail| self.end(tail)) {
                Some(key) => Located { key, account: self.standing(key, 0).0, is_new: false },
                None => Located { key: SessionKey(anchor), account: SessionKey(anchor), is_new: true },
            },
        }
    }

    /// A request of a session that others have found, with what clients call its account.
    pub(crate) fn adopt(
        &self,
        located: Located,
        given: Option<&Arc<str>>,
        tip: u128,
        tail: Option<u128>,
        now: Timestamp,
    ) {
        let given = given.filter(|_| located.account == located.key);
        self.touch(located, given, tip, tail, now);
    }

    /// The session goes on from here too: the next request will name this answer instead of repeating what led to it.
    pub(crate) fn goes_on_from(&self, located: Located, answer: u128, now: Timestamp) {
        self.with(located.key, |session| {
            (session.answer, session.last_seen) = (answer, now);
        });
        self.ends_at(answer, located);
    }

    /// The session of a name that the client gave.
    pub(crate) fn by_name(&self, key: SessionKey, name: &Arc<str>, tip: u128, now: Timestamp) -> Located {
        self.touch(Located { key, account: key, is_new: false }, Some(name), tip, None, now).0
    }

    /// What its client calls a session, where it has a name for it.
    pub(crate) fn given(&self, key: SessionKey) -> Option<Arc<str>> {
        self.table(key.0).peek(key.0)?.given.clone()
    }

    /// Looks at a session, if it is remembered.
    pub(crate) fn with<T>(&self, key: SessionKey, work: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.table(key.0).get(key.0).map(work)
    }

    /// Writes down the name under which people know a session.
    pub(crate) fn call(&self, key: SessionKey, name: RunName) {
        self.with(key, |session| session.name = name);
    }

    /// The sessions that are called so. Tenants may use the same name, so there may be several. It looks at every
    /// session, which is fine for what a person asks.
    pub(crate) fn named(&self, name: &str) -> Vec<RunName> {
        let hash = RunName::hash(name);
        let mut found = Vec::new();
        for table in &self.runs {
            let table = lock(table);
            let named = table.values().map(|session| session.name).filter(|name| name.session == hash);
            found.extend(named);
        }
        found.dedup();
        found
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.runs.iter().map(|table| lock(table).len()).sum()
    }

    /// How many links are looked up at most: between two requests lie an answer and its results.
    const MAX_LOOK_BACK: usize = 64;

    /// Writes down that a request of a session was here; says what its client calls it, where this request does not.
    fn touch(
        &self,
        located: Located,
        given: Option<&Arc<str>>,
        tip: u128,
        tail: Option<u128>,
        now: Timestamp,
    ) -> (Located, Option<Arc<str>>) {
        let (mut forgotten, mut known) = ([0; 2], None);
        let is_new = {
            let mut table = self.table(located.key.0);
            let is_new = table.get(located.key.0).is_none();
            if is_new {
                if table.len() >= self.max_per_shard {
                    table.pop_oldest();
                }
                table.put(located.key.0, Session::new(located.account, tip, now));
            }
            if let Some(session) = table.newest() {
                session.last_seen = now;
                match given {
                    None => known.clone_from(&session.given),
                    Some(given) if session.given.is_none() => session.given = Some(Arc::clone(given)),
                    Some(_) => {}
                }
                forgotten = [newest(&mut session.tips, tip), newest(&mut session.tails, tail.unwrap_or(0))];
            }
            is_new
        };
        for link in forgotten.into_iter().filter(|link| *link != 0) {
            // Another session may end with the same words.
            self.ends(link).remove_if(link, |ended| *ended == located.key);
        }
        self.ends_at(tip, located);
        if let Some(tail) = tail {
            self.ends_at(tail, located);
        }
        (Located { is_new, ..located }, known)
    }

    /// Writes down that a request or an answer of a session ended here.
    fn ends_at(&self, link: u128, located: Located) {
        let mut table = self.ends(link);
        if table.len() >= self.max_per_shard * (Session::TIPS + 1) {
            table.pop_oldest();
        }
        table.put(link, located.key);
    }

    fn end(&self, link: u128) -> Option<SessionKey> {
        self.ends(link).get(link).copied()
    }

    /// The account of a session, and whether nothing of it came after this link. One that was forgotten has no newer
    /// end, and pays for itself.
    fn standing(&self, key: SessionKey, link: u128) -> (SessionKey, bool) {
        let table = self.table(key.0);
        table.peek(key.0).map_or((key, true), |session| {
            (session.account, [session.tips[0], session.answer].contains(&link))
        })
    }

    fn ends(&self, link: u128) -> MutexGuard<'_, Recency<SessionKey>> {
        lock(&self.ends[(link as usize) % Self::SHARDS])
    }

    fn table(&self, key: u128) -> MutexGuard<'_, Recency<Session>> {
        lock(&self.runs[(key as usize) % Self::SHARDS])
    }
}

/// Puts a link in front of others, unless it is none or there already; says which one had to go, 0 for none.
fn newest<const N: usize>(links: &mut [u128; N], link: u128) -> u128 {
    if link == 0 || links.contains(&link) {
        return 0;
    }
    links.rotate_right(1);
    std::mem::replace(&mut links[0], link)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
