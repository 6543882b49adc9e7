//! A store in etcd, through the JSON form of its v3 interface.
//!
//! Under `rackmem/NAME/` are `view`, its number alone as `version`, `groups` and `groups-version`
//! likewise, and a key for each beat. A proposal is one transaction that compares the version.
//! Plain HTTP: for a network that is the rack's own.

use super::{Beat, Groups, MembershipError, Result, Role, Roster, Snapshot, Store};
use super::{group_text, text};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ureq::Agent;

/// Bytes of an answer at most: all keys of a rack and what JSON adds.
const MAX_ANSWER: u64 = 256 << 10;
/// Characters of an error's text that are worth showing.
const MAX_WHY: usize = 300;
/// An endpoint gets no less time than this to answer.
const LEAST: Duration = Duration::from_millis(5);

/// For racks of machines. Needs etcd 3.4 or later; any of the endpoints will do.
///
/// ```no_run
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::membership::{Etcd, Store};
/// use std::time::Duration;
///
/// let endpoints = vec!["http://10.0.0.5:2379".to_string()];
/// let store = Etcd::new(endpoints, "rack");
/// println!("{:?}", store.load(Duration::from_secs(1))?.roster);
/// # Ok(())
/// # }
/// ```
pub struct Etcd {
    agent: Agent,
    endpoints: Vec<String>,
    /// The endpoint that is asked first: the one that answered last.
    first: AtomicUsize,
    prefix: String,
}

/// What etcd answers always has a header, which tells it from other answers.
#[derive(Deserialize)]
struct Range {
    #[serde(rename = "header")]
    _header: IgnoredAny,
    #[serde(default)]
    kvs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Txn {
    #[serde(rename = "header")]
    _header: IgnoredAny,
    #[serde(default)]
    succeeded: bool,
}

impl Etcd {
    /// The rack of this name at these endpoints, such as `http://10.0.0.5:2379`. Asks nobody yet.
    pub fn new(endpoints: Vec<String>, name: &str) -> Etcd {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .build();
        Etcd {
            agent: config.into(),
            endpoints,
            first: AtomicUsize::new(0),
            prefix: format!("rackmem/{name}/"),
        }
    }

    fn key(&self, name: &str) -> String {
        encode(&format!("{}{name}", self.prefix))
    }

    /// Asks one endpoint after the other, each with its share of the time, until one answers.
    fn ask(&self, call: &str, body: &Value, within: Duration) -> Result<String> {
        let end = Instant::now() + within;
        let count = self.endpoints.len();
        let first = self.first.load(Relaxed);
        let mut last = None;
        for turn in 0..count {
            let left = end.saturating_duration_since(Instant::now());
            let share = (left / (count - turn) as u32).max(LEAST);
            match self.ask_one((first + turn) % count, call, body, share) {
                Err(MembershipError::Unreachable { endpoint, why }) => {
                    last = Some(MembershipError::Unreachable { endpoint, why });
                }
                answer => return answer,
            }
        }
        Err(last.unwrap_or_else(|| MembershipError::Unreachable {
            endpoint: String::new(),
            why: "no endpoint is known".into(),
        }))
    }

    /// Asks this endpoint once. Whichever fails is asked later than others the next time.
    fn ask_one(&self, index: usize, call: &str, body: &Value, within: Duration) -> Result<String> {
        let endpoint = self.endpoints.get(index).cloned().unwrap_or_default();
        let answer = self
            .agent
            .post(format!("{endpoint}/v3/kv/{call}"))
            .config()
            .timeout_global(Some(within))
            .build()
            .content_type("application/json")
            .send(body.to_string())
            .and_then(|mut answer| {
                let status = answer.status();
                let body = answer.body_mut().with_config().limit(MAX_ANSWER);
                Ok((status, body.read_to_string()?))
            });
        let answer = match answer {
            Ok((status, text)) if status.is_success() => Ok(text),
            // It has no leader, or is only starting: another may know more.
            Ok((status, text)) if status.is_server_error() => Err(MembershipError::Unreachable {
                endpoint,
                why: complaint(status.as_u16(), &text),
            }),
            Ok((status, text)) => Err(MembershipError::Refused {
                endpoint,
                why: complaint(status.as_u16(), &text),
            }),
            Err(error) => Err(MembershipError::Unreachable {
                endpoint,
                why: error.to_string(),
            }),
        };
        let first = index + usize::from(answer.is_err());
        self.first
            .store(first % self.endpoints.len().max(1), Relaxed);
        answer
    }

