//! Where something that is folded may begin.
//!
//! An automaton looks at one byte after the other, and each step waits for the one before. Nearly every place can be
//! told by a few bytes to begin nothing, so the automaton is only started where they leave it open.

/// The places in a text at which one of the rules may fit, from left to right.
///
/// Every place at which one does is among them: a test compares what is folded with and without.
pub(super) struct Starts<'t> {
    text: &'t [u8],
    /// Where the block begins that is looked at.
    block: usize,
    /// A bit for each of its places that is still to be looked at.
    open: u64,
    /// Where the next block begins.
    next: usize,
    /// The end of what was found last: nothing begins before it.
    free: usize,
}

/// So many places are looked at together.
const BLOCK: usize = 64;

/// The first three letters of every word that a rule begins with. A rule looks at the case of the first one.
const WORDS: &[&[u8; 3]] = &[
    b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun", // days
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec", b"Pid",
    b"pid", b"PGI", b"pgi", b"Pro", b"pro", // process
    b"dur", b"ela", b"lat", b"too", // duration, elapsed, latency, took
    b"Ste", b"ste", b"Tur", b"tur", b"Rou", b"rou", b"Att", b"att", b"Int", b"int", b"Tok",
    b"tok", // budgets
    b"Rem", b"rem", b"Cos", b"cos", // remaining, cost
    b"Req", b"req", b"Ray", b"Tra", b"tra", b"Spa", b"spa", b"Cor", b"cor", // names of requests
    b"cal", b"cha", b"Chu", b"chu", // names of calls
    b"jso", b"id\"", b"id\\", // envelopes
    b"In ", b"In[", b"Out", // cells of a notebook
    b"Usa", b"usa", b"Non", b"non", b"Eta", b"eta", // usage, nonces, tags
    b"Err", b"err", b"Fai", b"fai", b"Exc", b"exc", // errors
];

/// What tells of something whatever comes behind it, or by more than the two bytes that do.
const OTHERS: &[u8] = b"0123456789-/:[\x1b";

/// A bit for each beginning in [`WORDS`], the case of its second and third letter aside, and for all of [`OTHERS`].
static BEGINNINGS: [u64; 1 << 11] = {
    let mut bits = [0; 1 << 11];
    let mut at = 0;
    while at < WORDS.len() {
        let beginning = beginning(*WORDS[at]);
        bits[beginning / 64] |= 1 << (beginning % 64);
        at += 1;
    }
    let mut at = 0;
    while at < OTHERS.len() {
        let first = beginning([OTHERS[at], 0, 0]) / 64;
        let mut behind = 0;
        while behind < 1 << 4 {
            bits[first + behind] = u64::MAX;
            behind += 1;
        }
        at += 1;
    }
    bits
};

/// Three bytes as a number: seven bits of the first, five of the others.
const fn beginning(bytes: [u8; 3]) -> usize {
    let [first, second, third] = bytes;
    (first as usize & 127) << 10 | (second as usize & 31) << 5 | third as usize & 31
}

/// Part of a word.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a branch would keep the compiler from looking at many bytes at once"
)]
const fn is_word(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_')
}

/// May tell of something wherever it stands.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a branch would keep the compiler from looking at many bytes at once"
)]
const fn tells(byte: u8) -> bool {
    (byte == b'-') | (byte == b'/') | (byte == b':') | (byte == b'[') | (byte == 0x1b)
}

