//! Whatever keeps the vectors, the same is a loop: in this process, in Redis, in Redis Stack, in a sidecar on each of
//! them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use loopbreaker::Severity;
use loopbreaker_embed::{
    Backend, Checker, CheckerOptions, How, ModelOptions, Question, Reading, Results, Rule,
};

use crate::server::Redis;
use crate::sidecar::Sidecar;

/// One order, put anew each time.
const ORDERS: [&str; 3] = [
    "Please scan the video of the harbour and note the times at which two birds are in the picture.",
    "Please look through the video of the harbour and note the times at which two birds are in the picture.",
    "Please go through the video of the harbour and note the times when two birds are in the picture.",
];

/// One function, asked for with more and with less.
const LOOKUPS: [&str; 3] = [
    r#"disassemble_function {"path": "/home/player/files/checker_bin", "function": "main", "style": "intel"}"#,
    r#"disassemble_function {"path": "/home/player/files/checker_bin", "function": "main"}"#,
    r#"disassemble_function {"path": "/home/player/files/checker_bin"}"#,
];

/// A checker, and what it stands on.
struct Way {
    name: &'static str,
    checker: Checker,
    _servers: Vec<Redis>,
    _sidecar: Option<(Sidecar, tempfile::TempDir)>,
}

fn way(name: &'static str, backend: Backend, servers: Vec<Redis>) -> Way {
    let options = CheckerOptions { backend, timeout: Duration::from_secs(20), ..CheckerOptions::default() };
    Way { name, checker: Checker::new(options).unwrap(), _servers: servers, _sidecar: None }
}

fn in_process(name: &'static str, store: String, servers: Vec<Redis>) -> Way {
    way(name, Backend::InProcess { model: ModelOptions::default(), store }, servers)
}

fn by_sidecar(name: &'static str, store: Option<&str>, servers: Vec<Redis>) -> Way {
    let folder = tempfile::tempdir().unwrap();
    let socket: PathBuf = folder.path().join("embed.sock");
    let environment: Vec<(&str, &str)> = store.map(|store| ("REDIS_URL", store)).into_iter().collect();
    let sidecar = Sidecar::start(&socket, &environment);
    let backend = Backend::Sidecars(vec![socket.to_str().unwrap().parse().unwrap()]);
    Way { _sidecar: Some((sidecar, folder)), ..way(name, backend, servers) }
}

fn ways() -> Vec<Way> {
    let (list, stack) = (Redis::plain(), Redis::stack());
    let (sidecars_list, sidecars_stack) = (Redis::plain(), Redis::stack());
    let urls = (list.list(), stack.hnsw(), sidecars_list.list(), sidecars_stack.hnsw());
    vec![
        in_process("memory", "memory".to_owned(), Vec::new()),
        in_process("redis", urls.0, vec![list]),
        in_process("redis stack", urls.1, vec![stack]),
        by_sidecar("sidecar", None, Vec::new()),
        by_sidecar("sidecar on redis", Some(&urls.2), vec![sidecars_list]),
        by_sidecar("sidecar on redis stack", Some(&urls.3), vec![sidecars_stack]),
    ]
}

impl Way {
    async fn ask(&self, session: &str, text: &str, results: Results, rule: Rule) -> Reading {
        let (tenant, threshold, trace) = ("acme", 0.9, None);
        self.checker.check(&Question { tenant, session, text, results, threshold, rule, trace }).await
    }

    /// Says these one after the other, and what the last of them amounts to.
    async fn say(&self, session: &str, said: &[(&str, Results)], rule: Rule) -> Option<Severity> {
        let mut severity = None;
        for (text, results) in said {
            severity = self.ask(session, text, *results, rule).await.severity;
        }
        severity
    }

    /// Waits until the model is loaded, and whoever keeps the vectors is connected to.
    async fn is_up(&self) {
        let started = Instant::now();
        for session in 0.. {
            let session = session.to_string();
            self.ask(&session, "look at the logs again", Results::Gave(1), Rule::Intent).await;
            let again = self.ask(&session, "look again at those logs", Results::Gave(1), Rule::Intent).await;
            if again.how == How::Embedded {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{}: it does not come up", self.name);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn an_order_for_the_same_is_a_loop_by_every_way() {
    for way in ways() {
        way.is_up().await;
        let answered: Vec<_> = ORDERS.into_iter().zip((0..).map(Results::Gave)).collect();
        let two = way.say("two", &answered[..2], Rule::Order).await;
        assert_eq!(two, Some(Severity::Warning), "{}: two orders are none", way.name);
        assert_eq!(way.say("order", &answered, Rule::Order).await, Some(Severity::Loop), "{}", way.name);
        let intent = way.say("intent", &answered, Rule::Intent).await;
        assert_ne!(intent, Some(Severity::Loop), "{}: every answer is another one", way.name);
    }
}

#[tokio::test]
async fn to_leave_something_out_and_fail_as_before_is_a_loop_by_every_way() {
    for way in ways() {
        way.is_up().await;
        let failed = LOOKUPS.map(|text| (text, Results::Failed(7)));
        assert_eq!(way.say("less", &failed, Rule::Intent).await, Some(Severity::Loop), "{}", way.name);
        let told = LOOKUPS.map(|text| (text, Results::Gave(7)));
        let less = way.say("told", &told, Rule::Intent).await;
        assert_ne!(less, Some(Severity::Loop), "{}: less is another question", way.name);
        let more: Vec<_> = failed.into_iter().rev().collect();
        let more = way.say("more", &more, Rule::Intent).await;
        assert_ne!(more, Some(Severity::Loop), "{}: more is another attempt", way.name);
        let ways_to_fail = LOOKUPS.into_iter().zip((0..).map(Results::Failed)).collect::<Vec<_>>();
        let other = way.say("other", &ways_to_fail, Rule::Intent).await;
        assert_ne!(other, Some(Severity::Loop), "{}: each failure is another one", way.name);
    }
}
