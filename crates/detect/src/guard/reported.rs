//! Which calls of a session had their outcomes reported.

use std::collections::VecDeque;

use crate::fingerprint::Fingerprint;
use crate::step::Step;

/// The last calls whose outcomes were reported, newest last, as short hashes.
#[derive(Debug, Default)]
pub(super) struct Reported {
    calls: VecDeque<u64>,
}

impl Reported {
    /// More than a ring of calls that anybody would let pass.
    const MAX: usize = 128;

    /// Takes a report in, of a call that was refused or skipped as well: somebody says what came of it.
    pub(super) fn take(&mut self, step: &Step<'_>) {
        let Some(tool) = step.tool else { return };
        if self.calls.len() >= Self::MAX {
            self.calls.pop_front();
        }
        self.calls.push_back(short(&Fingerprint::of_call(tool, step.args)));
    }

    /// Whether enough was reported of a call that was let through this often: all of it, but for one that may still run.
    pub(super) fn covers(&self, call: &Fingerprint, admitted: u32) -> bool {
        let call = short(call);
        let reported = self.calls.iter().filter(|known| **known == call).count();
        reported + 1 >= admitted as usize
    }
}

fn short(call: &Fingerprint) -> u64 {
    call.short() as u64
}

#[cfg(test)]
mod tests {
    use super::Reported;
    use crate::{Fingerprint, Step};

    #[test]
    fn one_call_may_still_run() {
        let mut reported = Reported::default();
        let call = Fingerprint::of_call("ls", None);
        assert!(reported.covers(&call, 1) && !reported.covers(&call, 2));
        reported.take(&Step::call("ls", "{}").answered("a", None));
        assert!(reported.covers(&call, 2) && !reported.covers(&call, 3));
        assert!(!reported.covers(&Fingerprint::of_call("cat", None), 2));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut reported = Reported::default();
        let step = Step::call("ls", "{}").answered("a", None);
        (0..1_000).for_each(|_| reported.take(&step));
        assert_eq!(reported.calls.len(), Reported::MAX);
    }
}
