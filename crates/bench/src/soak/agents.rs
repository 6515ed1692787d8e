//! Agents at a steady pace: those that get on with their work, and those that go round in circles.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use loopbreaker::Action;

use super::tally::Tally;
use crate::gateway::Workload;
use crate::gateway::load::Connection;
use crate::gateway::transcripts::head;

/// What is done about an agent that makes one call again and again, request by request.
const LADDER: [Action; 7] = [
    Action::Allow,
    Action::Allow,
    Action::Warn,
    Action::Hint,
    Action::Hint,
    Action::Throttle,
    Action::Reject,
];
/// What the throttle of that ladder holds a call back for.
const THROTTLED: Duration = Duration::from_millis(500);

/// How long a looping agent takes for a request, on average.
pub(crate) fn seconds_per_request(pace: Duration) -> f64 {
    let requests = LADDER.len() as f64;
    (pace.as_secs_f64() * (requests - 1.0) + THROTTLED.as_secs_f64().max(pace.as_secs_f64())) / requests
}

/// A connection that carries healthy runs.
pub(crate) struct Healthy {
    pub(crate) address: SocketAddr,
    pub(crate) work: Rc<RefCell<Workload>>,
    /// The length of every answer.
    pub(crate) expected: usize,
    pub(crate) every: Duration,
    pub(crate) first: Instant,
}

impl Healthy {
    pub(crate) async fn run(self, deadline: Instant, tally: Rc<RefCell<Tally>>) {
        let (mut connection, mut next) = (None, self.first);
        while next < deadline {
            tokio::time::sleep_until(next.into()).await;
            next += self.every;
            let request = self.work.borrow_mut().next_request();
            let begun = Instant::now();
            match exchange(&mut connection, self.address, request.pieces()).await {
                Err(error) => fail(&tally, &error),
                Ok(heard) => {
                    let mut tally = tally.borrow_mut();
                    tally.answered(begun.elapsed());
                    if !heard.is_plain() || heard.body != self.expected {
                        tally.mistaken += 1;
                        tally.trouble(format!("a healthy request was answered with {heard:?}"));
                    }
                }
            }
        }
    }
}

/// A connection that carries one loop after the other.
pub(crate) struct Looping {
    pub(crate) address: SocketAddr,
    /// How many loops have begun, of all agents.
    pub(crate) runs: Rc<Cell<u64>>,
    pub(crate) every: Duration,
    pub(crate) first: Instant,
}

impl Looping {
    pub(crate) async fn run(self, deadline: Instant, tally: Rc<RefCell<Tally>>) {
        let (mut connection, mut next) = (None, self.first);
        while next < deadline {
            let number = self.runs.replace(self.runs.get() + 1);
            let mut judged = Vec::with_capacity(LADDER.len());
            for times in 0..LADDER.len() {
                tokio::time::sleep_until(next.into()).await;
                let begun = Instant::now();
                next = begun + self.every;
                let body = looping(number, times);
                match exchange(&mut connection, self.address, [&head(body.len()), body.as_bytes()]).await {
                    Err(error) => fail(&tally, &error),
                    Ok(heard) => {
                        let mut tally = tally.borrow_mut();
                        if heard.verdict == Some(Action::Throttle) {
                            tally.held();
                        } else {
                            tally.answered(begun.elapsed());
                        }
                        judged.extend(heard.verdict);
                    }
                }
            }
            let mut tally = tally.borrow_mut();
            tally.loops += 1;
            if judged != LADDER {
                tally.missed += 1;
                tally.trouble(format!("a loop was judged {judged:?}"));
            }
        }
    }
}

/// Asks on the open connection, or on a new one; a connection that failed is not used again.
async fn exchange<const N: usize>(
    open: &mut Option<Connection>,
    address: SocketAddr,
    pieces: [&[u8]; N],
) -> io::Result<crate::gateway::answer::Heard> {
    let mut connection = match open.take() {
        Some(connection) => connection,
        None => Connection::open(address).await?,
    };
    let asking = tokio::time::timeout(PATIENCE, connection.exchange(pieces));
    let heard = asking.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    *open = Some(connection);
    Ok(heard)
}

fn fail(tally: &RefCell<Tally>, error: &io::Error) {
    let mut tally = tally.borrow_mut();
    tally.failed += 1;
    tally.trouble(format!("a request failed: {error}"));
}

/// The transcript of an agent that has made the same call so many times, and has failed each time.
fn looping(number: u64, times: usize) -> String {
    let mut body = format!(
        r#"{{"model":"gpt-4o-mini","messages":[{{"role":"system","content":"You are a careful engineer."}},{{"role":"user","content":"Build {number:012} is broken: mend it."}}"#
    );
    for at in 0..times {
        // Writing into a `String` never fails.
        write!(
            body,
            r#",{{"role":"assistant","tool_calls":[{{"id":"call_{at}","type":"function","function":{{"name":"bash","arguments":"{{\"command\":\"make all\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{at}","content":"make: *** no rule to make target {number:012}"}}"#
        )
        .unwrap_or_default();
    }
    body.push_str("]}");
    body
}

/// Nobody waits longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::looping;

    #[test]
    fn a_looping_transcript_grows_by_the_same_call() {
        let body: Value = serde_json::from_str(&looping(7, 3)).unwrap();
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 2 + 3 * 2);
        let call = |at: usize| &messages[2 + at * 2]["tool_calls"][0]["function"];
        assert_eq!(call(0), call(2));
        assert_eq!(messages[3]["content"], messages[7]["content"]);
    }
}
