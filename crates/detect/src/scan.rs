//! Looks for the end of JSON strings, most of which are a word or two: there, eight bytes at a time are faster than a
//! vectorised search, which has hardly begun when it is done.

/// Where the first quote, backslash or control character stands.
#[inline]
pub(crate) fn string_stop(bytes: &[u8]) -> Option<usize> {
    let (eights, rest) = bytes.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        let stops = stops(u64::from_le_bytes(*eight));
        if stops != 0 {
            return Some(index * 8 + (stops.trailing_zeros() / 8) as usize);
        }
        if index == FAR / 8 {
            return far(&bytes[FAR..]).map(|stop| FAR + stop);
        }
    }
    let found = rest.iter().position(|byte| is_stop(*byte))?;
    Some(eights.len() * 8 + found)
}

/// From here on the string is a text.
const FAR: usize = 64;

/// A text: lines of it at a time.
fn far(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    for chunk in bytes.chunks(32) {
        // Looking at every byte, found or not, lets the compiler look at many at once.
        if chunk.iter().fold(false, |found, byte| found | is_stop(*byte)) {
            return chunk.iter().position(|byte| is_stop(*byte)).map(|stop| from + stop);
        }
        from += chunk.len();
    }
    None
}

const fn is_stop(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// The top bit of each byte that is a stop. Borrows may set bits above the lowest one, never below it.
const fn stops(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let quote = eight ^ (ONES * b'"' as u64);
    let escape = eight ^ (ONES * b'\\' as u64);
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_escape = escape.wrapping_sub(ONES) & !escape;
    let is_control = eight.wrapping_sub(ONES * 0x20) & !eight;
    (is_quote | is_escape | is_control) & TOPS
}

/// Where the first decimal digit stands.
pub(crate) fn first_digit(bytes: &[u8]) -> Option<usize> {
    const SEVENS: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let (eights, rest) = bytes.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        // A digit's byte becomes 0 to 9, which 0x76 more leaves below the top bit; no byte carries into the next.
        let value = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        let digits = !(((value & SEVENS) + 0x7676_7676_7676_7676) | value | SEVENS);
        if digits != 0 {
            return Some(index * 8 + (digits.trailing_zeros() / 8) as usize);
        }
    }
    let found = rest.iter().position(u8::is_ascii_digit)?;
    Some(eights.len() * 8 + found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{first_digit, is_stop, string_stop};

    proptest! {
        #[test]
        fn the_first_stop_is_found_wherever_it_stands(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            plain in 0_usize..200,
        ) {
            for byte in bytes.iter_mut().take(plain).filter(|byte| is_stop(**byte)) {
                *byte = b'x';
            }
            let expected = bytes.iter().position(|byte| is_stop(*byte));
            prop_assert_eq!(string_stop(&bytes), expected);
        }

        #[test]
        fn the_first_digit_is_found_wherever_it_stands(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..60),
            plain in 0_usize..60,
        ) {
            for byte in bytes.iter_mut().take(plain).filter(|byte| byte.is_ascii_digit()) {
                *byte = b'/';
            }
            prop_assert_eq!(first_digit(&bytes), bytes.iter().position(u8::is_ascii_digit));
        }
    }
}
