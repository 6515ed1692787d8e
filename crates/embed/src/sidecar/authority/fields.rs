//! The header fields of a request as HPACK writes them (RFC 7541), one byte after the other: where the authority is.

/// Where a block of headers stands. Only its structure is followed; what is kept in tables is known to others.
#[derive(Debug, Default)]
pub(super) struct Fields {
    expect: Expect,
}

#[derive(Debug, Clone, Copy, Default)]
enum Expect {
    /// A field, or another size of the table.
    #[default]
    Field,
    /// More of a number.
    Number { value: usize, shift: u32, is: Number },
    /// The length of a string.
    Length(Part),
    /// Bytes of a string.
    Text { of: Part, left: usize, is_coded: bool },
}

/// What a number says.
#[derive(Debug, Clone, Copy)]
enum Number {
    /// A whole field that is known, or the size of the table.
    Other,
    /// A name that is known.
    Name,
    Length {
        of: Part,
        is_coded: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum Part {
    /// As many bytes of it are those of `:authority`; none when one was another.
    Name(Option<usize>),
    Value {
        is_authority: bool,
    },
}

const NAME: &[u8] = b":authority";
/// Its place among the names that both ends know from the start.
const KNOWN: usize = 1;

impl Fields {
    /// The next bytes of the block. Strings in Huffman's code are left alone: who writes them sends no path.
    pub(super) fn pass(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.expect = match self.expect {
                Expect::Field => begin(*byte),
                Expect::Number { value, shift, is } => {
                    let more = usize::from(*byte & 0x7f).checked_shl(shift).unwrap_or(usize::MAX);
                    let value = value.saturating_add(more);
                    if *byte & 0x80 == 0 {
                        known(value, is)
                    } else {
                        Expect::Number { value, shift: shift.saturating_add(7), is }
                    }
                }
                Expect::Length(of) => number(*byte, 0x7f, Number::Length { of, is_coded: *byte & 0x80 != 0 }),
                Expect::Text { of, left, is_coded } => {
                    if matches!(of, Part::Value { is_authority: true }) && !is_coded && !is_harmless(*byte) {
                        *byte = b'-';
                    }
                    let of = match of {
                        Part::Name(Some(at)) if !is_coded && NAME.get(at) == Some(byte) => {
                            Part::Name(Some(at + 1))
                        }
                        Part::Name(_) => Part::Name(None),
                        value @ Part::Value { .. } => value,
                    };
                    text(of, left - 1, is_coded)
                }
            };
        }
    }
}

fn begin(byte: u8) -> Expect {
    let named = |most: u8| match byte & most {
        0 => Expect::Length(Part::Name(Some(0))),
        _ => number(byte, most, Number::Name),
    };
    match byte {
        0x80.. => number(byte, 0x7f, Number::Other),
        0x40.. => named(0x3f),
        0x20.. => number(byte, 0x1f, Number::Other),
        _ => named(0x0f),
    }
}

/// A number begins in the low bits of a byte, and goes on when all of them are set.
fn number(byte: u8, most: u8, is: Number) -> Expect {
    let value = usize::from(byte & most);
    if byte & most == most { Expect::Number { value, shift: 0, is } } else { known(value, is) }
}

fn known(value: usize, is: Number) -> Expect {
    match is {
        Number::Other => Expect::Field,
        Number::Name => Expect::Length(Part::Value { is_authority: value == KNOWN }),
        Number::Length { of, is_coded } => text(of, value, is_coded),
    }
}

fn text(of: Part, left: usize, is_coded: bool) -> Expect {
    match of {
        _ if left > 0 => Expect::Text { of, left, is_coded },
        Part::Name(same) => Expect::Length(Part::Value { is_authority: same == Some(NAME.len()) }),
        Part::Value { .. } => Expect::Field,
    }
}

/// What may stand anywhere in an authority.
fn is_harmless(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::Fields;

    fn passed(block: &[u8]) -> Vec<u8> {
        let mut block = block.to_vec();
        Fields::default().pass(&mut block);
        block
    }

    /// The name as a string, and as one that is known; kept in the table, not kept, never kept.
    const NAMES: [&[u8]; 6] =
        [b"\x40\x0a:authority", b"\x00\x0a:authority", b"\x10\x0a:authority", b"\x41", b"\x01", b"\x11"];

    #[test]
    fn every_way_to_write_the_authority_is_known() {
        for name in NAMES {
            let block = |value: &[u8]| [b"\x83\x3f\x01", name, b"\x05", value, b"\x82"].concat();
            assert_eq!(passed(&block(b"a%2Fb")), block(b"a-2Fb"), "{name:?}");
        }
    }

    #[test]
    fn other_fields_keep_their_bytes() {
        for block in [
            &b"\x40\x05:path\x05a%2Fb"[..],
            b"\x40\x0b:authority2\x05a%2Fb",
            b"\x40\x09:authorit\x05a%2Fb",
            b"\x44\x05a%2Fb",
            b"\x7f\x02\x05a%2Fb",
            b"\x40\x00\x05a%2Fb",
            // In Huffman's code.
            b"\x41\x85a%2Fb",
        ] {
            assert_eq!(passed(block), block);
        }
    }

    #[test]
    fn long_values_are_followed_to_their_end() {
        let value = "%2F".repeat(100);
        let block = |value: &str| [b"\x41\x7f\xad\x01", value.as_bytes(), b"\x04\x03a%b"].concat();
        assert_eq!(passed(&block(&value)), block(&"-2F".repeat(100)));
    }

    #[test]
    fn an_authority_that_is_one_stays() {
        assert_eq!(passed(b"\x41\x09localhost"), b"\x41\x09localhost");
    }
}
