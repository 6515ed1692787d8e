//! The sidecar as a process: its socket, its answers, its errors.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::server::{Redis, free_port, signal};

#[expect(
    unreachable_pub,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub(crate) mod v1 {
    include!("../../src/proto/loopbreaker.embedding.v1.rs");
}

use v1::embedding_service_client::EmbeddingServiceClient;
use v1::{CheckLoopRequest, CheckLoopResponse};

/// A sidecar that ends with this value.
pub(crate) struct Sidecar {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Sidecar {
    /// Starts one and waits until its socket is there.
    pub(crate) fn start(socket: &Path, environment: &[(&str, &str)]) -> Self {
        let mut sidecar = Self { child: spawn(socket, environment), socket: socket.to_owned() };
        let started = Instant::now();
        while !socket.exists() {
            let ended = sidecar.child.try_wait().unwrap();
            assert!(ended.is_none(), "the sidecar ended: {}", sidecar.said());
            assert!(started.elapsed() < Duration::from_secs(60), "no socket");
            std::thread::sleep(Duration::from_millis(10));
        }
        sidecar
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    pub(crate) fn client(&self) -> EmbeddingServiceClient<Channel> {
        EmbeddingServiceClient::new(channel(&self.socket))
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

fn spawn(socket: &Path, environment: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embedding-sidecar"));
    for name in ["REDIS_URL", "LOOP_EMBEDDING_MODEL_PATH", "METRICS_LISTEN", "ORT_DYLIB_PATH"] {
        command.env_remove(name);
    }
    let environment: HashMap<_, _> = environment.iter().copied().collect();
    command.env("UDS_PATH", socket).envs(environment);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// One that has to end by itself, with what it said.
fn failing(socket: &Path, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut sidecar = Sidecar { child: spawn(socket, environment), socket: socket.to_owned() };
    let status = sidecar.wait();
    (status.code(), sidecar.said())
}

fn channel(socket: &Path) -> Channel {
    let socket = socket.to_owned();
    Endpoint::from_static("http://sidecar").connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    }))
}

fn request(tenant: &str, prompt: &str) -> CheckLoopRequest {
    CheckLoopRequest { tenant_id: tenant.to_owned(), prompt: prompt.to_owned(), session_id: String::new() }
}

async fn check(sidecar: &Sidecar, tenant: &str, prompt: &str) -> Result<CheckLoopResponse, Code> {
    let answer = sidecar.client().check_loop(request(tenant, prompt)).await;
    answer.map(tonic::Response::into_inner).map_err(|status| status.code())
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("embed.sock");
    (folder, socket)
}

const PARAPHRASES: [&str; 3] = [
    "Let me look at the server logs again to find the error.",
    "Let me look again at the server logs to find the error.",
    "Let me look at the server logs again to find that error.",
];

#[tokio::test]
async fn similar_prompts_are_a_loop_in_every_store() {
    let (plain, stack) = (Redis::plain(), Redis::stack());
    for url in ["", &plain.list(), &stack.hnsw()] {
        let (_folder, socket) = folder();
        let sidecar = Sidecar::start(&socket, &[("REDIS_URL", url)]);
        let first = check(&sidecar, "acme", PARAPHRASES[0]).await.unwrap();
        assert_eq!(
            (first.loop_detected, first.similar_count, first.max_similarity),
            (false, 0, 0.0),
            "{url}"
        );
        let other = check(&sidecar, "acme", "All tests pass; deploying version two.").await.unwrap();
        assert!(!other.loop_detected && other.max_similarity < 0.9, "{url}: {other:?}");
        let second = check(&sidecar, "acme", PARAPHRASES[1]).await.unwrap();
        assert!(second.loop_detected && second.max_similarity > 0.95, "{url}: {second:?}");
        assert_eq!((second.similar_count, second.similarities.len()), (1, 2));
        assert_eq!((second.similar_prompt.as_str(), second.degraded), ("", false));
        let third = check(&sidecar, "acme", PARAPHRASES[2]).await.unwrap();
        assert_eq!(third.similar_count, 2, "{url}");
        assert!(!check(&sidecar, "other", PARAPHRASES[2]).await.unwrap().loop_detected);
    }
}

#[tokio::test]
async fn the_similar_prompt_is_told_where_prompts_are_kept() {
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[("LOOP_KEEP_PROMPTS", "true")]);
    check(&sidecar, "acme", PARAPHRASES[0]).await.unwrap();
    let second = check(&sidecar, "acme", PARAPHRASES[1]).await.unwrap();
    assert_eq!(second.similar_prompt, PARAPHRASES[0]);
}

#[tokio::test]
async fn a_sidecar_that_keeps_no_prompts_tells_none_that_another_one_kept() {
    let plain = Redis::plain();
    let ((_one, keeping), (_other, silent)) = (folder(), folder());
    let keeping = Sidecar::start(&keeping, &[("REDIS_URL", &plain.list()), ("LOOP_KEEP_PROMPTS", "true")]);
    let silent = Sidecar::start(&silent, &[("REDIS_URL", &plain.list())]);
    check(&keeping, "acme", PARAPHRASES[0]).await.unwrap();
    let told = check(&silent, "acme", PARAPHRASES[0]).await.unwrap();
    assert_eq!((told.loop_detected, told.similar_prompt.as_str()), (true, ""));
    assert_eq!(check(&keeping, "acme", PARAPHRASES[0]).await.unwrap().similar_prompt, PARAPHRASES[0]);
}

#[tokio::test]
async fn prompts_are_kept_without_credentials() {
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[("LOOP_KEEP_PROMPTS", "true")]);
    let prompt = "log in with the key sk-ABCDEFGHIJKLMNOPQRSTUVWX1234567890abcd and list the files";
    check(&sidecar, "acme", prompt).await.unwrap();
    let second = check(&sidecar, "acme", prompt).await.unwrap();
    assert_eq!(second.similar_prompt, "log in with the key sk-*** and list the files");
}

