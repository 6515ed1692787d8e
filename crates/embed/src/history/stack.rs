//! A history in Redis Stack: a hash for each text, found by an HNSW index.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{RedisError, Script, Value, cmd};

use super::clock::{self, Clock};
use super::connection::{Connection, Trouble};
use super::tag::{quoted, tag};
use super::{Entry, History, HistoryError, HistoryLimits, Key, Neighbour, Pending};

/// Histories as hashes `loop:{tenant}:{session}:{time}-{unique}` under the index `loop:embeddings`. The server finds
/// the nearest of a tenant's session and gives their distances.
#[derive(Debug)]
pub struct RedisStack {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    limits: HistoryLimits,
    script: Script,
    clock: Clock,
    rebuilding: AtomicBool,
}

const INDEX: &str = "loop:embeddings";

/// More than the newest are looked at, so that what is left over from a larger `size` is cleared away too.
const SPARE: usize = 32;

/// Searches, adds and clears away in one go, so that of two checks at once one sees the other. Which entries are the
/// newest is told by the time in their keys. Where a whole tenant is asked about, entries of its sessions are found that
/// only these clear away. Nothing is added when nobody waits for it any longer. The first number of
/// the answer is 0, and 1 when the search failed; then comes the server's time, or why it failed.
const EXCHANGE: &str = "
local size, ttl, last = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[10])
local now = redis.call('TIME')
local millis = now[1] * 1000 + math.floor(now[2] / 1000)
local answer = { 0, string.format('%.0f', millis) }
if last > 0 and millis > last then return answer end
local found = redis.pcall('FT.SEARCH', 'loop:embeddings', ARGV[1], 'PARAMS', '2', 'q', ARGV[2], 'RETURN', '2',
  'distance', 'prompt', 'LIMIT', '0', ARGV[7], 'DIALECT', '2')
if found.err then return { 1, found.err } end
local entries = {}
for at = 2, #found, 2 do
  local time, unique = string.match(found[at], ':(%d+)-(%x+)$')
  local fields = found[at + 1]
  local entry = { key = found[at], time = time, unique = unique, prompt = '' }
  -- An entry that expired a moment ago may still be found, without its fields.
  for field = 1, type(fields) == 'table' and #fields or 0, 2 do
    if fields[field] == 'distance' then entry.distance = fields[field + 1] end
    if fields[field] == 'prompt' then entry.prompt = fields[field + 1] end
  end
  if time and entry.distance then table.insert(entries, entry) end
end
table.sort(entries, function(a, b)
  if #a.time ~= #b.time then return #a.time > #b.time end
  if a.time ~= b.time then return a.time > b.time end
  return a.unique > b.unique
end)
local key = KEYS[1] .. now[1] .. string.format('%06d', tonumber(now[2])) .. '-' .. ARGV[8]
redis.call('HSET', key, 'tenant_id', ARGV[3], 'session_id', ARGV[4], 'vec', ARGV[2])
if ARGV[9] ~= '' then redis.call('HSET', key, 'prompt', ARGV[9]) end
redis.call('PEXPIRE', key, ttl)
local own = 0
for at, entry in ipairs(entries) do
  if at <= size then
    table.insert(answer, { entry.unique, entry.distance, entry.prompt })
  end
  if string.sub(entry.key, 1, #KEYS[1]) == KEYS[1] then
    own = own + 1
    if own >= size then redis.call('DEL', entry.key) end
  end
end
return answer";

impl RedisStack {
    pub(super) fn new(connection: Connection, limits: HistoryLimits) -> Self {
        let (script, clock, rebuilding) = (Script::new(EXCHANGE), Clock::default(), AtomicBool::new(false));
        let inner = Inner { connection, limits, script, clock, rebuilding };
        Self { inner: Arc::new(inner) }
    }

    async fn ask(&self, key: Key<'_>, entry: Entry<'_>) -> Result<Vec<Neighbour>, HistoryError> {
        let inner = &self.inner;
        let (tenant, session) = (tag(key.tenant), tag(key.session));
        let nearest = inner.limits.size.max(1) + SPARE;
        // Without a session it is the history of the whole tenant: the newest of the nearest.
        let of_session = match key.session {
            "" => String::new(),
            _ => format!(" @session_id:{{{}}}", quoted(&session)),
        };
        let query =
            format!("(@tenant_id:{{{}}}{of_session})=>[KNN {nearest} @vec $q AS distance]", quoted(&tenant));
        let blob: Vec<u8> = entry.vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        let ttl = u64::try_from(inner.limits.ttl.as_millis()).unwrap_or(u64::MAX).min(u64::from(u32::MAX));
        let mut call = inner.script.key(format!("loop:{tenant}:{session}:"));
        call.arg(query)
            .arg(blob)
            .arg(&tenant)
            .arg(&session)
            .arg(inner.limits.size.max(1))
            .arg(ttl)
            .arg(nearest);
        call.arg(format!("{:016x}", entry.id)).arg(entry.prompt.unwrap_or_default());
        let asked = clock::now();
        call.arg(inner.clock.until(inner.limits.timeout));
        let answer: Result<Vec<Value>, Trouble> =
            inner.connection.run(async |connection| call.invoke_async(connection).await).await;
        let answer = answer.map_err(|trouble| match trouble {
            Trouble::Gone(reason) => inner.connection.unavailable(&reason),
            Trouble::Refused(error) => inner.connection.unavailable(&error),
        })?;
        match &answer[..] {
            [Value::Int(0), said, neighbours @ ..] => {
                if let Ok(said) = text(said).parse() {
                    inner.clock.learn(asked, said);
                }
                Ok(neighbours.iter().filter_map(neighbour).collect())
            }
            [_, reason, ..] => Err(self.search_failed(&text(reason), entry)),
            _ => Err(inner.connection.unavailable(&"an empty answer")),
        }
    }

    fn search_failed(&self, reason: &str, entry: Entry<'_>) -> HistoryError {
        let lower = reason.to_lowercase();
        if lower.contains("no such index")
            || lower.contains("unknown index")
            || lower.contains("index not found")
        {
            self.rebuild(entry.vector.len());
            return HistoryError::IndexLost { index: INDEX };
        }
        if lower.contains("unknown") && lower.contains("command") {
            return HistoryError::NoSearch { place: self.inner.connection.place().to_owned() };
        }
        self.inner.connection.unavailable(&reason)
    }

    /// Makes the index again beside whoever found it missing. One at a time is enough.
    fn rebuild(&self, dimensions: usize) {
        if self.inner.rebuilding.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            // What fails now is tried again by the next check that misses the index.
            drop(inner.ensure_index(dimensions).await);
            inner.rebuilding.store(false, Ordering::Release);
        });
    }
}

