//! `loopbreaker probe`: is the guard of a running gateway alive? A synthetic loop is put before its decision endpoint,
//! so that nothing reaches a model, nothing costs money, and no key is needed.

mod conclusion;
mod document;
mod farewell;
mod health;
mod shadow;
mod show;
mod synthetic;
mod trouble;

use std::io;
use std::time::Duration;

use loopbreaker_config::BaseUrl;

use crate::args::ProbeArgs;
use crate::exit::Exit;
use crate::failure::{Failure, tell};
use conclusion::{Conclusion, is_in_shadow};
use health::Health;
use synthetic::{Judged, Loop};
use trouble::Trouble;

pub(crate) fn run(args: &ProbeArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut found = Found::default();
    let mut out = (!args.json).then(|| anstream::stdout().lock());
    let mut on_news = |news: News<'_>| match &mut out {
        Some(out) => show::news(out, &args.url, &news),
        None => Ok(()),
    };
    let examining = examine(&args.url, &mut found, &mut on_news);
    let examined = runtime.block_on(async { tokio::time::timeout(LIMIT, examining).await });
    let conclusion = match examined {
        Ok(Ok(())) => Ok(Conclusion::of(&found.judged, found.seen_in_shadow)),
        Ok(Err(Stop::Output(error))) => return Err(error.into()),
        Ok(Err(Stop::Trouble(trouble))) => Err(trouble),
        Err(_) => Err(Trouble::TimedOut(args.url.clone(), LIMIT)),
    };
    runtime.block_on(farewell::say(&args.url, &found.loops));
    match &mut out {
        None => document::write(io::stdout().lock(), &args.url, &found, &conclusion)?,
        Some(out) => match &conclusion {
            Ok(conclusion) => show::end(out, conclusion)?,
            Err(trouble) => tell(&trouble.to_string(), trouble.hint()),
        },
    }
    let is_alive = conclusion.is_ok_and(|conclusion| conclusion.is_alive() == Some(true));
    Ok(if is_alive { Exit::Fine } else { Exit::Problem })
}

/// What was learnt so far.
#[derive(Debug, Default)]
struct Found {
    health: Option<Health>,
    /// The requests of the last synthetic loop that was tried.
    judged: Vec<Judged>,
    /// Whether a guard in shadow says that it sees loops, where it says so.
    seen_in_shadow: Option<bool>,
    /// Every loop that was tried, and how often it went round.
    loops: Vec<(Loop, usize)>,
}

/// What is told as it happens.
enum News<'a> {
    /// `None`: it is not told at this address.
    Health(Option<&'a Health>),
    Judged(&'a Judged),
    /// The loop went through, so another session tries.
    Again,
}

/// Why the examination ended early.
enum Stop {
    Trouble(Trouble),
    Output(io::Error),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Sends a loop through the gateway until it is refused or has gone round often enough.
async fn examine(
    url: &BaseUrl,
    found: &mut Found,
    on_news: &mut dyn FnMut(News<'_>) -> io::Result<()>,
) -> Result<(), Stop> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            on_news(News::Again)?;
        }
        found.judged.clear();
        let synthetic = Loop::new();
        for rounds in 0..MAX_REQUESTS {
            let judged = synthetic.put_before(url, rounds).await?;
            if attempt == 0 && rounds == 0 {
                // Only now is it certain that a gateway answers.
                found.health = health::ask(url).await?;
                on_news(News::Health(found.health.as_ref()))?;
            }
            on_news(News::Judged(&judged))?;
            let is_over = judged.is_refused();
            found.judged.push(judged);
            if is_over {
                break;
            }
        }
        found.loops.push((synthetic, found.judged.len().saturating_sub(1)));
        // A session may be one of those in which loops are only observed (`holdout`); another one tells.
        if Conclusion::of(&found.judged, None) != Conclusion::Ignored {
            break;
        }
    }
    if is_in_shadow(&found.judged) {
        found.seen_in_shadow = shadow::sees_loops(url).await;
    }
    Ok(())
}

/// All of it takes at most this long.
const LIMIT: Duration = Duration::from_secs(5);
/// A loop that has gone round so often has met every rung of a ladder that anybody would write.
const MAX_REQUESTS: usize = 12;
/// Sessions that try before a loop that goes through is believed.
const ATTEMPTS: usize = 3;
