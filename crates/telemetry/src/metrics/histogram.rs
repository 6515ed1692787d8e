//! Durations in buckets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often our own time stayed within each bound.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Histogram {
    /// Observations up to each bound and above the one before; the last has no bound.
    buckets: [AtomicU64; Histogram::BOUNDS_MICROS.len() + 1],
    sum_nanos: AtomicU64,
}

/// What a histogram held at one moment, as Prometheus wants it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Observations up to each bound, all smaller ones included.
    pub(crate) cumulative: [u64; Histogram::BOUNDS_MICROS.len()],
    pub(crate) count: u64,
    pub(crate) sum_nanos: u64,
}

impl Histogram {
    /// Upper bounds: dense where a healthy request stands (tens of microseconds), wide where only an embedding or an
    /// overloaded machine is.
    pub(crate) const BOUNDS_MICROS: [u64; 18] = [
        5, 10, 20, 30, 50, 75, 100, 150, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000,
        1_000_000,
    ];

    pub(crate) fn observe(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = Self::BOUNDS_MICROS.partition_point(|bound| bound * 1_000 < nanos);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_nanos.fetch_add(nanos, Relaxed);
    }

    /// The count is the sum of the buckets, so that the two agree whatever is observed meanwhile.
    pub(crate) fn read(&self) -> Reading {
        let mut cumulative = [0; Self::BOUNDS_MICROS.len()];
        let mut count = 0;
        for (sum, bucket) in cumulative.iter_mut().zip(&self.buckets) {
            count += bucket.load(Relaxed);
            *sum = count;
        }
        count += self.buckets[Self::BOUNDS_MICROS.len()].load(Relaxed);
        Reading { cumulative, count, sum_nanos: self.sum_nanos.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::Histogram;

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(10));
        histogram.observe(Duration::from_nanos(10_001));
        let reading = histogram.read();
        assert_eq!(reading.cumulative[..3], [0, 1, 2]);
        assert_eq!((reading.count, reading.sum_nanos), (2, 20_001));
    }

    proptest! {
        #[test]
        fn every_duration_is_counted_once_and_up_to_each_bound(
            all in proptest::collection::vec(0_u64..3_000_000_000, 0..50)
        ) {
            let histogram = Histogram::default();
            for nanos in &all {
                histogram.observe(Duration::from_nanos(*nanos));
            }
            let reading = histogram.read();
            prop_assert_eq!(reading.count as usize, all.len());
            prop_assert_eq!(reading.sum_nanos, all.iter().sum::<u64>());
            for (bound, count) in Histogram::BOUNDS_MICROS.iter().zip(reading.cumulative) {
                let expected = all.iter().filter(|nanos| **nanos <= bound * 1_000).count();
                prop_assert_eq!(count as usize, expected);
            }
        }
    }
}
