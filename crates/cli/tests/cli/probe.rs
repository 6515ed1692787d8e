use std::io::Write as _;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use loopbreaker_mock::Mock;
use serde_json::{Value, json};

use crate::binary::{Desk, Outcome};
use crate::golden;
use crate::served::Served;

fn probe(url: &str) -> Outcome {
    Desk::new().run(&["probe", url])
}

fn probe_json(url: &str) -> Value {
    let outcome = Desk::new().run(&["probe", url, "--json"]);
    assert_eq!((outcome.lines().len(), &*outcome.stderr), (1, ""));
    outcome.lines().remove(0)
}

/// The output without the port.
fn told(outcome: &Outcome, url: &str) -> String {
    outcome.stdout.replace(url, "http://127.0.0.1:4141")
}

#[test]
fn a_guard_with_the_defaults_is_alive_and_climbs_its_ladder() {
    let gateway = Served::new();
    let outcome = probe(&gateway.url);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("probe-alive.txt", &told(&outcome, &gateway.url));
}

#[test]
fn probes_do_not_count_for_each_other() {
    let gateway = Served::new();
    let first = probe(&gateway.url).stdout;
    for _ in 0..6 {
        assert_eq!(probe(&gateway.url).stdout, first);
    }
}

/// What the API of a gateway says.
fn told_by_api(url: &str, path: &str) -> Value {
    let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    write!(stream, "GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_probe_leaves_no_loop_open_and_its_session_is_written_down_and_ended() {
    let gateway = Served::new();
    assert_eq!(probe(&gateway.url).code, 0);
    let overview = told_by_api(&gateway.url, "/overview");
    assert_eq!(
        (&overview["loops_open"], &overview["sessions"]["ended"]),
        (&json!(0), &json!(1)),
        "{overview}"
    );
    let listed = told_by_api(&gateway.url, "/sessions");
    let session = &listed["sessions"][0];
    assert_eq!((&session["state"], &session["alert"]), (&json!("ended"), &Value::Null), "{session}");
    assert_eq!(session["agents"], json!(["loopbreaker-probe"]));
    let id = session["session_id"].as_str().unwrap();
    let found = told_by_api(&gateway.url, &format!("/sessions/{id}"));
    assert!(!found["findings"].as_array().unwrap().is_empty(), "what was found stays in the log: {found}");
}

#[test]
fn a_probe_that_may_not_write_to_the_log_leaves_no_loop_open_either() {
    let mut gateway = Served::with("admin_listen: 127.0.0.1:0\n");
    assert_eq!(probe(&gateway.url).code, 0);
    let admin = gateway.admin_url();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let session = told_by_api(&admin, "/sessions")["sessions"][0].clone();
        if session["state"] == "active" && session["steps"].as_u64() > Some(8) {
            assert_eq!(session["alert"], Value::Null);
            break;
        }
        assert!(Instant::now() < deadline, "{session}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_sent_to_a_model() {
    let model = Mock::start("127.0.0.1:0").unwrap();
    let gateway = Served::start(Desk::new(), &["--upstream", &model.url()]);
    assert_eq!(probe(&gateway.url).code, 0);
    assert!(model.requests().is_empty());
}

#[test]
fn a_guard_in_shadow_is_alive_and_enforces_nothing() {
    let gateway = Served::with("global_shadow: true\n");
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 0);
    golden::check("probe-shadow.txt", &told(&outcome, &gateway.url));
    assert_eq!(probe_json(&gateway.url)["mode"], "shadow");
}

#[test]
fn a_shadow_in_which_nobody_looks_for_loops_is_a_problem() {
    let rules = "rules: [{ id: r, key: tenant, requests_per_minute: 1000 }]";
    let policy = format!(
        "policies: [{{ id: a, spec: {{ mode: shadow, selector: {{ pathPrefix: /v1/ }}, {rules} }} }}]\n"
    );
    let gateway = Served::with(&policy);
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("the loop went through"), "{}", outcome.stdout);
}

#[test]
fn a_guard_in_shadow_that_tells_only_its_operators_what_it_sees_is_not_known_to_be_alive() {
    let tokens = format!("admin: {{ tokens: [{{ role: operator, sha256: \"{}\" }}] }}", "0".repeat(64));
    let gateway = Served::with(&format!("global_shadow: true\n{tokens}\n"));
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 1);
    golden::check("probe-silent.txt", &told(&outcome, &gateway.url));
    let document = probe_json(&gateway.url);
    assert_eq!((&document["alive"], &document["mode"]), (&Value::Null, &json!("shadow")));
}

#[test]
fn a_guard_in_shadow_whose_api_has_a_port_of_its_own_is_probed_there() {
    let mut gateway = Served::with("global_shadow: true\nadmin_listen: 127.0.0.1:0\n");
    assert_eq!(probe(&gateway.url).code, 1, "here nobody tells what it sees");
    assert_eq!(probe(&gateway.admin_url()).code, 0);
}

