use std::path::Path;

use loopbreaker_record::{DecisionLog, Moment, TraceId};
use rusqlite::Connection;

use super::Sqlite;
use crate::audit::{self, AuditCheck, Deed};
use crate::database::Database as _;
use crate::error::StoreError;
use crate::store::{SearchFilter, Store};
use crate::{Arrival, Observatory, Options, verify_audit};

fn arrival(number: u8) -> Arrival {
    let log = DecisionLog::builder("a", "coder", "1.0.0")
        .intent("x".repeat(60_000))
        .session("run")
        .build(TraceId::from_random_bytes([number; 16]), Moment::from_millis(0))
        .unwrap();
    Arrival { tenant: "t".into(), session: None, log }
}

fn open(path: &Path) -> Result<Observatory, StoreError> {
    Observatory::open(Options::at(path))
}

#[test]
fn a_new_file_is_brought_up_to_date_once_and_kept_safe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    drop(Sqlite::open(&path).unwrap());
    let store = Sqlite::open(&path).unwrap();
    let pragma = |name: &str| -> String {
        store
            .connection()
            .query_row(&format!("PRAGMA {name}"), [], |row| {
                row.get::<_, rusqlite::types::Value>(0).map(|value| format!("{value:?}"))
            })
            .unwrap()
    };
    assert_eq!(pragma("user_version"), "Integer(5)");
    assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
    assert_eq!(pragma("synchronous"), "Integer(2)");
    assert_eq!(pragma("integrity_check"), "Text(\"ok\")");
}

#[test]
fn only_what_somebody_relies_on_waits_for_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut sqlite = Sqlite::open(&folder.path().join("log.db")).unwrap();
    let levels = [true, false, true].map(|relied_on| {
        sqlite.begin(relied_on).unwrap();
        sqlite.commit().unwrap();
        sqlite.db.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0)).unwrap()
    });
    assert_eq!(levels, [2, 1, 2], "FULL, NORMAL, FULL");
}

#[test]
fn a_file_of_a_newer_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(Sqlite::open(&path).unwrap_err(), StoreError::TooNew { found: 99, known: 5 });
}

