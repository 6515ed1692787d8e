//! The gateway after the agents have ended: they begin again and again, so that there is something to watch.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use super::event::Event;
use super::script::Agent;
use super::stage::{Pace, Stage};
use super::{Order, View, play};
use crate::failure::say;

/// Says where to look while the agents run.
pub(super) fn announce(stage: &Stage) {
    say(&format!("the dashboard is at {}/\n\n", stage.url));
}

/// Says what is left to look at, and lets the agents begin again until Ctrl-C.
pub(super) fn until_told(runtime: &Runtime, agents: &Rc<[Agent]>, stage: &Stage) -> io::Result<()> {
    let url = &stage.url;
    LocalSet::new().block_on(runtime, async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        say(&format!(
            "\nthe gateway stays at {url}; the agents begin again every few seconds: watch them on its dashboard, {url}/\n\
             Ctrl-C ends it\n"
        ));
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = again_and_again(agents, stage) => {}
        }
        Ok(())
    })
}

async fn again_and_again(agents: &Rc<[Agent]>, stage: &Stage) {
    for run in 2.. {
        tokio::time::sleep(REST).await;
        stage.rewind(agents, Pace::SLOW);
        // An agent that ends in another way than its script is for whoever stopped it to explain.
        drop(play(agents, &stage.url, Pace::SLOW, Order::AllAtOnce, Some(run), &mut Unseen).await);
    }
}

/// Shows nothing.
struct Unseen;

impl View for Unseen {
    fn event(&mut self, _: &[Agent], _: &Event) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[Agent]) -> io::Result<()> {
        Ok(())
    }
}

/// Between two runs.
const REST: Duration = Duration::from_secs(3);
