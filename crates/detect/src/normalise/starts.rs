//! Where something that is folded may begin.
//!
//! An automaton looks at one byte after the other, and each step waits for the one before. Nearly every place can be
//! told by its first bytes to begin nothing, so the automaton is only started where they leave it open.

/// The places in a text at which one of the built-in rules may fit, from left to right.
///
/// Every place at which one does is among them: a test compares what is folded with and without.
pub(super) struct Starts<'t> {
    text: &'t [u8],
    at: usize,
}

/// Part of a word.
const WORD: u8 = 1;
/// May begin something where it begins a word.
const AT_WORD: u8 = 2;
/// May begin something anywhere.
const ANYWHERE: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            classes[byte as usize] = WORD;
        }
        if byte.is_ascii_hexdigit() || matches!(byte, b'd' | b'e' | b'l' | b't' | b'p') {
            classes[byte as usize] |= AT_WORD;
        }
        if matches!(byte, b'A' | b'D' | b'F' | b'J' | b'M' | b'N' | b'O' | b'P' | b'S' | b'T' | b'W') {
            classes[byte as usize] |= AT_WORD;
        }
        if matches!(byte, 0x1b | b'[' | b'/' | b':') {
            classes[byte as usize] |= ANYWHERE;
        }
        byte += 1;
    }
    classes
};

impl<'t> Starts<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Goes on behind something that was found.
    pub(super) fn go_on(&mut self, behind: usize) {
        self.at = behind;
    }
}

impl Iterator for Starts<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let begun = self.at;
        let mut before = self.at.checked_sub(1).map_or(0, |before| CLASSES[self.text[before] as usize]);
        for (offset, byte) in self.text[begun..].iter().enumerate() {
            let class = CLASSES[*byte as usize];
            let is_open = if before & WORD == 0 { class & (AT_WORD | ANYWHERE) } else { class & ANYWHERE };
            before = class;
            if is_open == 0 {
                continue;
            }
            let at = begun + offset;
            // A drive's letter stands before the colon that tells of it.
            let start =
                if *byte == b':' { at.checked_sub(1).filter(|start| *start >= begun) } else { Some(at) };
            if start.is_some() && may_begin(*byte, &self.text[at..], &self.text[..at]) {
                self.at = at + 1;
                return start;
            }
        }
        self.at = self.text.len();
        None
    }
}

/// Whether a rule may fit where `rest` begins with this byte.
fn may_begin(byte: u8, rest: &[u8], before: &[u8]) -> bool {
    match byte {
        0x1b => true,
        b'[' => rest.get(1).is_some_and(u8::is_ascii_digit),
        b'/' => [&b"/tmp/"[..], b"/var/", b"/private/"].iter().any(|folder| rest.starts_with(folder)),
        b':' => {
            matches!(rest.get(1), Some(b'/' | b'\\')) && before.last().is_some_and(u8::is_ascii_alphabetic)
        }
        b'0'..=b'9' => is_identifier(rest) || may_measure(rest),
        b'p' | b'P' => is_word(rest, b"pid") || is_word(rest, b"process"),
        _ => is_identifier(rest) || is_date_name(rest) || is_measured(rest),
    }
}

/// The first group of a UUID.
fn is_identifier(rest: &[u8]) -> bool {
    rest.get(8) == Some(&b'-')
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

/// The name of something that is measured in time.
fn is_measured(rest: &[u8]) -> bool {
    [&b"duration"[..], b"elapsed", b"latency", b"took"].iter().any(|name| rest.starts_with(name))
}

fn is_word(rest: &[u8], word: &[u8]) -> bool {
    rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}
