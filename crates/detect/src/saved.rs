//! State as bytes, so that another process can go on from it.
//!
//! The form is that of one version of the product: whoever reads it checks first that it was written by the same one.
//! What was cut or changed on its way is read as nothing, and never as something else's length.

/// What can be written as bytes and read again.
pub trait Saved: Sized {
    /// Writes it behind what is there.
    fn save(&self, out: &mut Vec<u8>);
    /// Reads it off the front; `None` when that is not what was written.
    fn load(from: &mut &[u8]) -> Option<Self>;
}

/// Saves a struct field by field. A field that is left out does not compile.
macro_rules! saved {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl crate::saved::Saved for $type {
            fn save(&self, out: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $(crate::saved::Saved::save($field, out);)+
            }
            fn load(from: &mut &[u8]) -> Option<Self> {
                $(let $field = crate::saved::Saved::load(from)?;)+
                Some(Self { $($field),+ })
            }
        }
    };
}
pub(crate) use saved;

/// Saves an enum without fields as the place of its value in a list.
macro_rules! saved_as_one_of {
    ($type:ty [ $($value:path),+ $(,)? ]) => {
        impl crate::saved::Saved for $type {
            fn save(&self, out: &mut Vec<u8>) {
                let place = [$($value),+].iter().position(|value| value == self).unwrap_or_default();
                out.push(place as u8);
            }
            fn load(from: &mut &[u8]) -> Option<Self> {
                [$($value),+].get(usize::from(<u8 as crate::saved::Saved>::load(from)?)).copied()
            }
        }
    };
}
pub(crate) use saved_as_one_of;

macro_rules! saved_number {
    ($($number:ty),+) => {
        $(impl Saved for $number {
            fn save(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn load(from: &mut &[u8]) -> Option<Self> {
                let (number, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*number))
            }
        })+
    };
}
saved_number!(u8, u16, u32, u64, u128, i64);

impl Saved for usize {
    /// Counts and places are small nearly always: seven bits to a byte.
    fn save(&self, out: &mut Vec<u8>) {
        let mut left = *self;
        while left > 0x7F {
            out.push((left & 0x7F) as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let mut number = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = u8::load(from)?;
            number |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

impl Saved for bool {
    fn save(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        match u8::load(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Saved for f64 {
    fn save(&self, out: &mut Vec<u8>) {
        self.to_bits().save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        u64::load(from).map(Self::from_bits)
    }
}

impl Saved for String {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let length = usize::load(from)?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        str::from_utf8(text).ok().map(ToOwned::to_owned)
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.is_some().save(out);
        if let Some(value) = self {
            value.save(out);
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        if bool::load(from)? { T::load(from).map(Some) } else { Some(None) }
    }
}

impl<T: Saved> Saved for Vec<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        for value in self {
            value.save(out);
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        // Everything takes a byte at least, so a wrong length ends with the bytes, and no room is made ahead.
        (0..usize::load(from)?).map(|_| T::load(from)).collect()
    }
}

impl<T: Saved> Saved for std::collections::VecDeque<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        for value in self {
            value.save(out);
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Vec::load(from).map(Into::into)
    }
}

impl<T: Saved + Copy + Default, const LENGTH: usize> Saved for [T; LENGTH] {
    fn save(&self, out: &mut Vec<u8>) {
        for value in self {
            value.save(out);
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let mut all = [T::default(); LENGTH];
        for place in &mut all {
            *place = T::load(from)?;
        }
        Some(all)
    }
}

impl<A: Saved, B: Saved> Saved for (A, B) {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
        self.1.save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Some((A::load(from)?, B::load(from)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Saved;

    type Anything = ((String, Option<u64>), (Vec<(usize, bool)>, [u32; 3]));

    proptest! {
        #[test]
        fn what_was_saved_is_what_is_loaded(value: Anything) {
            let mut bytes = Vec::new();
            value.save(&mut bytes);
            prop_assert_eq!(Anything::load(&mut bytes.as_slice()), Some(value));
            let cut = &bytes[..bytes.len() - 1];
            prop_assert_eq!(Anything::load(&mut &*cut), None);
        }

        #[test]
        fn bytes_that_nobody_saved_break_nothing(bytes: Vec<u8>) {
            drop(Anything::load(&mut bytes.as_slice()));
        }
    }
}
