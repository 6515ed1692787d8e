//! What the words of a result may tell, as data: a table of patterns, searched for all at once.

use std::cell::RefCell;
use std::sync::LazyLock;

use regex_automata::meta::{Cache, Regex};
use regex_automata::util::syntax;
use regex_automata::{Input, PatternSet};

/// What a piece of a result tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    ExitZero,
    ExitNonZero,
    Traceback,
    /// A line that says "error" in so many words.
    Error,
    /// A line that starts with it.
    ErrorStart,
    /// A line in the words of an error, which other texts use too.
    Complaint,
    /// What was asked for is not there, or not to be had.
    Missing,
    /// A line that counts errors and finds none, or that starts with what was done.
    Fine,
    Transient,
    Environmental,
    Nothing,
    /// A line that says no more than that there is nothing.
    Bare,
    /// A line that tells something, and is no heading: no pattern of its own.
    Tells,
    Acknowledged,
    UnknownTool,
    Prevented,
    PutAside,
    InProgress,
    /// A line that begins with what is done: that is over where a later line tells how it ended.
    Doing,
    /// Something that is only named by what is, or was, done.
    Named,
    Terminal,
}

/// What each signal looks like, without regard to case.
pub(super) const SIGNALS: &[(Signal, &str)] = &[
    (
        Signal::ExitZero,
        r"(?:return_?code|exit[ _]?code|exit[ _]status|^(?:process|command) exited with (?:code|status))\W{1,4}0\b",
    ),
    (
        Signal::ExitNonZero,
        r#"(?:return_?code|exit[ _]?code|exit[ _]status|^(?:process|command) exited with (?:code|status))\W{1,4}[1-9]|"success": ?false|"?is_?error"?: ?true|"timed_out": ?true"#,
    ),
    (Signal::Error, r"^\W{0,6}usage: "),
    (
        Signal::ErrorStart,
        r"^\W{0,6}(?:\w+ )?(?:error|errors|fatal|exception|failed to|invalid|illegal|unable|cannot|could not|can't|syntax error|panic|usage:|\w*(?:error|exception) ?[:(])",
    ),
    // The wrapping of a harness.
    (Signal::ErrorStart, r"^<tool_use_error>"),
    (Signal::Error, r"^<tool_use_error>"),
    (Signal::Traceback, r"traceback \(most recent call last\)"),
    (
        Signal::Error,
        r"^\W{0,6}(?:\w+ )?(?:error|errors|fatal|exception|failed|failure|invalid|illegal|unknown|unable|cannot|could not|can't|syntax error|panic|denied|refused|unsupported|missing|incorrect|wrong)\b",
    ),
    (Signal::Error, r"\b\w*(?:error|exception)\b ?[:\[(]"),
    (
        Signal::Fine,
        r"\b(?:0|no|zero|without) (?:failed|failures?|errors?|problems?|issues)\b|test result: ok|all tests passed|tests? (?:have )?passed|build succeeded|^\W{0,4}(?:[a-z]+ )?(?:created|updated|added|saved|sent|posted|deleted|removed|assigned|marked)\b",
    ),
    (
        Signal::Missing,
        r"not found\b|no such |does(?:n't| not) exist|permission denied|access denied|not permitted|not allowed|unauthorized|forbidden|is invalid|could ?n[o']t (?:find|open)",
    ),
    (
        Signal::Complaint,
        r"\berror (?:executing|while|when|in|at|on|opening|reading|parsing|running)\b|\b(?:an?|the|following|with) errors?\b|\b(?:syntax|type|name|value|key|import|index|runtime|attribute|compilation|parse) ?error\b",
    ),
    (
        Signal::Complaint,
        r"command not found|no such (?:file|container|option|table|column|command|module|host|key|object|device|image)|permission denied|access denied|not permitted|not recognized|unrecognized|does(?:n't| not) exist|do(?:es)? not match|did not (?:match|conform|pass|find|appear|work)|could ?n[o']t (?:find|open|load|be|connect|resolve|read)|(?:was|is|were|are) not (?:found|defined|valid|installed|supported|available|allowed|a valid|unique|subscribed|authorized|authenticated|logged in|possible|permissible|writable|editable|mergeable)|\bprohibit(?:s|ed)?\b|not found\b|is incorrect|is invalid|failed to\b|\bfailed\b|unable to|unexpected|undefined|unresolved|no module named|not installed|forbidden|unauthorized|is ambiguous|segmentation fault|core dumped|out of (?:range|bounds|memory)|name or service not known|too many arguments|not enough|has no attribute|missing required|^\W*nothing happen(?:s|ed)\W*$|can(?:no|')t do that",
    ),
    (
        Signal::Transient,
        r"(?:\bhttp(?:/[\d.]+)?|error(?: occurred)?|exception|exhausted|status|(?:\b|_|status)code|response|responded with)\W{1,4}(?:429|5\d\d)\b|\b(?:429|5\d\d) (?:client|server) error|too many requests|rate.?limit|service unavailable|bad gateway|internal server error|temporarily unavailable|(?:^|[^a-z0-9_/])timed?[ -]?out(?:error|exception)?\b|(?:read|connect|pool|write|gateway|request|socket)time-?out|err_timed_out|connect(?:ion|or)?[ _]?(?:reset|refused|aborted|closed|error|failure|attempts failed|lost)|(?:lost|cannot|could not|unable to|failed to) connect|server disconnected|remote end hung up|no route to host|max retries exceeded|deadline ?exceeded|code = unavailable|throttl|rate exceeded|econnreset|econnrefused|econnaborted|etimedout|esockettimedout|overloaded|try again later|network is unreachable|temporary failure",
    ),
    (
        Signal::Environmental,
        r"command not found|no such container|permission denied|access denied|not permitted|not installed|not recognized as|unauthorized|authentication failed|name or service not known|executable file not found|no such command|is not running",
    ),
    (
        Signal::Bare,
        r"^\W*(?:no (?:output|match(?:es)?|results?|files?|data|records?|entries|items|rows)(?: (?:were )?(?:found|returned|for .{0,80}))?|none|null|nothing(?: (?:was )?found(?: for .{0,80})?)?|0 (?:results|matches|rows)|empty set|not found|\[\]|\{\})\W*$",
    ),
    (
        Signal::Nothing,
        r"did ?n[o']t produce any output|no matches found|no results found|ran successfully and did not|with no output|no output",
    ),
    (
        Signal::Acknowledged,
        r"^\W*(?:ok(?:ay)?|true|done|success(?:ful(?:ly)?)?|saved|updated|created|sent|\{?\W*(?:ok|success|status)\W+(?:true|ok|success)\b.{0,60})\W*$|\bsuccessfully\b|has been (?:updated|modified|created|saved|edited|written|added)|have been (?:updated|modified)",
    ),
    (
        Signal::UnknownTool,
        r"unknown (?:tool|function)\b|no such tool|no tool named|tool[ _]not[ _]found|unavailable tool|permission to use \S{1,60} has been denied|invalid tool|\btool (?:\S{1,60} )?(?:not found|(?:is|was) not (?:found|available|defined|registered|recognized|a valid|valid|known|supported|allowed|permitted)|does not exist|is unavailable|is disabled|is denied)|not an? (?:valid|available|known) (?:tool|function name)|not allowed to use (?:the )?tool|tool \S{1,60} has been (?:denied|disabled)",
    ),
    (
        Signal::Prevented,
        r"user (?:does ?n[o']t|did ?n[o']t|doesn't) (?:want|approve|allow)|user chose not to|not approved\b|(?:rejected|denied|declined|refused|cancell?ed|interrupted|aborted) by (?:the )?(?:user|human|operator)|user (?:has )?(?:rejected|denied|declined|refused|cancell?ed)|tool use was rejected|\bloopbreaker\b",
    ),
    (
        Signal::PutAside,
        r"(?:running|moved|continues|continuing|put|left) (?:in|to|into) (?:the )?background|\bbackgrounded\b|\brunning (?:with (?:session|process|task|job|shell) id|\((?:session|process|task|job|shell|pid))\b",
    ),
    (
        Signal::Environmental,
        r"unexpected keyword argument|missing required (?:argument|parameter|field|propert)|missing \d+ required|^\W{0,4}usage:(?: |$)|unrecognized (?:option|argument)|unknown (?:\w+ ){0,2}(?:option|argument|parameter)|invalid (?:argument|parameter|option)s?\b|too (?:many|few) arguments|positional arguments? but|should only use this tool with",
    ),
    (
        Signal::InProgress,
        r"no new (?:output|messages?|e?mails?|events?|notifications?|updates?|items|data|lines)\b|in[ _-]progress|\bpending\b|\brunning\b|\bqueued\b|\bwaiting\b|\bprocessing\b|not (?:yet )?(?:ready|finished|complete|completed|done)|still (?:running|working|building|in)|\bstarting\b|\bscheduled\b|\bbuilding\b|\binitiali[sz]ing\b",
    ),
    (Signal::Doing, r"^\W*(?:running|processing|building|starting|initiali[sz]ing)\b:? +[^\s|:=]"),
    (Signal::Named, r"\b(?:of|after|by|before|when|from|without|finished|error) running\b"),
    (
        Signal::Terminal,
        r"\b(?:completed?|succeeded|finished|success|failed|cancell?ed|terminated|exited|stopped|done|closed|merged|deployed|aborted|expired)\b",
    ),
];

