//! Forensics: full text and filters over all steps.

use loopbreaker_record::DecisionLog;
use serde_json::{Value, json};

use super::{Page, SearchFilter, Store};
use crate::database::{Flavour, Param};
use crate::error::Stored;
use crate::session::nine_decimals;

/// Joins are cross joins, which `SQLite` takes in the order in which they are written: the newest steps are walked
/// first, and a page is full before the rest is looked at.
const JOINS: &str = "CROSS JOIN sessions s ON s.id = p.session CROSS JOIN tenants t ON t.id = p.tenant";

/// Conditions over `steps AS p`, its session and its tenant, with their values.
struct Conditions<'a> {
    sql: String,
    values: Vec<Param<'a>>,
}

impl<'a> Conditions<'a> {
    /// Only what is asked for becomes a condition: one that may always hold keeps an index from being used.
    fn of(filter: &'a SearchFilter) -> Self {
        let texts = [
            ("t.name =", &filter.tenant, ""),
            ("p.session IN (SELECT id FROM sessions WHERE name =", &filter.session, ")"),
            ("p.agent =", &filter.agent, ""),
            // The index has only steps with a tool.
            ("p.tool <> '' AND p.tool =", &filter.tool, ""),
            ("p.status =", &filter.status, ""),
            ("p.level =", &filter.level, ""),
            ("p.session IN (SELECT session FROM findings WHERE kind =", &filter.kind, ")"),
            ("p.cluster =", &filter.cluster, ""),
        ];
        let mut conditions = Self { sql: "1 = 1".to_owned(), values: Vec::new() };
        for (before, value, behind) in texts {
            if let Some(value) = value {
                conditions.add(before, Param::from(value), behind);
            }
        }
        for (before, value) in [("p.at >=", filter.from), ("p.at <", filter.to)] {
            if let Some(value) = value {
                conditions.add(before, Param::from(value), "");
            }
        }
        conditions
    }

    fn add(&mut self, before: &str, value: Param<'a>, behind: &str) {
        self.values.push(value);
        let place = self.values.len().to_string();
        self.sql.extend([" AND ", before, " ?", &place, behind]);
    }

    /// The place of one more value.
    fn place(&mut self, value: Param<'a>) -> String {
        self.values.push(value);
        format!("?{}", self.values.len())
    }
}

impl Store {
    pub(crate) fn search(&mut self, filter: &SearchFilter) -> Stored<Page> {
        let flavour = self.db.flavour();
        let terms = filter.text.as_deref().map(terms);
        let text = terms.as_ref().map(|terms| rendered(terms, flavour));
        let mut conditions = Conditions::of(filter);
        let columns = "p.id, s.name, t.name, p.level, p.log, p.number, p.cost";
        let (source, order) = match (&text, flavour) {
            (None, _) => (format!("SELECT {columns}, NULL FROM steps p {JOINS}"), "p.id"),
            (Some(text), Flavour::Sqlite) => {
                conditions.add("search MATCH", Param::from(text), "");
                let snippet = "snippet(search, -1, char(2), char(3), '…', 24)";
                let from = "search CROSS JOIN steps p ON p.id = search.rowid";
                (format!("SELECT {columns}, {snippet} FROM {from} {JOINS}"), "search.rowid")
            }
            (Some(text), Flavour::Postgres) => {
                conditions.add("p.search @@ to_tsquery('simple',", Param::from(text), ")");
                (format!("SELECT {columns}, NULL FROM steps p {JOINS}"), "p.id")
            }
        };
        conditions.add(&format!("{order} <"), Param::Int(filter.before.unwrap_or(i64::MAX)), "");
        let count = conditions.place(Param::from(filter.count));
        let sql = format!("{source} WHERE {} ORDER BY {order} DESC LIMIT {count}", conditions.sql);
        let rows = self.all(&sql, &conditions.values, |row| {
            let log = row.str(4)?;
            let snippet = match (row.maybe(7, super::Row::str)?, &terms) {
                (Some(snippet), _) => Some(marked(snippet)),
                (None, Some(terms)) => Some(found_in(log, terms)),
                (None, None) => None,
            };
            let shown = json!({
                "session_id": row.str(1)?, "tenant": row.str(2)?, "severity": row.str(3)?, "step": row.int(5)?,
                "cost_usd": nine_decimals(row.real(6)?), "matches": snippet,
                "log": serde_json::from_str::<Value>(log).unwrap_or_default(),
            });
            Ok((row.int(0)?, shown))
        })?;
        Ok(Page::of(rows, filter.count))
    }

