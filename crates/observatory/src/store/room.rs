//! How much room the steps take, and how it is given back once they are forgotten.
//!
//! In a file the full-text index only marks what was deleted, until all its parts are merged into one. So the file alone
//! does not say what is left: what forgotten steps still take in the index is taken off, and before that is much, the
//! index is merged, a slice at a time. Otherwise the file would stay as large as it is whatever goes, and all would go.

use super::Store;
use crate::database::{Flavour, Row, values};
use crate::error::Stored;

/// What is kept, in bytes.
#[derive(Debug)]
struct Room {
    /// What it takes on the disk.
    used: f64,
    /// What its steps weigh: near enough to what they take to compare them with each other.
    live: f64,
    /// What forgotten steps weighed that the index still knows; `None` while nobody has counted them.
    forgotten: Option<f64>,
}

/// What one look at the room has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tidied {
    /// Steps that were forgotten.
    pub(crate) gone: u32,
    /// Whether there is more to do.
    pub(crate) more: bool,
}

/// What forgotten steps weighed since the index was last merged into one.
const FORGOTTEN: &str = "index_forgotten";
/// Whether the index is being merged into one.
const MERGES: &str = "index_merges";
/// The index is merged when forgotten steps weigh more than this share of the others: seldom enough that all the merges
/// together write it eight times while everything in it is replaced once.
const MAX_FORGOTTEN: f64 = 0.125;
/// How much of a step, by its weight, its words take in the index. Where it is another share, what is left is misjudged
/// by that share of [`MAX_FORGOTTEN`] at most.
const INDEX_SHARE: f64 = 0.6;
/// On a server, indexes take about as much again as the rows.
const WITH_INDEXES: f64 = 2.0;
/// Pages of the index that are merged in one transaction: 4 MB.
const PAGES_AT_ONCE: i64 = 1_000;
/// Places at which steps are weighed, and how many of them at each: all of a small store, a sample of a large one.
const PLACES: i64 = 256;
const STEPS_AT_A_PLACE: i64 = 16;

