//! Texts of a known number of tokens, no two alike.

/// Words that are one token each.
const WORDS: [&str; 32] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school",
    "state", "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week",
    "company", "system", "program", "question", "work", "government", "number", "night", "point",
];

/// The text of this number: two tokens stand around the words.
pub(crate) fn text(tokens: usize, number: usize) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let words = (0..tokens.saturating_sub(2)).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        WORDS[state % WORDS.len()]
    });
    words.collect::<Vec<_>>().join(" ")
}
