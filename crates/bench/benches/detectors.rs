//! Every scenario for divan: `cargo bench -p loopbreaker-bench`, with a part of a name to run only some.

use divan::Bencher;
use loopbreaker_bench::{Contender, Scenario, scenarios};

fn main() {
    divan::main();
}

/// A contender in a scenario, under the name that divan shows.
struct Case {
    scenario: &'static Scenario,
    contender: &'static Contender,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.scenario.name, self.contender.name)
    }
}

fn cases(topic: &'static str) -> impl Iterator<Item = Case> {
    scenarios()
        .filter(move |scenario| scenario.name.starts_with(topic))
        .flat_map(|scenario| scenario.contenders.iter().map(move |contender| Case { scenario, contender }))
}

fn run(bencher: Bencher<'_, '_>, case: &Case) {
    let mut operation = (case.contender.prepare)();
    bencher.bench_local(&mut *operation);
}

#[divan::bench(args = cases("guard"))]
fn guard(bencher: Bencher<'_, '_>, case: &Case) {
    run(bencher, case);
}

#[divan::bench(args = cases("observe"))]
fn observe(bencher: Bencher<'_, '_>, case: &Case) {
    run(bencher, case);
}

#[divan::bench(args = cases("read"))]
fn read(bencher: Bencher<'_, '_>, case: &Case) {
    run(bencher, case);
}

#[divan::bench(args = cases("hash"))]
fn hash(bencher: Bencher<'_, '_>, case: &Case) {
    run(bencher, case);
}

#[divan::bench(args = cases("chant"))]
fn chant(bencher: Bencher<'_, '_>, case: &Case) {
    run(bencher, case);
}
