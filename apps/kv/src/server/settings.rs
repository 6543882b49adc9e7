//! Settings that change while the server runs. They are a node's; of those that are the rack's,
//! what the node knows.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use super::tracking;
use super::uses::Counting;

/// How much `slowlog-max-len` and `acllog-max-len` may be.
const MAX_LOG: i64 = 1 << 16;

/// Keys that are looked at for each that goes, at most, whatever `maxmemory-samples` says.
const MAX_SAMPLES: usize = 64;

/// A setting that is a number.
#[derive(Debug)]
pub(crate) struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    value: AtomicI64,
}

/// What a setting's words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number of this range.
    Number(i64, i64),
    /// Classes of keyspace events: see [`event_bits`].
    Events,
    /// One of [`POLICIES`].
    Policy,
    /// Bytes, perhaps with a unit.
    Bytes,
}

/// Which keys go when the memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// None: writes that need memory fail.
    None,
    /// Any.
    AnyKey,
    /// Any that has an expiry.
    AnyExpiring,
    /// Of those that have an expiry, such as expire soon.
    FirstToExpire,
    /// Such as this node's clients have not used for long.
    AnyUnused,
    /// The same of those that have an expiry.
    ExpiringUnused,
    /// Such as this node's clients use seldom.
    AnySeldom,
    /// The same of those that have an expiry.
    ExpiringSeldom,
}

impl Policy {
    /// Whether it matters when or how often keys are used.
    pub fn goes_by_use(self) -> bool {
        matches!(self, Self::AnyUnused | Self::ExpiringUnused) || self.goes_by_count()
    }

    /// Whether it matters how often.
    pub fn goes_by_count(self) -> bool {
        matches!(self, Self::AnySeldom | Self::ExpiringSeldom)
    }
}

/// The policies by their names in Redis, the one at the beginning first.
const POLICIES: [(&str, Policy); 8] = [
    ("noeviction", Policy::None),
    ("allkeys-random", Policy::AnyKey),
    ("volatile-random", Policy::AnyExpiring),
    ("volatile-ttl", Policy::FirstToExpire),
    ("allkeys-lru", Policy::AnyUnused),
    ("volatile-lru", Policy::ExpiringUnused),
    ("allkeys-lfu", Policy::AnySeldom),
    ("volatile-lfu", Policy::ExpiringSeldom),
];

/// Keys whose copies at clients are looked after.
pub(crate) const TRACKED: &str = "tracking-table-max-keys";

/// Where each setting is among them.
const SLOWER_THAN: usize = 0;
const SLOWLOG_LEN: usize = 1;
const MAX_CLIENTS: usize = 2;
const TIMEOUT: usize = 3;
const POLICY: usize = 5;
const BUSY: usize = 6;
const LUA_TIME: usize = 7;
const ACL_LOG: usize = 8;
const SAMPLES: usize = 10;
const LFU_FACTOR: usize = 12;
const LFU_DECAY: usize = 13;
const LATENCY: usize = 14;

/// The settings.
#[derive(Debug)]
pub(crate) struct Settings([Setting; 15]);

impl Settings {
    /// As a server begins.
    pub fn new(max_clients: usize) -> Self {
        let setting = |name, kind, value| Setting {
            name,
            kind,
            value: AtomicI64::new(value),
        };
        let clients = i64::try_from(max_clients).unwrap_or(i64::MAX);
        Self([
            setting(
                "slowlog-log-slower-than",
                Kind::Number(-1, i64::MAX),
                10_000,
            ),
            setting("slowlog-max-len", Kind::Number(0, MAX_LOG), 128),
            setting("maxclients", Kind::Number(1, u32::MAX as i64), clients),
            setting("timeout", Kind::Number(0, i32::MAX as i64), 0),
            setting("notify-keyspace-events", Kind::Events, 0),
            setting("maxmemory-policy", Kind::Policy, 0),
            setting("busy-reply-threshold", Kind::Number(0, i64::MAX), 5000),
            // What it was called before Redis 7.
            setting("lua-time-limit", Kind::Number(0, i64::MAX), 5000),
            setting("acllog-max-len", Kind::Number(0, MAX_LOG), 128),
            setting("maxmemory", Kind::Bytes, 0),
            setting("maxmemory-samples", Kind::Number(1, i32::MAX as i64), 5),
            setting(TRACKED, Kind::Number(0, i64::MAX), tracking::KEYS as i64),
            setting("lfu-log-factor", Kind::Number(0, i32::MAX as i64), 10),
            setting("lfu-decay-time", Kind::Number(0, i32::MAX as i64), 1),
            setting("latency-monitor-threshold", Kind::Number(0, i64::MAX), 0),
        ])
    }

