//! Hashes of a body's leading bytes, by which it is found out where an earlier one ended that it begins with.
//!
//! There are four boundaries between a power of two and the next. The bytes are read once up to each power of two, and
//! once more in the last octave, for its quarters; going on from a boundary costs only what is behind it.

use twox_hash::XxHash3_128;

/// The hashes of one body.
pub(crate) struct PrefixHash<'b> {
    tenant: u128,
    body: &'b [u8],
    /// Up to each power of two.
    powers: Vec<u128>,
    /// The boundaries of the last octave.
    last: [Boundary; 4],
}

/// A place in a body, and the hash of all bytes before it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Boundary {
    at: usize,
    hash: u128,
}

impl<'b> PrefixHash<'b> {
    /// Requests shorter than this are read whole: that is as fast.
    const SHORTEST: usize = 256;

    /// The hashes of a tenant's body.
    pub(crate) fn new(tenant: u128, body: &'b [u8]) -> Self {
        let octaves = Self::last_before(body.len()).map_or(0, |last| last / 4 + 1);
        let mut powers = Vec::with_capacity(octaves);
        let mut power = Boundary { at: 0, hash: tenant };
        for octave in 0..octaves {
            power = power.next(Self::boundary(4 * octave), body).unwrap_or(power);
            powers.push(power.hash);
        }
        let last = if octaves > 0 { quarters(octaves - 1, power, body) } else { [power; 4] };
        Self { tenant, body, powers, last }
    }

    /// The hash of the bytes before `end`.
    pub(crate) fn of(&self, end: usize) -> u128 {
        let last = self.last_boundary(end).unwrap_or(Boundary { at: 0, hash: self.tenant });
        followed_by(last.hash, &self.body[last.at..end])
    }

    /// Where a transcript that ends here is looked for.
    pub(crate) fn bucket(&self, end: usize) -> Option<u64> {
        self.last_boundary(end).map(Boundary::bucket)
    }

    /// Every boundary, the last one first.
    pub(crate) fn boundaries(&self) -> impl Iterator<Item = Boundary> {
        (0..self.powers.len()).rev().flat_map(|octave| {
            let is_last = octave + 1 == self.powers.len();
            let count =
                if is_last { Self::last_before(self.body.len()).map_or(0, |last| last % 4 + 1) } else { 4 };
            self.quarters(octave).into_iter().take(count).rev()
        })
    }

    fn last_boundary(&self, end: usize) -> Option<Boundary> {
        let last = Self::last_before(end)?;
        Some(self.quarters(last / 4)[last % 4])
    }

    fn quarters(&self, octave: usize) -> [Boundary; 4] {
        if octave + 1 == self.powers.len() {
            return self.last;
        }
        quarters(octave, Boundary { at: Self::boundary(4 * octave), hash: self.powers[octave] }, self.body)
    }

    fn boundary(index: usize) -> usize {
        (4 + index % 4) << (6 + index / 4)
    }

    /// The last boundary that is not behind `end`.
    fn last_before(end: usize) -> Option<usize> {
        let octave = (end / Self::SHORTEST).checked_ilog2()? as usize;
        Some(4 * octave + (end >> (6 + octave)) % 4)
    }
}

impl Boundary {
    /// Where transcripts are looked for whose last boundary this is.
    pub(crate) const fn bucket(self) -> u64 {
        self.hash as u64
    }

    /// The hash of a body's bytes before `end`, where this is a boundary in front of it.
    pub(crate) fn hash_to(self, end: usize, body: &[u8]) -> Option<u128> {
        Some(followed_by(self.hash, body.get(self.at..end)?))
    }

    /// The next boundary, if the body goes as far as that.
    fn next(self, at: usize, body: &[u8]) -> Option<Self> {
        Some(Self { at, hash: self.hash_to(at, body)? })
    }
}

/// The boundaries from a power of two on. Where the body ends before one, the last one stands in its place.
fn quarters(octave: usize, power: Boundary, body: &[u8]) -> [Boundary; 4] {
    let mut quarters = [power; 4];
    for quarter in 1..4 {
        let before = quarters[quarter - 1];
        let at = PrefixHash::boundary(4 * octave + quarter);
        quarters[quarter] = before.next(at, body).unwrap_or(before);
    }
    quarters
}

/// The hash of bytes that stand behind those that have this one. Both halves are hashes already, so a product is enough
/// to join them.
fn followed_by(before: u128, bytes: &[u8]) -> u128 {
    (before ^ XxHash3_128::oneshot(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

#[cfg(test)]
mod tests {
    use super::PrefixHash;

    #[test]
    fn boundaries_divide_each_power_of_two_into_four() {
        let boundaries: Vec<usize> = (0..9).map(PrefixHash::boundary).collect();
        assert_eq!(boundaries, [256, 320, 384, 448, 512, 640, 768, 896, 1_024]);
        for end in 0..5_000 {
            let last = (0..40).take_while(|index| PrefixHash::boundary(*index) <= end).last();
            assert_eq!(PrefixHash::last_before(end), last, "{end}");
        }
    }

    fn body() -> Vec<u8> {
        (0..3_000_u32).map(|at| (at * at) as u8).collect()
    }

    #[test]
    fn a_hash_is_that_of_the_leading_bytes_however_long_the_body_is() {
        let body = body();
        let whole = PrefixHash::new(7, &body);
        for end in (0..=body.len()).step_by(97) {
            let short = PrefixHash::new(7, &body[..end]);
            assert_eq!((whole.of(end), whole.bucket(end)), (short.of(end), short.bucket(end)));
            assert_ne!(PrefixHash::new(8, &body).of(end), whole.of(end), "another tenant");
        }
    }

    #[test]
    fn what_ended_anywhere_before_is_looked_for_once_and_the_longest_first() {
        let body = body();
        for end in [0, 255, 256, 300, 511, 512, 900, 1_024, 2_047, 2_048, 3_000] {
            let hash = PrefixHash::new(7, &body[..end]);
            let all: Vec<usize> = hash.boundaries().map(|boundary| boundary.at).collect();
            let expected = (0..40).map(PrefixHash::boundary).take_while(|at| *at <= end);
            assert_eq!(all, expected.collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>(), "{end}");
            for boundary in hash.boundaries() {
                let next = boundary.at + 1;
                assert_eq!(hash.bucket(boundary.at), Some(boundary.bucket()));
                assert_eq!(boundary.hash_to(next, &body), Some(PrefixHash::new(7, &body).of(next)));
            }
        }
    }
}
