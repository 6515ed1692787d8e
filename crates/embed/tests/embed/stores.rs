//! The three stores do the same: on a real redis-server and a real Redis Stack.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loopbreaker_embed::{Entry, History, HistoryError, HistoryLimits, Key, Neighbour, open_history};

use crate::encrypted::Encrypted;
use crate::server::Redis;

const WIDTH: usize = 4;

/// One server for each kind of store, and the store on it.
struct Scene {
    name: &'static str,
    store: Arc<dyn History>,
    server: Option<Redis>,
}

async fn scenes(limits: HistoryLimits) -> Vec<Scene> {
    let limits = HistoryLimits { timeout: Duration::from_secs(10), ..limits };
    let (plain, stack) = (Redis::plain(), Redis::stack());
    let (list, hnsw) =
        (open_history(&plain.list(), limits).unwrap(), open_history(&stack.hnsw(), limits).unwrap());
    let memory = open_history("memory", limits).unwrap();
    let scenes = vec![
        Scene { name: "memory", store: memory, server: None },
        Scene { name: "list", store: list, server: Some(plain) },
        Scene { name: "hnsw", store: hnsw, server: Some(stack) },
    ];
    for scene in &scenes {
        scene.store.prepare(WIDTH).await.unwrap();
    }
    scenes
}

/// A vector at this cosine distance from `[1, 0, 0, 0]`.
fn at_distance(distance: f32) -> [f32; WIDTH] {
    let cosine = 1.0 - distance;
    [cosine, (1.0 - cosine * cosine).max(0.0).sqrt(), 0.0, 0.0]
}

async fn ask(store: &dyn History, tenant: &str, session: &str, id: u64, vector: &[f32]) -> Vec<Neighbour> {
    store.exchange(Key { tenant, session }, Entry { id, vector, prompt: None }).await.unwrap()
}

fn ids(neighbours: &[Neighbour]) -> Vec<u64> {
    neighbours.iter().map(|neighbour| neighbour.id).collect()
}

#[tokio::test]
async fn a_server_that_speaks_tls_is_a_store_when_its_certificate_is_trusted() {
    let server = Encrypted::start();
    let limits = HistoryLimits { timeout: Duration::from_secs(10), ..HistoryLimits::default() };
    let trusting = open_history(&format!("{}?{}", server.url(), server.trust()), limits).unwrap();
    trusting.prepare(WIDTH).await.unwrap();
    ask(trusting.as_ref(), "t", "s", 1, &at_distance(0.0)).await;
    assert_eq!(ids(&ask(trusting.as_ref(), "t", "s", 2, &at_distance(0.1)).await), [1]);

    let distrusting = open_history(&server.url(), limits).unwrap();
    let vector = at_distance(0.0);
    let entry = Entry { id: 1, vector: &vector, prompt: None };
    let refused = distrusting.exchange(Key { tenant: "t", session: "s" }, entry).await.unwrap_err();
    assert!(refused.to_string().contains("sslrootcert=/path/ca.pem"), "{refused}");
    let missing = open_history(&format!("{}?sslrootcert=/nowhere.pem", server.url()), limits).unwrap_err();
    assert!(matches!(&missing, HistoryError::Roots { .. }), "{missing}");
}

#[tokio::test]
async fn distances_become_similarities() {
    for scene in scenes(HistoryLimits::default()).await {
        for (at, (distance, expected)) in
            [(0.0, 1.0), (0.1, 0.95), (1.0, 0.5), (2.0, 0.0)].into_iter().enumerate()
        {
            let tenant = format!("t{at}");
            ask(scene.store.as_ref(), &tenant, "s", 1, &at_distance(0.0)).await;
            let neighbours = ask(scene.store.as_ref(), &tenant, "s", 2, &at_distance(distance)).await;
            let similarity = neighbours[0].similarity;
            assert!((similarity - expected).abs() < 1e-5, "{}: {distance} {similarity}", scene.name);
        }
    }
}

