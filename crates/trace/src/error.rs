//! Why an input could not be read at all.

use std::io::{self, BufRead};

/// Why an input could not be read at all; each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader failed.
    #[error("the input could not be read: {0}; check that the file is there, complete and readable")]
    Io(#[from] io::Error),
    /// No record has the shape of a known format.
    #[error(
        "the input has none of the known formats ({records} records looked at); name it with --format: trace, \
         openai, anthropic, claude-code, decision-log, swe-agent, openhands or otlp-json"
    )]
    UnknownFormat {
        /// How many records were looked at.
        records: u64,
    },
    /// There is nothing but white space.
    #[error("the input is empty; record a run first, or name another file")]
    Empty,
    /// The bytes are those of a compressed file.
    #[error("the input is compressed with {with}; unpack it and read that, for example `{command} FILE | …`")]
    Compressed {
        /// The compression.
        with: &'static str,
        /// A program that unpacks it.
        command: &'static str,
    },
}

pub(crate) fn refuse_compressed<R: BufRead>(input: &mut R) -> Result<(), Error> {
    let start = loop {
        match input.fill_buf() {
            Ok(bytes) => break bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    };
    match start {
        [0x1f, 0x8b, ..] => Err(Error::Compressed { with: "gzip", command: "gzip -dc" }),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(Error::Compressed { with: "zstd", command: "zstd -dc" }),
        [b'P', b'K', 3, 4, ..] => Err(Error::Compressed { with: "zip", command: "unzip -p" }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_input_is_refused_with_the_program_that_unpacks_it() {
        let error = refuse_compressed(&mut &b"\x1f\x8b\x08\x00"[..]).unwrap_err();
        assert!(error.to_string().contains("gzip -dc"), "{error}");
    }
}
