//! CLIENT TRACKING at one node: what a client is told of the keys of which it keeps copies, and how
//! many they are.

mod support;

use support::{Client, talk};

/// Two clients: one tracks, and the other hears what it is to be told.
struct Tracks {
    client: Client,
    ears: Client,
    number: String,
}

impl Tracks {
    fn new(server: &rackmem_kv::Server) -> Self {
        let mut ears = Client::new(server.local_addr());
        let number = ears.say("CLIENT ID").trim_start_matches(':').to_owned();
        ears.say("SUBSCRIBE __redis__:invalidate");
        Tracks {
            client: Client::new(server.local_addr()),
            ears,
            number,
        }
    }

    fn track(&mut self, how: &str) {
        let command = format!("CLIENT TRACKING ON REDIRECT {} {how}", self.number);
        assert_eq!(self.client.say(&command), "+OK");
    }

    /// The keys of the next message; none: any.
    fn told(&mut self) -> String {
        let told = self.ears.reply();
        let keys = told
            .strip_prefix("[\"message\" \"__redis__:invalidate\" ")
            .expect("a message");
        keys.trim_end_matches(']').replace(['[', '"'], "")
    }

    /// That nothing was told since: what is said now comes next.
    fn told_nothing_more(&mut self) {
        assert_eq!(self.client.say("PUBLISH __redis__:invalidate end"), ":1");
        assert_eq!(self.told(), "end");
    }

    /// How much is tracked: clients, keys, copies, prefixes.
    fn totals(&mut self) -> [u64; 4] {
        let info = self.client.say("INFO");
        let names = ["clients", "total_keys", "total_items", "total_prefixes"];
        names.map(|name| {
            let (_, rest) = info.split_once(&format!("tracking_{name}:")).unwrap();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        })
    }
}

fn server() -> rackmem_kv::Server {
    talk::server(|config| config.workers = 1)
}

#[test]
fn a_key_is_told_once_of_a_transaction_and_with_those_of_its_prefix() {
    let server = server();
    let mut one = Tracks::new(&server);
    one.track("BCAST PREFIX a: PREFIX b:");
    for said in [
        "MULTI", "INCR a:1", "INCR a:2", "INCR a:1", "INCR b:1", "INCR c:1", "EXEC",
    ] {
        one.client.say(said);
    }
    assert_eq!(one.told(), "a:1 a:2");
    assert_eq!(one.told(), "b:1");
    one.told_nothing_more();
}

#[test]
fn a_key_that_went_in_a_flush_is_not_told_again_when_it_comes_back() {
    let server = server();
    let mut one = Tracks::new(&server);
    one.track("BCAST");
    one.client.say("SET key 1");
    assert_eq!(one.told(), "key");
    one.client.say("FLUSHALL");
    assert_eq!(one.told(), "nil");
    one.client.say("SET key 1");
    assert_eq!(one.told(), "key");
    one.told_nothing_more();
}

#[test]
fn as_many_keys_are_tracked_as_the_setting_says() {
    let server = server();
    let mut one = Tracks::new(&server);
    one.track("NOLOOP");
    one.client.say("MGET k1 k2 k3");
    assert_eq!(one.totals(), [1, 3, 3, 0]);
    let set = "CONFIG SET tracking-table-max-keys";
    // Also with NOLOOP: it is no change of its own.
    assert_eq!(one.client.say(&format!("{set} 1")), "+OK");
    let forgotten = [one.told(), one.told()];
    assert_eq!(one.totals(), [1, 1, 1, 0]);
    let left = ["k1", "k2", "k3"].map(str::to_owned);
    let left = left.iter().find(|key| !forgotten.contains(key)).unwrap();
    one.client.say("GET k4");
    assert_eq!(one.told(), *left);
    assert_eq!(one.totals(), [1, 1, 1, 0]);
    one.told_nothing_more();
    assert_eq!(one.client.say(&format!("{set} 0")), "+OK");
    let shown = one.client.say("CONFIG GET tracking-table-max-keys");
    assert_eq!(shown, "[\"tracking-table-max-keys\" \"0\"]");
    one.client.say("MGET k1 k2");
    assert_eq!(one.totals(), [1, 3, 3, 0]);
    let mut other = Tracks::new(&server);
    other.track("BCAST PREFIX a PREFIX b");
    let mut third = Tracks::new(&server);
    third.track("");
    third.client.say("GET k1");
    assert_eq!(one.totals(), [3, 3, 4, 2]);
    third.client.say("CLIENT TRACKING OFF");
    other.client.say("CLIENT TRACKING OFF");
    assert_eq!(one.totals(), [1, 3, 3, 0]);
}

#[test]
fn a_flush_is_told_to_all_and_new_settings_keep_the_copies() {
    let server = server();
    let (mut one, mut writer) = (Tracks::new(&server), Client::new(server.local_addr()));
    one.track("");
    one.client.say("GET key");
    one.track("OPTIN");
    writer.say("SET key 1");
    assert_eq!(one.told(), "key");
    writer.say("FLUSHDB");
    assert_eq!(one.told(), "nil");
    one.told_nothing_more();
}

#[test]
fn of_a_script_that_reads_the_declared_keys_are_tracked() {
    let server = server();
    let (mut one, mut writer) = (Tracks::new(&server), Client::new(server.local_addr()));
    one.track("");
    let eval = |text: &str| format!("EVAL \"{text}\" 2 key1 key2");
    for (script, tracked) in [
        (eval("redis.call('set', 'key3', 'x')"), false),
        (eval("redis.call('get', 'key3')"), true),
        (
            "EVAL_RO \"redis.call('ping')\" 2 key1 key2".to_owned(),
            false,
        ),
        (
            "EVAL_RO \"redis.call('get', 'key1')\" 2 key1 key2".to_owned(),
            true,
        ),
    ] {
        one.client.say(&script);
        writer.say("MSET key2 1 key1 1 key3 1");
        if tracked {
            assert_eq!([one.told(), one.told()], ["key2", "key1"], "{script}");
        }
        one.told_nothing_more();
    }
}

#[test]
fn prefixes_do_not_overlap() {
    let server = server();
    let mut client = Client::new(server.local_addr());
    let script = r#"
        > CLIENT TRACKING ON BCAST PREFIX foobar PREFIX foo
        < -ERR Prefix 'foobar' overlaps with another provided prefix 'foo'. Prefixes for a single client must not overlap.
        > CLIENT TRACKING ON BCAST PREFIX foo PREFIX foobar
        < -ERR Prefix 'foo' overlaps with another provided prefix 'foobar'. Prefixes for a single client must not overlap.
        > CLIENT TRACKING ON BCAST PREFIX foo PREFIX bar
        < +OK
        > CLIENT TRACKING ON BCAST PREFIX fo
        < -ERR Prefix 'fo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.
        > CLIENT TRACKING ON BCAST PREFIX bar
        < -ERR Prefix 'bar' overlaps with an existing prefix 'bar'. Prefixes for a single client must not overlap.
        > CLIENT TRACKINGINFO
        < ["flags" ["on" "bcast"] "redirect" :0 "prefixes" ["foo" "bar"]]
    "#;
    talk::converse(&mut client, script);
}