    /// Logs as they were broadcast, with the id of the last.
    pub(crate) fn export(
        &mut self,
        filter: &SearchFilter,
        behind: i64,
        count: u32,
    ) -> Stored<(Vec<String>, i64)> {
        let flavour = self.db.flavour();
        let text = filter.text.as_deref().map(|text| rendered(&terms(text), flavour));
        let mut conditions = Conditions::of(filter);
        match (&text, flavour) {
            (None, _) => {}
            (Some(text), Flavour::Sqlite) => {
                conditions.add(
                    "p.id IN (SELECT rowid FROM search WHERE search MATCH",
                    Param::from(text),
                    ")",
                );
            }
            (Some(text), Flavour::Postgres) => {
                conditions.add("p.search @@ to_tsquery('simple',", Param::from(text), ")");
            }
        }
        conditions.add("p.id >", Param::Int(behind), "");
        let count = conditions.place(Param::from(count));
        let sql = format!(
            "SELECT p.id, s.name, t.name, p.log FROM steps p {JOINS} WHERE {} ORDER BY p.id LIMIT {count}",
            conditions.sql
        );
        let rows = self.all(&sql, &conditions.values, |row| {
            let log: Value = serde_json::from_str(row.str(3)?).unwrap_or_default();
            let line = json!({ "session_id": row.str(1)?, "tenant": row.str(2)?, "log": log }).to_string();
            Ok((row.int(0)?, line))
        })?;
        let last = rows.last().map_or(behind, |(id, _)| *id);
        Ok((rows.into_iter().map(|(_, line)| line).collect(), last))
    }
}

/// Words that have to follow each other; the last may be only the start of a word.
#[derive(Debug, PartialEq, Eq)]
struct Term {
    words: Vec<String>,
    is_start: bool,
}

