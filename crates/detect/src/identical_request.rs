//! `identical_request`: the same HTTP request again, in an exact sliding window.

use std::collections::VecDeque;

use lru::LruCache;

use crate::config::IdenticalRequestConfig;
use crate::fingerprint::Fingerprint;
use crate::step::Timestamp;

/// Counts identical requests.
///
/// Every attempt counts, blocked ones too, so that a hammering client recovers after one window of quiet.
///
/// ```
/// use loopbreaker::{Fingerprint, IdenticalRequest, IdenticalRequestConfig, Timestamp};
///
/// let mut detector = IdenticalRequest::new(1_000);
/// let config = IdenticalRequestConfig::new(60, 3)?;
/// let request = Fingerprint::of_call("GET", Some("/same"));
/// let fires: Vec<bool> =
///     (0..4).map(|second| detector.observe(&request, config, Timestamp::from_secs(second)).fires).collect();
/// assert_eq!(fires, [false, false, true, true]);
/// assert!(!detector.observe(&request, config, Timestamp::from_secs(63)).fires);
/// # Ok::<(), loopbreaker::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct IdenticalRequest {
    /// Times of each request's last attempts, oldest first.
    attempts: LruCache<u128, VecDeque<Timestamp>>,
    max_requests: usize,
    /// Attempts of all of them.
    total: usize,
}

/// What one more request amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestCount {
    /// Identical requests in the window, this one included.
    pub count: u32,
    /// Whether the threshold is reached.
    pub fires: bool,
}

impl RequestCount {
    /// The longest that a request is delayed.
    pub const MAX_DELAY_MILLIS: u64 = 30_000;

    /// How long `throttle` delays this request.
    ///
    /// ```
    /// use loopbreaker::RequestCount;
    /// assert_eq!(RequestCount { count: 5, fires: true }.delay_millis(), 500);
    /// assert_eq!(RequestCount { count: 999, fires: true }.delay_millis(), 30_000);
    /// ```
    pub fn delay_millis(self) -> u64 {
        (u64::from(self.count) * 100).min(Self::MAX_DELAY_MILLIS)
    }
}

impl IdenticalRequest {
    /// Of each request so many attempts are remembered on average, so that a few may have as many as they like.
    const AVERAGE: usize = 32;

    /// A detector that tells at most `max_requests` different requests apart; the one that was seen longest ago is
    /// forgotten first, also where all of them together have more attempts than are remembered: 32 times as many, and
    /// as many as the largest threshold in any case.
    pub fn new(max_requests: usize) -> Self {
        Self { attempts: LruCache::unbounded(), max_requests: max_requests.max(1), total: 0 }
    }

    /// Counts a request.
    pub fn observe(
        &mut self,
        request: &Fingerprint,
        config: IdenticalRequestConfig,
        now: Timestamp,
    ) -> RequestCount {
        let key = request.short();
        if !self.attempts.contains(&key) && self.attempts.len() >= self.max_requests {
            self.forget_oldest();
        }
        let times = self.attempts.get_or_insert_mut(key, VecDeque::new);
        let before = times.len();
        let window = u64::from(config.window_seconds()) * 1_000;
        // A clock that jumped back makes old attempts look new; they leave as soon as it has caught up.
        while times.front().is_some_and(|time| now.millis_since(*time) >= window) {
            times.pop_front();
        }
        if times.len() >= config.most() as usize {
            times.pop_front();
        }
        times.push_back(now);
        let count = times.len() as u32;
        self.total = self.total + times.len() - before;
        let max_total = self
            .max_requests
            .saturating_mul(Self::AVERAGE)
            .max(IdenticalRequestConfig::MAX_THRESHOLD as usize);
        while self.total > max_total && self.attempts.len() > 1 {
            self.forget_oldest();
        }
        RequestCount { count, fires: count >= config.threshold() }
    }