impl Store {
    /// What a row of `steps` weighs, in the words of the database.
    pub(super) fn weight(&self) -> &'static str {
        match self.db.flavour() {
            // With what its columns and their indexes take beside its texts.
            Flavour::Sqlite => "CAST(octet_length(log) + length(content) + 512 AS DOUBLE PRECISION)",
            Flavour::Postgres => "CAST(pg_column_size(steps.*) AS DOUBLE PRECISION)",
        }
    }

    /// Does the next of what is to be done so that what is kept fits into `max` bytes, the oldest steps first and at most
    /// `count` of them, and so that the disk gets back what they took.
    pub(crate) fn make_room(&mut self, max: u64, count: u32) -> Stored<Tidied> {
        if self.setting(MERGES)?.as_deref() == Some("1") {
            return self.merge_index(PAGES_AT_ONCE);
        }
        let room = self.room()?;
        let excess = room.used - max as f64;
        let is_due = match room.forgotten {
            Some(forgotten) => forgotten > room.live * MAX_FORGOTTEN,
            // A store of an earlier version may have any number of them.
            None => excess > 0.0,
        };
        if is_due {
            self.put_setting(FORGOTTEN, "0")?;
            self.put_setting(MERGES, "1")?;
            // The first slice with a minus: all parts are to become one.
            return self.merge_index(-PAGES_AT_ONCE);
        }
        if excess <= 0.0 || room.live <= 0.0 {
            let more = self.db.give_space_back()?;
            self.shrinks |= more;
            return Ok(Tidied { gone: 0, more });
        }
        let gone = self.forget_oldest(excess / room.used * room.live, count)?;
        Ok(Tidied { gone, more: gone > 0 })
    }

    /// Steps of this weight are forgotten, and the index still knows them.
    pub(super) fn note_forgotten(&mut self, weight: f64) -> Stored<()> {
        self.shrinks = true;
        if self.db.flavour() == Flavour::Sqlite
            && let Some(before) = self.forgotten()?
        {
            self.put_setting(FORGOTTEN, &format!("{:.0}", before + weight))?;
        }
        Ok(())
    }

    fn forgotten(&mut self) -> Stored<Option<f64>> {
        Ok(self.setting(FORGOTTEN)?.and_then(|weight| weight.parse().ok()))
    }

    /// What is kept takes so many bytes.
    #[cfg(test)]
    #[expect(clippy::cast_sign_loss, reason = "a size is not below 0")]
    pub(crate) fn live_bytes(&mut self) -> Stored<u64> {
        Ok(self.room()?.used as u64)
    }

    fn room(&mut self) -> Stored<Room> {
        let live = self.weigh_steps()?;
        let Some(bytes) = self.db.used_bytes()? else {
            return Ok(Room { used: live * WITH_INDEXES, live, forgotten: Some(0.0) });
        };
        let forgotten = self.forgotten()?;
        let marked = forgotten.unwrap_or(0.0) * INDEX_SHARE;
        let used = if marked > 0.0 { bytes as f64 * (live / (live + marked)) } else { bytes as f64 };
        Ok(Room { used, live, forgotten })
    }

    /// What all steps weigh, by those at places that are spread evenly: neither the newest nor the oldest say what the
    /// others are like, nor does the highest number say how many there are.
    fn weigh_steps(&mut self) -> Stored<f64> {
        let ends = self.one("SELECT min(id), max(id) FROM steps", &[], |row| {
            Ok(row.maybe(0, Row::int)?.zip(row.maybe(1, Row::int)?))
        })?;
        let Some((first, last)) = ends.flatten() else { return Ok(0.0) };
        let steps = last - first + 1;
        let apart = (steps / PLACES).max(STEPS_AT_A_PLACE);
        let sql = format!(
            "WITH RECURSIVE places (place) AS (
                SELECT CAST(?1 AS BIGINT) UNION ALL SELECT place + ?2 FROM places WHERE place + ?2 <= ?3
             )
             SELECT sum((SELECT sum({}) FROM steps WHERE id >= place AND id < place + ?4)) FROM places",
            self.weight()
        );
        let weighed =
            self.one(&sql, values![first, apart, last, STEPS_AT_A_PLACE], |row| row.real(0))?.unwrap_or(0.0);
        let (whole, rest) = (steps / apart, steps % apart);
        let looked_at = whole * STEPS_AT_A_PLACE + rest.min(STEPS_AT_A_PLACE);
        Ok(weighed * steps as f64 / looked_at as f64)
    }

    /// Merges a slice of the index.
    fn merge_index(&mut self, pages: i64) -> Stored<Tidied> {
        let before = self.total_changes()?;
        self.execute("INSERT INTO search (search, rank) VALUES ('merge', ?1)", values![pages])?;
        // One change is the command itself.
        if self.total_changes()? - before < 2 {
            self.put_setting(MERGES, "0")?;
        }
        self.shrinks = true;
        Ok(Tidied { gone: 0, more: true })
    }

    fn total_changes(&mut self) -> Stored<i64> {
        Ok(self.one("SELECT total_changes()", &[], |row| row.int(0))?.unwrap_or_default())
    }

    /// Whether files may be larger than what they hold, since something was taken out of them.
    pub(crate) const fn may_shrink(&self) -> bool {
        self.shrinks
    }

    /// Cuts files back to what they hold, outside of a transaction. Where somebody reads, that is for later.
    pub(crate) fn shrink(&mut self) -> Stored<()> {
        self.shrinks = !self.db.cut_files()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
    use rusqlite::Connection;

    use crate::{Arrival, Observatory, Options};

    const MAX: u64 = 2 << 20;

    fn arrival(session: &str, number: u64, words: usize) -> Arrival {
        // Words as texts have them: some of them often, most of them seldom.
        let word = |at: u64| format!("word{}", (number * 7_919 + at * at * 31) % 3_000);
        let said: Vec<String> = (0..words as u64).map(word).collect();
        let log = DecisionLog::builder("a", "coder", "1.0.0")
            .intent(format!("step {number}"))
            .called("read", "{}")
            .answered(said.join(" "), Status::Success)
            .session(session)
            .build(TraceId::derived(&[session.as_bytes(), &number.to_le_bytes()]), Moment::from_millis(0))
            .unwrap();
        Arrival { tenant: "t".into(), session: None, log }
    }

    fn open(path: &Path) -> Observatory {
        let mut options = Options::at(path);
        options.max_bytes = MAX;
        Observatory::open(options).unwrap()
    }

    /// The numbers of the steps that are left.
    fn left(path: &Path) -> Vec<i64> {
        let db = Connection::open(path).unwrap();
        let mut ids = db.prepare("SELECT id FROM steps ORDER BY id").unwrap();
        let ids = ids.query_map([], |row| row.get(0)).unwrap();
        ids.map(Result::unwrap).collect()
    }

    fn on_disk(path: &Path) -> u64 {
        let names = ["", "-wal"].map(|end| format!("{}{end}", path.display()));
        names.iter().filter_map(|name| std::fs::metadata(name).ok()).map(|found| found.len()).sum()
    }

    #[tokio::test]
    async fn only_as_much_of_the_oldest_goes_as_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let observatory = open(&path);
        for number in 0..1_200 {
            observatory.ingest(arrival("run", number, 400)).await.unwrap().unwrap();
        }
        let gone = observatory.enforce_retention().await.unwrap();
        let kept = left(&path);
        // Where taking them in has taken long, the store has begun to forget by itself.
        assert!(gone as usize + kept.len() <= 1_200, "{gone} are gone, {} are left", kept.len());
        assert_eq!(kept, (1..=1_200).skip(1_200 - kept.len()).collect::<Vec<_>>(), "the newest");
        assert!(kept.len() >= 200, "only {} are left", kept.len());
        // What is new fits as well, for as long as it is not too much.
        for number in 0..5 {
            observatory.ingest(arrival("fresh", number, 1)).await.unwrap().unwrap();
        }
        for _ in 0..3 {
            observatory.enforce_retention().await.unwrap();
        }
        assert!(left(&path).len() >= kept.len());
        let until = Instant::now() + Duration::from_secs(10);
        while on_disk(&path) > MAX * 5 / 4 {
            assert!(Instant::now() < until, "{} bytes are on the disk", on_disk(&path));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    #[tokio::test]
    async fn a_store_that_goes_on_stays_within_its_size_all_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let observatory = open(&path);
        let mut fewest = usize::MAX;
        for number in 0..2_400 {
            observatory.ingest(arrival("run", number, 400)).await.unwrap().unwrap();
            if number % 60 == 59 && number > 1_200 {
                observatory.enforce_retention().await.unwrap();
                fewest = fewest.min(left(&path).len());
            }
        }
        assert!(fewest >= 200, "once only {fewest} were left");
    }

    #[tokio::test]
    async fn few_large_steps_go_alone_when_they_are_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let observatory = open(&path);
        for number in 0..60 {
            observatory.ingest(arrival("large", number, 6_000)).await.unwrap().unwrap();
        }
        for number in 0..400 {
            observatory.ingest(arrival("small", number, 1)).await.unwrap().unwrap();
        }
        observatory.enforce_retention().await.unwrap();
        assert!(left(&path).len() > 400, "{} are left", left(&path).len());
    }
}
