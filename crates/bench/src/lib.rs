//! What is measured: operations of the detectors, each beside what others would do for the same question.
//!
//! Three programs use the same table: the divan benches, `bench-report` (medians, ratios and floors in one
//! interleaved run) and `instructions` (counts under valgrind).

mod calls;
pub mod gateway;
mod guards;
pub mod inputs;
pub mod memory;
mod naive;
pub mod soak;
mod steps;

/// One thing that is measured: a question, and who answers it.
#[derive(Debug)]
pub struct Scenario {
    /// A name without spaces, for command lines.
    pub name: &'static str,
    /// What is asked, in words.
    pub about: &'static str,
    /// The most that our answer may take, where a floor is set.
    pub at_most_nanos: Option<f64>,
    /// Who answers; the first one is ours.
    pub contenders: &'static [Contender],
}

/// Somebody who answers.
#[derive(Debug)]
pub struct Contender {
    /// A name without spaces, for command lines.
    pub name: &'static str,
    /// What it does more, or less, than we do.
    pub remark: &'static str,
    /// Whether ours has to be faster.
    pub must_beat: bool,
    /// Makes the operation, warm: filled windows, inputs at hand.
    pub prepare: fn() -> Operation,
}

/// One operation; every call takes the next of many inputs.
pub type Operation = Box<dyn FnMut()>;

impl Contender {
    const fn new(name: &'static str, remark: &'static str, prepare: fn() -> Operation) -> Self {
        Self { name, remark, must_beat: false, prepare }
    }

    const fn must_beat(self) -> Self {
        Self { must_beat: true, ..self }
    }
}

/// Everything that is measured, by topic.
pub fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    [guards::SCENARIOS, steps::OBSERVE, steps::READ, calls::SCENARIOS, steps::CHANT].into_iter().flatten()
}

/// The operation that goes through `inputs` again and again, once through already.
fn over<T: 'static>(inputs: Vec<T>, mut work: impl FnMut(&T) + 'static) -> Operation {
    inputs.iter().for_each(&mut work);
    let mut next = 0;
    Box::new(move || {
        work(&inputs[next]);
        next = (next + 1) % inputs.len();
    })
}
