//! `loopbreaker demo`: six small agents, a scripted model, and the gateway between them, over real HTTP.

mod agents;
mod estimate;
mod event;
mod json;
mod linger;
mod play;
mod script;
mod show;
mod speech;
mod stage;

use std::io;
use std::rc::Rc;
use std::time::Duration;

use loopbreaker_budget::Prices;
use loopbreaker_config::BaseUrl;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::args::DemoArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use event::Event;
use json::JsonLines;
use play::Player;
use script::Agent;
use show::Screen;
use stage::{Pace, Stage};

pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let agents: Rc<[Agent]> = agents::all().into();
    let pace = if args.fast { Pace::NONE } else { Pace::LIVE };
    let stage = Stage::set(&agents, pace, !args.exit)?;
    let mut view: Box<dyn View> = if args.json {
        Box::new(JsonLines::new(io::stdout().lock()))
    } else {
        Box::new(Screen::new(anstream::stdout().lock(), crate::terminal::width()))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if !args.exit {
        linger::announce(&stage);
    }
    let order = if args.fast { Order::OneByOne } else { Order::AllAtOnce };
    LocalSet::new().block_on(&runtime, play(&agents, &stage.url, pace, order, None, &mut *view))?;
    if !args.exit {
        linger::until_told(&runtime, &agents, &stage)?;
    }
    stage.clear();
    Ok(Exit::Fine)
}

/// Shows what happens.
trait View {
    fn event(&mut self, agents: &[Agent], event: &Event) -> io::Result<()>;
    fn end(&mut self, agents: &[Agent]) -> io::Result<()>;
}

/// How the agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As in life.
    AllAtOnce,
    /// So that the output is always the same.
    OneByOne,
}

/// Lets the agents run and shows what they meet. `run` names their sessions.
async fn play(
    agents: &Rc<[Agent]>,
    url: &BaseUrl,
    pace: Pace,
    order: Order,
    run: Option<u32>,
    view: &mut dyn View,
) -> Result<(), Failure> {
    let prices = Rc::new(Prices::builtin());
    let (tell, mut heard) = mpsc::channel(WAITING);
    let player = |index| Player {
        agents: Rc::clone(agents),
        index,
        url: url.clone(),
        pace,
        prices: Rc::clone(&prices),
        session: run.map(|run| format!("{}-{run}", agents[index].name)),
        tell: tell.clone(),
    };
    let players: Vec<Player> = (0..agents.len()).map(player).collect();
    match order {
        Order::OneByOne => {
            tokio::task::spawn_local(async move {
                for player in players {
                    player.play().await;
                }
            });
        }
        Order::AllAtOnce => {
            for (player, late) in players.into_iter().zip(0..) {
                tokio::task::spawn_local(async move {
                    // Agents do not walk in step.
                    tokio::time::sleep(STAGGER * late).await;
                    player.play().await;
                });
            }
        }
    }
    // The last player to end takes the last sender with it.
    drop(tell);
    while let Some(event) = heard.recv().await {
        view.event(agents, &event?)?;
    }
    Ok(view.end(agents)?)
}

/// Events that may wait to be shown; agents that are faster wait too.
const WAITING: usize = 16;
/// So much later than the one before it an agent begins.
const STAGGER: Duration = Duration::from_millis(110);