    /// Stores a version of something if the newest is the one before.
    fn put_version(
        &self,
        (name, counter): (&str, &str),
        version: u64,
        text: String,
        within: Duration,
    ) -> Result<bool> {
        let key = self.key(counter);
        let compare = match version.saturating_sub(1) {
            0 => json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}),
            before => {
                let value = encode(&before.to_string());
                json!({"key": key, "target": "VALUE", "result": "EQUAL", "value": value})
            }
        };
        let put = |key: String, value: String| json!({"request_put": {"key": key, "value": encode(&value)}});
        let body = json!({
            "compare": [compare],
            "success": [
                put(key, version.to_string()),
                put(self.key(name), text),
            ],
        });
        let answer = self.ask("txn", &body, within)?;
        Ok(self.parse::<Txn>(&answer)?.succeeded)
    }

    fn garbage(&self, key: &str, why: String) -> MembershipError {
        let endpoints = self.endpoints.join(",");
        MembershipError::Garbage {
            place: format!("key {}{key} of etcd at {endpoints}", self.prefix),
            why,
        }
    }

    fn decode(&self, text: &str) -> Result<Vec<u8>> {
        BASE64_STANDARD
            .decode(text)
            .map_err(|error| MembershipError::Refused {
                endpoint: self.endpoints.join(","),
                why: format!("an answer that is not etcd's ({error})"),
            })
    }

    fn parse<'a, T: Deserialize<'a>>(&self, answer: &'a str) -> Result<T> {
        serde_json::from_str(answer).map_err(|error| MembershipError::Refused {
            endpoint: self.endpoints.join(","),
            why: format!("an answer that is not etcd's ({error})"),
        })
    }
}

impl Store for Etcd {
    fn load(&self, within: Duration) -> Result<Snapshot> {
        // All keys of the rack: '0' follows '/'.
        let end = encode(&format!("{}0", self.prefix.trim_end_matches('/')));
        let body = json!({"key": self.key(""), "range_end": end});
        let answer = self.ask("range", &body, within)?;
        let range: Range = self.parse(&answer)?;
        let mut snapshot = Snapshot::default();
        for pair in range.kvs {
            let key = String::from_utf8_lossy(&self.decode(&pair.key)?).into_owned();
            let key = key.strip_prefix(&self.prefix).unwrap_or_default();
            let value = self.decode(&pair.value)?;
            if key == "view" {
                let roster = text::to_roster(&value).map_err(|why| self.garbage(key, why))?;
                snapshot.roster = Some(roster);
            } else if let Some(role) = Role::all().find(|&role| text::name(role) == key) {
                let beat = text::to_beat(&value).map_err(|why| self.garbage(key, why))?;
                snapshot.beats[role.index()] = Some(beat);
            }
        }
        Ok(snapshot)
    }

    fn propose(&self, next: &Roster, within: Duration) -> Result<bool> {
        let (version, text) = (next.view.version, text::of_roster(next));
        self.put_version(("view", "version"), version, text, within)
    }

    fn beat(&self, role: Role, beat: Beat, within: Duration) -> Result<()> {
        let value = encode(&text::of_beat(beat));
        let body = json!({"key": self.key(&text::name(role)), "value": value});
        // Once and no more: a copy that came late could hide a newer beat.
        // The next beat asks another endpoint.
        let index = self.first.load(Relaxed) % self.endpoints.len().max(1);
        self.ask_one(index, "put", &body, within).map(drop)
    }

    fn groups(&self, within: Duration) -> Result<Option<Groups>> {
        let answer = self.ask("range", &json!({"key": self.key("groups")}), within)?;
        let range: Range = self.parse(&answer)?;
        let Some(pair) = range.kvs.first() else {
            return Ok(None);
        };
        let value = self.decode(&pair.value)?;
        let groups = group_text::to_groups(&value);
        groups.map(Some).map_err(|why| self.garbage("groups", why))
    }

    fn propose_groups(&self, next: &Groups, within: Duration) -> Result<bool> {
        let (version, text) = (next.version, group_text::of_groups(next));
        self.put_version(("groups", "groups-version"), version, text, within)
    }
}

fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// What an answer says that is an error, short enough for a line.
fn complaint(status: u16, text: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let told = parsed.as_ref().and_then(|value| value["error"].as_str());
    let told: String = told.unwrap_or(text).chars().take(MAX_WHY).collect();
    format!("HTTP {status}: {}", told.trim())
}
