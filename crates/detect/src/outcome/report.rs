//! Reports that count failures, as those on tests do.

/// Whether a line counts failures: `2 failed, 9 passed`, `FAILED (failures=2)`.
pub(super) fn tallies(line: &[u8]) -> bool {
    let mut numbers = line.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    numbers.any(|(at, _)| {
        let named = line[..at].ends_with(b"failures=") || line[..at].ends_with(b"errors=");
        named || counts_failures(&line[at + 1..])
    })
}

/// Whether what stands behind a number says that it counts failures.
pub(super) fn counts_failures(behind: &[u8]) -> bool {
    let word = behind.trim_ascii_start();
    [&b"fail"[..], b"pass", b"error", b"problem", b"warning", b"test", b"issue"]
        .iter()
        .any(|counted| word.get(..counted.len()).is_some_and(|start| start.eq_ignore_ascii_case(counted)))
}
