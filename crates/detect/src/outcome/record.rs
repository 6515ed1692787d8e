//! Records: what a result tells of a thing that was asked about, and not of the call.

/// Whether a line is a JSON object without a field in which a tool speaks: `"payment": "failed"` is what an order says.
/// An object that speaks may complain.
pub(super) fn is_record(line: &[u8]) -> bool {
    let is_object = line.starts_with(b"{\"") || line.starts_with(b"[{\"");
    is_object && !SPEAKS.iter().any(|word| memchr::memmem::find(line, word).is_some())
}

/// Parts of the names of such fields.
const SPEAKS: &[&[u8]] = &[
    b"rror", b"essage", b"std", b"etail", b"xception", b"eason", b"utput", b"esult", b"esponse", b"msg",
    b"text", b"ontent", b"observation", b"code",
];

#[cfg(test)]
mod tests {
    use super::is_record;

    #[test]
    fn what_an_order_says_is_no_complaint_of_the_tool() {
        assert!(is_record(br#"{"id": 3, "payment": "failed"}"#));
        assert!(is_record(br#"[{"id": 3, "state": "access denied"}]"#));
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
