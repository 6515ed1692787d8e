//! Parts of the inputs that could not be read.

use loopbreaker_telemetry::mask;
use loopbreaker_trace::Problem;

use crate::failure::{say, tell};
use crate::number::{counted, grouped};
use crate::terminal::printable;

/// Tells broken lines as they come, up to a number that a person reads.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    input: String,
    count: u64,
    inputs: u64,
    /// Whether the input that is read now is among `inputs`.
    counted: bool,
}

impl Problems {
    /// The next input begins.
    pub(crate) fn begin(&mut self, input: &str) {
        input.clone_into(&mut self.input);
        self.counted = false;
    }

    pub(crate) fn tell(&mut self, problem: &Problem) {
        self.count += 1;
        self.inputs += u64::from(!self.counted);
        self.counted = true;
        if self.count <= MAX_SHOWN {
            say(&format!(
                "{}\n",
                // What is wrong with a line is told with words of that line.
                printable(&mask(&format!("{}:{}: {}", self.input, problem.line, problem.message)))
            ));
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Says how many there were, when there were any.
    pub(crate) fn report(&self) {
        if self.count == 0 {
            return;
        }
        if self.count > MAX_SHOWN {
            say(&format!("… and {} more\n", grouped(self.count - MAX_SHOWN)));
        }
        let (places, inputs) =
            (counted(self.count, "place", "places"), counted(self.inputs, "input", "inputs"));
        tell(
            &format!("{places} in {inputs} could not be read"),
            "mend or remove these lines, or name the format with --format if it was detected wrongly",
        );
    }
}

const MAX_SHOWN: u64 = 20;