/// A bit for each byte that is meant. Without a branch or a table, so that the compiler looks at many bytes at once.
#[expect(clippy::inline_always, reason = "what is meant has to be known where the loop is compiled")]
#[inline(always)]
fn bits(block: &[u8; BLOCK], is_meant: impl Fn(u8) -> bool) -> u64 {
    let meant = block.map(|byte| u8::from(is_meant(byte)));
    let (eights, _) = meant.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| {
        // Multiplied so, the lowest bits of eight bytes come to stand side by side in the highest one.
        bits << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

impl<'t> Starts<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, block: 0, open: 0, next: 0, free: 0 }
    }

    /// Goes on behind something that was found.
    pub(super) fn go_on(&mut self, behind: usize) {
        (self.open, self.next, self.free) = (0, behind, behind);
    }

    /// Goes on to the next block: its places at which a word begins, or something that tells by itself. `false` at the
    /// end.
    fn advance(&mut self) -> bool {
        let rest = &self.text[self.next..];
        if rest.is_empty() {
            return false;
        }
        let mut last = [0; BLOCK];
        let block = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let goes_on = self.next.checked_sub(1).is_some_and(|before| is_word(self.text[before]));
        let words = bits(block, is_word);
        self.open = words & !(words << 1 | u64::from(goes_on)) | bits(block, tells);
        (self.block, self.next) = (self.next, self.next + rest.len().min(BLOCK));
        true
    }

    /// Whether the first bytes of a place leave it open. Nearly all that are looked at begin an ordinary word, so this is
    /// asked before anything else is.
    fn is_open(&self, at: usize) -> bool {
        let Some(bytes) = self.text.get(at..).and_then(<[u8]>::first_chunk) else { return true };
        let beginning = beginning(*bytes);
        BEGINNINGS[beginning / 64] >> (beginning % 64) & 1 != 0
    }

    /// How far before this place, which is open, a rule may fit.
    fn begins_before(&self, at: usize) -> Option<usize> {
        let (free, rest) = (&self.text[self.free..at], &self.text[at..]);
        let begins = match rest.first()? {
            b'[' => rest.get(1).is_some_and(u8::is_ascii_digit) || rest.starts_with(b"[ref="),
            b'/' => [&b"/tmp/"[..], b"/var/", b"/private/"].iter().any(|folder| rest.starts_with(folder)),
            // A drive's letter, the first group of a UUID, and the key of a number stand before what tells of them.
            b':' => {
                let is_path = matches!(rest.get(1), Some(b'/' | b'\\'));
                if is_path {
                    return free.last().is_some_and(u8::is_ascii_alphabetic).then_some(1);
                }
                return key_of_a_time(free, &rest[1..]);
            }
            b'-' => {
                let is_group = rest.get(5) == Some(&b'-') && free.len() >= 8;
                return (is_group && free.iter().rev().take(8).all(u8::is_ascii_hexdigit)).then_some(8);
            }
            b'0'..=b'9' => may_measure(rest),
            // Of a word, the beginning is known to be one of those.
            letter if letter.is_ascii_alphabetic() => rest.len() >= 3,
            // The escape of a terminal; an underscore begins nothing.
            other => *other == 0x1b,
        };
        begins.then_some(0)
    }
}

impl Iterator for Starts<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            while self.open != 0 {
                let at = self.block + self.open.trailing_zeros() as usize;
                self.open &= self.open - 1;
                if self.is_open(at)
                    && let Some(back) = self.begins_before(at)
                {
                    return Some(at - back);
                }
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

/// How far before its colon a key begins that may name a time, by the number behind it, or by what it is called.
fn key_of_a_time(free: &[u8], behind: &[u8]) -> Option<usize> {
    let value = behind.strip_prefix(b" ").unwrap_or(behind);
    let quoted = value.iter().take_while(|byte| matches!(byte, b'\\' | b'"')).count();
    let digits = value[quoted..].iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let before = free.strip_suffix(b" ").unwrap_or(free);
    let quotes = before.iter().rev().take_while(|byte| matches!(byte, b'\\' | b'"')).count();
    let key = &before[..before.len() - quotes];
    let length = key.iter().rev().take_while(|byte| is_word(**byte)).count();
    let key = &key[key.len() - length..];
    let is_named = || memchr::memmem::find(key, b"ime").is_some();
    let since_1970 = digits == 10 && value[quoted] == b'1';
    (length > 0 && (since_1970 || is_named())).then(|| free.len() - (before.len() - quotes - length))
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
