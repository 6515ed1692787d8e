//! Whatever happens to the sidecar or its store, no check is late or fails, and detection comes back by itself.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loopbreaker::Severity;
use loopbreaker_embed::{Backend, Checker, CheckerOptions, Degraded, How, Question, Reading, Results, Rule};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use crate::server::Redis;
use crate::sidecar::Sidecar;
use crate::sidecar::v1::embedding_service_server::{EmbeddingService, EmbeddingServiceServer};
use crate::sidecar::v1::{CheckLoopRequest, CheckLoopResponse};

/// What a check may take, and what it may take on a machine that does other things too.
const LIMIT: Duration = Duration::from_millis(150);
const LATE: Duration = Duration::from_millis(450);

fn checker(sockets: &[&Path]) -> Checker {
    let addresses = sockets.iter().map(|socket| socket.to_str().unwrap().parse().unwrap()).collect();
    let options =
        CheckerOptions { backend: Backend::Sidecars(addresses), timeout: LIMIT, ..CheckerOptions::default() };
    Checker::new(options).unwrap()
}

/// Says something new about the logs each time, in a session of its own, and never late.
async fn say(checker: &Checker) -> Reading {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let session = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    ask(checker, &session, &format!("Let me look at the logs of server {session}.")).await
}

async fn ask(checker: &Checker, session: &str, text: &str) -> Reading {
    ask_by(checker, session, text, Rule::Intent).await
}

async fn ask_by(checker: &Checker, session: &str, text: &str, rule: Rule) -> Reading {
    let question = Question {
        tenant: "acme",
        session,
        text,
        results: Results::Gave(7),
        threshold: 0.95,
        rule,
        trace: None,
    };
    let started = Instant::now();
    let reading = checker.check(&question).await;
    assert!(started.elapsed() < LATE, "{:?} {reading:?}", started.elapsed());
    reading
}

/// Waits until checks work again.
async fn comes_back(checker: &Checker) {
    let started = Instant::now();
    while say(checker).await.how != How::Embedded {
        assert!(started.elapsed() < Duration::from_secs(30), "it does not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until checks fail without a wait: the sidecar is left alone.
async fn is_left_alone(checker: &Checker) {
    let began = Instant::now();
    loop {
        let started = Instant::now();
        let reading = say(checker).await;
        assert!(matches!(reading.how, How::Degraded(_) | How::Skipped(_)), "{reading:?}");
        if reading.how == How::Degraded(Degraded::Unavailable)
            && started.elapsed() < Duration::from_millis(20)
        {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "it is asked again and again");
    }
}

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("embed.sock");
    (folder, socket)
}

#[tokio::test]
async fn paraphrases_are_a_loop_by_way_of_the_sidecar() {
    let (_folder, socket) = folder();
    let _sidecar = Sidecar::start(&socket, &[]);
    let checker = checker(&[&socket]);
    comes_back(&checker).await;
    let texts = [
        "Let me look at the server logs again to find the error.",
        "Let me look again at the server logs to find the error.",
        "Let me look at the server logs again to find that error.",
    ];
    let mut severities = Vec::new();
    for text in texts {
        severities.push(ask(&checker, "loop", text).await.severity);
    }
    assert_eq!(severities, [None, Some(Severity::Warning), Some(Severity::Loop)]);
    assert_eq!(ask(&checker, "loop", texts[0]).await.how, How::Exact);
}

#[tokio::test]
async fn a_sidecar_that_is_not_there_is_left_alone() {
    let (_folder, socket) = folder();
    let checker = checker(&[&socket]);
    is_left_alone(&checker).await;
    let _sidecar = Sidecar::start(&socket, &[]);
    comes_back(&checker).await;
}

#[tokio::test]
async fn a_sidecar_that_is_killed_mid_request_fails_no_check() {
    let (_folder, socket) = folder();
    let mut sidecar = Sidecar::start(&socket, &[]);
    let checker = checker(&[&socket]);
    comes_back(&checker).await;
    let asked: Vec<_> = (0..20)
        .map(|_| {
            let checker = checker.clone();
            tokio::spawn(async move { say(&checker).await })
        })
        .collect();
    tokio::task::yield_now().await;
    sidecar.signal("KILL");
    sidecar.wait();
    for task in asked {
        task.await.unwrap();
    }
    is_left_alone(&checker).await;
    let _next = Sidecar::start(&socket.clone(), &[]);
    comes_back(&checker).await;
}

#[tokio::test]
async fn a_sidecar_that_is_frozen_holds_nobody_up() {
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[]);
    let checker = checker(&[&socket]);
    comes_back(&checker).await;
    sidecar.signal("STOP");
    is_left_alone(&checker).await;
    sidecar.signal("CONT");
    comes_back(&checker).await;
}

#[tokio::test]
async fn a_socket_that_is_deleted_is_found_again() {
    let (_folder, socket) = folder();
    let mut sidecar = Sidecar::start(&socket, &[]);
    let checker = checker(&[&socket]);
    comes_back(&checker).await;
    std::fs::remove_file(&socket).unwrap();
    // Who is connected stays so.
    assert_eq!(say(&checker).await.how, How::Embedded);
    sidecar.signal("KILL");
    sidecar.wait();
    is_left_alone(&checker).await;
    let _next = Sidecar::start(&socket.clone(), &[]);
    comes_back(&checker).await;
}

#[tokio::test]
async fn bytes_that_are_no_answer_fail_no_check() {
    let (_folder, socket) = folder();
    let listener = UnixListener::bind(&socket).unwrap();
    let liar = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                drop(stream.write_all(&[0x47; 512]).await);
                drop(stream.read(&mut [0; 512]).await);
            });
        }
    });
    let checker = checker(&[&socket]);
    is_left_alone(&checker).await;
    liar.abort();
    drop(liar.await);
    std::fs::remove_file(&socket).unwrap();
    let _sidecar = Sidecar::start(&socket, &[]);
    comes_back(&checker).await;
}

