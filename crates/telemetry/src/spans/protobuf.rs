//! The wire form of Protocol Buffers, as much of it as spans need.

/// Appends a number, seven bits at a time.
pub(super) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a field that holds a number.
pub(super) fn push_number(out: &mut Vec<u8>, field: u32, number: u64) {
    push_key(out, field, VARINT);
    push_varint(out, number);
}

/// Appends a field of eight bytes.
pub(super) fn push_fixed64(out: &mut Vec<u8>, field: u32, number: u64) {
    push_key(out, field, FIXED_64);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends a field of four bytes.
pub(super) fn push_fixed32(out: &mut Vec<u8>, field: u32, number: u32) {
    push_key(out, field, FIXED_32);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends a text or bytes.
pub(super) fn push_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    push_key(out, field, BYTES);
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a message inside of a message.
pub(super) fn push_message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    push_key(out, field, BYTES);
    // The length stands before the message and is known only behind it, so the message moves over by a few bytes.
    let start = out.len();
    write(out);
    let mut length = Vec::with_capacity(4);
    push_varint(&mut length, (out.len() - start) as u64);
    out.splice(start..start, length);
}

/// The fields of a message, numbers and bytes only; stops at what is malformed.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

/// What a field holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let field = match key as u32 & 7 {
            VARINT => Field::Number(self.varint()?),
            FIXED_64 => Field::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            FIXED_32 => Field::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            BYTES => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.take(length)?)
            }
            _ => return None,
        };
        Some((u32::try_from(key >> 3).ok()?, field))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take(1)? else { return None };
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;
const FIXED_32: u32 = 5;

fn push_key(out: &mut Vec<u8>, field: u32, form: u32) {
    push_varint(out, u64::from(field << 3 | form));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Field, Fields, push_bytes, push_fixed32, push_fixed64, push_message, push_number};

    #[test]
    fn numbers_are_written_as_the_standard_says() {
        let mut out = Vec::new();
        push_number(&mut out, 1, 150);
        assert_eq!(out, [0x08, 0x96, 0x01]);
        out.clear();
        push_bytes(&mut out, 2, b"testing");
        assert_eq!(out, *b"\x12\x07testing");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(number: u64, small: u32, bytes: Vec<u8>, field in 1_u32..5_000) {
            let mut out = Vec::new();
            push_number(&mut out, field, number);
            push_fixed64(&mut out, field, number);
            push_fixed32(&mut out, field, small);
            push_message(&mut out, field, |out| push_bytes(out, 1, &bytes));
            let fields: Vec<_> = Fields(&out).collect();
            prop_assert_eq!(&fields[..2], &[(field, Field::Number(number)), (field, Field::Number(number))]);
            prop_assert_eq!(&fields[2], &(field, Field::Number(u64::from(small))));
            let (_, Field::Bytes(inner)) = fields[3] else { panic!("a message is bytes") };
            prop_assert_eq!(Fields(inner).next(), Some((1, Field::Bytes(&bytes))));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
            prop_assert!(Fields(&bytes).count() <= bytes.len());
        }
    }
}
