//! The words of steps, for searches.
//!
//! On a server they are a column of their step. In a file they are an index of their own, into which they go many steps
//! at a time: each transaction that touches that index leaves a small one behind, which has to be merged with others
//! later, and a transaction holds few steps. Until then a setting says up to which step the index knows all, and the
//! table `unindexed` which of those say something else by now, so a crash leaves nothing out. Whoever searches asks for
//! it to be done first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{KnownStep, Store, Texts};
use crate::database::{Flavour, Row, values};
use crate::error::Stored;
use crate::polite::after_you;

/// Steps whose words are not in the index yet.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// In the order of their ids, which is the order that the index likes best.
    steps: BTreeMap<i64, Change>,
    bytes: usize,
    /// Since when the oldest of them waits.
    since: Option<Instant>,
    /// Whether these are all: not so before the first transaction, nor after one that failed.
    complete: bool,
    /// Whether `unindexed` holds some of them.
    some_changed: bool,
    /// The last step that the index knows.
    indexed: i64,
}

#[derive(Debug)]
struct Change {
    /// What the index says of the step.
    old: Option<Saying>,
    new: Saying,
}

/// Intent, reasoning, tool, input and output.
type Saying = [Box<str>; 5];

/// Enough that what each of them costs in the index hardly matters, few enough that nobody waits long for them.
const MAX_STEPS: usize = 2_048;
/// Long texts do not gather in memory.
const MAX_BYTES: usize = 4 << 20;
/// Words of few steps do not wait for company longer than this: most calls have a result by then, and go into the index
/// once.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Steps up to this one are in the index, though perhaps with other words.
const INDEXED: &str = "indexed_up_to";

const INTO_INDEX: &str = "INSERT INTO search (rowid, intent, reasoning, tool, input, output)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const OUT_OF_INDEX: &str = "INSERT INTO search (search, rowid, intent, reasoning, tool, input, output)
     VALUES ('delete', ?1, ?2, ?3, ?4, ?5, ?6)";

impl Words {
    fn put(&mut self, step: i64, change: Change) {
        let size = |saying: &Saying| saying.iter().map(|text| text.len()).sum::<usize>();
        self.bytes += size(&change.new) + change.old.as_ref().map_or(0, size);
        self.since.get_or_insert_with(Instant::now);
        self.steps.insert(step, change);
    }

    /// What is in memory may not be true any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn is_due(&self) -> bool {
        self.steps.len() >= MAX_STEPS
            || self.bytes >= MAX_BYTES
            || self.since.is_some_and(|since| since.elapsed() >= MAX_WAIT)
    }
}

impl Store {
    /// How many steps cannot be found by their words yet.
    pub(crate) fn unindexed(&self) -> usize {
        self.words.steps.len()
    }

    /// Whether words have waited long enough, or are too many.
    pub(crate) fn words_are_due(&self) -> bool {
        self.words.is_due()
    }

    /// Makes the words of a new step findable before long.
    pub(super) fn add_words(&mut self, step: i64, texts: &Texts<'_>) {
        self.words.put(step, Change { old: None, new: saying(texts) });
    }

    /// Makes the words of a step findable that says something else from now on. Its row still says the old words.
    pub(super) fn change_words(&mut self, step: &KnownStep, texts: &Texts<'_>) -> Stored<()> {
        if self.db.flavour() == Flavour::Postgres {
            let words = super::search::words_to_index(&texts.all());
            let sql = "UPDATE steps SET search = to_tsvector('simple', ?2) WHERE id = ?1";
            return self.execute(sql, values![step.id, &words]).map(drop);
        }
        if let Some(Change { old, .. }) = self.words.steps.remove(&step.id) {
            // The index has not heard of the words in between.
            self.words.put(step.id, Change { old, new: saying(texts) });
            return Ok(());
        }
        let sql = "SELECT intent, reasoning, tool, input, output FROM search_text WHERE id = ?1";
        let Some(old) = self.one(sql, values![step.id], |row| Ok(saying_at(row, 0)))? else { return Ok(()) };
        let [intent, reasoning, tool, input, output] = &old;
        self.execute(
            "INSERT INTO unindexed (step, intent, reasoning, tool, input, output)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            values![step.id, &**intent, &**reasoning, &**tool, &**input, &**output],
        )?;
        self.words.some_changed = true;
        self.words.put(step.id, Change { old: Some(old), new: saying(texts) });
        Ok(())
    }