#[test]
fn a_file_that_is_no_database_is_a_typed_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    std::fs::write(&path, "this is a letter, not a database. ".repeat(100)).unwrap();
    assert!(matches!(open(&path).unwrap_err(), StoreError::Corrupt(_)));
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_next_log_is_taken_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let sqlite = Sqlite::open(&path).unwrap();
    let pages: i64 = sqlite.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    sqlite.db.pragma_update(None, "max_page_count", pages + 64).unwrap();
    let observatory = Observatory::with_store(Options::at(&path), Store::new(sqlite)).unwrap();
    let mut acknowledged = 0;
    let full = loop {
        match observatory.ingest(arrival(acknowledged)).await {
            Ok(accepted) => assert!(!accepted.unwrap().duplicate),
            Err(error) => break error,
        }
        acknowledged += 1;
    };
    assert_eq!(full, StoreError::Full);
    assert_eq!(observatory.health().failure(), Some(StoreError::Full));
    assert!(acknowledged > 0);
    for number in 0..acknowledged {
        assert!(observatory.ingest(arrival(number)).await.unwrap().unwrap().duplicate, "{number} is lost");
    }
    drop(observatory);
    let roomy = open(&path).unwrap();
    assert!(!roomy.ingest(arrival(acknowledged)).await.unwrap().unwrap().duplicate);
    assert_eq!(roomy.health().failure(), None);
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_to_date_with_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(super::MIGRATIONS[0]).unwrap();
    old.execute_batch(
        "PRAGMA user_version = 1;
         INSERT INTO tenants VALUES (1, 't');
         INSERT INTO sessions VALUES (7, 1, 'run', 0, 'normal', 0, 1, 0, 2, 30, 0.5, 0.5, '', '[\"a\"]', 1, 2);
         INSERT INTO findings VALUES (1, 7, 1, '{\"kind\":\"entropy\"}');",
    )
    .unwrap();
    let log = arrival(1).log;
    for (number, id) in [(1_u8, 11), (2, 12)] {
        let text = serde_json::to_string(&log).unwrap();
        old.execute(
            "INSERT INTO steps VALUES (?1, 1, 7, ?2, NULL, 0, 5, 5, 'a', '', '', '', 'pending', 'normal', 15,
                0.25, NULL, X'00', ?3)",
            rusqlite::params![id, TraceId::from_random_bytes([number; 16]).as_bytes(), text],
        )
        .unwrap();
    }
    drop(old);
    let observatory = open(&path).unwrap();
    observatory.ingest(arrival(9)).await.unwrap().unwrap();
    drop(observatory);
    let mut store = Store::new(Sqlite::open(&path).unwrap());
    store.begin(true).unwrap();
    store.index_words().unwrap();
    store.commit().unwrap();
    let steps = store.steps(7, 0, 10).unwrap().rows;
    let numbers: Vec<i64> = steps.iter().map(|step| step["step"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let session = store.session_of(7).unwrap().unwrap();
    assert_eq!((session.steps, session.wasted.steps), (3, 0));
    let filter = SearchFilter { text: Some("x*".to_owned()), count: 10, ..SearchFilter::default() };
    assert_eq!(store.search(&filter).unwrap().rows.len(), 3, "what was kept before can be found");
}

#[test]
fn words_that_the_fourth_version_left_out_of_its_index_are_found_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let old = Connection::open(&path).unwrap();
    for migration in &super::MIGRATIONS[..4] {
        old.execute_batch(migration).unwrap();
    }
    old.execute_batch(
        "PRAGMA user_version = 4;
         INSERT INTO tenants VALUES (1, 't');
         INSERT INTO sessions (id, tenant, name, provisional, level, ended, entropy, loop_score, steps, tokens, cost,
            cumulative, cluster, agents, started_at, last_at) VALUES (7, 1, 'run', 0, 'normal', 0, 1, 0, 3, 0, 0, 0, '',
            '[]', 1, 2);",
    )
    .unwrap();
    // The second step was changed after it went into the index, the first has never been there.
    for (id, intent) in [(1_u8, "apple"), (2, "plum"), (3, "fig")] {
        old.execute(
            "INSERT INTO steps (id, tenant, session, trace, waiting, at, received_at, agent, cluster, tool, model,
                status, level, tokens, cost, content, log)
             VALUES (?1, 1, 7, ?2, 0, 5, 5, 'a', '', '', '', 'success', 'normal', 0, 0, X'00', ?3)",
            rusqlite::params![
                id,
                TraceId::from_random_bytes([id; 16]).as_bytes(),
                serde_json::json!({ "cognition": { "intent": intent } }).to_string()
            ],
        )
        .unwrap();
    }
    old.execute_batch(
        "INSERT INTO search (rowid, intent) VALUES (2, 'pear'), (3, 'fig');
         INSERT INTO unindexed VALUES (1, NULL, NULL, NULL, NULL, NULL), (2, 'pear', '', '', '', '');",
    )
    .unwrap();
    drop(old);
    let found = |store: &mut Store, word: &str| {
        let filter = SearchFilter { text: Some(word.to_owned()), count: 10, ..SearchFilter::default() };
        store.search(&filter).unwrap().rows.len()
    };
    // What is done is not done again after a restart.
    for _ in 0..2 {
        let mut store = Store::new(Sqlite::open(&path).unwrap());
        store.begin(true).unwrap();
        store.index_words().unwrap();
        store.commit().unwrap();
        let words = ["apple", "pear", "plum", "fig"];
        assert_eq!(words.map(|word| found(&mut store, word)), [1, 0, 1, 1]);
    }
    let db = Connection::open(&path).unwrap();
    db.execute_batch("INSERT INTO search (search, rank) VALUES ('integrity-check', 0)").unwrap();
}