/// Answers whatever it is told to.
struct Liar(CheckLoopResponse);

#[tonic::async_trait]
impl EmbeddingService for Liar {
    async fn check_loop(&self, _: Request<CheckLoopRequest>) -> Result<Response<CheckLoopResponse>, Status> {
        Ok(Response::new(self.0.clone()))
    }
}

async fn reading_of(answer: CheckLoopResponse) -> Reading {
    let texts = ["look at the logs", "look at those logs"];
    readings_of(answer, &texts, Rule::Intent).await.pop().unwrap()
}

/// What is made of each text when the sidecar answers the same to all of them.
async fn readings_of(answer: CheckLoopResponse, texts: &[&str], rule: Rule) -> Vec<Reading> {
    let (_folder, socket) = folder();
    let incoming = UnixListenerStream::new(UnixListener::bind(&socket).unwrap());
    let service = EmbeddingServiceServer::new(Liar(answer));
    let server =
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    let checker = checker(&[&socket]);
    let mut readings = Vec::new();
    for text in texts {
        readings.push(ask_by(&checker, "s", text, rule).await);
    }
    server.abort();
    readings
}

#[tokio::test]
async fn similarities_that_cannot_be_are_not_believed() {
    for max_similarity in [f64::NAN, f64::INFINITY, -0.1, 1.1, 7.0] {
        let answer = CheckLoopResponse {
            loop_detected: true,
            max_similarity,
            similar_count: 5,
            ..CheckLoopResponse::default()
        };
        let reading = reading_of(answer).await;
        assert_eq!(
            (reading.how, reading.severity),
            (How::Degraded(Degraded::Garbage), None),
            "{max_similarity}"
        );
    }
}

#[tokio::test]
async fn the_gateways_own_threshold_decides() {
    let below = CheckLoopResponse {
        loop_detected: true,
        max_similarity: 0.94,
        similar_count: 1,
        ..CheckLoopResponse::default()
    };
    assert_eq!(reading_of(below).await.severity, None);
    let above =
        CheckLoopResponse { loop_detected: false, max_similarity: 0.96, ..CheckLoopResponse::default() };
    let reading = reading_of(above).await;
    assert_eq!((reading.severity, reading.similar_count), (Some(Severity::Warning), 1));
}

/// What a sidecar says that knows no more than the design document's three fields.
fn three_fields(max_similarity: f64) -> CheckLoopResponse {
    let similar_prompt = "look at the logs".to_owned();
    CheckLoopResponse { loop_detected: true, max_similarity, similar_prompt, ..CheckLoopResponse::default() }
}

const LOGS: [&str; 3] = ["look at the logs", "look at those logs", "look at the logs again"];

