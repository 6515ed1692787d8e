//! What the words of a tool's name say about what it does.

/// What is said by the words of a name, taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NameSays {
    said: u16,
    first: u16,
}

/// What one word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// It runs command lines.
    Shell,
    /// It runs something.
    Run,
    /// What it runs is a command.
    Command,
    /// It speaks SQL.
    Sql,
    /// It keeps the agent's own notes.
    Notes,
    /// It waits, or asks how far something is.
    Poll,
    /// It moves through pages, a screen or a world.
    Move,
    /// It looks.
    Read,
    /// It changes something.
    Write,
    /// It changes something, whatever it looks for first: `search_replace` replaces.
    Change,
    /// It is what somebody goes to, or what is pressed; behind another verb it is only what that is about.
    Thing,
    /// It looks, and whoever looks so is there afterwards.
    Go,
    /// It is what somebody gets who asks: `browser_snapshot`, `kubectl_logs`.
    Answer,
    /// It changes something, and would be taken for a look by what it is done to: `clear_history`.
    Handle,
}

impl NameSays {
    /// Reads a name: `getJobStatus`, `get_job_status` and `get-job-status` are three words each.
    pub(crate) fn of(name: &str) -> Self {
        // `mcp__server__tool` is a tool of a server: the server's name says nothing about the call.
        let own =
            name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map_or(name, |(_, tool)| tool);
        let mut says = Self::default();
        for (position, word) in words(own).enumerate() {
            let meaning = meaning(word);
            says.said |= meaning;
            if position == 0 {
                says.first = meaning;
            }
        }
        says
    }

    /// Whether one of its words says this.
    pub(crate) const fn has(self, word: Word) -> bool {
        self.said & bit(word) != 0
    }

    /// Whether it moves through something. What another verb is about does not: who finds something on a page goes
    /// nowhere, and who visits one does.
    pub(crate) const fn moves(self) -> bool {
        let is_about =
            self.starts_with(Word::Read) && !self.starts_with(Word::Go) || self.starts_with(Word::Write);
        self.has(Word::Move) && !(is_about && self.has(Word::Thing))
    }

    /// Whether its first word says this: `get_updates` gets.
    pub(crate) const fn starts_with(self, word: Word) -> bool {
        self.first & bit(word) != 0
    }
}

const fn bit(word: Word) -> u16 {
    1 << word as u16
}

/// The words of a name.
fn words(name: &str) -> impl Iterator<Item = &[u8]> {
    let bytes = name.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(|byte| !byte.is_ascii_alphanumeric()) {
            at += 1;
        }
        let start = at;
        while let Some(byte) = bytes.get(at).filter(|byte| byte.is_ascii_alphanumeric()) {
            let hump = at > start && byte.is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
            if hump {
                break;
            }
            at += 1;
        }
        (at > start).then(|| &bytes[start..at])
    })
}

