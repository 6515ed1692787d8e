//! What a call does to the world, guessed from its name and arguments where nobody declared it.

use std::cell::RefCell;

use crate::args::{Places, fields, unescape};
use crate::canonical::Keep;
use crate::config::{Effect, RedundancyConfig, best_match};
use crate::fingerprint::with_call;
use crate::saved::saved;
use crate::shell::read_command;
use crate::tool_name::{NameSays, Word};
use crate::waiting::{names_what_runs, only_lets_time_pass, watches_what_runs};
use crate::words::hash_bytes;

/// What a call does, and to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which may hold or not")]
pub(crate) struct CallFacts {
    /// What it does; `None` when that is not known.
    pub(crate) effect: Option<Effect>,
    /// It moves through something outside (a folder, a page, a screen), so equal calls mean different things.
    pub(crate) moves: bool,
    /// It keeps the agent's own notes: plans, to-do lists, thoughts.
    pub(crate) notes: bool,
    /// It tells all of them at once: a list.
    pub(crate) lists: bool,
    /// It reads or runs the whole project, whatever paths it names.
    pub(crate) broad: bool,
    /// It is a command line.
    pub(crate) command: bool,
    /// It carries a command, keys or a request: what comes of it is told by its answer alone.
    pub(crate) sends: bool,
    /// It names something that runs already.
    pub(crate) follows: bool,
    /// It lets some time pass, and asks about nothing: what it says is said of itself.
    pub(crate) bides: bool,
    /// It is told in plain language.
    pub(crate) prose: bool,
    /// The programs that a command line runs, or the verb of a statement, as a hash; 0 when it is neither.
    pub(crate) programs: u32,
    /// The files and folders that it names.
    pub(crate) places: Places,
    /// The hash of the text that a write takes away (an edit's `old`); 0 when it has none.
    pub(crate) before: u64,
    /// The hash of the text that a write leaves; 0 when it has none.
    pub(crate) after: u64,
    /// The hash of a write's other arguments, which tell where it writes when no file is named.
    pub(crate) beside: u64,
}

saved!(CallFacts {
    effect,
    moves,
    notes,
    lists,
    broad,
    command,
    sends,
    follows,
    bides,
    prose,
    programs,
    places,
    before,
    after,
    beside
});

/// What a call does to the world: what the config declares, else what its name and arguments let guess; `None` when
/// nothing says so.
///
/// ```
/// use loopbreaker::{Effect, RedundancyConfig, effect_of_call};
///
/// let config = RedundancyConfig::default();
/// assert_eq!(effect_of_call("read_file", Some(r#"{"path":"a.rs"}"#), &config), Some(Effect::Read));
/// assert_eq!(effect_of_call("bash", Some(r#"{"command":"rm a.rs"}"#), &config), Some(Effect::Write));
/// assert_eq!(effect_of_call("frobnicate", None, &config), None);
/// ```
pub fn effect_of_call(tool: &str, args: Option<&str>, config: &RedundancyConfig) -> Option<Effect> {
    let declared = best_match(config.tools(), tool).and_then(|(_, profile)| profile.effect);
    effect(tool, args, declared)
}

/// Whether a call asks somebody for something in plain language: nothing says what the tool does by itself, and its
/// arguments are sentences.
///
/// ```
/// use loopbreaker::{RedundancyConfig, asks_in_words};
///
/// let config = RedundancyConfig::default();
/// let order = r#"{"task":"Please scan the video and note when two birds are in the picture."}"#;
/// assert!(asks_in_words("WebSurfer", Some(order), &config));
/// assert!(!asks_in_words("WebSurfer", Some(r#"{"page":3}"#), &config));
/// assert!(!asks_in_words("bash", Some("cd project && conda env create -f environment.yml"), &config));
/// ```
pub fn asks_in_words(tool: &str, args: Option<&str>, config: &RedundancyConfig) -> bool {
    // Most arguments are no sentences, which is seen without reading them.
    if args.is_none_or(|args| args.bytes().filter(|byte| *byte == b' ').count() < SENTENCE) {
        return false;
    }
    let declared = best_match(config.tools(), tool).and_then(|(_, profile)| profile.effect);
    with_call(tool, args, Keep::All, |_, canonical| {
        let facts = CallFacts::read(tool, canonical, declared);
        facts.prose && facts.effect.is_none() && !facts.notes
    })
}