    /// All of them.
    pub fn all(&self) -> &[Setting] {
        &self.0
    }

    fn get(&self, at: usize) -> i64 {
        self.0[at].value.load(Relaxed)
    }

    /// Microseconds from which a command is slow; negative when none is.
    #[inline]
    pub fn slower_than(&self) -> i64 {
        self.get(SLOWER_THAN)
    }

    /// Milliseconds from which an event is a sample of LATENCY; 0: none is.
    #[inline]
    pub fn latency_threshold(&self) -> u64 {
        self.get(LATENCY).unsigned_abs()
    }

    /// Slow commands that are kept.
    pub fn slowlog_len(&self) -> usize {
        usize::try_from(self.get(SLOWLOG_LEN)).unwrap_or(0)
    }

    /// Refusals that ACL LOG keeps.
    pub fn acl_log_len(&self) -> usize {
        usize::try_from(self.get(ACL_LOG)).unwrap_or(0)
    }

    /// Connections at a time.
    pub fn max_clients(&self) -> usize {
        usize::try_from(self.get(MAX_CLIENTS)).unwrap_or(usize::MAX)
    }

    /// Seconds after which a quiet connection ends; 0: never.
    pub fn timeout(&self) -> u64 {
        self.get(TIMEOUT).unsigned_abs()
    }

    /// How long a script runs before it may be killed: the shorter of the two settings.
    pub fn busy_after(&self) -> Duration {
        let millis = self.get(BUSY).min(self.get(LUA_TIME));
        Duration::from_millis(millis.unsigned_abs())
    }

    /// Keys that are looked at for each that goes.
    pub fn samples(&self) -> usize {
        let wanted = usize::try_from(self.get(SAMPLES)).unwrap_or(MAX_SAMPLES);
        wanted.min(MAX_SAMPLES)
    }

    /// How uses of keys are counted.
    pub fn counting(&self) -> Counting {
        Counting {
            factor: self.get(LFU_FACTOR).unsigned_abs(),
            decay: self.get(LFU_DECAY).unsigned_abs(),
        }
    }

    /// What goes when the memory is full.
    pub fn policy(&self) -> Policy {
        POLICIES[self.get(POLICY) as usize % POLICIES.len()].1
    }

    /// What the rack has been told that goes; of a number that no policy has, nothing changes.
    pub fn set_policy(&self, number: u64) {
        if (0..POLICIES.len() as u64).contains(&number) {
            self.0[POLICY].set(number as i64);
        }
    }
}

impl Setting {
    /// As CONFIG GET shows it.
    pub fn text(&self) -> String {
        let value = self.value.load(Relaxed);
        match self.kind {
            Kind::Number(..) | Kind::Bytes => value.to_string(),
            Kind::Events => event_text(value as u32),
            Kind::Policy => POLICIES[value as usize % POLICIES.len()].0.to_owned(),
        }
    }

