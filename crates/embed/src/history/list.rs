//! A history in a plain Redis or Valkey: one capped list for each key, one round trip.

use loopbreaker::similarity;
use redis::Script;

use super::clock::{self, Clock};
use super::connection::{Connection, Trouble};
use super::tag::tag;
use super::{Entry, History, HistoryError, HistoryLimits, Key, Neighbour, Pending, now_millis};

/// Histories as capped lists. The server keeps them, the cosines are computed here.
#[derive(Debug)]
pub struct RedisList {
    connection: Connection,
    limits: HistoryLimits,
    script: Script,
    clock: Clock,
}

/// Reads what is there and adds the new entry in one go, so that of two checks at once one sees the other; nothing is
/// added when nobody waits for it any longer. The entry of a session goes into its tenant's history, the second key, as
/// well. The server's time comes first in the answer.
const EXCHANGE: &str = "
local time = redis.call('TIME')
local now, last = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[4])
local said = string.format('%.0f', now)
if last > 0 and now > last then return { said } end
local earlier = redis.call('LRANGE', KEYS[1], 0, ARGV[2] - 1)
for _, key in ipairs(KEYS) do
  redis.call('LPUSH', key, ARGV[1])
  redis.call('LTRIM', key, 0, ARGV[2] - 1)
  redis.call('PEXPIRE', key, ARGV[3])
end
table.insert(earlier, 1, said)
return earlier";

impl RedisList {
    pub(super) fn new(connection: Connection, limits: HistoryLimits) -> Self {
        Self { connection, limits, script: Script::new(EXCHANGE), clock: Clock::default() }
    }

    async fn ask(&self, key: Key<'_>, entry: Entry<'_>) -> Result<Vec<Neighbour>, HistoryError> {
        let name = |session: &str| format!("loop:list:{}:{}", tag(key.tenant), tag(session));
        let (now, ttl) = (now_millis(), u64::try_from(self.limits.ttl.as_millis()).unwrap_or(u64::MAX));
        let mut call = self.script.key(name(key.session));
        if !key.session.is_empty() {
            call.key(name(""));
        }
        call.arg(packed(entry, now)).arg(self.limits.size.max(1)).arg(ttl.min(u64::from(u32::MAX)));
        let asked = clock::now();
        call.arg(self.clock.until(self.limits.timeout));
        let earlier: Result<Vec<Vec<u8>>, Trouble> =
            self.connection.run(async |connection| call.invoke_async(connection).await).await;
        let earlier = earlier.map_err(|trouble| match trouble {
            Trouble::Gone(reason) => self.connection.unavailable(&reason),
            Trouble::Refused(error) => self.connection.unavailable(&error),
        })?;
        let Some((said, earlier)) = earlier.split_first() else {
            return Err(self.connection.unavailable(&"an empty answer"));
        };
        if let Some(said) = str::from_utf8(said).ok().and_then(|said| said.parse().ok()) {
            self.clock.learn(asked, said);
        }
        // The list lives as long as its newest entry; each entry has a time of its own.
        let young = |packed: &Unpacked| now.saturating_sub(packed.at) < ttl;
        let unpacked = earlier.iter().filter_map(|bytes| unpack(bytes)).filter(young);
        Ok(unpacked.map(|earlier| earlier.seen_from(entry.vector)).collect())
    }
}

impl History for RedisList {
    fn exchange<'a>(&'a self, key: Key<'a>, entry: Entry<'a>) -> Pending<'a, Vec<Neighbour>> {
        Box::pin(self.ask(key, entry))
    }

    fn prepare(&self, _dimensions: usize) -> Pending<'_, ()> {
        // Nothing has to be there, and a server that is away may come back.
        Box::pin(async { Ok(()) })
    }
}

struct Unpacked {
    at: u64,
    id: u64,
    vector: Vec<f32>,
    prompt: Option<String>,
}

impl Unpacked {
    fn seen_from(self, vector: &[f32]) -> Neighbour {
        Neighbour { id: self.id, similarity: similarity(&self.vector, vector), prompt: self.prompt }
    }
}

/// Time, id, number of floats, floats, and the prompt if there is one.
fn packed(entry: Entry<'_>, now: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + 4 * entry.vector.len());
    bytes.extend_from_slice(&now.to_le_bytes());
    bytes.extend_from_slice(&entry.id.to_le_bytes());
    bytes.extend_from_slice(&(entry.vector.len() as u32).to_le_bytes());
    bytes.extend(entry.vector.iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend_from_slice(entry.prompt.unwrap_or_default().as_bytes());
    bytes
}

/// `None` for what is not ours.
fn unpack(bytes: &[u8]) -> Option<Unpacked> {
    let (at, rest) = bytes.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (vector, prompt) = rest.split_at_checked(4 * u32::from_le_bytes(*length) as usize)?;
    let vector = vector.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let prompt = (!prompt.is_empty()).then(|| String::from_utf8_lossy(prompt).into_owned());
    Some(Unpacked { at: u64::from_le_bytes(*at), id: u64::from_le_bytes(*id), vector, prompt })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Entry, packed, unpack};

    proptest! {
        #[test]
        fn what_is_packed_comes_back(id: u64, now: u64, vector in prop::collection::vec(-1.0..1.0_f32, 0..8), prompt in "[a-zé漢]{0,9}") {
            let entry = Entry { id, vector: &vector, prompt: (!prompt.is_empty()).then_some(prompt.as_str()) };
            let back = unpack(&packed(entry, now)).unwrap();
            prop_assert_eq!((back.id, back.at, &back.vector), (id, now, &vector));
            prop_assert_eq!(back.prompt.unwrap_or_default(), prompt);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            unpack(&bytes);
        }
    }
}
