//! What a shell command does to the world, as far as its verbs tell.
//!
//! This is no shell: it finds the verbs of a command line, the files that it redirects to, and skips what is quoted
//! or stands in a here-document. What it does not know, it does not judge.

mod wrapped;

use crate::config::Effect;
use crate::words::hash_bytes;
use wrapped::handed_over;

/// What a command line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandFacts {
    /// What it does; `None` when that is not known (a script, a program).
    pub(crate) effect: Option<Effect>,
    /// It only changes where the shell stands.
    pub(crate) moves: bool,
    /// It runs tests or a checker, which read the whole project.
    pub(crate) broad: bool,
    /// The programs that it runs, as a hash, whatever they are given; 0 when it runs none.
    pub(crate) programs: u32,
}

/// Reads a command line.
pub(crate) fn read_command(mut command: &[u8]) -> CommandFacts {
    while let Some(inside) = handed_over(command) {
        command = inside;
    }
    let mut summary = Summary::default();
    let mut segment = Segment::default();
    let mut at = 0;
    let mut heredoc: Option<&[u8]> = None;
    while at < command.len() {
        match command[at] {
            b'\n' | b';' | b'|' | b'&' => {
                let newline = command[at] == b'\n';
                let pipe = command[at] == b'|' && command.get(at + 1) != Some(&b'|');
                at += 1;
                summary.add(&std::mem::take(&mut segment));
                // What stands behind a pipe only picks from what came before.
                segment.picks = pipe;
                if let Some(mark) = heredoc.take_if(|_| newline) {
                    at = behind_heredoc(command, at, mark);
                }
            }
            b'>' => {
                at += 1 + usize::from(command.get(at + 1) == Some(&b'>'));
                let duplicate = command.get(at) == Some(&b'&');
                let target = next_word(command, &mut at);
                segment.redirected |= !duplicate && !target.starts_with(b"/dev/") && !target.is_empty();
            }
            b'<' if command[at..].starts_with(b"<<") => {
                at += 2 + usize::from(command.get(at + 2) == Some(&b'-'));
                if command.get(at) != Some(&b'<') {
                    heredoc = Some(unquoted(next_word(command, &mut at)));
                }
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            b'#' => at = memchr::memchr(b'\n', &command[at..]).map_or(command.len(), |end| at + end),
            _ => {
                let before = at;
                let word = next_word(command, &mut at);
                if at == before {
                    at += 1;
                }
                segment.push(unquoted(word));
            }
        }
    }
    summary.add(&segment);
    summary.facts()
}

/// One command between separators: its first words.
#[derive(Default)]
struct Segment<'a> {
    words: [&'a [u8]; 4],
    len: usize,
    redirected: bool,
    in_place: bool,
    picks: bool,
}

impl<'a> Segment<'a> {
    fn push(&mut self, word: &'a [u8]) {
        let stage = self.len == 0
            && (STAGES.contains(&word)
                || is_assignment(word)
                || word.starts_with(b"-")
                || word.iter().all(|byte| byte.is_ascii_digit() || *byte == b's'));
        if stage {
            return;
        }
        // `uv run pytest` runs pytest.
        if self.len == 1 && word == b"run" && RUNNERS.contains(&self.words[0]) {
            self.len = 0;
            return;
        }
        self.in_place |= word.starts_with(b"-i") || word == b"--in-place" || word.starts_with(b"-pi");
        if self.len < self.words.len() {
            self.words[self.len] = word;
            self.len += 1;
        }
    }

    fn effect(&self) -> Verb {
        if self.redirected {
            return Verb::Write;
        }
        if self.len == 0 {
            return Verb::Nothing;
        }
        let verb = verb_name(self.words[0]);
        let next = self.words[1];
        match verb {
            b"sed" | b"perl" | b"ruby" if self.in_place => Verb::Write,
            b"sed" => Verb::Read,
            b"git" => git_verb(next),
            b"cargo" | b"go" | b"npm" | b"yarn" | b"pnpm" | b"mvn" | b"gradle" | b"gradlew" | b"make"
            | b"dotnet" | b"bazel" => tool_verb(&self.words[1..]),
            b"python" | b"python3"
                if next == b"-m" && matches!(self.words[2], b"pytest" | b"unittest" | b"mypy") =>
            {
                Verb::Test
            }
            b"kubectl" | b"docker" | b"systemctl" | b"gh" | b"squeue" | b"supervisorctl" | b"aws"
            | b"gcloud" => service_verb(verb, next, self.words[2]),
            b"sleep" | b"watch" | b"jobs" | b"nvidia-smi" | b"qstat" => Verb::Wait,
            b"cd" | b"pushd" | b"popd" => Verb::Move,
            b"export" | b"source" | b"." | b"set" | b"unset" | b"alias" => Verb::Stage,
            b"curl" | b"wget" | b"http" | b"nc" | b"ping" | b"pg_isready" | b"telnet" => Verb::Ask,
            _ if TESTERS.contains(&verb) => Verb::Test,
            // A program of the project's own, whatever it is called.
            _ if self.words[0].starts_with(b"./") => Verb::Unknown,
            _ if READERS.contains(&verb) => Verb::Read,
            _ if WRITERS.contains(&verb) => Verb::Write,
            _ => Verb::Unknown,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Nothing,
    Read,
    Test,
    Write,
    Wait,
    Move,
    /// Sets the shell up for what follows.
    Stage,
    /// Asks something outside: as a rule it changes nothing there, but it may.
    Ask,
    Unknown,
}

/// Words that only set the stage for the command behind them.
const STAGES: &[&[u8]] = &[
    b"sudo", b"time", b"env", b"nohup", b"exec", b"command", b"then", b"do", b"else", b"if", b"while", b"!",
    b"{", b"(", b"timeout", b"xargs", b"bunx", b"pnpx", b"npx",
];

/// Tools that run another one in an environment.
const RUNNERS: &[&[u8]] = &[b"uv", b"poetry", b"conda", b"pipenv", b"pdm", b"hatch", b"rye", b"mamba"];

const READERS: &[&[u8]] = &[
    b"ls", b"dir", b"cat", b"head", b"tail", b"grep", b"egrep", b"fgrep", b"rg", b"ag", b"find", b"fd",
    b"pwd", b"echo", b"printf", b"wc", b"diff", b"cmp", b"stat", b"file", b"which", b"type", b"whereis",
    b"whoami", b"id", b"ps", b"df", b"du", b"printenv", b"strings", b"xxd", b"hexdump", b"od", b"objdump",
    b"readelf", b"nm", b"sort", b"uniq", b"cut", b"awk", b"tr", b"tree", b"date", b"uname", b"hostname",
    b"test", b"[", b"man", b"less", b"more", b"jq", b"yq", b"column", b"nl", b"tac", b"rev", b"md5sum",
    b"sha1sum", b"sha256sum", b"basename", b"dirname", b"realpath", b"readlink", b"history", b"true",
    b"false", b"seq", b"help", b"lsof", b"netstat", b"ss", b"dig", b"nslookup", b"host", b"free", b"uptime",
    b"lscpu", b"exiftool", b"binwalk", b"checksec", b"locate", b"zcat", b"search_dir", b"search_file",
    b"find_file", b"view", b"bat", b"Get-Content", b"Get-ChildItem",
];

const TESTERS: &[&[u8]] = &[
    b"pytest", b"py.test", b"tox", b"nosetests", b"ctest", b"jest", b"vitest", b"mocha", b"phpunit",
    b"rspec", b"eslint", b"tsc", b"mypy", b"ruff", b"flake8", b"pylint", b"pyright", b"shellcheck",
    b"clippy", b"rubocop",
];

const WRITERS: &[&[u8]] = &[
    b"rm", b"rmdir", b"mv", b"cp", b"mkdir", b"touch", b"chmod", b"chown", b"ln", b"tee", b"dd", b"patch",
    b"truncate", b"install", b"kill", b"pkill", b"killall", b"unzip", b"tar", b"gunzip", b"gzip", b"zip",
    b"7z", b"apt", b"apt-get", b"yum", b"dnf", b"apk", b"brew", b"pip", b"pip3", b"conda", b"poetry", b"uv",
    b"service", b"create", b"edit", b"insert", b"append", b"str_replace", b"apply_patch", b"undo_edit",
    b"mount", b"useradd", b"crontab", b"rename", b"rsync", b"scp", b"createdb", b"dropdb",
];

fn git_verb(next: &[u8]) -> Verb {
    match next {
        b"status" | b"log" | b"diff" | b"show" | b"branch" | b"ls-files" | b"blame" | b"grep"
        | b"describe" | b"rev-parse" | b"remote" | b"shortlog" | b"reflog" | b"cat-file" | b"ls-tree"
        | b"tag" => Verb::Read,
        _ => Verb::Write,
    }
}

/// Build tools: their checks read, their installs write, and what else they do is not known.
fn tool_verb(words: &[&[u8]]) -> Verb {
    let verbs = words.iter().filter(|word| !word.is_empty() && !word.starts_with(b"-") && **word != b"run");
    for verb in verbs {
        match *verb {
            b"test" | b"check" | b"clippy" | b"vet" | b"lint" | b"typecheck" | b"nextest" | b"verify"
            | b"tests" => {
                return Verb::Test;
            }
            b"install" | b"i" | b"ci" | b"add" | b"remove" | b"uninstall" | b"update" | b"fmt" | b"clean"
            | b"fix" | b"init" => return Verb::Write,
            _ => {}
        }
    }
    Verb::Unknown
}

/// Commands that ask about, or change, something that lives by itself.
fn service_verb(verb: &[u8], next: &[u8], then: &[u8]) -> Verb {
    match (verb, next) {
        (b"gh", b"pr" | b"run" | b"workflow" | b"issue" | b"release") => match then {
            b"view" | b"list" | b"checks" | b"status" | b"watch" | b"diff" | b"" => Verb::Wait,
            _ => Verb::Write,
        },
        (b"squeue", _) | (_, b"get" | b"status" | b"ps" | b"wait" | b"top" | b"describe" | b"run")
            if verb != b"docker" || next != b"run" =>
        {
            Verb::Wait
        }
        (b"aws", _) if asks_by_its_prefix(then) => Verb::Read,
        (_, b"logs" | b"inspect" | b"images" | b"version" | b"info") => Verb::Read,
        (b"aws" | b"gcloud", _) | (b"docker", b"exec" | b"run" | b"compose" | b"build") => Verb::Unknown,
        _ => Verb::Write,
    }
}

/// Whether the name of a cloud's operation says that it only looks: they are all made in this way.
fn asks_by_its_prefix(operation: &[u8]) -> bool {
    operation == b"ls"
        || [&b"describe-"[..], b"list-", b"get-", b"head-"].iter().any(|look| operation.starts_with(look))
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "which verbs were seen, each for itself")]
struct Summary {
    write: bool,
    read: bool,
    test: bool,
    wait: bool,
    moved: bool,
    staged: bool,
    ask: bool,
    unknown: bool,
    programs: u32,
}

impl Summary {
    fn add(&mut self, segment: &Segment<'_>) {
        let verb = segment.effect();
        if !segment.picks && !matches!(verb, Verb::Nothing | Verb::Move | Verb::Stage) {
            self.programs = self.programs.rotate_left(5) ^ hash_bytes(verb_name(segment.words[0])) as u32;
        }
        match verb {
            Verb::Nothing => {}
            Verb::Read => self.read = true,
            Verb::Test => self.test = true,
            Verb::Write => self.write = true,
            Verb::Wait => self.wait = true,
            Verb::Move => self.moved = true,
            Verb::Stage => self.staged = true,
            Verb::Ask => self.ask = true,
            Verb::Unknown => self.unknown = true,
        }
    }

    fn facts(&self) -> CommandFacts {
        // Who waits before asking waits for what is asked about.
        let unknown = self.unknown || (self.ask && !self.wait);
        let effect = if self.write {
            Some(Effect::Write)
        } else if unknown {
            None
        } else if self.wait {
            Some(Effect::Poll)
        } else if self.read || self.test {
            Some(Effect::Read)
        } else if self.staged {
            // All that it does is to change the shell.
            Some(Effect::Write)
        } else {
            None
        };
        let moves = self.moved && effect.is_none() && !unknown;
        CommandFacts { effect, moves, broad: self.test || unknown, programs: self.programs }
    }
}

/// The word at `at`, with the quotes that it was written in; `at` moves behind it.
fn next_word<'a>(command: &'a [u8], at: &mut usize) -> &'a [u8] {
    while command.get(*at).is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        *at += 1;
    }
    let start = *at;
    let mut quote = None;
    while let Some(byte) = command.get(*at) {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => quote = None,
            (None, b'\'' | b'"' | b'`') => quote = Some(*byte),
            (None | Some(b'"'), b'\\') => *at += 1,
            (None, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'>' | b'<') => break,
            _ => {}
        }
        *at += 1;
    }
    *at = (*at).min(command.len());
    &command[start..*at]
}

