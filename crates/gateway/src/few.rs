//! A list of what there is nearly always one of, or none: only more of them need memory of their own.

use std::ops::{Deref, DerefMut};

/// The list.
#[derive(Debug, Default)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Puts one more at its end.
    pub(crate) fn push(&mut self, new: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(new),
            Self::One(first) => Self::Many(vec![first, new]),
            Self::Many(mut all) => {
                all.push(new);
                Self::Many(all)
            }
        };
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut few = Self::None;
        all.into_iter().for_each(|one| few.push(one));
        few
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(all) => all,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::None => &mut [],
            Self::One(one) => std::slice::from_mut(one),
            Self::Many(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn it_is_a_list_however_many_there_are() {
        for count in 0..4_usize {
            let mut few: Few<usize> = (0..count).collect();
            assert_eq!(*few, *(0..count).collect::<Vec<_>>());
            few.iter_mut().for_each(|one| *one += 1);
            few.push(9);
            assert_eq!(few[..count], *(1..=count).collect::<Vec<_>>());
            assert_eq!(few.last(), Some(&9));
        }
    }
}