impl Inner {
    async fn ensure_index(&self, dimensions: usize) -> Result<(), HistoryError> {
        let info: Result<Value, Trouble> = self
            .connection
            .run(async |connection| cmd("FT.INFO").arg(INDEX).query_async(connection).await)
            .await;
        match info {
            Ok(info) => match dimension_of(&info) {
                Some(found) if found != dimensions => {
                    Err(HistoryError::OtherDimension { index: INDEX, found, wanted: dimensions })
                }
                _ => Ok(()),
            },
            Err(Trouble::Gone(reason)) => Err(self.connection.unavailable(&reason)),
            Err(Trouble::Refused(error)) if is_unknown_command(&error) => {
                Err(HistoryError::NoSearch { place: self.connection.place().to_owned() })
            }
            Err(Trouble::Refused(_)) => self.create_index(dimensions).await,
        }
    }

    async fn create_index(&self, dimensions: usize) -> Result<(), HistoryError> {
        let mut create = cmd("FT.CREATE");
        create.arg(INDEX).arg("ON").arg("HASH").arg("PREFIX").arg(1).arg("loop:").arg("SCHEMA");
        create
            .arg("tenant_id")
            .arg("TAG")
            .arg("CASESENSITIVE")
            .arg("session_id")
            .arg("TAG")
            .arg("CASESENSITIVE");
        create.arg("vec").arg("VECTOR").arg("HNSW").arg(6);
        create.arg("TYPE").arg("FLOAT32").arg("DIM").arg(dimensions).arg("DISTANCE_METRIC").arg("COSINE");
        let created: Result<Value, Trouble> =
            self.connection.run(async |connection| create.query_async(connection).await).await;
        match created {
            Ok(_) => Ok(()),
            // Another sidecar was faster.
            Err(Trouble::Refused(error)) if error.to_string().to_lowercase().contains("already exists") => {
                Ok(())
            }
            Err(Trouble::Refused(error)) => Err(self.connection.unavailable(&error)),
            Err(Trouble::Gone(reason)) => Err(self.connection.unavailable(&reason)),
        }
    }
}

impl History for RedisStack {
    fn exchange<'a>(&'a self, key: Key<'a>, entry: Entry<'a>) -> Pending<'a, Vec<Neighbour>> {
        Box::pin(self.ask(key, entry))
    }

    fn prepare(&self, dimensions: usize) -> Pending<'_, ()> {
        Box::pin(self.inner.ensure_index(dimensions))
    }
}

fn is_unknown_command(error: &RedisError) -> bool {
    error.to_string().to_lowercase().contains("unknown command")
}

fn neighbour(value: &Value) -> Option<Neighbour> {
    let Value::Array(parts) = value else { return None };
    let [unique, distance, prompt] = &parts[..] else { return None };
    let distance: f64 = text(distance).parse().ok()?;
    let prompt = text(prompt);
    Some(Neighbour {
        id: u64::from_str_radix(&text(unique), 16).ok()?,
        similarity: similarity_of(distance),
        prompt: (!prompt.is_empty()).then_some(prompt),
    })
}

/// From the cosine distance, 0 to 2.
fn similarity_of(distance: f64) -> f64 {
    if distance.is_nan() { 0.0 } else { (1.0 - distance / 2.0).clamp(0.0, 1.0) }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The number after `dim`, wherever in the answer of `FT.INFO` it stands.
fn dimension_of(info: &Value) -> Option<usize> {
    let Value::Array(parts) = info else { return None };
    let named = parts.windows(2).find(|pair| text(&pair[0]).eq_ignore_ascii_case("dim"));
    named.and_then(|pair| text(&pair[1]).parse().ok()).or_else(|| parts.iter().find_map(dimension_of))
}

#[cfg(test)]
mod tests {
    use super::similarity_of;

    #[test]
    fn similarity_is_one_minus_half_the_distance() {
        for (distance, expected) in
            [(0.0, 1.0), (0.1, 0.95), (1.0, 0.5), (2.0, 0.0), (f64::NAN, 0.0), (-1e-9, 1.0)]
        {
            assert!((similarity_of(distance) - expected).abs() < 1e-9, "{distance}");
        }
    }
}
