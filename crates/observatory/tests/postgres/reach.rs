//! A server that is gone, comes back, is locked, or wants encryption.

use std::time::{Duration, Instant};

use loopbreaker_observatory::{Arrival, Observatory, Options, StoreError};
use loopbreaker_record::{DecisionLog, Moment, TraceId};

use crate::backend::{Server, server};

pub(crate) fn arrival(number: u8) -> Arrival {
    let log = DecisionLog::builder("a", "coder", "1.0.0")
        .intent("build")
        .session("run")
        .build(TraceId::from_random_bytes([number; 16]), Moment::from_millis(0))
        .unwrap();
    Arrival { tenant: "t".into(), session: None, log }
}

#[test]
fn a_server_that_is_not_there_is_a_typed_error_that_says_what_to_do() {
    let refused = Observatory::open(Options::url("postgres://nobody@127.0.0.1:1/none")).unwrap_err();
    assert!(matches!(refused, StoreError::Unreachable(_)), "{refused}");
    assert!(refused.to_string().contains("check its url"), "{refused}");
}

#[tokio::test]
async fn a_server_that_goes_and_comes_back_has_lost_nothing_that_was_acknowledged() {
    let mut own = Server::start(&[]);
    let observatory = Observatory::open(Options::url(own.url("postgres"))).unwrap();
    observatory.ingest(arrival(1)).await.unwrap().unwrap();
    observatory.verify_audit().await.unwrap();
    own.stop();
    let failed = observatory.ingest(arrival(2)).await.unwrap_err();
    assert!(matches!(failed, StoreError::Unreachable(_)), "{failed}");
    assert!(matches!(observatory.health().failure(), Some(StoreError::Unreachable(_))));
    assert!(observatory.health().unwritten() >= 1);
    own.start_again(&[]);
    let started = Instant::now();
    let again = loop {
        match observatory.ingest(arrival(1)).await {
            Ok(answer) => break answer.unwrap(),
            Err(error) => assert!(started.elapsed() < Duration::from_secs(20), "{error}"),
        }
    };
    assert!(again.duplicate, "what was acknowledged is there");
    assert!(!observatory.ingest(arrival(2)).await.unwrap().unwrap().duplicate, "what was not, is not");
    assert_eq!(observatory.health().failure(), None);
    // The reader's old connections are replaced too, without anybody noticing.
    observatory.verify_audit().await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_restarted_between_two_questions_answers_the_second() {
    let mut own = Server::start(&[]);
    let observatory = Observatory::open(Options::url(own.url("postgres"))).unwrap();
    observatory.verify_audit().await.unwrap();
    own.stop();
    own.start_again(&[]);
    observatory.verify_audit().await.unwrap();
    own.stop();
    let (started, failed) = (Instant::now(), observatory.verify_audit().await.unwrap_err());
    assert!(matches!(failed, StoreError::Unreachable(_)), "{failed}");
    assert!(started.elapsed() < Duration::from_secs(5), "it is tried once more, and no longer");
}

#[tokio::test]
async fn somebody_who_holds_the_lock_is_told_as_locked() {
    let url = server().new_database();
    let observatory = Observatory::open(Options::url(&url)).unwrap();
    let holding = tokio::task::spawn_blocking(move || {
        let name = url.split(['/', '?']).find(|part| part.starts_with("test_")).unwrap().to_owned();
        let mut other = server().client(&name).unwrap();
        other.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(7813586406989784417)").unwrap();
        other
    });
    let other = holding.await.unwrap();
    assert_eq!(observatory.ingest(arrival(1)).await.unwrap_err(), StoreError::Locked);
    tokio::task::spawn_blocking(move || drop(other)).await.unwrap();
    observatory.ingest(arrival(1)).await.unwrap().unwrap();
}

#[test]
fn a_database_of_a_newer_program_is_left_alone() {
    let url = server().new_database();
    let name = url.split(['/', '?']).find(|part| part.starts_with("test_")).unwrap();
    drop(Observatory::open(Options::url(&url)).unwrap());
    server().client(name).unwrap().batch_execute("UPDATE schema_version SET version = 99").unwrap();
    let refused = Observatory::open(Options::url(&url)).unwrap_err();
    assert_eq!(refused, StoreError::TooNew { found: 99, known: 2 });
}

#[test]
fn a_connection_is_encrypted_where_that_is_asked_for_and_only_with_a_certificate_that_is_trusted() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut own = Server::start(&[]);
    own.stop();
    let data = own.folder.path().join("data");
    let (certificate, key) = (data.join("server.crt"), data.join("server.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    crate::backend::give_to_server(&[&certificate, &key]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    own.start_again(&["ssl=on", "listen_addresses=localhost", &format!("port={port}")]);
    let url = |rest: &str| format!("postgres://postgres@localhost:{port}/postgres?sslmode=require{rest}");
    let untrusted = Observatory::open(Options::url(url(""))).unwrap_err();
    assert!(matches!(untrusted, StoreError::Unreachable(_)), "{untrusted}");
    let roots = certificate.to_str().unwrap().replace('/', "%2F");
    let observatory = Observatory::open(Options::url(url(&format!("&sslrootcert={roots}")))).unwrap();
    let mut client = own.client_at(port);
    let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE ssl AND application_name = 'loopbreaker'";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i64>(0), 1);
    drop(observatory);
}
