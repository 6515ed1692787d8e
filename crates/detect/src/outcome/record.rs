//! Records: what a result tells of a thing that was asked about, and not of the call.

/// Whether a line is a JSON object without a field in which a tool speaks: `"payment": "failed"` is what an order says.
/// An object that speaks may complain.
pub(super) fn is_record(line: &[u8]) -> bool {
    let is_object = line.starts_with(b"{\"") || line.starts_with(b"[{\"");
    is_object && !SPEAKS.iter().any(|word| memchr::memmem::find(line, word).is_some())
}

/// Whether a line is a name and no sentence: a listing has files that are called `errors.py`. The name of an exception may be
/// all that a stack trace ends with.
pub(super) fn is_name(line: &[u8]) -> bool {
    let is_one = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b':' | b'(' | b'[' | b'!');
    let ends =
        |word: &[u8]| line.len() >= word.len() && line[line.len() - word.len()..].eq_ignore_ascii_case(word);
    let has_parts = line.iter().any(|byte| matches!(byte, b'.' | b'/')) && !line.ends_with(b".");
    has_parts && line.iter().all(is_one) && !ends(b"error") && !ends(b"exception")
}

/// Parts of the names of such fields.
const SPEAKS: &[&[u8]] = &[
    b"rror", b"essage", b"std", b"etail", b"xception", b"eason", b"utput", b"esult", b"esponse", b"msg",
    b"text", b"ontent", b"observation", b"code",
];

#[cfg(test)]
mod tests {
    use super::{is_name, is_record};

    #[test]
    fn what_an_order_says_is_no_complaint_of_the_tool() {
        assert!(is_record(br#"{"id": 3, "payment": "failed"}"#));
        assert!(is_record(br#"[{"id": 3, "state": "access denied"}]"#));
    }

    #[test]
    fn a_file_that_is_called_after_errors_is_none() {
        for line in ["errors.py", "./src/error/mod.rs", "failed-logins.log"] {
            assert!(is_name(line.as_bytes()), "{line}");
        }
        for line in ["failed", "Failed.", "error: a.py", "socket.TimeoutError", "error in a.py"] {
            assert!(!is_name(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn an_object_in_which_the_tool_speaks_may_complain() {
        for line in [
            r#"{"error": "order not found"}"#,
            r#"{"message": "You are not subscribed"}"#,
            r#"{"stdout": "", "stderr": "foo: command not found"}"#,
            r#"{"output": "permission denied", "metadata": {}}"#,
            "foo: command not found",
        ] {
            assert!(!is_record(line.as_bytes()), "{line}");
        }
    }
}