#[tokio::test]
async fn by_the_literal_rule_one_similarity_is_a_loop_from_the_first_request_on() {
    let answers = [
        three_fields(0.99),
        CheckLoopResponse { similar_count: 3, ..three_fields(0.99) },
        CheckLoopResponse {
            similar_count: 3,
            similarities: vec![0.5, 0.99, 0.98, 0.97],
            ..three_fields(0.99)
        },
    ];
    for answer in answers {
        for reading in readings_of(answer.clone(), &LOGS, Rule::Literal).await {
            assert_eq!(reading.severity, Some(Severity::Loop), "{answer:?}: {reading:?}");
        }
    }
    for reading in readings_of(three_fields(0.94), &LOGS, Rule::Literal).await {
        assert_eq!(reading.severity, None, "{reading:?}");
    }
}

#[tokio::test]
async fn one_similarity_alone_is_a_warning() {
    for reading in readings_of(three_fields(0.99), &LOGS, Rule::Intent).await {
        assert_eq!((reading.severity, reading.similar_count), (Some(Severity::Warning), 1));
    }
    let pages = ["open page 3 of the report", "open page 4 of the report"];
    let other = readings_of(three_fields(0.99), &pages, Rule::Intent).await;
    assert_eq!(other[1].severity, None, "what it was compared with was heard here, and named another page");
}

#[tokio::test]
async fn two_similar_ones_with_unchanged_results_are_a_loop_by_their_number() {
    let counted = CheckLoopResponse { similar_count: 2, ..three_fields(0.99) };
    let severities: Vec<_> =
        readings_of(counted, &LOGS, Rule::Intent).await.iter().map(|reading| reading.severity).collect();
    assert_eq!(severities, [Some(Severity::Warning), Some(Severity::Warning), Some(Severity::Loop)]);
}

#[tokio::test]
async fn of_several_sidecars_one_that_works_is_asked() {
    let (_folder, first) = folder();
    let (_folder, second) = folder();
    let sidecar = Sidecar::start(&first, &[]);
    let _other = Sidecar::start(&second, &[]);
    let checker = checker(&[&first, &second]);
    comes_back(&checker).await;
    sidecar.signal("STOP");
    comes_back(&checker).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..10 {
        assert_eq!(say(&checker).await.how, How::Embedded);
    }
}

/// A checker in this process, on a store.
fn checker_on(store: String) -> Checker {
    let backend = Backend::InProcess { model: loopbreaker_embed::ModelOptions::default(), store };
    Checker::new(CheckerOptions { backend, timeout: LIMIT, ..CheckerOptions::default() }).unwrap()
}

async fn survives(checker: &Checker, breaks: impl Future<Output = ()>, mends: impl Future<Output = ()>) {
    comes_back(checker).await;
    breaks.await;
    for _ in 0..5 {
        assert!(matches!(say(checker).await.how, How::Degraded(_) | How::Skipped(_)));
    }
    mends.await;
    comes_back(checker).await;
}

#[tokio::test]
async fn a_redis_that_is_killed_fails_no_check() {
    for redis in [Redis::plain(), Redis::stack()] {
        let address =
            if redis.command(&["MODULE", "LIST"]).contains("search") { redis.hnsw() } else { redis.list() };
        let (checker, redis) = (checker_on(address), Arc::new(std::sync::Mutex::new(redis)));
        let (broken, mended) = (Arc::clone(&redis), redis);
        survives(&checker, async { broken.lock().unwrap().kill() }, async {
            mended.lock().unwrap().start_again();
        })
        .await;
    }
}

#[tokio::test]
async fn a_redis_that_is_slow_holds_nobody_up() {
    let redis = Redis::plain();
    survives(&checker_on(redis.list()), async { redis.signal("STOP") }, async { redis.signal("CONT") }).await;
}

#[tokio::test]
async fn a_redis_that_is_full_fails_no_check() {
    let redis = Redis::plain();
    let set = async |limit| assert_eq!(redis.command(&["CONFIG", "SET", "maxmemory", limit]), "OK");
    survives(&checker_on(redis.list()), set("1"), set("0")).await;
}

#[tokio::test]
async fn a_redis_without_the_search_module_fails_no_check() {
    let redis = Redis::plain();
    let checker = checker_on(redis.hnsw());
    for _ in 0..3 {
        assert!(matches!(say(&checker).await.how, How::Degraded(_) | How::Skipped(_)));
    }
}

#[tokio::test]
async fn an_index_that_is_lost_comes_back() {
    let redis = Redis::stack();
    let checker = checker_on(redis.hnsw());
    comes_back(&checker).await;
    assert_eq!(redis.command(&["FT.DROPINDEX", "loop:embeddings"]), "OK");
    comes_back(&checker).await;
}