/// Whether a call runs a command line.
///
/// ```
/// use loopbreaker::runs_a_command;
///
/// assert!(runs_a_command("bash", Some(r#"{"command":"npm run build"}"#)));
/// assert!(!runs_a_command("search", Some(r#"{"query":"best pizza in Rome"}"#)));
/// ```
pub fn runs_a_command(tool: &str, args: Option<&str>) -> bool {
    let says = NameSays::of(tool);
    is_shell(says) || with_call(tool, args, Keep::All, |_, canonical| guess(tool, says, canonical).command)
}

/// The effect, with what is declared at hand.
pub(crate) fn effect(tool: &str, args: Option<&str>, declared: Option<Effect>) -> Option<Effect> {
    let guessed = |canonical: &[u8]| guess(tool, NameSays::of(tool), canonical).effect;
    declared.or_else(|| with_call(tool, args, Keep::All, |_, canonical| guessed(canonical)))
}

impl CallFacts {
    /// Reads a call; `declared` wins over every guess.
    pub(crate) fn read(tool: &str, canonical: &[u8], declared: Option<Effect>) -> Self {
        let says = NameSays::of(tool);
        let guess = guess(tool, says, canonical);
        let effect = declared.or(guess.effect);
        let written = !matches!(effect, Some(Effect::Read));
        let mut facts = Self {
            effect,
            moves: guess.moves && declared.is_none(),
            notes: guess.notes,
            lists: guess.notes && fields(canonical).any(|(_, value)| value.starts_with(b"[")),
            broad: guess.broad || effect.is_none(),
            command: guess.command,
            sends: sends(says),
            bides: effect == Some(Effect::Poll) && only_lets_time_pass(canonical),
            prose: !guess.command && !guess.shell && is_prose(canonical),
            programs: guess.programs,
            places: Places::of(canonical, written),
            ..Self::default()
        };
        // Arguments are long, so one walk is for everything that is asked of their fields.
        for (name, value) in fields(canonical) {
            facts.sends = facts.sends || carries(name, value);
            facts.follows = facts.follows || names_what_runs(name);
            if !guess.command {
                facts.places.add_field(name, value, written);
            }
            if effect == Some(Effect::Write) {
                facts.note_change(name, value);
            }
        }
        facts
    }

    /// Notes what a field of a write tells of it.
    fn note_change(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"old" | b"old_str" | b"old_string" | b"old_text" | b"search" | b"before" => {
                self.before = hash_bytes(value);
            }
            b"new" | b"new_str" | b"new_string" | b"new_text" | b"replace" | b"replacement" | b"after"
            | b"content" | b"contents" | b"file_text" | b"text" | b"new_source" | b"value" | b"formula" => {
                self.after = hash_bytes(value);
            }
            _ => {
                let field = hash_bytes(name).rotate_left(1) ^ hash_bytes(value);
                self.beside = self.beside.wrapping_add(field);
            }
        }
    }
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which may hold or not")]
struct Guess {
    effect: Option<Effect>,
    /// It is a command line.
    command: bool,
    /// It is a line for a shell, whether its verbs are known or not.
    shell: bool,
    moves: bool,
    notes: bool,
    broad: bool,
    programs: u32,
}

