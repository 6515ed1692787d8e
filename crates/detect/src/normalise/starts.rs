//! Where something that is folded may begin.
//!
//! An automaton looks at one byte after the other, and each step waits for the one before. Nearly every place can be
//! told by a few bytes to begin nothing, so the automaton is only started where they leave it open.

/// The places in a text at which one of the rules may fit, from left to right.
///
/// Every place at which one does is among them: a test compares what is folded with and without.
pub(super) struct Starts<'t> {
    text: &'t [u8],
    at: usize,
    /// The end of what was found last: nothing begins before it.
    free: usize,
}

/// Part of a word.
const WORD: u8 = 1;
/// Begins a number where it begins a word.
const NUMBER: u8 = 2;
/// May tell of something anywhere.
const ANYWHERE: u8 = 4;
/// May begin one of the words that rules begin with, where it begins a word.
const INITIAL: u8 = 8;

/// The first three letters of every word that a rule begins with. A rule looks at the case of the first one.
const WORDS: &[&[u8; 3]] = &[
    b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun", // days
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec", b"Pid",
    b"pid", b"Pro", b"pro", // process
    b"dur", b"ela", b"lat", b"too", // duration, elapsed, latency, took
    b"Ste", b"ste", b"Tur", b"tur", b"Rou", b"rou", b"Att", b"att", b"Int", b"int", b"Tok",
    b"tok", // budgets
    b"Rem", b"rem", b"Cos", b"cos", // remaining, cost
    b"Err", b"err", b"Fai", b"fai", b"Exc", b"exc", // errors
];

/// A bit for each beginning in [`WORDS`], the case of its second and third letter aside.
static BEGINNINGS: [u64; 1 << 10] = {
    let mut bits = [0; 1 << 10];
    let mut at = 0;
    while at < WORDS.len() {
        let beginning = beginning(*WORDS[at]);
        bits[beginning / 64] |= 1 << (beginning % 64);
        at += 1;
    }
    bits
};

/// Three letters as a number: six bits of the first, five of the others.
const fn beginning(letters: [u8; 3]) -> usize {
    let [first, second, third] = letters;
    (first as usize & 63) << 10 | (second as usize & 31) << 5 | third as usize & 31
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => WORD | NUMBER,
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => WORD,
            0x1b | b'[' | b'/' | b':' | b'-' => ANYWHERE,
            _ => 0,
        };
        byte += 1;
    }
    let mut at = 0;
    while at < WORDS.len() {
        classes[WORDS[at][0] as usize] |= INITIAL;
        at += 1;
    }
    classes
};

impl<'t> Starts<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, at: 0, free: 0 }
    }

    /// Goes on behind something that was found.
    pub(super) fn go_on(&mut self, behind: usize) {
        (self.at, self.free) = (behind, behind);
    }

    /// How far before this place a rule may fit.
    fn begins_before(&self, at: usize) -> Option<usize> {
        let (free, rest) = (&self.text[self.free..at], &self.text[at..]);
        let begins = match rest.first()? {
            b'[' => rest.get(1).is_some_and(u8::is_ascii_digit),
            b'/' => [&b"/tmp/"[..], b"/var/", b"/private/"].iter().any(|folder| rest.starts_with(folder)),
            // A drive's letter, and the first group of a UUID, stand before what tells of them.
            b':' => {
                let is_path = matches!(rest.get(1), Some(b'/' | b'\\'));
                return (is_path && free.last().is_some_and(u8::is_ascii_alphabetic)).then_some(1);
            }
            b'-' => {
                let is_group = rest.get(5) == Some(&b'-') && free.len() >= 8;
                return (is_group && free.iter().rev().take(8).all(u8::is_ascii_hexdigit)).then_some(8);
            }
            b'0'..=b'9' => may_measure(rest),
            letter if letter.is_ascii_alphabetic() => rest.first_chunk().is_some_and(|letters| {
                let beginning = beginning(*letters);
                BEGINNINGS[beginning / 64] >> (beginning % 64) & 1 != 0
            }),
            // The escape of a terminal.
            _ => true,
        };
        begins.then_some(0)
    }
}

impl Iterator for Starts<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let begun = self.at;
        let mut before = begun.checked_sub(1).map_or(0, |before| CLASSES[self.text[before] as usize]);
        for (offset, byte) in self.text[begun..].iter().enumerate() {
            let class = CLASSES[*byte as usize];
            let tells = if before & WORD == 0 { NUMBER | INITIAL | ANYWHERE } else { ANYWHERE };
            before = class;
            if class & tells == 0 {
                continue;
            }
            let at = begun + offset;
            if let Some(back) = self.begins_before(at) {
                self.at = at + 1;
                return Some(at - back);
            }
        }
        self.at = self.text.len();
        None
    }
}

/// A number that a time, a duration or an address may begin with, by what follows it.
fn may_measure(rest: &[u8]) -> bool {
    let digits = |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    match rest.get(whole) {
        Some(b'-') => whole == 4,
        Some(b'/') => whole == 4 || whole == 2,
        Some(b'T') => whole == 8,
        Some(b':') => whole <= 2,
        Some(b'x') => rest.starts_with(b"0x"),
        Some(b'.') => is_unit(&rest[whole + 1 + digits(whole + 1)..]),
        _ => is_unit(&rest[whole..]),
    }
}

/// The first letter of what is counted, with or without a space before it.
fn is_unit(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    matches!(rest.first(), Some(b'a' | b'c' | b'h' | b'i' | b'm' | b'n' | b'r'..=b'u' | 0xc2 | 0xce))
}