#[tokio::test]
async fn without_a_session_a_prompt_is_compared_with_those_of_all_sessions() {
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[]);
    let of_session = CheckLoopRequest { session_id: "s".to_owned(), ..request("acme", PARAPHRASES[0]) };
    sidecar.client().check_loop(of_session).await.unwrap();
    assert!(check(&sidecar, "acme", PARAPHRASES[0]).await.unwrap().loop_detected);
    assert!(!check(&sidecar, "other", PARAPHRASES[0]).await.unwrap().loop_detected);
}

#[tokio::test]
async fn the_threshold_and_the_history_are_those_of_the_environment() {
    let (_folder, socket) = folder();
    let sidecar =
        Sidecar::start(&socket, &[("LOOP_SIMILARITY_THRESHOLD", "0.9999"), ("LOOP_HISTORY_SIZE", "2")]);
    for prompt in PARAPHRASES {
        assert!(!check(&sidecar, "acme", prompt).await.unwrap().loop_detected);
    }
    assert_eq!(check(&sidecar, "acme", "once more").await.unwrap().similarities.len(), 2);
}

#[tokio::test]
async fn what_is_empty_is_an_invalid_argument() {
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[]);
    for (tenant, prompt) in [("", "text"), ("acme", ""), ("acme", " \n")] {
        assert_eq!(check(&sidecar, tenant, prompt).await.unwrap_err(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_unavailable_until_it_is_back() {
    let mut redis = Redis::plain();
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[("REDIS_URL", &redis.list())]);
    redis.kill();
    assert_eq!(check(&sidecar, "acme", "text").await.unwrap_err(), Code::Unavailable);
    redis.start_again();
    let started = Instant::now();
    while check(&sidecar, "acme", "text").await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_index_that_is_lost_is_a_failed_precondition_until_it_is_made_again() {
    let redis = Redis::stack();
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[("REDIS_URL", &redis.hnsw())]);
    check(&sidecar, "acme", "text").await.unwrap();
    assert_eq!(redis.command(&["FT.DROPINDEX", "loop:embeddings"]), "OK");
    assert_eq!(check(&sidecar, "acme", "text").await.unwrap_err(), Code::FailedPrecondition);
    let started = Instant::now();
    while check(&sidecar, "acme", "text").await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn it_tells_how_it_is_and_what_it_can() {
    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[]);
    for service in ["", "loopbreaker.embedding.v1.EmbeddingService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let health = HealthClient::new(channel(&sidecar.socket)).check(asked).await.unwrap().into_inner();
        assert_eq!(health.status, 1, "{service}");
    }
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(channel(&sidecar.socket));
    let mut answers =
        client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    let answer: ServerReflectionResponse = answers.message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(services)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let names: Vec<String> = services.service.into_iter().map(|service| service.name).collect();
    assert!(names.iter().any(|name| name == "loopbreaker.embedding.v1.EmbeddingService"), "{names:?}");
}

#[tokio::test]
async fn it_tells_what_it_can_to_older_clients_too() {
    use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1alpha::{ServerReflectionRequest, ServerReflectionResponse};

    let (_folder, socket) = folder();
    let sidecar = Sidecar::start(&socket, &[]);
    let symbol = "loopbreaker.embedding.v1.EmbeddingService".to_owned();
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::FileContainingSymbol(symbol)),
    };
    let mut client = ServerReflectionClient::new(channel(&sidecar.socket));
    let mut answers =
        client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    let answer: ServerReflectionResponse = answers.message().await.unwrap().unwrap();
    assert!(
        matches!(answer.message_response, Some(MessageResponse::FileDescriptorResponse(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_socket_is_ours_alone_and_goes_with_the_sidecar() {
    let (_folder, socket) = folder();
    // Somebody died here.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let mut sidecar = Sidecar { child: spawn(&socket, &[]), socket: socket.clone() };
    let started = Instant::now();
    while check(&sidecar, "acme", "text").await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, said) = failing(&socket, &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("another process listens"), "{said}");
    check(&sidecar, "acme", "still here").await.unwrap();
    sidecar.signal("TERM");
    assert_eq!(sidecar.wait().code(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn a_bad_model_is_an_end_without_a_socket() {
    let (folder, socket) = folder();
    let model = folder.path().join("model.onnx");
    std::fs::write(&model, b"not a model").unwrap();
    for path in [folder.path().to_str().unwrap(), "/nowhere"] {
        let (code, said) = failing(&socket, &[("LOOP_EMBEDDING_MODEL_PATH", path)]);
        assert_eq!(code, Some(1), "{said}");
        assert!(!socket.exists() && said.contains("embedding-sidecar:"), "{said}");
    }
    let (code, said) = failing(&socket, &[("ORT_DYLIB_PATH", "/nowhere/libonnxruntime.so")]);
    assert_eq!(code, Some(1));
    assert!(said.contains("ORT_DYLIB_PATH"), "{said}");
}

#[test]
fn a_bad_variable_is_told_by_name() {
    let (_folder, socket) = folder();
    for (name, value) in
        [("LOOP_HISTORY_SIZE", "0"), ("LOOP_SIMILARITY_THRESHOLD", "2"), ("METRICS_LISTEN", "here")]
    {
        let (code, said) = failing(&socket, &[(name, value)]);
        assert_eq!(code, Some(1));
        assert!(said.contains(name) && !socket.exists(), "{said}");
    }
}

#[test]
fn a_server_without_the_search_module_ends_the_start() {
    let redis = Redis::plain();
    let (_folder, socket) = folder();
    let (code, said) = failing(&socket, &[("REDIS_URL", &redis.hnsw())]);
    assert_eq!(code, Some(1));
    assert!(said.contains("Redis Stack") && !socket.exists(), "{said}");
}

#[tokio::test]
async fn metrics_are_served_where_they_are_asked_for() {
    let (_folder, socket) = folder();
    let address = format!("127.0.0.1:{}", free_port());
    let sidecar = Sidecar::start(&socket, &[("METRICS_LISTEN", &address)]);
    check(&sidecar, "acme", "text").await.unwrap();
    check(&sidecar, "acme", "text").await.unwrap();
    let page = get(&address, "/metrics").await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("loopbreaker_sidecar_checks_total{result=\"embedded\",reason=\"\"} 1\n"), "{page}");
    assert!(page.contains("loopbreaker_sidecar_checks_total{result=\"exact\",reason=\"\"} 1\n"), "{page}");
    assert!(get(&address, "/other").await.starts_with("HTTP/1.1 404"));
}

async fn get(address: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}
