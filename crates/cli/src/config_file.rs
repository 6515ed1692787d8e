//! Which config is in force, and its text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A config that was found.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// What to call it in messages.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The config that is asked for (by `-c` or `LOOPBREAKER_CONFIG`, which clap reads), else `./loopbreaker.yaml` if it
/// is there, else none: then the defaults are in force.
pub(crate) fn find(asked: Option<&Path>) -> Result<Option<ConfigFile>, Failure> {
    // An empty variable is how a shell says that it is not set.
    let asked = asked.filter(|path| !path.as_os_str().is_empty());
    let path = match asked {
        Some(path) if path == Path::new("-") => {
            return read("<stdin>".into(), io::stdin().lock()).map(Some);
        }
        Some(path) => path.to_owned(),
        None => PathBuf::from(DEFAULT),
    };
    let name = asked.map_or(DEFAULT.into(), |path| path.display().to_string());
    match File::open(&path) {
        Ok(file) => read(name, file).map(Some),
        Err(error) if asked.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&name, &error)),
    }
}

fn read(name: String, input: impl Read) -> Result<ConfigFile, Failure> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| unreadable(&name, &error))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(ConfigFile { name, text }),
        Err(error) => {
            let line =
                error.as_bytes()[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n').count();
            Err(Failure::told(
                format!("{name}:{line}: this is not UTF-8 text"),
                "save the file as plain UTF-8 text",
            ))
        }
    }
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check the path after `-c` (or in LOOPBREAKER_CONFIG)",
        io::ErrorKind::IsADirectory => "name the file in it, for example `-c DIR/loopbreaker.yaml`",
        io::ErrorKind::PermissionDenied => "check who may read it with `ls -l`",
        _ => "name another file with `-c`",
    };
    Failure::told(format!("the config {name} could not be read: {error}"), hint)
}

const DEFAULT: &str = "loopbreaker.yaml";

// A little more than the parser accepts, so that it is the parser who says what is too much.
const MAX_BYTES: u64 = 2 << 20;
