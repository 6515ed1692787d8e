//! Where something that is folded may begin.
//!
//! An automaton looks at one byte after the other, and each step waits for the one before. Nearly every place can be
//! told by a few bytes to begin nothing, so the automaton is only started where they leave it open. Plain words are
//! passed over without a look: what begins with one is told by the number behind it.

/// The places in a text at which one of the built-in rules may fit, from left to right.
///
/// Every place at which one does is among them: a test compares what is folded with and without.
pub(super) struct Starts<'t> {
    text: &'t [u8],
    at: usize,
    /// The end of what was found last: nothing begins before it.
    free: usize,
    /// A number that may begin something by itself, where the word before it does not.
    number: Option<usize>,
}

/// Part of a word.
const WORD: u8 = 1;
/// May tell of something where it begins a word.
const AT_WORD: u8 = 2;
/// May tell of something anywhere.
const ANYWHERE: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            // Numbers, and the letters that days and months begin with.
            b'0'..=b'9' | b'A' | b'D' | b'F' | b'J' | b'M' | b'N' | b'O' | b'S' | b'T' | b'W' => {
                WORD | AT_WORD
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => WORD,
            0x1b | b'[' | b'/' | b':' | b'-' => ANYWHERE,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

impl<'t> Starts<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, at: 0, free: 0, number: None }
    }

    /// Goes on behind something that was found.
    pub(super) fn go_on(&mut self, behind: usize) {
        *self = Self { text: self.text, at: behind, free: behind, number: None };
    }
}

impl Iterator for Starts<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if let Some(number) = self.number.take() {
            return Some(number);
        }
        let begun = self.at;
        let mut before = self.at.checked_sub(1).map_or(0, |before| CLASSES[self.text[before] as usize]);
        for (offset, byte) in self.text[begun..].iter().enumerate() {
            let class = CLASSES[*byte as usize];
            let tells = if before & WORD == 0 { AT_WORD | ANYWHERE } else { ANYWHERE };
            before = class;
            if class & tells == 0 {
                continue;
            }
            let at = begun + offset;
            let (free, rest) = (&self.text[self.free..at], &self.text[at..]);
            if let Some(back) = begins_before(*byte, free, rest) {
                self.at = at + 1;
                return Some(at - back);
            }
            if byte.is_ascii_digit() {
                let number = may_measure(rest).then_some(at);
                let named = named_before(free).map(|back| at - back);
                if named.or(number).is_some() {
                    (self.at, self.number) = (at + 1, number.filter(|_| named.is_some()));
                    return named.or(number);
                }
            }
        }
        self.at = self.text.len();
        None
    }
}

/// How far before this byte a rule may fit that begins with no number. What is `free` was not folded yet.
fn begins_before(byte: u8, free: &[u8], rest: &[u8]) -> Option<usize> {
    let here = |begins: bool| begins.then_some(0);
    match byte {
        0x1b => Some(0),
        b'[' => here(rest.get(1).is_some_and(u8::is_ascii_digit)),
        b'/' => here([&b"/tmp/"[..], b"/var/", b"/private/"].iter().any(|folder| rest.starts_with(folder))),
        // A drive's letter, and the first group of a UUID, stand before what tells of them.
        b':' => {
            let is_path = matches!(rest.get(1), Some(b'/' | b'\\'));
            (is_path && free.last().is_some_and(u8::is_ascii_alphabetic)).then_some(1)
        }
        b'-' => {
            let is_group = rest.get(5) == Some(&b'-') && free.len() >= 8;
            (is_group && free.iter().rev().take(8).all(u8::is_ascii_hexdigit)).then_some(8)
        }
        b'0'..=b'9' => None,
        _ => here(is_date_name(rest)),
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

/// The first letter of a unit of time, with or without a space before it.
fn is_unit(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    matches!(rest.first(), Some(b'n' | b'u' | b'm' | b's' | b'h' | 0xc2 | 0xce))
}

/// How far before a number the name of a process or of a duration stands that it belongs to.
fn named_before(free: &[u8]) -> Option<usize> {
    let between =
        free.iter().rev().take_while(|byte| matches!(byte, b' ' | b'=' | b':' | b'#' | b'"')).count();
    let named = &free[..free.len() - between];
    // Whatever ends otherwise is none of the names, nor a unit behind one.
    if between == 0 || !matches!(named.last(), Some(b'd' | b'D' | b's' | b'n' | b'y' | b'k' | b'c')) {
        return None;
    }
    let word = named.iter().rev().take_while(|byte| CLASSES[**byte as usize] & WORD != 0).count();
    let begins = |length: usize, name: &[u8]| {
        let start = &named[named.len().checked_sub(length)?..];
        let is_name = start.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        is_name.then_some(between + length)
    };
    let names = [&b"pid"[..], b"process", b"duration", b"elapsed", b"latency", b"took"];
    // The one name of two words.
    names.into_iter().find_map(|name| begins(word, name)).or_else(|| begins(word + 8, b"process "))
}

/// The name of a day or a month.
fn is_date_name(rest: &[u8]) -> bool {
    matches!(
        rest.get(..3),
        Some(
            b"Mon"
                | b"Tue"
                | b"Wed"
                | b"Thu"
                | b"Fri"
                | b"Sat"
                | b"Sun"
                | b"Jan"
                | b"Feb"
                | b"Mar"
                | b"Apr"
                | b"May"
                | b"Jun"
                | b"Jul"
                | b"Aug"
                | b"Sep"
                | b"Oct"
                | b"Nov"
                | b"Dec"
        )
    )
}