/// What a person typed, as a query in which nothing is an operator but quotes and a final star.
fn terms(text: &str) -> Vec<Term> {
    let mut found = Vec::new();
    for (index, piece) in text.split('"').enumerate() {
        let quoted = index % 2 == 1;
        let pieces: Vec<&str> = if quoted { vec![piece] } else { piece.split_whitespace().collect() };
        for piece in pieces {
            let words: Vec<String> = words(piece).map(str::to_lowercase).collect();
            if !words.is_empty() {
                found.push(Term { words, is_start: !quoted && piece.ends_with('*') });
            }
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn rendered(terms: &[Term], flavour: Flavour) -> String {
    let star = |term: &Term, star: &str| if term.is_start { star.to_owned() } else { String::new() };
    let one = |term: &Term| match flavour {
        Flavour::Sqlite => format!("\"{}\"{}", term.words.join(" "), star(term, "*")),
        Flavour::Postgres => format!("({}{})", term.words.join(" <-> "), star(term, ":*")),
    };
    let all: Vec<String> = terms.iter().map(one).collect();
    match flavour {
        // Nothing to look for is found nowhere.
        Flavour::Sqlite if all.is_empty() => "\"\"".to_owned(),
        Flavour::Sqlite => all.join(" "),
        Flavour::Postgres => all.join(" & "),
    }
}

/// Where a match begins and ends, as pairs of text and whether it matched: agents' words are data, never markup.
fn marked(snippet: &str) -> Value {
    let mut parts = Vec::new();
    for (index, piece) in snippet.split(['\u{2}', '\u{3}']).enumerate() {
        if !piece.is_empty() {
            parts.push(json!({ "text": piece, "hit": index % 2 == 1 }));
        }
    }
    Value::Array(parts)
}

/// The surroundings of the first match in a log, for databases that do not cut them out themselves.
fn found_in(log: &str, terms: &[Term]) -> Value {
    let Ok(log) = serde_json::from_str::<DecisionLog>(log) else { return json!([]) };
    let (cognition, action) = (&log.cognition, &log.action);
    let reasoning = cognition.reasoning_chain.iter().flatten().map(String::as_str);
    let others = [&action.tool_call, &action.tool_input, &action.tool_output_summary];
    let texts = std::iter::once(cognition.intent.as_str())
        .chain(reasoning)
        .chain(others.into_iter().filter_map(|text| text.as_deref()));
    for text in texts {
        let pieces: Vec<&str> = text.split_inclusive(|letter: char| !letter.is_alphanumeric()).collect();
        let hit = |piece: &str| {
            let word = piece.trim_end_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
            !word.is_empty()
                && terms.iter().any(|term| {
                    let starts =
                        term.is_start && term.words.last().is_some_and(|last| word.starts_with(last));
                    starts || term.words.contains(&word)
                })
        };
        let Some(first) = pieces.iter().position(|piece| hit(piece)) else { continue };
        let start = first.saturating_sub(12);
        let mut snippet = if start > 0 { "…".to_owned() } else { String::new() };
        for piece in pieces.iter().skip(start).take(24) {
            if hit(piece) {
                let word = piece.trim_end_matches(|letter: char| !letter.is_alphanumeric());
                snippet.extend(["\u{2}", word, "\u{3}", &piece[word.len()..]]);
            } else {
                snippet.push_str(piece);
            }
        }
        if start + 24 < pieces.len() {
            snippet.push('…');
        }
        return marked(&snippet);
    }
    json!([])
}

/// The words of texts, for databases that would take paths and addresses for words of their own.
pub(super) fn words_to_index(texts: &[&str]) -> String {
    /// An index entry has at most a megabyte, in which each word stands once with its places.
    const MAX_INDEXED: usize = 256 << 10;
    let mut all = String::new();
    for word in texts.iter().flat_map(|text| words(text)) {
        if all.len() + word.len() > MAX_INDEXED {
            break;
        }
        all.push_str(word);
        all.push(' ');
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Term, found_in, rendered, terms, words_to_index};
    use crate::database::Flavour;

    #[test]
    fn quotes_and_a_final_star_are_the_only_operators() {
        let typed = terms(r#"fix "the parser" src/lib.rs pars* AND -x"#);
        assert_eq!(rendered(&typed, Flavour::Sqlite), r#""fix" "the parser" "src lib rs" "pars"* "and" "x""#);
        assert_eq!(
            rendered(&typed, Flavour::Postgres),
            "(fix) & (the <-> parser) & (src <-> lib <-> rs) & (pars:*) & (and) & (x)"
        );
        assert_eq!(terms("* \" - "), Vec::<Term>::new());
    }

    #[test]
    fn a_match_is_shown_with_its_surroundings_as_data() {
        let log = json!({
            "meta": { "trace_id": "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10", "timestamp": "2026-02-21T10:00:00Z" },
            "identity": { "agent_id": "a", "agent_type": "b", "capability_version": "1.0.0" },
            "cognition": { "intent": "repair the <b>parser</b> now" },
            "action": { "status": "success" },
        });
        assert_eq!(
            found_in(&log.to_string(), &terms("PARS*")),
            json!([
                { "text": "repair the <b>", "hit": false }, { "text": "parser", "hit": true },
                { "text": "</b> now", "hit": false },
            ])
        );
    }

    #[test]
    fn only_words_are_indexed() {
        assert_eq!(words_to_index(&["a/b.rs: größer", "\0x"]), "a b rs größer x ");
    }
}
