//! Result normalisation: what changes on every run without meaning anything is folded away.
//!
//! The rules are data: a table of patterns, searched for all at once in linear time. Plain numbers and git hashes
//! are not in it, since page 3 is not page 4. A tool's own patterns come from the config.

mod starts;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::{Cache, Regex};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match};
use starts::Starts;

use crate::config::ConfigError;

/// One thing that is folded: what it looks like, what stands in its place.
#[derive(Debug)]
struct Rule {
    pattern: &'static str,
    instead: &'static [u8],
}

const fn rule(pattern: &'static str, instead: &'static [u8]) -> Rule {
    Rule { pattern, instead }
}

/// Where two rules fit at one place, the earlier one wins. What a rule may begin with, `starts.rs` knows too.
const RULES: &[Rule] = &[
    // Terminal control: CSI, OSC and single-character escapes.
    rule(r"\x1b\[[0-?]*[ -/]*[@-~]", b""),
    rule(r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?", b""),
    rule(r"\x1b[@-Z\\-_=>]", b""),
    // ISO 8601 and RFC 3339, in full or compact.
    rule(
        r"\b\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT)\b| ?[+-]\d{2}:?\d{2})?",
        b"<time>",
    ),
    rule(r"\b\d{8}T\d{6}(?:\.\d+)?Z?\b", b"<time>"),
    // RFC 2822, ctime, syslog and web-server logs.
    rule(
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}(?::\d{2})?|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d{2}:\d{2}:\d{2}(?: [AP]M)?(?: [A-Z]{3,5})? \d{4})(?: (?:GMT|UTC|[+-]\d{4}))?",
        b"<time>",
    ),
    rule(
        r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} +\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?",
        b"<time>",
    ),
    rule(
        r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} \d{1,2},? \d{4},?(?: at)? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?",
        b"<time>",
    ),
    rule(
        r"\b\d{2}/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}:\d{2}:\d{2}:\d{2}(?: [+-]\d{4})?",
        b"<time>",
    ),
    // The same times as the number of seconds since 1970, or of thousandths, millionths or billionths, between 2014 and
    // 2033: told from other numbers by a key that names a time.
    rule(
        r#"\b(?:\w*(?:[Tt]ime(?:_?[Ss]tamp|Stamp)?|[Dd]ate|[Ee]poch|[Cc]lock|[Ee]xpir(?:es|y)|[Cc]reated|[Uu]pdated|[Mm]odified|_at|_ts|_now|At|Ts|Now)|at|ts|now|TS)(?:_?(?:ms|ns|us|secs?|seconds|millis)|Ms|Ns|Millis|Seconds)?\\*"? ?: ?\\*"?1[4-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?\b"#,
        b"<time>",
    ),
    // Clock times: three parts, or two with a half of the day; `12:30` alone may be a line and a column.
    rule(r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?: ?[AaPp][Mm])?\b", b"<time>"),
    rule(r"\b\d{1,2}:\d{2} ?[AaPp][Mm]\b", b"<time>"),
    // The status line of tmux.
    rule(r"\b\d{2}:\d{2} \d{2}-[A-Z][a-z]{2}-\d{2}\b", b"<time>"),
    // Durations.
    rule(r"\b(?:\d+(?:\.\d+)?(?:ns|us|\xc2\xb5s|\xce\xbcs|ms|secs?|s|mins?|m|hrs?|h))+\b", b"<duration>"),
    rule(
        r"\b\d+(?:\.\d+)? (?:nano|micro|milli)?(?:seconds?|secs?|minutes?|mins?|hours?|hrs?)\b|\b\d+(?:\.\d+)? (?:ns|us|\xc2\xb5s|\xce\xbcs|ms|s)\b",
        b"<duration>",
    ),
    // Identifiers that are drawn anew each time.
    rule(r"\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b", b"<uuid>"),
    rule(r"\b0x[0-9A-Fa-f]{6,16}\b", b"<address>"),
    // Their key says so, in JSON inside of JSON too, whose quotes have backslashes before them. A nonce of a few digits
    // is a count.
    rule(
        r#"\b(?:(?:[Rr]equest|[Tt]race|[Ss]pan|[Cc]orrelation)[ _-]?[Ii][Dd]|Ray ID|[Nn]once)\\*"? ?[=:] ?\\*"?[A-Za-z0-9_-]{8,64}"#,
        b"<request>",
    ),
    // Names of calls, as the providers' APIs and the harnesses above them draw them.
    // They are long, and of letters and digits: a call with a number is something that is counted.
    rule(
        r"\b(?:call|toolu|chatcmpl)[_-](?:[A-Za-z]{1,16}[0-9]|[0-9]{1,16}[A-Za-z])[A-Za-z0-9]{3,}[A-Za-z0-9_-]*",
        b"<call>",
    ),
    rule(r"\b[Cc]hunk ID: (?:[0-9a-f]{0,8}(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{2,32}|[0-9a-f]{6})\b", b"<call>"),
    // The envelope of a JSON-RPC answer numbers the request.
    rule(
        r#"\bjsonrpc\\*"? ?: ?\\*"2\.0\\*", ?\\*"id\\*"? ?: ?(?:\d{1,12}\b|\\*"[^"\\\s]{1,64}\\*")"#,
        b"<call>",
    ),
    rule(
        r#"\bid\\*"? ?: ?(?:\d{1,12}|\\*"[^"\\\s]{1,64}\\*"), ?\\*"jsonrpc\\*"? ?: ?\\*"2\.0\\*""#,
        b"<call>",
    ),
    // A notebook numbers what it runs, however often that is the same cell.
    rule(r"\b(?:In|Out) ?\[\d{1,5}\]:", b"<cell>"),
    // A weak tag covers what is folded here too; what it changes for in earnest stands beside it.
    rule(r#"\b[Ee][Tt]ag\\*"? ?[=:] ?\\*"?W/\\*"[^"\\\s]+\\*""#, b"<etag>"),
    rule(r#"\b(?:[Pp][Gg]?[Ii][Dd]|[Pp]rocess [Ii][Dd])(?:\\*"? ?[=:#] ?| )\d+\b"#, b"<pid>"),
    // Of few digits it may be the third of ten.
    rule(r#"\b[Pp]rocess(?:\\*"? ?[=:#] ?| )\d{4,7}\b"#, b"<pid>"),
    rule(
        r#"\b(?:duration|elapsed|latency|took)(?:_(?:ns|us|ms|s|secs?|seconds)|Ns|Us|Ms|Secs?|Seconds)?\\*"? ?[=:] ?\d+(?:\.\d+)?\b"#,
        b"<duration>",
    ),
    // What the answer itself took. The response time of a server that is watched is news of it.
    rule(
        r#"\b(?:execution|query|processing)_?[Tt]ime(?:_(?:ns|us|ms|s|secs?|seconds)|Ns|Us|Ms|Secs?|Seconds)?\\*"? ?: ?\d+(?:\.\d+)?\b"#,
        b"<duration>",
    ),
    rule(r"\[\d{2,7}\]: ", b"[<pid>]: "),
    rule(r"(?m)^\[\d+\] \d+$", b"<pid>"),
    // What is left of a budget that the harness tells with every result: it shrinks whatever the agent does.
    rule(
        r"\b\d+ (?:more )?(?:steps?|turns?|rounds?|attempts?|tries|chances?|interactions?|tool calls|tokens) (?:left|remaining)\b",
        b"<budget>",
    ),
    rule(
        r"\b(?:[Ss]teps|[Tt]urns|[Rr]ounds|[Aa]ttempts|[Ii]nteractions|[Tt]okens) (?:left|remaining): ?\d+|\b[Rr]emaining (?:steps|turns|rounds|attempts|tokens): ?\d+",
        b"<budget>",
    ),
    rule(
        r"\b[Tt]urn \d+ ?(?:of|/) ?\d+\b|\b[Cc]ost(?: so far)?: ?\$\d+(?:\.\d+)?(?: message, \$\d+(?:\.\d+)? session)?",
        b"<budget>",
    ),
    // What was used of it.
    rule(
        r"\b[Tt]okens: \d[\d.,]*k? sent(?:, \d[\d.,]*k? cache (?:write|hit))*, \d[\d.,]*k? received|\b[Tt]okens used: ?\d[\d.,]*k?",
        b"<budget>",
    ),
    rule(r"\b[Tt]oken usage: ?\d[\d.,]* ?/ ?\d[\d.,]*(?:; ?\d[\d.,]* remaining)?", b"<budget>"),
    // The same in the answer of a model; anywhere else a number of tokens may be what was asked for.
    rule(r#"\b[Uu]sage\\*"? ?: ?\{[^{}]*[Tt]okens(?:[^{}]|\{[^{}]*\})*\}"#, b"<budget>"),
    // A browser numbers the elements of a page anew each time it draws it up; the page is what stands around them.
    rule(r"\[ref=[a-z]?\d*[a-z]\d+\]", b"[ref]"),
    // A field, or a count, of errors that holds none.
    rule(
        r#"\b(?:[Ee]rrors?|[Ff]ailed|[Ff]ailures?|[Ee]xceptions?)(?: [a-z]{1,16})?\\?["']? ?[:=] ?(?:\\?"\\?"|''|\[\]|\(none\)|(?:null|[Nn]one|false|0)\b)"#,
        b"<fine>",
    ),
    // Names of temporary files: a part with a digit in it, or one that a tool made up.
    rule(
        r#"(?:/private)?(?:/var)?/tmp/(?:[^\s/'":,;()<>]+/)?(?:[^\s/'":,;()<>]*[0-9][^\s/'":,;()<>]*|tmp[.A-Za-z0-9_]{4,}|[^\s/'":,;()<>]*\.[A-Za-z0-9]{6,})"#,
        b"<temp>",
    ),
    rule(r#"[A-Za-z]:[/\\]{1,2}[^\s'":,;()<>]*[/\\]{1,2}Temp[/\\]{1,2}[^\s'":,;()<>]*"#, b"<temp>"),
    rule(r#"(?:/private)?/var/folders/[^\s'":,;()<>]*"#, b"<temp>"),
];

/// At most this much of a result's head, and as much of its tail, is looked at.
const LOOK_AT: usize = 32 * 1024;

/// Folds results of one tool.
#[derive(Debug, Clone)]
pub(crate) struct Normaliser(Search);

/// How what is folded is searched for.
#[derive(Debug, Clone)]
enum Search {
    /// The built-in rules, where one of them may begin.
    BuiltIn(Patterns),
    /// Everything at every place: a tool's own patterns may begin anywhere.
    Everywhere(Patterns),
}

/// Patterns that are searched for all at once, in order of their precedence.
#[derive(Debug, Clone)]
struct Patterns {
    /// `None` finds nothing.
    regex: Option<Regex>,
    /// What stands in the place of what each of them fits.
    instead: Vec<&'static [u8]>,
}

/// Something that is folded.
#[derive(Debug)]
struct Found {
    span: Range<usize>,
    instead: &'static [u8],
}

impl Patterns {
    /// The rules, and then the tool's own patterns, whose matches are dropped.
    fn compile(own: &[String]) -> Result<Self, ConfigError> {
        let rules = RULES.iter().map(|rule| rule.pattern);
        let all: Vec<&str> = rules.chain(own.iter().map(String::as_str)).collect();
        let regex = builder().build_many(&all).map_err(|error| ConfigError::BadPattern {
            pattern: own.join(" | "),
            reason: error.to_string(),
        })?;
        let instead = RULES.iter().map(|rule| rule.instead).chain(own.iter().map(|_| &b""[..])).collect();
        Ok(Self { regex: Some(regex), instead })
    }

    /// The first thing that is folded from `from` on.
    fn find(&self, text: &[u8], from: usize) -> Option<Found> {
        self.regex.as_ref()?.search(&Input::new(text).range(from..)).map(|found| self.found(&found))
    }

    /// What is folded right here. There is but one set of patterns that is asked for it, and it is asked often, so each
    /// thread has memory of its own for that.
    fn at(&self, text: &[u8], start: usize) -> Option<Found> {
        thread_local! {
            static MEMORY: RefCell<Option<Cache>> = const { RefCell::new(None) };
        }
        let regex = self.regex.as_ref()?;
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        let found = MEMORY.with_borrow_mut(|memory| {
            regex.search_with(memory.get_or_insert_with(|| regex.create_cache()), &input)
        });
        found.map(|found| self.found(&found))
    }

    fn found(&self, found: &Match) -> Found {
        Found { span: found.range(), instead: self.instead[found.pattern().as_usize()] }
    }
}

impl Normaliser {
    /// The built-in rules.
    pub(crate) fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Normaliser> = LazyLock::new(|| {
            // The table is constant and a test compiles it, so the fallback that folds nothing is never met.
            let none = Patterns { regex: None, instead: Vec::new() };
            Normaliser(Search::BuiltIn(Patterns::compile(&[]).unwrap_or(none)))
        });
        &BUILT_IN
    }

    /// The built-in rules and a tool's own patterns.
    pub(crate) fn compile(own: &[String]) -> Result<Self, ConfigError> {
        for pattern in own {
            check_pattern(pattern)?;
        }
        if own.is_empty() {
            return Ok(Self::built_in().clone());
        }
        Patterns::compile(own).map(|all| Self(Search::Everywhere(all)))
    }

    /// Writes the normalised form of `result` into `out`.
    pub(crate) fn normalise(&self, result: &str, out: &mut Vec<u8>) {
        out.clear();
        let bytes = result.as_bytes();
        if bytes.len() <= 2 * LOOK_AT {
            self.fold(bytes, out);
        } else {
            self.fold(&bytes[..LOOK_AT], out);
            out.extend_from_slice(b"\n<cut>\n");
            self.fold(&bytes[bytes.len() - LOOK_AT..], out);
        }
        let end = out.trim_ascii_end().len();
        out.truncate(end);
    }

    fn fold(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut copied = 0;
        let mut replace = |found: &Found| {
            copy_lines(&text[copied..found.span.start], out);
            out.extend_from_slice(found.instead);
            copied = found.span.end;
        };
        match &self.0 {
            Search::Everywhere(all) => {
                let mut from = 0;
                while let Some(found) = all.find(text, from) {
                    from = found.span.end;
                    replace(&found);
                }
            }
            Search::BuiltIn(rules) => {
                let mut starts = Starts::of(text);
                // What begins first counts, and what begins inside of it is gone.
                while let Some(start) = starts.next() {
                    if let Some(found) = rules.at(text, start) {
                        starts.go_on(found.span.end);
                        replace(&found);
                    }
                }
            }
        }
        copy_lines(&text[copied..], out);
    }
}

/// Checks a tool's own pattern.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), ConfigError> {
    let bad = |reason: String| ConfigError::BadPattern { pattern: pattern.to_owned(), reason };
    let regex = builder().build(pattern).map_err(|error| {
        // The error's source says where the pattern goes wrong; the error itself only that it does.
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        bad(reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
    })?;
    if regex.is_match("") {
        return Err(bad("it fits the empty text, so it would fit everywhere".to_owned()));
    }
    Ok(())
}

fn builder() -> regex_automata::meta::Builder {
    let mut builder = Regex::builder();
    // Bytes, not characters: results may be cut in the middle of one, and ASCII classes are all that is needed.
    builder.syntax(syntax::Config::new().unicode(false).utf8(false));
    builder.configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(1 << 20)));
    builder
}

/// Copies text without the white space at the ends of its lines.
fn copy_lines(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(newline) = memchr::memchr(b'\n', text) {
        out.extend_from_slice(&text[..newline]);
        while matches!(out.last(), Some(b' ' | b'\t' | b'\r')) {
            out.pop();
        }
        out.push(b'\n');
        text = &text[newline + 1..];
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests;
