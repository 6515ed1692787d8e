//! Which config is in force, and its text.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use loopbreaker_config::{Config, Problem};

use crate::failure::Failure;

/// A config that was found.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// What to call it in messages.
    pub(crate) name: String,
    text: String,
    /// `None`: stdin.
    path: Option<PathBuf>,
    /// Where the policy files that it names are looked for.
    folder: PathBuf,
    /// Those that were read, by the names that it gives them.
    policy_files: Vec<(String, String)>,
}

impl ConfigFile {
    /// What the config says, the policy files that it names included.
    pub(crate) fn parse(&mut self) -> Result<Config, Vec<Problem>> {
        let Self { text, folder, policy_files, .. } = self;
        policy_files.clear();
        Config::parse_with(text, &mut |name| {
            let text =
                File::open(folder.join(name)).and_then(read_text).map_err(|error| error.to_string())?;
            policy_files.push((name.to_owned(), text.clone()));
            Ok(text)
        })
    }

    /// What is wrong with the value of a key, although it is written well.
    pub(crate) fn problem_at(&self, keys: &[&str], message: String, hint: &str) -> Problem {
        let (line, column) = Config::place_of(&self.text, keys).unwrap_or((1, 1));
        Problem { file: None, line, column, path: keys.join("."), message, hint: Some(hint.to_owned()) }
    }

    /// The files that it was read from.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let own = self.path.iter().cloned();
        own.chain(self.policy_files.iter().map(|(name, _)| self.folder.join(name))).collect()
    }

    /// The file that a problem stands in: its name and its text.
    pub(crate) fn place_of(&self, problem: &Problem) -> (&str, &str) {
        let named = |name| self.policy_files.iter().find(|(known, _)| Some(known) == name);
        match named(problem.file.as_ref()) {
            Some((name, text)) => (name, text),
            None => (&self.name, &self.text),
        }
    }
}

/// The config that is asked for (by `-c` or `LOOPBREAKER_CONFIG`, which clap reads), else `./loopbreaker.yaml` if it
/// is there, else none: then the defaults are in force.
pub(crate) fn find(asked: Option<&Path>) -> Result<Option<ConfigFile>, Failure> {
    // An empty variable is how a shell says that it is not set.
    let asked = asked.filter(|path| !path.as_os_str().is_empty());
    let path = match asked {
        Some(path) if path == Path::new("-") => {
            return read("<stdin>".into(), None, io::stdin().lock()).map(Some);
        }
        Some(path) => path.to_owned(),
        None => PathBuf::from(DEFAULT),
    };
    let name = asked.map_or(DEFAULT.into(), |path| path.display().to_string());
    match File::open(&path) {
        Ok(file) => read(name, Some(path), file).map(Some),
        Err(error) if asked.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&name, &error)),
    }
}

fn read(name: String, path: Option<PathBuf>, input: impl Read) -> Result<ConfigFile, Failure> {
    let folder = path.as_deref().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    match read_text(input) {
        Ok(text) => Ok(ConfigFile { name, text, path, folder, policy_files: Vec::new() }),
        Err(error) => match error.downcast::<NotUtf8>() {
            Ok(NotUtf8 { line }) => Err(Failure::told(
                format!("{name}:{line}: this is not UTF-8 text"),
                "save the file as plain UTF-8 text",
            )),
            Err(error) => Err(unreadable(&name, &error)),
        },
    }
}

fn read_text(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        io::Error::other(NotUtf8 { line: before.split(|byte| *byte == b'\n').count() })
    })
}

/// A file that is no text, with the first line that is none.
#[derive(Debug)]
struct NotUtf8 {
    line: usize,
}

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} is not UTF-8 text", self.line)
    }
}

impl std::error::Error for NotUtf8 {}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check the path after `-c` (or in LOOPBREAKER_CONFIG)",
        io::ErrorKind::IsADirectory => "name the file in it, for example `-c DIR/loopbreaker.yaml`",
        io::ErrorKind::PermissionDenied => "check who may read it with `ls -l`",
        _ => "name another file with `-c`",
    };
    Failure::told(format!("the config {name} could not be read: {error}"), hint)
}

pub(crate) const DEFAULT: &str = "loopbreaker.yaml";

// A little more than the parser accepts, so that it is the parser who says what is too much.
const MAX_BYTES: u64 = 2 << 20;
