//! Which lines of a long result may tell of a failure: those with a piece of one of the words for it.
//!
//! An automaton reads one byte after the other. Nearly every line of a long result is a line of a file, a page or a log
//! without any such word, and many bytes at a time show that.

use std::cell::RefCell;
use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

/// In lower case: a line without any of them shows no signal that counts in a long result. A test makes lines up for
/// each of those signals.
const STEMS: &[&str] = &[
    "returncode", "return_code", "exited with", "exit code", "exit_code", "exitcode", "exit status",
    "exit_status", "\"success\":", "timed_out", "usage:", "rror", "xception", "fatal", "fail", "invalid",
    "illegal", "unknown", "unable", "cannot", "can't", "could", "panic", "traceback (", "denied", "refused",
    "unsupported", "missing", "incorrect", "wrong", "not ", "not_found", "n't exist", "no such", "no module",
    "no tool", "no attribute", "unauthorized", "forbidden", "unrecogni", "unexpected", "undefined",
    "unresolved", "unavailable", "disabled", "ambiguous", "segmentation", "dumped", "out of ",
    "name or service", "too many", "too few", "nothing happen", "positional arg", "should only",
    "background", "running with ", "running (", "prohibit",
];

/// Places of a text at which one of the stems begins, from left to right; `None` where this machine has no fast way to
/// find them.
pub(super) struct Stems {
    places: Vec<usize>,
    next: usize,
}

impl Stems {
    /// Finds them all.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(STEMS));
        thread_local! {
            static LOWERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let searcher = SEARCHER.as_ref()?;
        let places = LOWERED.with_borrow_mut(|lowered| {
            lowered.clear();
            lowered.extend(text.iter().map(u8::to_ascii_lowercase));
            searcher.find_iter(&*lowered).map(|found| found.start()).collect()
        });
        Some(Self { places, next: 0 })
    }

    /// Whether one of them begins in this part of the text. Parts are asked about from left to right.
    pub(super) fn stand_in(&mut self, start: usize, end: usize) -> bool {
        while self.places.get(self.next).is_some_and(|place| *place < start) {
            self.next += 1;
        }
        self.places.get(self.next).is_some_and(|place| *place < end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::Union;
    use proptest::string::bytes_regex;

    use super::super::signals::{SIGNALS, Signal, matching};
    use super::{STEMS, Stems};

    /// The signals that are looked at in a long result.
    const COUNT: &[Signal] = &[
        Signal::ExitZero,
        Signal::ExitNonZero,
        Signal::Traceback,
        Signal::Error,
        Signal::ErrorStart,
        Signal::Complaint,
        Signal::Missing,
        Signal::Environmental,
        Signal::UnknownTool,
        Signal::PutAside,
    ];

    /// Lines that fit one of the patterns for them.
    fn telling() -> impl Strategy<Value = Vec<u8>> {
        let counts = SIGNALS.iter().filter(|(signal, _)| COUNT.contains(signal));
        Union::new(counts.map(|(_, pattern)| {
            // What stands around a word cannot be made up, and neither can the ends of a line.
            let words = pattern.replace(r"\b", "").replace(['^', '$'], "");
            let words = words.replace(r"\W", "[ .:]").replace(r"\w", "[a-z]").replace(r"\S", "[a-z]");
            bytes_regex(&words).unwrap()
        }))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn a_line_that_tells_something_has_one_of_them(line in telling(), loud: bool) {
            let line = if loud { line.to_ascii_uppercase() } else { line };
            prop_assume!(matching(&line) != 0);
            let lowered = String::from_utf8_lossy(&line).to_ascii_lowercase();
            prop_assert!(STEMS.iter().any(|stem| lowered.contains(stem)), "{lowered}");
            if let Some(mut stems) = Stems::of(&line) {
                prop_assert!(stems.stand_in(0, line.len()), "{lowered}");
            }
        }
    }

    #[test]
    fn a_place_belongs_to_the_line_in_which_it_begins() {
        let text = b"all is well\nbut this Failed\nand that not";
        let Some(mut stems) = Stems::of(text) else { return };
        assert!(!stems.stand_in(0, 11));
        assert!(stems.stand_in(12, 27));
        assert!(stems.stand_in(12, 27), "asking changes nothing");
        assert!(!stems.stand_in(28, text.len()), "without a space behind it, it is another word");
    }
}