fn guess(tool: &str, says: NameSays, canonical: &[u8]) -> Guess {
    if watches_what_runs(tool, is_shell(says), says.has(Word::Write), canonical) {
        return Guess { effect: Some(Effect::Poll), ..Guess::default() };
    }
    if is_shell(says) {
        return Guess { shell: true, ..command_guess(|out| command_text(canonical, out)) };
    }
    if let Some(line) = typed_line(canonical) {
        return Guess { shell: true, ..command_guess(|out| unescape(line, out)) };
    }
    let (command, action) = command_and_action(canonical);
    if let Some(subcommand) = command.and_then(subcommand) {
        // Editors with many commands behind one name.
        let effect = if matches!(subcommand, b"view" | b"read" | b"list" | b"show" | b"open" | b"get") {
            Effect::Read
        } else {
            Effect::Write
        };
        return Guess { effect: Some(effect), ..Guess::default() };
    }
    if says.has(Word::Sql)
        && let Some(effect) = sql_verb(canonical)
    {
        return Guess { effect: Some(effect), command: true, ..Guess::default() };
    }
    if says.has(Word::Notes) {
        return Guess { notes: true, effect: Some(Effect::Read), ..Guess::default() };
    }
    if says.has(Word::Poll) && !says.starts_with(Word::Write) {
        return Guess { effect: Some(Effect::Poll), ..Guess::default() };
    }
    let is_step = steps_on(canonical) || action.is_some_and(|action| DIRECTIONS.contains(&action));
    let action = action.map(action_says).unwrap_or_default();
    if action.starts_with(Word::Poll) {
        return Guess { effect: Some(Effect::Poll), ..Guess::default() };
    }
    // Who says which page it is to be stands there, whatever was looked at before.
    let moves = says.moves() && !(says.starts_with(Word::Go) && names_an_address(canonical));
    if moves || action.moves() || is_step || goes_somewhere(tool, canonical) {
        return Guess { moves: true, ..Guess::default() };
    }
    if says.starts_with(Word::Read) && !says.has(Word::Change) {
        return Guess { effect: Some(Effect::Read), ..Guess::default() };
    }
    if says.has(Word::Write) {
        return Guess { effect: Some(Effect::Write), ..Guess::default() };
    }
    if says.has(Word::Read) {
        return Guess { effect: Some(Effect::Read), ..Guess::default() };
    }
    // A tool of any name whose only argument is a line that starts with a shell's verb.
    if canonical.starts_with(b"\"") {
        let line = command_guess(|out| unescape(canonical, out));
        if line.effect.is_some() || line.moves {
            return line;
        }
    }
    // Agents whose tools are the shell's own verbs.
    let verb = command_guess(|out| command_of_verb(tool, canonical, out));
    let asks = says.has(Word::Answer) || asks_for_something(canonical);
    if verb.effect.is_none() && !verb.moves && asks && !says.has(Word::Handle) {
        return Guess { effect: Some(Effect::Read), ..Guess::default() };
    }
    verb
}

/// Whether a call tells what it looks for. Tools have any name that their makers like, but what is asked for is a query
/// nearly everywhere; one that changes something says so in its first word.
fn asks_for_something(canonical: &[u8]) -> bool {
    fields(canonical).any(|(name, value)| {
        matches!(
            name,
            b"query"
                | b"q"
                | b"pattern"
                | b"jql"
                | b"keyword"
                | b"keywords"
                | b"search_query"
                | b"search_term"
        ) && value.len() > 2
            && value.starts_with(b"\"")
            && !CHANGES.iter().any(|verb| first_word(value).eq_ignore_ascii_case(verb))
    })
}

/// How a query begins that changes something.
const CHANGES: &[&[u8]] = &[
    b"insert", b"update", b"delete", b"create", b"drop", b"alter", b"merge", b"replace", b"truncate",
    b"grant", b"upsert", b"mutation", b"set", b"copy", b"call", b"exec", b"execute",
];

/// Whether a call names what it opens.
fn names_an_address(canonical: &[u8]) -> bool {
    fields(canonical)
        .any(|(name, _)| matches!(name, b"url" | b"uri" | b"link" | b"href" | b"address" | b"path"))
}

/// Whether a tool is there to carry a command, keys or a request to somebody who answers.
fn sends(says: NameSays) -> bool {
    is_shell(says) || says.has(Word::Command)
}

/// Whether a field carries one. An editor's commands are its own.
fn carries(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"command" => subcommand(value).is_none(),
        b"cmd" | b"keys" | b"keystrokes" | b"url" | b"method" | b"query" | b"sql" => true,
        _ => false,
    }
}