    /// Puts all words into the index that are not there yet.
    pub(crate) fn index_words(&mut self) -> Stored<()> {
        self.recall_words()?;
        let steps = std::mem::take(&mut self.words.steps);
        let Some(last) = steps.last_key_value().map(|(step, _)| *step) else { return Ok(()) };
        (self.words.bytes, self.words.since) = (0, None);
        for (step, Change { old, new }) in steps {
            let all = old.iter().map(|old| (OUT_OF_INDEX, old)).chain([(INTO_INDEX, &new)]);
            for (sql, [intent, reasoning, tool, input, output]) in all {
                self.execute(sql, values![step, &**intent, &**reasoning, &**tool, &**input, &**output])?;
            }
            after_you();
        }
        if std::mem::take(&mut self.words.some_changed) {
            self.execute("DELETE FROM unindexed", &[])?;
        }
        if last > self.words.indexed {
            self.words.indexed = last;
            self.put_setting(INDEXED, &last.to_string())?;
        }
        Ok(())
    }

    /// Knows again what earlier transactions have left to do.
    pub(super) fn recall_words(&mut self) -> Stored<()> {
        if self.words.complete || self.db.flavour() == Flavour::Postgres {
            return Ok(());
        }
        let indexed = self.setting(INDEXED)?.and_then(|step| step.parse().ok()).unwrap_or(0);
        self.words.indexed = indexed;
        let changed = "SELECT u.step, t.intent, t.reasoning, t.tool, t.input, t.output,
                u.intent, u.reasoning, u.tool, u.input, u.output
             FROM unindexed u CROSS JOIN search_text t ON t.id = u.step";
        let changed = self.all(changed, &[], |row| {
            let old = row.maybe(6, Row::str)?.map(|_| saying_at(row, 6));
            Ok((row.int(0)?, Change { old, new: saying_at(row, 1) }))
        })?;
        self.words.some_changed = !changed.is_empty();
        let new = "SELECT id, intent, reasoning, tool, input, output FROM search_text WHERE id > ?1";
        let new = self.all(new, values![indexed], |row| {
            Ok((row.int(0)?, Change { old: None, new: saying_at(row, 1) }))
        })?;
        for (step, change) in changed.into_iter().chain(new) {
            self.words.put(step, change);
        }
        self.words.complete = true;
        Ok(())
    }

    /// Takes the words of some steps out of the index, as they were put in; the steps themselves are still there.
    pub(super) fn forget_words(&mut self, first: i64, last: i64) -> Stored<()> {
        if self.db.flavour() == Flavour::Postgres {
            return Ok(());
        }
        self.index_words()?;
        self.execute(
            "INSERT INTO search (search, rowid, intent, reasoning, tool, input, output)
             SELECT 'delete', id, intent, reasoning, tool, input, output FROM search_text
             WHERE id BETWEEN ?1 AND ?2",
            values![first, last],
        )
        .map(drop)
    }
}

fn saying(texts: &Texts<'_>) -> Saying {
    texts.all().map(Box::from)
}

