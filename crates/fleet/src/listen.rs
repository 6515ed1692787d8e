//! Reads what other processes say, from where it stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, RedisError, Value};

use crate::desk::{Desk, SECRET};
use crate::order::{Heard, ORDERS};
use crate::server::{Connection, Server};
use crate::settings::{SETTINGS, writing};

/// Is told what others say. It must not block.
pub type Listener = Arc<dyn Fn(Heard) + Send + Sync>;

/// Orders that are not older than this still concern a process that starts.
const HISTORY: Duration = Duration::from_secs(3_600);
/// How long one question waits for something to be said.
const WAIT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(3);

/// Listens for as long as its runtime lives.
pub(crate) async fn listen(server: Server, own_secret: [u8; 32], mut ears: Ears) {
    let mut pause = Duration::from_millis(50);
    loop {
        let listening = async {
            let mut connection = server.connect(PATIENCE).await?;
            let secret = common_secret(&mut connection, own_secret).await?;
            if secret != own_secret {
                (ears.listener)(Heard::Secret(secret));
            }
            ears.listen(&mut connection).await
        };
        let failed: Result<(), RedisError> = listening.await;
        drop(failed);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// The secret that all processes share: that of the first one that came.
pub(crate) async fn common_secret(
    connection: &mut Connection,
    own: [u8; 32],
) -> Result<[u8; 32], RedisError> {
    let () = redis::cmd("SET").arg(SECRET).arg(&own).arg("NX").query_async(connection).await?;
    let kept: Vec<u8> = redis::cmd("GET").arg(SECRET).query_async(connection).await?;
    Ok(kept.try_into().unwrap_or(own))
}

/// Who listens.
pub(crate) struct Ears {
    desk: Desk,
    origin: u64,
    /// The last message that was heard.
    last: String,
    /// The time at which this process began.
    began: String,
    listener: Listener,
}

/// One message: its id and its fields.
type Message = (String, Vec<(Vec<u8>, Vec<u8>)>);

impl Ears {
    /// Nothing was heard yet.
    pub(crate) const fn new(desk: Desk, origin: u64, listener: Listener) -> Self {
        Self { desk, origin, last: String::new(), began: String::new(), listener }
    }

    async fn listen(&mut self, connection: &mut Connection) -> Result<(), RedisError> {
        if self.last.is_empty() {
            let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(connection).await?;
            let now = seconds * 1_000 + micros / 1_000;
            self.began = format!("{now}-0");
            self.last = format!("{}-0", now.saturating_sub(HISTORY.as_millis() as u64));
        }
        self.read_settings(connection).await?;
        loop {
            let mut asking = redis::cmd("XREAD");
            asking.arg("COUNT").arg(256).arg("BLOCK").arg(WAIT.as_millis() as u64);
            asking.arg("STREAMS").arg(ORDERS).arg(&self.last);
            let said: Value = asking.query_async(connection).await?;
            if said == Value::Nil {
                continue;
            }
            let streams: Vec<(String, Vec<Message>)> = FromRedisValue::from_redis_value(said)?;
            let mut changed = BTreeSet::new();
            for (id, fields) in streams.into_iter().flat_map(|(_, messages)| messages) {
                changed.extend(self.hear(id, fields));
            }
            for name in changed {
                let kept: Option<String> =
                    redis::cmd("HGET").arg(SETTINGS).arg(&name).query_async(connection).await?;
                if let Some(kept) = kept {
                    self.take_in(&name, &kept);
                }
            }
        }
    }

    /// Reads the newest of all settings, and brings back what Redis has lost.
    async fn read_settings(&self, connection: &mut Connection) -> Result<(), RedisError> {
        let all: BTreeMap<String, String> =
            redis::cmd("HGETALL").arg(SETTINGS).query_async(connection).await?;
        for (name, version, value) in self.desk.settings().lost_by(&all) {
            let call = writing(&name, &value, Some(version), self.origin);
            call.invoke_async::<u8>(connection).await?;
        }
        for (name, kept) in &all {
            self.take_in(name, kept);
        }
        Ok(())
    }

    fn take_in(&self, name: &str, kept: &str) {
        if let Some(value) = self.desk.settings().read(name, kept) {
            (self.listener)(Heard::Setting { name: name.to_owned(), value });
        }
    }

    /// Takes in a message; gives the name of a setting back that was changed.
    fn hear(&mut self, id: String, fields: Vec<(Vec<u8>, Vec<u8>)>) -> Option<String> {
        let place = place_of(&id);
        let is_old = place.0 < place_of(&self.began).0;
        self.last = id;
        let own = self.origin.to_string();
        let is_own = fields.iter().any(|(name, value)| name == b"from" && *value == own.as_bytes());
        let mut setting = None;
        for (name, value) in fields {
            // Anybody can write into the stream; what is no text says nothing to us.
            let Ok(value) = String::from_utf8(value) else { continue };
            match &*name {
                b"body" if !is_own => (self.listener)(Heard::Order { place, message: value, is_old }),
                b"setting" => setting = Some(value),
                _ => {}
            }
        }
        setting
    }
}

/// The time of a message in milliseconds, and its number in that millisecond.
fn place_of(id: &str) -> (u64, u64) {
    let (time, number) = id.split_once('-').unwrap_or((id, "0"));
    (time.parse().unwrap_or(0), number.parse().unwrap_or(0))
}