#[tokio::test]
async fn the_last_five_are_found_newest_first_and_not_after_the_sixth() {
    for scene in scenes(HistoryLimits::default()).await {
        let store = scene.store.as_ref();
        for id in 1..=5 {
            ask(store, "a", "s", id, &at_distance(0.2 * id as f32)).await;
        }
        assert_eq!(ids(&ask(store, "a", "s", 6, &at_distance(0.0)).await), [5, 4, 3, 2, 1], "{}", scene.name);
        assert_eq!(ids(&ask(store, "a", "s", 7, &at_distance(0.0)).await), [6, 5, 4, 3, 2], "{}", scene.name);
    }
}

#[tokio::test]
async fn tenants_and_sessions_never_see_each_other() {
    let keys = [
        ("a", ""),
        ("a:b", ""),
        ("*", ""),
        ("a|b", ""),
        ("x}y", ""),
        ("a", "b:c"),
        ("a:b", "c"),
        ("A", ""),
        ("a,b", ""),
        ("a b", ""),
        ("a-b", ""),
        ("é", ""),
        ("\0", ""),
        ("a\"", "'"),
        ("", "a"),
    ];
    for scene in scenes(HistoryLimits::default()).await {
        for (id, (tenant, session)) in keys.into_iter().enumerate() {
            let neighbours = ask(scene.store.as_ref(), tenant, session, id as u64, &at_distance(0.0)).await;
            assert!(neighbours.is_empty(), "{}: {tenant:?} {session:?} {neighbours:?}", scene.name);
        }
        for (id, (tenant, session)) in keys.into_iter().enumerate() {
            let neighbours = ask(scene.store.as_ref(), tenant, session, 100, &at_distance(0.0)).await;
            // Without a session it is the history of the tenant, and that of its sessions is part of it.
            let is_seen = |(of, session_of): (&str, &str)| {
                of == tenant && (session.is_empty() || session_of == session)
            };
            let seen: Vec<_> =
                (0..keys.len()).rev().filter(|at| is_seen(keys[*at])).map(|at| at as u64).collect();
            assert!(seen.contains(&(id as u64)));
            assert_eq!(ids(&neighbours), seen, "{}: {tenant:?} {session:?}", scene.name);
        }
    }
}

#[tokio::test]
async fn a_tenant_is_compared_with_what_all_its_sessions_said_and_a_session_with_its_own() {
    for scene in scenes(HistoryLimits::default()).await {
        let store = scene.store.as_ref();
        for id in 1..=4 {
            ask(store, "a", &format!("s{id}"), id, &at_distance(0.1)).await;
        }
        assert_eq!(ids(&ask(store, "a", "", 5, &at_distance(0.0)).await), [4, 3, 2, 1], "{}", scene.name);
        assert_eq!(ids(&ask(store, "a", "", 6, &at_distance(0.0)).await), [5, 4, 3, 2, 1], "{}", scene.name);
        assert_eq!(ids(&ask(store, "a", "s1", 7, &at_distance(0.0)).await), [1], "{}", scene.name);
        assert_eq!(ids(&ask(store, "a", "", 8, &at_distance(0.0)).await), [7, 6, 5, 4, 3], "{}", scene.name);
        for (id, seen) in [(1, vec![7, 1]), (2, vec![2]), (3, vec![3]), (4, vec![4])] {
            let session = format!("s{id}");
            let neighbours = ask(store, "a", &session, 100 + id, &at_distance(0.0)).await;
            assert_eq!(ids(&neighbours), seen, "{}: nobody else clears it away", scene.name);
        }
    }
}

#[tokio::test]
async fn what_is_too_old_is_forgotten() {
    let ttl = Duration::from_millis(400);
    for scene in scenes(HistoryLimits { ttl, ..HistoryLimits::default() }).await {
        let store = scene.store.as_ref();
        ask(store, "a", "s", 1, &at_distance(0.0)).await;
        tokio::time::sleep(ttl + Duration::from_millis(50)).await;
        assert!(ask(store, "a", "s", 2, &at_distance(0.0)).await.is_empty(), "{}", scene.name);
        tokio::time::sleep(ttl + Duration::from_millis(50)).await;
        if let Some(server) = &scene.server {
            // What expires is gone, not only hidden.
            assert_eq!(server.command(&["KEYS", "loop:*"]), "", "{}", scene.name);
        }
    }
}

