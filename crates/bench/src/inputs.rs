//! Inputs that are the same in every run: arguments, results and texts as agents make them.

/// Different inputs that an operation goes through: more than the largest window holds, so that a full window never
/// knows the next one.
pub const POOL: usize = 96;

/// Arguments of about 500 bytes, nested four deep, the keys in the order of a tool's schema.
pub fn nested_args(index: usize) -> String {
    let words = words(index, 18);
    format!(
        r#"{{"query":"{words}","filters":{{"language":["rust","python"],"path":{{"include":["src/**/*.rs","crates/{index}/**"],"exclude":["target/**"]}},"modified":{{"since":"2026-01-17T10:00:00Z","before":null}}}},"options":{{"limit":50,"offset":{index},"case_sensitive":false,"context":{{"lines_before":3,"lines_after":3}},"min_score":0.75}},"output":{{"format":"json","fields":["path","line","text"]}}}}"#
    )
}

/// An object of about `bytes` bytes with many short members; `sorted` or with its keys in a shuffled order.
pub fn many_members(index: usize, bytes: usize, sorted: bool) -> String {
    let member = |key: usize| {
        let text = words(key + index, 3);
        let nested = if sorted { format!(r#""n":{key},"s":true"#) } else { format!(r#""s":true,"n":{key}"#) };
        [format!(r#""key_{key:04}":{{{nested}}}"#), format!(r#""text_{key:04}":"{text}""#)]
    };
    let mut members: Vec<String> = (0..bytes / 67).flat_map(member).collect();
    members.push(format!(r#""index":{index}"#));
    members.sort_unstable();
    if !sorted {
        // The golden ratio scatters any range of numbers.
        let mut numbered: Vec<(usize, String)> = members.into_iter().enumerate().collect();
        numbered.sort_unstable_by_key(|(number, _)| number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        members = numbered.into_iter().map(|(_, member)| member).collect();
    }
    format!("{{{}}}", members.join(","))
}

/// Arguments that are one long text, as when a file is written: about `bytes` bytes, one escape per line.
pub fn one_long_text(index: usize, bytes: usize) -> String {
    let mut args = format!(r#"{{"path":"src/file_{index}.rs","content":""#);
    while args.len() < bytes {
        let line = format!("    {}\\n", words(args.len() + index, 9));
        args.push_str(&line);
    }
    args.push_str(r#""}"#);
    args
}

/// A log of about `bytes` bytes with times, durations and numbers.
pub fn log(index: usize, bytes: usize) -> String {
    let mut log = String::new();
    for number in index.. {
        let (minute, second) = (number / 60 % 60, number % 60);
        let line = format!(
            "2026-01-17T10:{minute:02}:{second:02}.{:03}Z INFO worker[{}]: {} done in {} ms\n",
            number * 37 % 1_000,
            1_000 + number,
            words(number, 6),
            number * 7 % 90
        );
        log.push_str(&line);
        if log.len() >= bytes {
            break;
        }
    }
    log.truncate(bytes);
    log
}

/// Prose of about `bytes` bytes that says something new in each sentence.
pub fn prose(index: usize, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        let sentence = format!("{}, {}. ", words(text.len() + index * 31, 11), text.len());
        text.push_str(&sentence);
    }
    text.truncate(bytes);
    text
}

/// One sentence again and again, up to about `bytes` bytes.
pub fn chant(index: usize, bytes: usize) -> String {
    let unit = format!("I will now look at the file number {index} once more. ");
    unit.repeat(bytes / unit.len())
}

/// `count` words that follow from `seed`.
pub fn words(seed: usize, count: usize) -> String {
    const WORDS: [&str; 64] = [
        "parser", "token", "stream", "window", "buffer", "index", "branch", "commit", "merge", "config",
        "server", "client", "socket", "thread", "future", "module", "symbol", "lookup", "result", "error",
        "status", "report", "metric", "sample", "vector", "matrix", "kernel", "memory", "cache", "queue",
        "worker", "signal", "handle", "string", "number", "object", "array", "member", "field", "value",
        "schema", "record", "column", "table", "query", "filter", "sorted", "random", "stable", "legacy",
        "modern", "public", "private", "static", "dynamic", "remote", "local", "global", "nested", "single",
        "double", "second", "minute", "hourly",
    ];
    let mut state = seed as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let mut text = String::new();
    for word in 0..count {
        // A linear congruential generator: the same words on every machine.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if word > 0 {
            text.push(' ');
        }
        text.push_str(WORDS[(state >> 58) as usize]);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use loopbreaker::canonical_json;

    use super::{POOL, chant, log, many_members, nested_args, one_long_text, prose};

    #[test]
    fn inputs_are_as_long_as_they_say() {
        for index in 0..POOL {
            assert!((480..=560).contains(&nested_args(index).len()), "{}", nested_args(index).len());
            for bytes in [2_048, 65_536] {
                for args in [many_members(index, bytes, true), many_members(index, bytes, false)] {
                    assert!(
                        (bytes * 9 / 10..bytes * 11 / 10).contains(&args.len()),
                        "{} of {bytes}",
                        args.len()
                    );
                }
                assert!((bytes..bytes + 100).contains(&one_long_text(index, bytes).len()));
            }
            assert_eq!((log(index, 2_048).len(), prose(index, 4_096).len()), (2_048, 4_096));
            assert!(chant(index, 4_096).len() > 4_000);
        }
    }

    #[test]
    fn inputs_are_json_and_all_different() {
        let forms: HashSet<String> =
            (0..POOL).filter_map(|index| canonical_json(&nested_args(index))).collect();
        assert_eq!(forms.len(), POOL);
        for args in [many_members(1, 2_048, true), many_members(1, 2_048, false), one_long_text(1, 2_048)] {
            assert!(canonical_json(&args).is_some(), "{args}");
        }
        assert_eq!(canonical_json(&many_members(1, 2_048, true)), Some(many_members(1, 2_048, true)));
    }
}
