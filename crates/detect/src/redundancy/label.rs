//! A tool's name in a few bytes, for messages.

use crate::saved::Saved;

/// The start of a name. It is kept in place, so that a new step allocates nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Label {
    bytes: [u8; Label::MAX],
    len: u8,
}

impl Saved for Label {
    fn save(&self, out: &mut Vec<u8>) {
        self.as_str().to_owned().save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        String::load(from).map(|name| Self::of(&name))
    }
}

impl Label {
    const MAX: usize = 31;

    /// As much of a name as fits.
    pub(super) fn of(name: &str) -> Self {
        let mut end = name.len().min(Self::MAX);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; Self::MAX];
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Self { bytes, len: end as u8 }
    }

    /// The name, or what fits of it.
    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        assert_eq!(Label::of("bash").as_str(), "bash");
        let long = "ä".repeat(40);
        assert_eq!(Label::of(&long).as_str(), "ä".repeat(15));
        assert_eq!(Label::default().as_str(), "");
    }
}