#[tokio::test]
async fn of_two_checks_at_once_one_sees_the_other() {
    for scene in scenes(HistoryLimits { size: 50, ..HistoryLimits::default() }).await {
        let tasks: Vec<_> = (0..20_u64)
            .map(|id| {
                let store = Arc::clone(&scene.store);
                tokio::spawn(
                    async move { ask(store.as_ref(), "a", "s", id, &[1.0, 0.0, 0.0, 0.0]).await.len() },
                )
            })
            .collect();
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>(), "{}", scene.name);
    }
}

#[tokio::test]
async fn prompts_are_kept_only_where_they_are_given() {
    for scene in scenes(HistoryLimits::default()).await {
        let key = Key { tenant: "a", session: "s" };
        let vector = at_distance(0.0);
        for (id, prompt) in [(1, None), (2, Some("in clear")), (3, None)] {
            scene.store.exchange(key, Entry { id, vector: &vector, prompt }).await.unwrap();
        }
        let neighbours =
            scene.store.exchange(key, Entry { id: 4, vector: &vector, prompt: None }).await.unwrap();
        let prompts: Vec<Option<&str>> =
            neighbours.iter().map(|neighbour| neighbour.prompt.as_deref()).collect();
        assert_eq!(prompts, [None, Some("in clear"), None], "{}", scene.name);
    }
}

#[tokio::test]
async fn the_vector_store_has_the_layout_of_the_design_document() {
    let server = Redis::stack();
    let store = open_history(&server.hnsw(), HistoryLimits::default()).unwrap();
    store.prepare(WIDTH).await.unwrap();
    for id in 1..=7 {
        ask(store.as_ref(), "acme", "run-1", id, &at_distance(0.0)).await;
    }
    let keys = server.command(&["KEYS", "loop:acme:run-1:*-*"]);
    assert_eq!(keys.lines().count(), 5, "{keys}");
    let key = keys.lines().next().unwrap();
    let fields = server.command(&["HKEYS", key]);
    let mut fields: Vec<&str> = fields.lines().collect();
    fields.sort_unstable();
    assert_eq!(fields, ["session_id", "tenant_id", "vec"]);
    assert_eq!(server.command(&["HGET", key, "tenant_id"]), "acme");
    assert_eq!(server.command(&["HSTRLEN", key, "vec"]), (4 * WIDTH).to_string());
    let ttl: i64 = server.command(&["TTL", key]).parse().unwrap();
    assert!((3_500..=3_600).contains(&ttl), "{ttl}");
    let info = server.command(&["FT.INFO", "loop:embeddings"]);
    assert!(["HNSW", "COSINE", "FLOAT32"].iter().all(|word| info.contains(word)), "{info}");
}

#[tokio::test]
async fn an_index_for_another_model_is_told_with_the_next_step() {
    let server = Redis::stack();
    let store = open_history(&server.hnsw(), HistoryLimits::default()).unwrap();
    store.prepare(WIDTH).await.unwrap();
    store.prepare(WIDTH).await.unwrap();
    let error = store.prepare(384).await.unwrap_err();
    assert_eq!(
        error,
        HistoryError::OtherDimension { index: "loop:embeddings", found: WIDTH, wanted: 384 },
        "{error}"
    );
    assert!(error.to_string().contains("FT.DROPINDEX"));
}

