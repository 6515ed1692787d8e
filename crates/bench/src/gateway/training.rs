//! Traffic to learn from: a compiler that has seen which way a program usually goes lays its code out for that way.
//!
//! What is sent is not what is measured: other lengths, other sizes of the parts, answers whole and streamed.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use loopbreaker_mock::Mock;

use super::load::{self, Fleet, Until};
use super::targets::{Setup, Target};
use super::transcripts::{Shape, Workload};

/// What is sent.
struct Lesson {
    about: &'static str,
    shape: Shape,
    streamed: bool,
    /// Nothing can be taken up.
    changes_early: bool,
    requests: u64,
}

/// Mostly runs that go on, as agents' do, now and then one that has to be read from its start.
const LESSONS: &[Lesson] = &[
    Lesson {
        about: "short results",
        shape: Shape { system: 900, task: 200, result: 60, tools: 1_500, turns: 25 },
        streamed: false,
        changes_early: false,
        requests: 30_000,
    },
    Lesson {
        about: "long results",
        shape: Shape { system: 300, task: 100, result: 3_200, tools: 600, turns: 30 },
        streamed: false,
        changes_early: false,
        requests: 20_000,
    },
    Lesson {
        about: "streams",
        shape: Shape { system: 400, task: 80, result: 700, tools: 300, turns: 15 },
        streamed: true,
        changes_early: false,
        requests: 3_000,
    },
    Lesson {
        about: "nothing to go on from",
        shape: Shape { system: 200, task: 300, result: 500, tools: 200, turns: 15 },
        streamed: false,
        changes_early: true,
        requests: 2_000,
    },
];

const CONNECTIONS: usize = 32;
const SESSIONS: usize = 400;

/// Sends it to the `loopbreaker` beside this program, first without a log, then as it is installed.
pub fn train(progress: &mut impl Write) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let mock = Mock::fixed().start("127.0.0.1:0")?;
    for (name, setup) in [("no log", Setup::Quiet), ("default log", Setup::Usual)] {
        let target = Target::loopbreaker(folder.path(), mock.addr(), setup)?;
        for lesson in LESSONS {
            writeln!(progress, "training: {}, {name}", lesson.about)?;
            let workload = || Workload::new(&lesson.shape, SESSIONS, lesson.streamed, lesson.changes_early);
            runtime.block_on(async {
                let expected = load::answer_len(mock.addr(), &workload().next_request()).await?;
                let work = Rc::new(RefCell::new(workload()));
                let fleet = Fleet::connect(target.address, CONNECTIONS, expected, work).await?;
                fleet.run(Until::Requests(lesson.requests), None).await
            })?;
            target.empty_log()?;
        }
    }
    Ok(())
}