fn unquoted(word: &[u8]) -> &[u8] {
    match word {
        [b'\'', inside @ .., b'\''] | [b'"', inside @ .., b'"'] => inside,
        _ => word,
    }
}

/// A verb without its folder, and without the bracket that some agents wrap a command in.
fn verb_name(word: &[u8]) -> &[u8] {
    let from = word.iter().rposition(|byte| matches!(byte, b'/' | b'(' | b'`')).map_or(0, |at| at + 1);
    let name = &word[from..];
    match name.iter().position(|byte| *byte == b'[') {
        Some(bracket) if bracket > 0 => &name[bracket + 1..],
        _ => name,
    }
}

fn is_assignment(word: &[u8]) -> bool {
    word.iter().position(|byte| *byte == b'=').is_some_and(|at| {
        at > 0 && word[..at].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    })
}

/// Where the text goes on behind the here-document that starts at `at`.
fn behind_heredoc(command: &[u8], at: usize, mark: &[u8]) -> usize {
    let mut line = at;
    while line < command.len() {
        let end = memchr::memchr(b'\n', &command[line..]).map_or(command.len(), |end| line + end);
        if command[line..end].trim_ascii() == mark {
            return end;
        }
        line = end + 1;
    }
    command.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read_command;
    use crate::config::Effect;

    #[track_caller]
    fn effect(command: &str, expected: Option<Effect>) {
        assert_eq!(read_command(command.as_bytes()).effect, expected, "{command}");
    }

    #[test]
    fn looking_is_a_read() {
        for command in [
            "ls -la",
            "cat a | grep b | wc -l",
            "git status",
            "git diff HEAD~1",
            "sed -n '1,5p' f",
            "find . -name x",
            "cd /x && ls",
            "FOO=1 grep -r x .",
            "sudo cat /etc/passwd",
            "execute[find /testbed -name x]",
            "ls 2>/dev/null",
            "grep x f 2>&1",
        ] {
            effect(command, Some(Effect::Read));
        }
    }

    #[test]
    fn tests_and_checkers_are_reads_of_everything() {
        for command in
            ["pytest -q", "cargo test --all", "npm run lint", "python -m pytest tests", "go vet ./..."]
        {
            let facts = read_command(command.as_bytes());
            assert_eq!((facts.effect, facts.broad), (Some(Effect::Read), true), "{command}");
        }
    }

    #[test]
    fn whatever_changes_files_is_a_write() {
        for command in [
            "rm -rf x",
            "echo hi > f",
            "cat <<'EOF' > f\nls\nEOF",
            "sed -i s/a/b/ f",
            "perl -pi -e x f",
            "git commit -m x",
            "pip install x",
            "cat f | tee g",
            "ls && touch x",
            "cat >> notes <<EOF\nx\nEOF\n",
        ] {
            effect(command, Some(Effect::Write));
        }
    }

    #[test]
    fn a_programs_effect_is_not_known() {
        for command in ["python x.py", "./run.sh", "make", "cargo run", "nc host 1", "docker run x"] {
            effect(command, None);
        }
    }

    #[test]
    fn what_is_quoted_or_in_a_here_document_is_no_command() {
        effect("grep 'a > b; rm x' f", Some(Effect::Read));
        effect("cat <<EOF\nrm -rf /\nEOF", Some(Effect::Read));
        effect("ls # first look; rm -rf x", Some(Effect::Read));
        effect("echo \"a \\\" > b\"", Some(Effect::Read));
    }

    #[test]
    fn who_merges_does_not_ask_how_far_it_is() {
        effect("gh pr checks 90", Some(Effect::Poll));
        effect("gh pr merge 90 --squash", Some(Effect::Write));
        effect("gh run rerun 7", Some(Effect::Write));
    }

    #[test]
    fn what_only_sets_the_shell_up_is_what_follows() {
        effect("source .venv/bin/activate && cat x", Some(Effect::Read));
        effect("export A=1; pytest -q", Some(Effect::Read));
        effect("source .venv/bin/activate", Some(Effect::Write));
        effect(". ./env.sh && rm x", Some(Effect::Write));
    }

    #[test]
    fn a_wrapper_does_what_its_inside_does() {
        effect("bash -lc 'cat a | grep b'", Some(Effect::Read));
        effect("docker exec -it web sh -c \"rm -r a\"", Some(Effect::Write));
        effect("ssh host systemctl restart x", Some(Effect::Write));
        effect("npx tsc --noEmit", Some(Effect::Read));
        effect("bash run.sh", None);
        effect("bash -c 'cat a' && ./deploy", None);
    }

    #[test]
    fn waiting_is_a_poll() {
        for command in
            ["sleep 5; cat log", "kubectl get job x", "docker ps", "gh run view 7", "systemctl status x"]
        {
            effect(command, Some(Effect::Poll));
        }
    }

    #[test]
    fn asking_after_a_wait_is_a_poll() {
        effect("sleep 5; curl -s localhost:8080/health", Some(Effect::Poll));
        effect("curl -s localhost:8080/health", None);
        effect("sleep 5; curl -s localhost:8080/health > out.txt", Some(Effect::Write));
        effect("sleep 5; ./deploy", None);
    }

    #[test]
    fn a_bare_change_of_folder_moves() {
        assert!(read_command(b"cd src").moves);
        assert!(!read_command(b"cd src && ls").moves);
    }

    proptest! {
        #[test]
        fn arbitrary_commands_never_panic(command in proptest::collection::vec(any::<u8>(), 0..80)) {
            read_command(&command);
        }

        #[test]
        fn odd_quoting_never_panics(command in r#"[a-c'"`\\<>|;&# \n]{0,40}"#) {
            read_command(command.as_bytes());
        }
    }
}
