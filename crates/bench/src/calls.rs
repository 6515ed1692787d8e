//! The canonical hash of a call's arguments.

use std::hint::black_box;

use loopbreaker::Fingerprint;

use crate::inputs::{many_members, one_long_text};
use crate::naive::{canonical_text, jcs_text, sha256, short_hash};
use crate::{Contender, Operation, Scenario, over};

const TOOL: &str = "write_file";

/// The four who answer, for one kind of input.
macro_rules! contenders {
    ($inputs:expr) => {
        &[
            Contender::new("fingerprint", "RFC 8785 and SHA-256", || ours($inputs)),
            Contender::new("value+sha256", "serde_json::Value, to_string, SHA-256", || value_sha256($inputs)),
            Contender::new("value+short-hash", "the same with 64 bits of SipHash", || value_short($inputs)),
            Contender::new("jcs+sha256", "Value, serde_json_canonicalizer, SHA-256", || jcs_sha256($inputs)),
        ]
    };
}

pub(crate) static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "hash-2k-sorted",
        about: "canonical hash of 2 kB arguments, many members, keys in order",
        at_most_nanos: None,
        contenders: contenders!(inputs(|index| many_members(index, 2_048, true))),
    },
    Scenario {
        name: "hash-2k-unsorted",
        about: "canonical hash of 2 kB arguments, many members, keys out of order",
        at_most_nanos: None,
        contenders: contenders!(inputs(|index| many_members(index, 2_048, false))),
    },
    Scenario {
        name: "hash-2k-text",
        about: "canonical hash of 2 kB arguments, one long text",
        at_most_nanos: None,
        contenders: contenders!(inputs(|index| one_long_text(index, 2_048))),
    },
    Scenario {
        name: "hash-64k-sorted",
        about: "canonical hash of 64 kB arguments, many members, keys in order",
        at_most_nanos: None,
        contenders: contenders!(inputs(|index| many_members(index, 65_536, true))),
    },
    Scenario {
        name: "hash-64k-unsorted",
        about: "canonical hash of 64 kB arguments, many members, keys out of order",
        at_most_nanos: None,
        contenders: contenders!(inputs(|index| many_members(index, 65_536, false))),
    },
    Scenario {
        name: "hash-64k-text",
        about: "canonical hash of 64 kB arguments, one long text",
        at_most_nanos: None,
        contenders: contenders!(inputs(|index| one_long_text(index, 65_536))),
    },
];

/// A few different ones are enough here, since nothing is remembered.
fn inputs(one: impl Fn(usize) -> String) -> Vec<String> {
    (0..4).map(one).collect()
}

fn ours(inputs: Vec<String>) -> Operation {
    over(inputs, |args| {
        black_box(Fingerprint::of_call(TOOL, Some(args)));
    })
}

fn value_sha256(inputs: Vec<String>) -> Operation {
    over(inputs, |args| {
        black_box(sha256(TOOL, &canonical_text(args)));
    })
}

fn value_short(inputs: Vec<String>) -> Operation {
    over(inputs, |args| {
        black_box(short_hash(&canonical_text(args)));
    })
}

fn jcs_sha256(inputs: Vec<String>) -> Operation {
    over(inputs, |args| {
        black_box(sha256(TOOL, &jcs_text(args)));
    })
}