    /// What it is to become.
    ///
    /// # Errors
    /// Why it cannot be that.
    pub fn read(&self, word: &[u8]) -> Result<i64, String> {
        match self.kind {
            Kind::Number(least, most) => {
                let number = crate::number::parse_i64(word)
                    .ok_or("argument couldn't be parsed into an integer")?;
                match (least..=most).contains(&number) {
                    true => Ok(number),
                    false => Err(format!(
                        "argument must be between {least} and {most} inclusive"
                    )),
                }
            }
            Kind::Bytes => bytes(word).ok_or_else(|| "argument must be a memory value".to_owned()),
            Kind::Policy => {
                let named = |(name, _): &(&str, Policy)| name.as_bytes().eq_ignore_ascii_case(word);
                let at = POLICIES.iter().position(named);
                let names = POLICIES.map(|(name, _)| name).join(", ");
                at.map(|at| at as i64)
                    .ok_or_else(|| format!("argument(s) must be one of the following: {names}"))
            }
            Kind::Events => event_bits(word)
                .map(i64::from)
                .ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
        }
    }

    /// Changes it to what [`Setting::read`] made of its words.
    pub fn set(&self, value: i64) {
        self.value.store(value, Relaxed);
    }
}

/// Units of bytes, as Redis' configuration has them.
const UNITS: [(&str, i64); 8] = [
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1 << 30),
];

/// A number of bytes, such as `100mb`.
fn bytes(word: &[u8]) -> Option<i64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = word.split_at(digits);
    let is_unit = |(name, _): &&(&str, i64)| name.as_bytes().eq_ignore_ascii_case(unit);
    let (_, factor) = UNITS.iter().find(is_unit)?;
    std::str::from_utf8(number)
        .ok()?
        .parse::<i64>()
        .ok()?
        .checked_mul(*factor)
}

/// Classes of events, in the order they are shown, each with its letter.
const CLASSES: &[u8; 14] = b"g$lshzxetdKEmn";
/// The classes that `A` stands for.
const ALL: u32 = (1 << 10) - 1;

/// The class of a letter, a bit: `K` keyspace, `E` keyevent, `g` generic,
/// `$` strings, `l` lists, `s` sets, `h` hashes, `z` sorted sets, `x` expired, `e` evicted,
/// `t` streams, `d` modules, `m` misses, `n` new keys.
pub(crate) const fn event_class(letter: u8) -> u32 {
    let mut at = 0;
    while at < CLASSES.len() {
        if CLASSES[at] == letter {
            return 1 << at;
        }
        at += 1;
    }
    0
}

fn event_bits(word: &[u8]) -> Option<u32> {
    word.iter()
        .try_fold(0, |bits, letter| match (letter, event_class(*letter)) {
            (b'A', _) => Some(bits | ALL),
            (_, 0) => None,
            (_, bit) => Some(bits | bit),
        })
}

/// The letters of classes.
pub(crate) fn event_text(bits: u32) -> String {
    let mut text = String::new();
    if bits & ALL == ALL {
        text.push('A');
    }
    for (at, letter) in CLASSES.iter().enumerate() {
        let told = bits & ALL == ALL && ALL >> at & 1 == 1;
        if bits >> at & 1 == 1 && !told {
            text.push(char::from(*letter));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (given, want) in [
            ("0", Some(0)),
            ("1kb", Some(1024)),
            ("2K", Some(2000)),
            ("3Mb", Some(3 << 20)),
            ("4g", Some(4_000_000_000)),
            ("100b", Some(100)),
            ("", None),
            ("mb", None),
            ("-1", None),
            ("1tb", None),
            ("9223372036854775807k", None),
        ] {
            assert_eq!(bytes(given.as_bytes()), want, "{given}");
        }
    }

    #[test]
    fn classes_of_events_are_shown_as_in_redis() {
        for (given, shown) in [
            ("", ""),
            ("AKE", "AKE"),
            ("lhKx", "lhxK"),
            ("KEA", "AKE"),
            ("g$lshzxetdKE", "AKE"),
            ("Ex", "xE"),
        ] {
            assert_eq!(
                event_text(event_bits(given.as_bytes()).unwrap()),
                shown,
                "{given}"
            );
        }
        assert_eq!(event_bits(b"Q"), None);
        assert_eq!(
            event_bits(b"Kx").unwrap(),
            event_class(b'K') | event_class(b'x')
        );
    }
}