pub(super) const fn bit(signal: Signal) -> u32 {
    1 << signal as u32
}

/// The signals that a line matches, as bits.
pub(super) fn matching(line: &[u8]) -> u32 {
    static PATTERNS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let patterns: Vec<&str> = SIGNALS.iter().map(|(_, pattern)| *pattern).collect();
        let syntax = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
        let config = Regex::config().match_kind(regex_automata::MatchKind::All).utf8_empty(false);
        Regex::builder().syntax(syntax).configure(config).build_many(&patterns).ok()
    });
    /// What a search works with. Each thread has its own, or every line would begin with asking for one.
    struct Bench {
        cache: Cache,
        found: PatternSet,
    }
    thread_local! {
        static BENCH: RefCell<Option<Bench>> = const { RefCell::new(None) };
    }
    let Some(patterns) = PATTERNS.as_ref() else { return 0 };
    BENCH.with_borrow_mut(|bench| {
        let Bench { cache, found } = bench.get_or_insert_with(|| Bench {
            cache: patterns.create_cache(),
            found: PatternSet::new(SIGNALS.len()),
        });
        // Most lines say nothing of interest, and whether one does is told twice as fast as what.
        let input = Input::new(line);
        if patterns.search_half_with(cache, &input.clone().earliest(true)).is_none() {
            return 0;
        }
        found.clear();
        patterns.which_overlapping_matches_with(cache, &input, found);
        found.iter().fold(0, |bits, pattern| bits | bit(SIGNALS[pattern.as_usize()].0))
    })
}