#[tokio::test]
async fn a_locked_database_is_told_counted_and_recovered_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let observatory = open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(observatory.ingest(arrival(1)).await.unwrap_err(), StoreError::Locked);
    assert_eq!(observatory.health().failure(), Some(StoreError::Locked));
    assert!(observatory.health().unwritten() >= 1);
    other.execute_batch("ROLLBACK").unwrap();
    let accepted = observatory.ingest(arrival(1)).await.unwrap().unwrap();
    assert!(!accepted.duplicate, "what was not acknowledged was not kept");
    assert_eq!(observatory.health().failure(), None);
}

#[tokio::test]
async fn an_agent_can_be_stopped_while_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let observatory = open(&path).unwrap();
    observatory.ingest(arrival(1)).await.unwrap().unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let pause = crate::Order::Pause { reason: "stop".to_owned() };
    let given = observatory.order("t", "run", "ann", pause).await.unwrap().unwrap();
    assert_eq!(given.state, "paused");
    assert!(given.note.unwrap().contains("not in the audit log"));
    let resume = observatory.order("t", "run", "ann", crate::Order::Resume).await;
    assert_eq!(resume.unwrap_err(), StoreError::Locked, "what lets an agent go on is written first");
    other.execute_batch("ROLLBACK").unwrap();
    let accepted = observatory.ingest(arrival(2)).await.unwrap().unwrap();
    assert_eq!(accepted.control["interrupt_signal"], "pause");
}

#[tokio::test]
async fn a_second_process_is_told_that_the_folder_is_in_use_and_gets_it_once_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let first = open(&path).unwrap();
    let refused = open(&path).unwrap_err();
    assert_eq!(refused, StoreError::InUse);
    assert!(refused.to_string().contains("--data-dir"), "{refused}");
    assert_eq!(verify_audit(&Options::at(&path)).unwrap(), AuditCheck::Intact { entries: 0 });
    first.ingest(arrival(1)).await.unwrap().unwrap();
    drop(first);
    open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    drop(Sqlite::open(&path).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_database_that_is_damaged_while_it_runs_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let observatory = open(&path).unwrap();
    for number in 0..50 {
        observatory.ingest(arrival(number)).await.unwrap().unwrap();
    }
    drop(observatory);
    let length = std::fs::metadata(&path).unwrap().len() as usize;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..length].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    match open(&path) {
        Err(error) => assert!(matches!(error, StoreError::Corrupt(_)), "{error}"),
        Ok(observatory) => {
            let failed = observatory.ingest(arrival(99)).await.unwrap_err();
            assert!(matches!(failed, StoreError::Corrupt(_)), "{failed}");
        }
    }
}