    /// How often a request was sent so far, once at least. It is not counted again.
    pub fn counted(
        &self,
        request: &Fingerprint,
        config: IdenticalRequestConfig,
        now: Timestamp,
    ) -> RequestCount {
        let window = u64::from(config.window_seconds()) * 1_000;
        let times = self.attempts.peek(&request.short()).into_iter().flatten();
        let count = times.filter(|time| now.millis_since(**time) < window).count().max(1) as u32;
        RequestCount { count, fires: count >= config.threshold() }
    }

    /// Takes back the attempt of this moment: the provider answered it with 429 or 5xx, and retries of an outage are
    /// no loop.
    pub fn take_back(&mut self, request: &Fingerprint, at: Timestamp) {
        if let Some(times) = self.attempts.peek_mut(&request.short())
            && let Some(position) = times.iter().rposition(|time| *time == at)
        {
            times.remove(position);
            self.total -= 1;
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, times)) = self.attempts.pop_lru() {
            self.total -= times.len();
        }
    }

    /// Different requests that are known now.
    pub fn len(&self) -> usize {
        self.attempts.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::IdenticalRequest;
    use crate::{Fingerprint, IdenticalRequestConfig, Timestamp};

    fn request(name: &str) -> Fingerprint {
        Fingerprint::of_call(name, None)
    }

    #[test]
    fn the_window_slides_exactly() {
        let mut detector = IdenticalRequest::new(10);
        let config = IdenticalRequestConfig::new(10, 3).unwrap();
        let mut at = |millis| detector.observe(&request("a"), config, Timestamp::from_millis(millis)).count;
        assert_eq!(at(0), 1);
        assert_eq!(at(9_999), 2);
        // Ten seconds later the first has left, the second has not.
        assert_eq!(at(10_000), 2);
        assert_eq!(at(19_998), 3);
        assert_eq!(at(19_999), 3);
    }

    #[test]
    fn blocked_attempts_count_so_only_quiet_helps() {
        let mut detector = IdenticalRequest::new(10);
        let config = IdenticalRequestConfig::new(10, 2).unwrap();
        let mut fires = |second| detector.observe(&request("a"), config, Timestamp::from_secs(second)).fires;
        assert!(!fires(0));
        assert!((1..50).all(&mut fires));
        assert!(!fires(60));
    }

    #[test]
    fn an_attempt_can_be_taken_back() {
        let mut detector = IdenticalRequest::new(10);
        let config = IdenticalRequestConfig::new(60, 3).unwrap();
        for second in 0..2 {
            detector.observe(&request("a"), config, Timestamp::from_secs(second));
        }
        detector.take_back(&request("a"), Timestamp::from_secs(1));
        assert_eq!(detector.observe(&request("a"), config, Timestamp::from_secs(2)).count, 2);
    }

    #[test]
    fn attempts_that_were_taken_back_push_no_other_request_out() {
        let mut detector = IdenticalRequest::new(10);
        let config = IdenticalRequestConfig::new(60, 3).unwrap();
        let now = Timestamp::from_secs(0);
        detector.observe(&request("a"), config, now);
        for _ in 0..=IdenticalRequestConfig::MAX_THRESHOLD {
            detector.observe(&request("b"), config, now);
            detector.take_back(&request("b"), now);
        }
        assert_eq!(detector.observe(&request("a"), config, now).count, 2);
    }

    #[test]
    fn only_the_attempt_of_that_moment_is_taken_back() {
        let mut detector = IdenticalRequest::new(10);
        let config = IdenticalRequestConfig::new(10, 3).unwrap();
        let mut at = |second| detector.observe(&request("a"), config, Timestamp::from_secs(second)).count;
        assert_eq!((at(0), at(5)), (1, 2));
        detector.take_back(&request("a"), Timestamp::from_secs(7));
        detector.take_back(&request("a"), Timestamp::from_secs(0));
        let count = detector.observe(&request("a"), config, Timestamp::from_secs(12)).count;
        assert_eq!(count, 2, "the attempt of second 5 still counts");
    }

    #[test]
    fn requests_never_share_a_count() {
        let mut detector = IdenticalRequest::new(10);
        let config = IdenticalRequestConfig::new(60, 2).unwrap();
        for name in ["a", "b", "c"] {
            assert!(!detector.observe(&request(name), config, Timestamp::from_secs(0)).fires);
        }
    }

    #[test]
    fn a_known_request_pushes_no_other_one_out() {
        let mut detector = IdenticalRequest::new(2);
        let config = IdenticalRequestConfig::new(60, 9).unwrap();
        let mut count = |name| detector.observe(&request(name), config, Timestamp::from_secs(0)).count;
        assert_eq!(["a", "b", "a", "b", "a", "b"].map(&mut count), [1, 1, 2, 2, 3, 3]);
        assert_eq!(["c", "b", "a"].map(&mut count), [1, 4, 1], "the one that was seen longest ago went");
    }

    #[test]
    fn memory_is_bounded_by_requests_and_by_attempts() {
        let mut detector = IdenticalRequest::new(100);
        let config = IdenticalRequestConfig::new(60, 2).unwrap();
        for name in 0..1_000 {
            detector.observe(&request(&name.to_string()), config, Timestamp::from_secs(0));
        }
        assert_eq!(detector.len(), 100);
        let counts =
            (0..5_000).map(|_| detector.observe(&request("a"), config, Timestamp::from_secs(0)).count);
        assert_eq!(counts.max(), Some(IdenticalRequestConfig::MAX_COUNT));
    }

    #[test]
    fn a_large_threshold_is_reached_exactly() {
        let mut detector = IdenticalRequest::new(10);
        let most = IdenticalRequestConfig::MAX_THRESHOLD;
        let config = IdenticalRequestConfig::new(3_600, most).unwrap();
        let mut counts = (0..most + 5).map(|at| {
            let told = detector.observe(&request("a"), config, Timestamp::from_millis(at.into()));
            (told.count, told.fires)
        });
        assert_eq!(counts.find(|(_, fires)| *fires), Some((most, true)));
        assert_eq!(counts.last(), Some((most, true)));
        assert!(IdenticalRequestConfig::new(60, most + 1).is_err());
    }

    #[test]
    fn attempts_of_all_requests_together_are_bounded_and_those_of_the_oldest_go_first() {
        let mut detector = IdenticalRequest::new(1_000);
        let config = IdenticalRequestConfig::new(3_600, IdenticalRequestConfig::MAX_THRESHOLD).unwrap();
        let mut observe = |name: u32, times| {
            (0..times)
                .map(|_| detector.observe(&request(&name.to_string()), config, Timestamp::from_secs(0)).count)
                .last()
        };
        for name in 0..5 {
            assert_eq!(observe(name, 30_000), Some(30_000));
        }
        assert_eq!(observe(4, 1), Some(30_001), "a new one has pushed an older one out, and not this");
        assert_eq!(observe(0, 1), Some(1));
        let kept: usize = detector.attempts.iter().map(|(_, times)| times.len()).sum();
        assert!(detector.total == kept && kept <= 100_000, "{kept} of {}", detector.total);
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_a_plain_list(gaps in proptest::collection::vec(0_u64..4_000, 1..60)) {
            let config = IdenticalRequestConfig::new(5, 3).unwrap();
            let mut detector = IdenticalRequest::new(10);
            let (mut now, mut all) = (0, Vec::new());
            for gap in gaps {
                now += gap;
                all.push(now);
                let expected = all.iter().filter(|time| now - **time < 5_000).count();
                let seen = detector.observe(&request("a"), config, Timestamp::from_millis(now));
                prop_assert_eq!(seen.count as usize, expected);
                prop_assert_eq!(seen.fires, expected >= 3);
            }
        }
    }
}