/// Whether what is moved is the agent itself, or a part of it: a file has a name, and a card one to go to.
fn goes_somewhere(tool: &str, canonical: &[u8]) -> bool {
    let is_name = |value: &[u8]| {
        value.len() > LONGEST_DIRECTION || value.iter().any(|byte| matches!(byte, b'/' | b'.' | b'_' | b'@'))
    };
    tool.get(..4).is_some_and(|verb| verb.eq_ignore_ascii_case("move"))
        && fields(canonical).all(|(_, value)| value.first() != Some(&b'"') || !is_name(value))
}

/// Whether a debugger is told to go on: each step stands somewhere else, although it is the same command.
pub(crate) fn steps_on(canonical: &[u8]) -> bool {
    fields(canonical)
        .any(|(name, value)| matches!(name, b"command" | b"cmd" | b"input") && STEPS.contains(&value))
}

/// Where one may go, as a value in canonical JSON.
const DIRECTIONS: &[&[u8]] = &[
    b"\"left\"", b"\"right\"", b"\"up\"", b"\"down\"", b"\"north\"", b"\"south\"", b"\"east\"", b"\"west\"",
    b"\"forward\"", b"\"back\"",
];

/// How debuggers are told to go on, as a value in canonical JSON.
const STEPS: &[&[u8]] = &[
    b"\"s\"", b"\"si\"", b"\"step\"", b"\"stepi\"", b"\"n\"", b"\"ni\"", b"\"next\"", b"\"nexti\"", b"\"c\"",
    b"\"continue\"",
];

/// As long as "backwards" in quotes.
const LONGEST_DIRECTION: usize = 12;

fn is_shell(says: NameSays) -> bool {
    says.has(Word::Shell) || (says.has(Word::Run) && says.has(Word::Command))
}

/// Whether arguments read like plain language: words with spaces between, few signs.
fn is_prose(canonical: &[u8]) -> bool {
    let (mut spaces, mut signs, mut unspaced) = (0, 0, 0);
    for byte in canonical {
        spaces += usize::from(*byte == b' ');
        // Chinese and Japanese put no spaces between words, which are of two signs or so.
        unspaced += usize::from(matches!(byte, 0xE3..=0xE9));
        signs += usize::from(IS_SIGN[usize::from(*byte)]);
    }
    spaces + unspaced / 2 >= SENTENCE && signs * 12 < canonical.len()
}

/// Spaces in the shortest text that is worth to be called a sentence.
const SENTENCE: usize = 5;

/// Which bytes are signs: no letters, no digits, and nothing that sentences need.
const IS_SIGN: [bool; 256] = {
    let mut signs = [false; 256];
    let mut byte = 0;
    while byte < 0x80 {
        let plain = matches!(byte, b' ' | b'.' | b',' | b'"' | b'\'' | b'-' | b'?' | b'!');
        signs[byte as usize] = !plain && !byte.is_ascii_alphanumeric();
        byte += 1_u8;
    }
    signs
};

