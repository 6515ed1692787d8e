//! One agent at work: it asks its model, does what the model says, and stops for nothing but a refusal.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use loopbreaker::Action;
use loopbreaker_budget::Prices;
use loopbreaker_config::BaseUrl;
use loopbreaker_dialect::{Answer, StreamReader, Usage, read_answer};
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::estimate::Saved;
use super::event::{Event, Met, Outcome, Run};
use super::script::{Agent, ScriptStep, Voice};
use super::speech::Transcript;
use super::stage::Pace;
use crate::failure::Failure;
use crate::http;
use crate::told::{RefusalWords, Told};

/// What an agent needs to run.
pub(super) struct Player {
    pub(super) agents: Rc<[Agent]>,
    /// Which of them it is.
    pub(super) index: usize,
    pub(super) url: BaseUrl,
    pub(super) pace: Pace,
    pub(super) prices: Rc<Prices>,
    /// The name of its run; without one the gateway finds out by itself.
    pub(super) session: Option<String>,
    pub(super) tell: Sender<Result<Event, Failure>>,
}

impl Player {
    /// Runs the agent to its end. Whoever listens has gone when something cannot be told.
    pub(super) async fn play(self) {
        let ended = self.steps().await.map(|run| Event::Ended { agent: self.index, run });
        drop(self.tell.send(ended).await);
    }

    async fn steps(&self) -> Result<Run, Failure> {
        let agent = &self.agents[self.index];
        let mut transcript = Transcript::new(agent);
        let (mut run, mut used) = (Run::default(), Usage::default());
        for (step, scripted) in agent.steps.iter().enumerate() {
            let answer = self.ask_patiently(agent, &transcript).await?;
            let told = Told::of(&answer.headers);
            let said = if answer.status == 200 { Some(read(agent.voice, &answer)?) } else { None };
            let met = meet(step, scripted, &answer, told, said.as_ref())?;
            let outcome = met.outcome;
            run.met.push(met.clone());
            if self.tell.send(Ok(Event::Step { agent: self.index, step: met })).await.is_err() {
                break;
            }
            let Some(said) = said else {
                let spared = agent.steps.len() - step;
                run.saved = Some(Saved::by_stopping(spared, &used, agent.voice, &self.prices));
                break;
            };
            if outcome == Outcome::Cut {
                let missing = scripted.missing(said.text_bytes);
                run.saved = Some(Saved::by_cutting(missing, agent.voice, &self.prices));
            }
            used = said.usage.unwrap_or(used);
            if said.calls.is_empty() {
                break;
            }
            sleep(self.pace.work).await;
            transcript.take(&said, scripted);
        }
        Ok(run)
    }

    /// Asks, and comes back as often as a paused agent is told to, which is what the common SDKs do.
    async fn ask_patiently(&self, agent: &Agent, transcript: &Transcript) -> Result<http::Answer, Failure> {
        loop {
            let answer = self.ask(agent, transcript).await?;
            let is_paused = answer.headers.get("x-should-retry").is_some_and(|value| value == "true");
            if answer.status != 429 || !is_paused {
                return Ok(answer);
            }
            sleep(COMES_BACK).await;
        }
    }

    async fn ask(&self, agent: &Agent, transcript: &Transcript) -> Result<http::Answer, Failure> {
        let broken =
            |why: String| Failure::told(format!("{}: {why}", agent.name), "please report this as a bug");
        let mut request = Request::post(transcript.path());
        if let Some(session) = &self.session {
            request = request.header("x-session-id", session);
        }
        let request = request
            .header("content-type", "application/json")
            .header("user-agent", concat!("loopbreaker-demo/", env!("CARGO_PKG_VERSION")))
            .header("x-tenant-id", "demo")
            .header("x-agent-id", agent.name)
            .header("x-mock-script", agent.name)
            .body(Full::from(Bytes::from(transcript.body())))
            .map_err(|error| broken(error.to_string()))?;
        match timeout(PATIENCE, http::ask(&self.url, request)).await {
            Ok(answered) => answered.map_err(|error| broken(error.to_string())),
            Err(_) => Err(broken(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

/// What became of one request.
fn meet(
    step: usize,
    scripted: &ScriptStep,
    answer: &http::Answer,
    told: Told,
    said: Option<&Answer>,
) -> Result<Met, Failure> {
    let verdict = told.verdict.unwrap_or(Action::Allow);
    let (outcome, words) = match said {
        // The head of an answer was sent before anybody knew how it goes on, so only its end tells of a cut.
        Some(said) if scripted.missing(said.text_bytes) > 0 => (Outcome::Cut, scripted.in_short()),
        Some(_) => (Outcome::Verdict(verdict), scripted.in_short()),
        None if verdict == Action::Reject || answer.status == 403 => {
            (Outcome::Verdict(verdict), RefusalWords::of(&answer.body).message)
        }
        None => {
            let words = String::from_utf8_lossy(&answer.body);
            let message = format!("the gateway answered {}: {words}", answer.status);
            return Err(Failure::told(message, "please report this as a bug"));
        }
    };
    Ok(Met { step, outcome, seen: told.seen, words })
}

/// The model's answer, whole or from its stream.
fn read(voice: Voice, answer: &http::Answer) -> Result<Answer, Failure> {
    let read = if voice.streams {
        let mut reader = StreamReader::new(voice.dialect, false);
        reader.feed(&answer.body);
        reader.complete().then(|| reader.finish())
    } else {
        read_answer(voice.dialect, &answer.body)
    };
    read.ok_or_else(|| Failure::told("an answer could not be read", "please report this as a bug"))
}

/// A paused agent asks again after so long.
const COMES_BACK: Duration = Duration::from_secs(1);
/// A request that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(60);