#[tokio::test]
async fn a_lost_index_is_told_and_made_again() {
    let server = Redis::stack();
    let store = open_history(&server.hnsw(), HistoryLimits::default()).unwrap();
    store.prepare(WIDTH).await.unwrap();
    ask(store.as_ref(), "a", "s", 1, &at_distance(0.0)).await;
    assert_eq!(server.command(&["FT.DROPINDEX", "loop:embeddings"]), "OK");
    let key = Key { tenant: "a", session: "s" };
    let vector = at_distance(0.0);
    let entry = |id| Entry { id, vector: &vector, prompt: None };
    let lost = store.exchange(key, entry(2)).await.unwrap_err();
    assert_eq!(lost, HistoryError::IndexLost { index: "loop:embeddings" });
    let started = Instant::now();
    while store.exchange(key, entry(3)).await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_server_without_the_search_module_is_told_with_the_next_step() {
    let server = Redis::plain();
    let store = open_history(&server.hnsw(), HistoryLimits::default()).unwrap();
    let vector = at_distance(0.0);
    let asked =
        store.exchange(Key { tenant: "a", session: "s" }, Entry { id: 1, vector: &vector, prompt: None });
    for error in [store.prepare(WIDTH).await.unwrap_err(), asked.await.unwrap_err()] {
        assert!(matches!(error, HistoryError::NoSearch { .. }), "{error}");
        assert!(error.to_string().contains("Redis Stack"));
    }
}

#[tokio::test]
async fn a_server_that_dies_is_used_again_when_it_is_back() {
    let limits = HistoryLimits { timeout: Duration::from_millis(300), ..HistoryLimits::default() };
    for mut server in [Redis::plain(), Redis::stack()] {
        let address = if server.command(&["MODULE", "LIST"]).contains("search") {
            server.hnsw()
        } else {
            server.list()
        };
        let store = open_history(&address, limits).unwrap();
        store.prepare(WIDTH).await.unwrap();
        let vector = at_distance(0.0);
        let exchange = |id| {
            store.exchange(Key { tenant: "a", session: "s" }, Entry { id, vector: &vector, prompt: None })
        };
        exchange(1).await.unwrap();
        server.kill();
        let started = Instant::now();
        assert!(matches!(exchange(2).await, Err(HistoryError::Unavailable { .. })));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        server.start_again();
        let started = Instant::now();
        while exchange(3).await.is_err() {
            assert!(started.elapsed() < Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_frozen_holds_nobody_up() {
    let server = Redis::plain();
    let limits = HistoryLimits { timeout: Duration::from_millis(100), ..HistoryLimits::default() };
    let store = open_history(&server.list(), limits).unwrap();
    let vector = at_distance(0.0);
    let exchange =
        |id| store.exchange(Key { tenant: "a", session: "s" }, Entry { id, vector: &vector, prompt: None });
    exchange(1).await.unwrap();
    server.signal("STOP");
    let started = Instant::now();
    assert!(matches!(exchange(2).await, Err(HistoryError::Unavailable { .. })));
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    server.signal("CONT");
    let started = Instant::now();
    while exchange(3).await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_a_frozen_server_was_asked_leaves_no_trace_when_nobody_waits_any_more() {
    let (plain, stack) = (Redis::plain(), Redis::stack());
    for (server, address) in [(&plain, plain.list()), (&stack, stack.hnsw())] {
        let limits = HistoryLimits { timeout: Duration::from_millis(250), ..HistoryLimits::default() };
        let store = open_history(&address, limits).unwrap();
        let vector = at_distance(0.0);
        let exchange = |id| {
            store.exchange(Key { tenant: "a", session: "s" }, Entry { id, vector: &vector, prompt: None })
        };
        let started = Instant::now();
        while store.prepare(WIDTH).await.is_err() || exchange(1).await.is_err() {
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        server.signal("STOP");
        exchange(2).await.unwrap_err();
        tokio::time::sleep(limits.timeout).await;
        server.signal("CONT");
        let started = Instant::now();
        let neighbours = loop {
            // Who fails asks again, and so does this.
            if let Ok(neighbours) = exchange(2).await {
                break neighbours;
            }
            assert!(started.elapsed() < Duration::from_secs(10));
        };
        assert!(!ids(&neighbours).contains(&2), "{address}: {neighbours:?}");
    }
}

#[tokio::test]
async fn a_full_server_is_told_as_unavailable() {
    let server = Redis::plain_with(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]);
    let store = open_history(&server.list(), HistoryLimits::default()).unwrap();
    let vector = at_distance(0.0);
    let asked =
        store.exchange(Key { tenant: "a", session: "s" }, Entry { id: 1, vector: &vector, prompt: None });
    assert!(matches!(asked.await, Err(HistoryError::Unavailable { .. })));
}