/// Five columns of a row; what is missing says nothing.
fn saying_at(row: &Row, first: usize) -> Saying {
    std::array::from_fn(|at| row.str(first + at).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use loopbreaker_record::TraceId;
    use proptest::prelude::*;
    use serde_json::json;

    use super::MAX_STEPS;
    use crate::sqlite::Sqlite;
    use crate::store::{Completed, NewStep, SearchFilter, Session, Store, Texts};

    fn open(path: &Path) -> Store {
        Store::new(Sqlite::open(path).unwrap())
    }

    fn texts(intent: &str) -> Texts<'_> {
        Texts { intent, reasoning: "", tool: "", input: "", output: "" }
    }

    fn log(intent: &str) -> String {
        json!({ "cognition": { "intent": intent } }).to_string()
    }

    fn session(store: &mut Store) -> i64 {
        let row = Session::new(store.tenant("t").unwrap(), "t", "run", 0);
        store.put_session(&row).unwrap()
    }

    fn add(store: &mut Store, number: u64, intent: &str) {
        let session = match store.session_id(1, "run").unwrap() {
            Some(session) => session,
            None => session(store),
        };
        let (tenant, log) = (store.tenant("t").unwrap(), log(intent));
        let step = NewStep {
            tenant,
            session,
            trace: TraceId::derived(&[&number.to_le_bytes()]),
            parent: None,
            waiting: false,
            at: 0,
            received_at: 0,
            agent: "a",
            cluster: "",
            tool: "",
            model: "",
            status: "pending",
            level: "normal",
            open: true,
            tokens: 0,
            cost: 0.0,
            cumulative: None,
            content: b"",
            log: &log,
            wasted: false,
            number,
            texts: texts(intent),
        };
        store.add_step(&step).unwrap();
    }

    fn complete(store: &mut Store, number: u64, intent: &str) {
        let tenant = store.tenant("t").unwrap();
        let Some(step) = store.step(tenant, TraceId::derived(&[&number.to_le_bytes()])).unwrap() else {
            return;
        };
        let log = log(intent);
        let done = Completed { status: "success", level: "normal", log: &log, texts: texts(intent) };
        store.complete_step(&step, &done).unwrap();
    }

    fn found(store: &mut Store, word: &str) -> usize {
        let filter = SearchFilter { text: Some(word.to_owned()), count: 10_000, ..SearchFilter::default() };
        store.search(&filter).unwrap().rows.len()
    }

    #[test]
    fn words_gather_over_transactions_and_go_into_the_index_together() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(&folder.path().join("log.db"));
        let mut indexed = Vec::new();
        for round in 0..4 {
            store.begin(true).unwrap();
            for number in 0..MAX_STEPS as u64 / 4 {
                add(&mut store, round * MAX_STEPS as u64 + number, "repair the parser");
            }
            // However slow the machine is.
            store.words.since = None;
            store.commit().unwrap();
            indexed.push(found(&mut store, "parser"));
        }
        assert_eq!((indexed, store.unindexed()), (vec![0, 0, 0, MAX_STEPS], 0));
    }

    #[test]
    fn what_a_process_left_undone_the_next_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let mut store = open(&path);
        store.begin(true).unwrap();
        add(&mut store, 1, "first");
        add(&mut store, 2, "second");
        store.index_words().unwrap();
        store.commit().unwrap();
        store.begin(true).unwrap();
        complete(&mut store, 1, "changed");
        add(&mut store, 3, "third");
        store.commit().unwrap();
        drop(store);
        let mut store = open(&path);
        store.begin(true).unwrap();
        store.index_words().unwrap();
        store.commit().unwrap();
        let words = ["first", "changed", "second", "third"];
        assert_eq!(words.map(|word| found(&mut store, word)), [0, 1, 1, 1]);
    }

    #[derive(Debug, Clone)]
    enum Deed {
        Add(u8),
        Complete(u8, u8),
        Commit,
        Rollback,
        Index,
        Restart,
    }

    fn deed() -> impl Strategy<Value = Deed> {
        prop_oneof![
            4 => (0..4_u8).prop_map(Deed::Add),
            4 => (0..8_u8, 0..4_u8).prop_map(|(step, word)| Deed::Complete(step, word)),
            3 => Just(Deed::Commit),
            1 => Just(Deed::Rollback),
            1 => Just(Deed::Index),
            1 => Just(Deed::Restart),
        ]
    }

    const WORDS: [&str; 4] = ["apple", "pear", "plum", "fig"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn whatever_happens_in_between_each_step_is_found_by_its_last_words_alone(
            deeds in prop::collection::vec(deed(), 1..40),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log.db");
            let mut store = open(&path);
            let (mut kept, mut now): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
            store.begin(true).unwrap();
            for deed in deeds {
                match deed {
                    Deed::Add(word) => {
                        add(&mut store, now.len() as u64, WORDS[usize::from(word)]);
                        now.push(word);
                    }
                    Deed::Complete(step, word) => {
                        complete(&mut store, u64::from(step), WORDS[usize::from(word)]);
                        if let Some(says) = now.get_mut(usize::from(step)) {
                            *says = word;
                        }
                    }
                    Deed::Index => store.index_words().unwrap(),
                    Deed::Commit => {
                        store.commit().unwrap();
                        kept.clone_from(&now);
                        store.begin(true).unwrap();
                    }
                    Deed::Rollback => {
                        store.rollback();
                        now.clone_from(&kept);
                        store.begin(true).unwrap();
                    }
                    Deed::Restart => {
                        drop(store);
                        now.clone_from(&kept);
                        store = open(&path);
                        store.begin(true).unwrap();
                    }
                }
            }
            store.index_words().unwrap();
            store.commit().unwrap();
            for (place, word) in WORDS.iter().enumerate() {
                let expected = now.iter().filter(|says| usize::from(**says) == place).count();
                prop_assert_eq!(found(&mut store, word), expected, "{}", word);
            }
            store.begin(true).unwrap();
            // Fails when the index holds anything but the words of the steps.
            let check = store.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 0)", &[]);
            prop_assert!(check.is_ok(), "{:?}", check);
            store.rollback();
        }
    }
}
