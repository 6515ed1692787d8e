//! One text whose tail is one unit repeated: `chant`.

use crate::fingerprint::Fingerprint;

/// The tail of a text is one unit again and again.
///
/// ```
/// use loopbreaker::Chant;
/// let text = format!("Let me check. {}", "I am checking the file now. ".repeat(20));
/// let chant = Chant::of(&text).expect("twenty times the same sentence");
/// assert!(chant.copies >= 19);
/// assert_eq!(Chant::of("Four score and seven years ago"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chant {
    /// Length of the unit in bytes, white space folded.
    pub period: usize,
    /// How often it stands at the end of the text.
    pub copies: usize,
    /// What is repeated, whichever part of it the text ends with.
    pub identity: Fingerprint,
}

impl Chant {
    /// Looks at the tail of a text.
    ///
    /// Code fences, tables and rules are spared: what is inside a fence that is still open is code, and a unit needs
    /// words.
    pub fn of(text: &str) -> Option<Self> {
        if text.len() < MIN_LENGTH || !ends_as_before(text.as_bytes()) {
            return None;
        }
        if memchr::memmem::find_iter(text.as_bytes(), "```").count() % 2 == 1 {
            return None;
        }
        let tail = tail_backwards(text);
        // A chant shows its last words several times over: nearly every text is done with here.
        let probe = &tail[..PROBE.min(tail.len())];
        if memchr::memmem::find_iter(&tail, probe).take(3).count() < 3 {
            return None;
        }
        let (period, length) = longest_periodic_prefix(&tail)?;
        let copies = length / period;
        let unit = &tail[..period];
        let words = unit
            .split(|byte| !byte.is_ascii_alphabetic() && *byte < 0x80)
            .filter(|word| word.len() > 1)
            .count();
        let table =
            unit.iter().filter(|byte| matches!(byte, b'|' | b'-' | b'=' | b'_' | b'*' | b'#')).count() * 2
                > period;
        let needed = if words >= 4 { MIN_COPIES } else { MIN_COPIES_OF_FEW_WORDS };
        if words == 0 || table || copies < needed || length < MIN_LENGTH {
            return None;
        }
        Some(Self { period, copies, identity: Fingerprint::of_bytes(b"chant", &least_rotation(unit)) })
    }
}

/// A shorter chant is a refrain.
const MIN_LENGTH: usize = 160;
const MIN_COPIES: usize = 5;
const MIN_COPIES_OF_FEW_WORDS: usize = 12;
/// How much of a text's end is looked at.
const TAIL: usize = 4_096;
const PROBE: usize = 24;

/// Whether the text's last long word stands in it three times, as it does in every chant: nearly every text is done
/// with here, and nothing was copied.
fn ends_as_before(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let end = &text[text.len().saturating_sub(PROBE)..];
    let Some(word) = end.split(u8::is_ascii_whitespace).max_by_key(|word| word.len()) else { return true };
    memchr::memmem::find_iter(text, word).take(3).count() == 3
}

/// The end of the text, last byte first, with white space folded.
fn tail_backwards(text: &str) -> Vec<u8> {
    let mut tail = Vec::with_capacity(TAIL.min(text.len()));
    for byte in text.trim_end().bytes().rev() {
        let byte = if byte.is_ascii_whitespace() { b' ' } else { byte };
        if byte == b' ' && tail.last() == Some(&b' ') {
            continue;
        }
        if tail.len() == TAIL {
            break;
        }
        tail.push(byte);
    }
    tail
}

/// The longest prefix with at least [`MIN_COPIES`] periods, and its period: the prefix function of Knuth, Morris
/// and Pratt gives the smallest period of every prefix in one pass.
fn longest_periodic_prefix(text: &[u8]) -> Option<(usize, usize)> {
    let mut borders = vec![0_u16; text.len()];
    let mut best = None;
    let mut border = 0_usize;
    for at in 1..text.len() {
        while border > 0 && text[at] != text[border] {
            border = borders[border - 1].into();
        }
        if text[at] == text[border] {
            border += 1;
        }
        borders[at] = border as u16;
        let length = at + 1;
        let period = length - border;
        if length / period >= MIN_COPIES {
            best = Some((period, length));
        }
    }
    best
}

