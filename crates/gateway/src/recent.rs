//! The last messages of a transcript, by which it is recognised after what came before was rewritten.

use loopbreaker::Saved;

use crate::inspect::mix;

/// Digests of the last messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recent {
    digests: [u128; Recent::KEPT],
    messages: usize,
}

impl Saved for Recent {
    fn save(&self, out: &mut Vec<u8>) {
        self.digests.save(out);
        self.messages.save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Some(Self { digests: Saved::load(from)?, messages: Saved::load(from)? })
    }
}

impl Recent {
    /// So many messages in a row are no coincidence.
    const TAIL: usize = 6;
    /// Each of them stands only once among so many: what comes round again says nothing about whose it is, since two
    /// runs that go round in the same circle are alike for as long as they do.
    const KEPT: usize = 16;
    /// The start of a transcript is not looked at: two runs of one task begin alike.
    const TOO_EARLY: usize = 8;

    /// Takes new messages in, and gives what they end with.
    pub(crate) fn go_on(
        &mut self,
        tenant: u128,
        goes_on: bool,
        new: impl ExactSizeIterator<Item = u128>,
    ) -> Tails {
        if !goes_on {
            *self = Self::default();
        }
        let count = new.len();
        let mut digests = Vec::with_capacity(Self::KEPT + count);
        digests.extend(self.digests);
        digests.extend(new);
        self.digests.copy_from_slice(&digests[count..]);
        let before = self.messages;
        self.messages += count;
        Tails { tenant, digests, before }
    }
}

/// The hash of each few messages that follow each other, as far as the last of them is new.
///
/// They are told when they are asked for: mostly somebody asks for the last one only.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    tenant: u128,
    /// The last messages before the new ones, and those.
    digests: Vec<u128>,
    /// How many messages there were before.
    before: usize,
}

impl Tails {
    /// The hashes, that of the last messages first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = u128> + Clone {
        let each = self.digests.get(1..).unwrap_or_default().windows(Recent::KEPT);
        let late_enough = each.enumerate().skip(Recent::TOO_EARLY.saturating_sub(self.before));
        late_enough.rev().filter_map(|(_, last)| self.tail(last))
    }

    /// The hash of the last few of these messages, unless one of them has come round.
    fn tail(&self, digests: &[u128]) -> Option<u128> {
        // Half of a hash will do: were two of them equal by chance, this tail would only not be told.
        let mut halves = [0; Recent::KEPT];
        halves.iter_mut().zip(digests).for_each(|(half, digest)| *half = *digest as u64);
        // Of two that are equal, one stands behind the other.
        let is_new = |at: usize| !halves[..at].contains(&halves[at]);
        let tail = Recent::KEPT - Recent::TAIL..Recent::KEPT;
        let all_new = tail.clone().all(is_new);
        all_new.then(|| tail.fold(!self.tenant, |hash, at| mix(hash, digests[at])))
    }
}