fn command_guess(write: impl FnOnce(&mut Vec<u8>)) -> Guess {
    thread_local! {
        static COMMAND: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    COMMAND.with(|cell| {
        let Ok(mut command) = cell.try_borrow_mut() else { return Guess::default() };
        command.clear();
        write(&mut command);
        let facts = read_command(&command);
        Guess {
            effect: facts.effect,
            command: facts.effect.is_some(),
            moves: facts.moves,
            broad: facts.broad,
            programs: facts.programs,
            ..Guess::default()
        }
    })
}

/// The command line of a shell tool: a field of that name, or the whole.
fn command_text(canonical: &[u8], out: &mut Vec<u8>) {
    let named = fields(canonical).find(|(name, _)| {
        matches!(*name, b"command" | b"cmd" | b"script" | b"input" | b"commands" | b"keystrokes")
    });
    match named {
        Some((_, value)) if value.starts_with(b"\"") => unescape(value, out),
        Some((_, value)) => out.extend(words_of_vector(value)),
        None => unescape(canonical, out),
    }
}

/// Keys that end with a line's end: who types them at a terminal runs a command, whatever the tool is called that sends
/// them.
fn typed_line(canonical: &[u8]) -> Option<&[u8]> {
    let is_keys = |name: &[u8]| matches!(name, b"keys" | b"keystrokes" | b"chars" | b"stdin");
    let typed = fields(canonical).find(|(name, value)| is_keys(name) && value.ends_with(b"\\n\""));
    typed.map(|(_, value)| value)
}

/// An argument vector: the words, without brackets, quotes and commas.
fn words_of_vector(value: &[u8]) -> impl Iterator<Item = u8> {
    value.iter().map(|byte| if matches!(byte, b'[' | b']' | b'"' | b',') { b' ' } else { *byte })
}

/// The command line of a tool that has the name of a program: its name, and what it is given. Some give it the whole line,
/// program and all.
fn command_of_verb(tool: &str, canonical: &[u8], out: &mut Vec<u8>) {
    let program = tool.split(['_', '-']).next().filter(|_| tool.ends_with("cli")).unwrap_or(tool);
    let is_line = |name: &[u8]| matches!(name, b"command" | b"cmd" | b"args" | b"arguments" | b"subcommand");
    // Programs have one word for a name, and most tools have more.
    let may_be_program = !program.contains(['_', '-']);
    let is_given = |(name, value): &(&[u8], &[u8])| is_line(name) && !value.starts_with(b"{");
    let line = if may_be_program { fields(canonical).find(is_given) } else { None };
    let start = out.len();
    match line {
        Some((_, value)) if value.starts_with(b"[") => out.extend(words_of_vector(value)),
        Some((_, value)) => unescape(value, out),
        None => unescape(canonical, out),
    }
    let is_whole = line.is_some() && first_word(&out[start..]).eq_ignore_ascii_case(program.as_bytes());
    if !is_whole {
        out.splice(start..start, program.bytes().chain([b' ']));
    }
}

/// The values of the fields `command` and `action`, in one go.
fn command_and_action(canonical: &[u8]) -> (Option<&[u8]>, Option<&[u8]>) {
    let (mut command, mut action) = (None, None);
    for (name, value) in fields(canonical) {
        match name {
            b"command" => command = Some(value),
            b"action" => action = Some(value),
            _ => {}
        }
    }
    (command, action)
}

/// The value of a `command` field that is one plain word, as multi-purpose editors have it.
fn subcommand(value: &[u8]) -> Option<&[u8]> {
    let word = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    matches!(
        word,
        b"view"
            | b"read"
            | b"list"
            | b"show"
            | b"open"
            | b"get"
            | b"create"
            | b"str_replace"
            | b"insert"
            | b"undo_edit"
            | b"write"
            | b"delete"
            | b"rename"
    )
    .then_some(word)
}

/// What the words of an `action` field say, where one tool has many.
fn action_says(value: &[u8]) -> NameSays {
    let action = std::str::from_utf8(value).unwrap_or_default();
    if action.len() < 40 { NameSays::of(action) } else { NameSays::default() }
}

/// The first word of a text, with or without the quote before it.
fn first_word(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\"").unwrap_or(text).trim_ascii_start();
    &text[..text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()]
}

fn sql_verb(canonical: &[u8]) -> Option<Effect> {
    let from = canonical.iter().position(u8::is_ascii_alphabetic)?;
    let text = match fields(canonical).find(|(name, _)| matches!(*name, b"query" | b"sql" | b"statement")) {
        Some((_, value)) => value,
        None => &canonical[from..],
    };
    let word = first_word(text);
    let is = |names: &[&[u8]]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    if is(&[b"select", b"show", b"describe", b"desc", b"explain", b"with", b"pragma"]) {
        Some(Effect::Read)
    } else if is(&[
        b"insert", b"update", b"delete", b"create", b"drop", b"alter", b"replace", b"truncate", b"use",
    ]) {
        Some(Effect::Write)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
