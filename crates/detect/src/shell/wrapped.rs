//! A command inside of a command: whoever asks a shell, a container or another host to run something does what that does.

use super::{next_word, unquoted, verb_name};

/// The command that a command line hands over, if that is what it does from its first word on.
pub(super) fn handed_over(command: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    let mut next = || verb_name(next_word(command, &mut at));
    let mut verb = next();
    while matches!(verb, b"sudo" | b"time" | b"nohup") {
        verb = next();
    }
    let inside = match verb {
        b"bash" | b"sh" | b"zsh" | b"dash" => {
            let flag = next();
            let runs = flag.starts_with(b"-") && !flag.starts_with(b"--") && flag.contains(&b'c');
            runs.then(|| &command[at..])?
        }
        b"ssh" => behind_name(command, at, &[b"-p", b"-i", b"-l", b"-o", b"-F", b"-J"]),
        b"docker" | b"podman" if next() == b"exec" => {
            behind_name(command, at, &[b"-u", b"--user", b"-w", b"--workdir", b"-e", b"--env"])
        }
        b"kubectl" | b"oc" if next() == b"exec" => {
            let separator = memchr::memmem::find(command, b" -- ")?;
            &command[separator + 4..]
        }
        _ => return None,
    };
    let inside = inside.trim_ascii();
    let mut end = 0;
    next_word(inside, &mut end);
    let inside = if end == inside.len() { unquoted(inside) } else { inside };
    (!inside.is_empty()).then_some(inside)
}

/// What stands behind flags, of which some take a value, and the name of the place where it is run.
fn behind_name<'a>(command: &'a [u8], mut at: usize, with_value: &[&[u8]]) -> &'a [u8] {
    loop {
        let word = next_word(command, &mut at);
        if with_value.contains(&word) {
            next_word(command, &mut at);
        } else if !word.starts_with(b"-") {
            return &command[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::handed_over;

    #[test]
    fn what_is_inside_is_what_is_run() {
        for (command, inside) in [
            ("bash -lc 'cat a'", "cat a"),
            ("sudo /bin/sh -c \"cat a\"", "cat a"),
            (" bash   -lc   cat a && rm b ", "cat a && rm b"),
            ("ssh -p 22 -o A=b me@host cat a", "cat a"),
            ("docker exec -it -u root web cat a", "cat a"),
            ("kubectl exec pod/x -n y -- cat a", "cat a"),
        ] {
            assert_eq!(handed_over(command.as_bytes()), Some(inside.as_bytes()), "{command}");
        }
    }

    #[test]
    fn a_script_and_a_shell_to_talk_to_hand_nothing_over() {
        for command in ["bash run.sh", "sh", "ssh host", "docker run x ls", "kubectl exec pod", "cat a", ""] {
            assert_eq!(handed_over(command.as_bytes()), None, "{command}");
        }
    }

    proptest! {
        #[test]
        fn what_is_handed_over_is_always_shorter(command in r#"(sudo |ssh |bash -c |docker exec |-|'|"|a| |;){0,12}"#) {
            if let Some(inside) = handed_over(command.as_bytes()) {
                prop_assert!(inside.len() < command.len());
            }
        }
    }
}