#[tokio::test]
async fn what_is_too_much_goes_and_what_was_found_later_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let clock = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(1_000));
    let for_options = std::sync::Arc::clone(&clock);
    let mut options = Options::at(&path);
    options.clock =
        std::sync::Arc::new(move || for_options.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed));
    options.max_bytes = 8 << 20;
    let observatory = Observatory::open(options).unwrap();
    for number in 0..=255 {
        let mut arrival = arrival(number);
        arrival.log.cognition.intent = "word ".repeat(12_000);
        observatory.ingest(arrival).await.unwrap().unwrap();
    }
    let finding = serde_json::json!({ "kind": "repeat" });
    observatory.finding("t", "run", finding).await.unwrap();
    observatory.enforce_retention().await.unwrap();
    let mut store = Store::new(Sqlite::open(&path).unwrap());
    assert!(store.live_bytes().unwrap() <= 8 << 20);
    let session = store.sessions_named("run", None).unwrap().remove(0);
    let kinds: Vec<serde_json::Value> =
        store.findings(session.id).unwrap().into_iter().map(|found| found["kind"].clone()).collect();
    assert!(kinds.contains(&"repeat".into()), "{kinds:?}");
    assert_eq!(store.topology(None, None, 0).unwrap()["nodes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_of_a_forgotten_log_stays_in_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let observatory = open(&path).unwrap();
    for number in 0..40 {
        let mut arrival = arrival(number);
        let log = &mut arrival.log;
        log.cognition.intent = format!("größer \"{number}\"");
        log.cognition.reasoning_chain = match number % 4 {
            0 => None,
            1 => Some(Vec::new()),
            2 => Some(vec![String::new()]),
            _ => Some(vec!["one\ntwo".to_owned(), "\u{1}three\\n".to_owned()]),
        };
        log.action.tool_input = (number % 3 == 0).then(|| r#"{"a":"b\nc"}"#.to_owned());
        log.action.tool_output_summary = (number % 5 == 0).then(|| "out \u{0} put".to_owned());
        observatory.ingest(arrival).await.unwrap().unwrap();
    }
    drop(observatory);
    let words = Connection::open(&path).unwrap();
    let mut store = Store::new(Sqlite::open(&path).unwrap());
    // Every word that was ever put in must be taken out again: one that is spelt otherwise would stay.
    words.execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, search, row)").unwrap();
    let mut words_after = |forgotten: u32| -> i64 {
        store.begin(true).unwrap();
        assert_eq!(store.forget(i64::MAX, forgotten).unwrap(), forgotten);
        store.commit().unwrap();
        words.execute("INSERT INTO search (search) VALUES ('integrity-check')", []).unwrap();
        words.query_row("SELECT count(*) FROM temp.words", [], |row| row.get(0)).unwrap()
    };
    assert_ne!(words_after(15), 0);
    assert_eq!(words_after(25), 0);
}

#[test]
fn a_changed_or_cut_audit_log_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let mut store = Store::new(Sqlite::open(&path).unwrap());
    for operator in ["ann", "ben", "cem"] {
        let deed = Deed { operator, action: "pause", ..Deed::default() };
        audit::append(&mut store, "2026-02-21T10:00:00Z", deed).unwrap();
    }
    let options = Options::at(&path);
    assert_eq!(verify_audit(&options).unwrap(), AuditCheck::Intact { entries: 3 });
    let file = Connection::open(&path).unwrap();
    assert!(file.execute("UPDATE audit SET operator = 'eve' WHERE seq = 2", []).is_err());
    assert!(file.execute("DELETE FROM audit", []).is_err());
    // Somebody who holds the file can do it all the same, but not unseen.
    file.execute_batch("DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_deleted").unwrap();
    file.execute("DELETE FROM audit WHERE seq = 3", []).unwrap();
    assert_eq!(verify_audit(&options).unwrap(), AuditCheck::Broken { seq: 3 });
    file.execute("UPDATE audit SET operator = 'eve' WHERE seq = 2", []).unwrap();
    assert_eq!(verify_audit(&options).unwrap(), AuditCheck::Broken { seq: 2 });
}

#[tokio::test]
async fn a_session_that_goes_on_after_a_restart_keeps_its_window_its_pause_and_its_orders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let first = open(&path).unwrap();
    for number in 0..5 {
        first.ingest(arrival(number)).await.unwrap().unwrap();
    }
    let pause = crate::Order::Pause { reason: "wait".to_owned() };
    first.order("t", "run", "ann", pause).await.unwrap().unwrap();
    drop(first);
    let second = open(&path).unwrap();
    let accepted = second.ingest(arrival(6)).await.unwrap().unwrap();
    assert_eq!(accepted.severity, "loop");
    assert_eq!(accepted.control["interrupt_signal"], "pause");
    let mut told = second.subscribe(vec![crate::Topic::EntropyAlerts], None, Some(0));
    let kinds: Vec<&str> = std::iter::from_fn(|| told.poll()).map(|event| event.kind).collect();
    assert_eq!(kinds, ["gap"], "the open alert is not told again");
}