#[test]
fn a_loop_that_goes_through_is_a_problem() {
    let policy = "policies: [{ id: a, spec: { selector: { pathPrefix: /v1/ }, rules: [{ id: r, key: tenant, requests_per_minute: 1000 }] } }]\n";
    let gateway = Served::with(policy);
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 1);
    golden::check("probe-ignored.txt", &told(&outcome, &gateway.url));
}

#[test]
fn a_limit_that_stops_the_probe_is_told_as_what_it_is_with_what_to_do() {
    let policy = "policies: [{ id: a, spec: { selector: { pathPrefix: /v1/ }, rules: [{ id: r, key: tenant, requests_per_minute: 2 }] } }]\n";
    let gateway = Served::with(policy);
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 1, "nobody has seen whether it looks for loops");
    golden::check("probe-stopped.txt", &told(&outcome, &gateway.url));
    let document = probe_json(&gateway.url);
    assert_eq!((&document["alive"], &document["error"]), (&Value::Null, &Value::Null));
    assert!(document["hint"].as_str().unwrap().contains("loopbreaker-probe"), "{document}");
}

#[test]
fn degraded_parts_are_shown() {
    let desk = Desk::with("occupied", "a file where a folder should be");
    let gateway = Served::start(desk, &["--data-dir", "occupied/data"]);
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stdout.contains("live and degraded: store, data_dir"), "{}", outcome.stdout);
    assert_eq!(probe_json(&gateway.url)["health"]["degraded"], json!(["store", "data_dir"]));
}

#[test]
fn health_with_a_port_of_its_own_is_not_missed() {
    let gateway = Served::with("admin_listen: 127.0.0.1:0\n");
    let outcome = probe(&gateway.url);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stdout.contains("its health is told elsewhere"), "{}", outcome.stdout);
    assert_eq!(probe_json(&gateway.url)["health"], Value::Null);
}

#[test]
fn a_gateway_behind_tls_is_probed_by_https() {
    let desk = Desk::new();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    desk.put("cert.pem", made.cert.pem());
    desk.put("key.pem", made.signing_key.serialize_pem());
    desk.put("loopbreaker.yaml", "tls: { cert: cert.pem, key: key.pem }\n");
    let trusted = desk.path("cert.pem");
    let gateway = Served::start(desk, &[]);

    let url = gateway.url.clone();
    assert!(url.starts_with("https://"), "{url}");
    let plain = probe(&url.replace("https://", "http://"));
    assert_eq!(plain.code, 1);
    assert!(plain.stderr.contains("write https:// instead of http://"), "{}", plain.stderr);
    let distrusted = probe(&url);
    assert_eq!(distrusted.code, 1);
    assert!(distrusted.stderr.contains("SSL_CERT_FILE"), "{}", distrusted.stderr);
    let outcome = Outcome::of(Desk::new().command(&["probe", &url]).env("SSL_CERT_FILE", trusted));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[test]
fn where_nothing_listens_it_says_how_to_start_it() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    let outcome = probe(&url);
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    golden::check("probe-nobody.txt", &outcome.stderr.replace(&url, "http://127.0.0.1:4141"));
    let document = probe_json(&url);
    assert_eq!((&document["alive"], &document["requests"]), (&json!(false), &json!([])));
    assert_eq!(document["error"], format!("nothing listens at {url}"));
    assert!(document["hint"].as_str().unwrap().contains("loopbreaker serve"));
}

#[test]
fn another_program_is_not_taken_for_a_gateway() {
    let other = Mock::start("127.0.0.1:0").unwrap();
    let outcome = probe(&other.url());
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    assert!(outcome.stderr.contains("another program answers at"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("404"), "{}", outcome.stderr);
}

#[test]
fn a_program_that_does_not_speak_http_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream.unwrap().write_all(b"220 mail.example ready\r\n\r\n"));
        }
    });
    let outcome = probe(&url);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("does not speak HTTP"), "{}", outcome.stderr);
}

#[test]
fn a_program_that_says_nothing_is_given_up_after_five_seconds() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let begun = Instant::now();
    let outcome = probe(&url);
    assert!((4..15).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    assert!(outcome.stderr.contains("has not answered within 5 s"), "{}", outcome.stderr);
    assert!(begun.elapsed() >= Duration::from_secs(5));
}

#[test]
fn json_is_one_document_with_every_request() {
    let gateway = Served::new();
    let outcome = Desk::new().run(&["probe", &gateway.url, "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    let document = &outcome.lines()[0];
    assert_eq!((&document["alive"], &document["mode"]), (&json!(true), &json!("enforce")));
    assert_eq!(document["url"], gateway.url);
    assert_eq!((&document["error"], &document["hint"]), (&Value::Null, &Value::Null));
    assert_eq!(
        document["health"],
        json!({ "live": true, "status": "ready", "degraded": [], "open_breakers": [] })
    );
    let requests = document["requests"].as_array().unwrap();
    let verdicts: Vec<_> = requests.iter().map(|request| request["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["allow", "allow", "warn", "hint", "hint", "throttle", "reject"]);
    assert_eq!(
        requests[6],
        json!({ "request": 7, "status": 429, "verdict": "reject", "kind": "repeat", "count": 6, "code": "loop_detected" })
    );
}