/// The unit turned to its smallest rotation, so that it is the same wherever the text was cut.
fn least_rotation(unit: &[u8]) -> Vec<u8> {
    let byte = |start: usize, step: usize| unit[(start + step) % unit.len()];
    let (mut best, mut rival, mut equal) = (0, 1, 0);
    while rival < unit.len() && equal < unit.len() {
        match byte(best, equal).cmp(&byte(rival, equal)) {
            std::cmp::Ordering::Equal => equal += 1,
            std::cmp::Ordering::Less => {
                rival += equal + 1;
                equal = 0;
            }
            std::cmp::Ordering::Greater => {
                best = rival.max(best + equal + 1);
                rival = best + 1;
                equal = 0;
            }
        }
    }
    (0..unit.len()).map(|step| byte(best, step)).collect()
}

#[cfg(test)]
mod tests {
    use super::Chant;

    #[test]
    fn a_sentence_again_and_again_is_a_chant() {
        let chant = Chant::of(&"I will now fix the bug. ".repeat(10)).unwrap();
        assert_eq!((chant.period, chant.copies), (24, 9));
    }

    #[test]
    fn a_chant_is_the_same_wherever_it_was_cut() {
        let text = "first this then that and so on; ".repeat(20);
        let (whole, cut) = (Chant::of(&text).unwrap(), Chant::of(&text[..text.len() - 11]).unwrap());
        assert_eq!(whole.identity, cut.identity);
    }

    #[test]
    fn an_unfinished_last_copy_still_counts() {
        let text = format!("{}I will now fix", "I will now fix the bug. ".repeat(10));
        assert!(Chant::of(&text).is_some());
    }

    #[test]
    fn four_times_is_a_refrain() {
        assert_eq!(Chant::of(&"We will never give up on this task, whatever it takes us. ".repeat(4)), None);
    }

    #[test]
    fn five_times_is_a_chant() {
        let sentence = "We will never give up on this task, whatever it takes us. ";
        let times = |count| Chant::of(&format!("Well. {}", sentence.repeat(count)));
        assert_eq!(times(4), None);
        assert_eq!(times(5).unwrap().copies, 5);
    }

    #[test]
    fn a_short_refrain_is_none_however_often() {
        assert_eq!(Chant::of(&"we can do it now, yes. ".repeat(6)), None);
        assert!(Chant::of(&"we can do it now, yes. ".repeat(8)).is_some());
    }

    #[test]
    fn few_words_have_to_come_twelve_times() {
        let times = |count| Chant::of(&format!("So: {}", "floccinaucinihilipilification ".repeat(count)));
        assert_eq!(times(11), None);
        assert_eq!(times(12).unwrap().copies, 12);
    }

    #[test]
    fn a_long_unit_is_seen() {
        let unit = (0..20).map(|n| format!("point {n} has to be looked at")).collect::<Vec<_>>().join(", ");
        assert!(Chant::of(&format!("{unit}. ").repeat(7)).is_some());
    }

    #[test]
    fn where_the_lines_break_does_not_matter() {
        let text = "I will now fix the bug. I will now\nfix the bug.\n\n".repeat(6);
        assert_eq!(Chant::of(&text).unwrap().period, 24);
    }

    #[test]
    fn rules_tables_and_open_code_are_spared() {
        assert_eq!(Chant::of(&"-".repeat(500)), None);
        assert_eq!(Chant::of(&"|---|---|\n".repeat(60)), None);
        assert_eq!(Chant::of(&"|---- name ----|\n".repeat(60)), None);
        assert_eq!(Chant::of(&format!("```\n{}", "    assert foo(bar) == 1\n".repeat(20))), None);
        assert_eq!(Chant::of(&"0, ".repeat(300)), None);
    }

    #[test]
    fn a_list_with_changing_items_is_none() {
        let list = (0..60).map(|item| format!("- item {item} is done")).collect::<Vec<_>>().join("\n");
        assert_eq!(Chant::of(&list), None);
    }
}