/// What a word says, however it is written: a comparison with all words at once, which the compiler orders.
fn meaning(word: &[u8]) -> u16 {
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..word.len()) else { return 0 };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    match &*lower {
        b"bash" | b"sh" | b"shell" | b"zsh" | b"terminal" | b"console" | b"cmd" | b"powershell" => {
            bit(Word::Shell)
        }
        b"run" | b"exec" | b"execute" => bit(Word::Run),
        b"command" | b"commands" => bit(Word::Command),
        b"sql" => bit(Word::Sql),
        b"query" => bit(Word::Sql) | bit(Word::Read),
        b"todo"
        | b"todos"
        | b"think"
        | b"thinking"
        | b"thought"
        | b"plan"
        | b"reflect"
        | b"note"
        | b"notes"
        | b"scratchpad"
        | b"sequentialthinking" => bit(Word::Notes),
        b"poll" | b"wait" | b"status" | b"sleep" | b"watch" | b"progress" | b"monitor" | b"await" => {
            bit(Word::Poll)
        }
        b"scroll" | b"click" | b"press" | b"next" | b"back" | b"previous" | b"goto" | b"navigate"
        | b"hover" | b"tap" | b"swipe" | b"drag" | b"keyboard" | b"keypress" | b"mouse" | b"walk"
        | b"turn" | b"rotate" | b"jump" | b"forward" | b"backward" | b"dig" | b"mine" | b"craft"
        | b"harvest" | b"attack" | b"eat" | b"equip" => bit(Word::Move),
        b"page" | b"key" => bit(Word::Move) | bit(Word::Thing),
        b"visit" | b"open" | b"load" | b"browse" => bit(Word::Read) | bit(Word::Go),
        b"read" | b"view" | b"cat" | b"get" | b"list" | b"ls" | b"show" | b"search" | b"find" | b"grep"
        | b"glob" | b"fetch" | b"lookup" | b"describe" | b"inspect" | b"look" | b"check" | b"count"
        | b"head" | b"tail" | b"tree" | b"stat" | b"retrieve" | b"scan" | b"websearch" | b"webfetch"
        | b"recall" | b"calculate" | b"verify" | b"test" | b"tests" | b"disassemble" | b"decompile"
        | b"screenshot" | b"examine" | b"preview" | b"display" => bit(Word::Read),
        b"replace" | b"append" | b"insert" | b"delete" | b"rename" | b"modify" | b"overwrite" => {
            bit(Word::Write) | bit(Word::Change)
        }
        b"snapshot" | b"details" | b"history" | b"logs" | b"schema" | b"metadata" | b"stats" | b"weather"
        | b"google" | b"bing" | b"tavily" | b"wikipedia" | b"arxiv" | b"scrape" | b"crawl" | b"retriever"
        | b"retrieval" => bit(Word::Answer),
        b"clear" | b"reset" | b"purge" | b"archive" | b"drop" | b"restore" | b"import" | b"migrate"
        | b"push" | b"sync" | b"truncate" | b"wipe" | b"flush" | b"prune" | b"erase" | b"undo" | b"redo"
        | b"register" | b"start" | b"stop" | b"enable" | b"disable" | b"submit" | b"merge" | b"close"
        | b"revert" | b"record" => bit(Word::Handle),
        b"write" | b"edit" | b"multiedit" | b"create" | b"update" | b"remove" | b"patch" | b"apply"
        | b"set" | b"add" | b"save" | b"send" | b"post" | b"put" | b"move" | b"copy" | b"mkdir"
        | b"commit" | b"install" | b"upload" | b"book" | b"cancel" | b"return" | b"exchange"
        | b"transfer" | b"assign" | b"store" | b"editor" | b"reply" | b"publish" | b"type" | b"fill"
        | b"enter" | b"select" | b"download" | b"buy" | b"pay" | b"notebook" => bit(Word::Write),
        _ => 0,
    }
}

/// No word that is known is longer.
const LONGEST: usize = 18;

#[cfg(test)]
mod tests {
    use super::{NameSays, Word, words};

    #[test]
    fn names_fall_into_words() {
        let of = |name| words(name).map(|word| std::str::from_utf8(word).unwrap()).collect::<Vec<_>>();
        assert_eq!(of("getJobStatus"), ["get", "Job", "Status"]);
        assert_eq!(of("search-page"), ["search", "page"]);
        assert_eq!(of("__"), Vec::<&str>::new());
    }

    #[test]
    fn a_word_is_known_however_it_is_written() {
        for name in ["web_search", "WebSearch", "SEARCH", "mcp__delete__search"] {
            assert!(NameSays::of(name).has(Word::Read), "{name}");
        }
        assert!(!NameSays::of("mcp__delete__search").has(Word::Write), "a server's name says nothing");
    }

    #[test]
    fn the_first_word_is_told_apart() {
        assert!(NameSays::of("get_update").starts_with(Word::Read));
        assert!(!NameSays::of("update_get").starts_with(Word::Read));
    }

    #[test]
    fn what_a_verb_is_about_moves_nothing() {
        for name in ["find_on_page", "get_page", "update_page", "readPage", "create_key"] {
            assert!(!NameSays::of(name).moves(), "{name}");
        }
        for name in ["page_down", "press_key", "next_page", "key", "visit_page", "click"] {
            assert!(NameSays::of(name).moves(), "{name}");
        }
    }

    #[test]
    fn a_word_that_nobody_knows_says_nothing() {
        assert_eq!(NameSays::of("frobnicateeverythingatonce"), NameSays::default());
    }
}
