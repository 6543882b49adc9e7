//! Users: what each may do, at every node of the rack.

mod support;

use std::net::SocketAddr;
use std::path::PathBuf;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{BindError, Options, Server, ServerConfig, Store};
use support::Client;
use support::talk::{converse, server};

#[test]
fn rules_say_what_may_be_done() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        r#"
        > ACL WHOAMI
        < "default"
        > ACL LIST
        < ["user default on nopass ~* &* +@all"]
        > ACL SETUSER bob on >pw ~a* %R~r* %W~w* &ch* +@read +set +mset +copy -get +client|id +config|get +multi +exec
        < +OK
        > AUTH bob wrong
        < -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH nobody pw
        < -WRONGPASS invalid username-password pair or user is disabled.
        > ACL WHOAMI
        < "default"
        > AUTH bob pw
        < +OK
        > ACL WHOAMI
        < -NOPERM this user has no permissions to run the 'acl|whoami' command
        > GET a
        < -NOPERM this user has no permissions to run the 'get' command
        > SET zz 1
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > SET aa 1
        < +OK
        > SET wa 1
        < +OK
        > SET wa 1 GET
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > GETRANGE wa 0 1
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > STRLEN wa
        < :1
        > STRLEN zz
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > STRLEN ra
        < :0
        > SET ra 1
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > COPY ra wb
        < :0
        > COPY wa wb
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > MSET a1 1 zz 2
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > CLIENT LIST
        < -NOPERM this user has no permissions to run the 'client|list' command
        > CONFIG GET databases
        < ["databases" "16"]
        > CONFIG SET timeout 0
        < -NOPERM this user has no permissions to run the 'config|set' command
        > MULTI
        < +OK
        > SET a1 1
        < +QUEUED
        > SET z1 1
        < -NOPERM this user has no permissions to access one of the keys used as arguments
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > NOSUCH
        < -ERR unknown command 'NOSUCH', with args beginning with: 
        > RESET
        < +RESET
        > ACL WHOAMI
        < "default"
        > EXISTS a1 zz
        < :0
        > HELLO 2 AUTH bob wrong
        < -WRONGPASS invalid username-password pair or user is disabled.
        > ACL DRYRUN bob SET zz 1
        < "This user has no permissions to access the 'zz' key"
        > ACL SETUSER bob +bitfield
        < +OK
        > ACL DRYRUN bob BITFIELD ra GET u4 0
        < +OK
        > ACL DRYRUN bob BITFIELD ra GET u4 0 SET u4 0 1
        < "This user has no permissions to access the 'ra' key"
        > ACL DRYRUN bob GET a
        < "This user has no permissions to run the 'get' command"
        > ACL DRYRUN bob SET aa 1
        < +OK
        > ACL DRYRUN bob NOSUCH
        < -ERR Command 'NOSUCH' not found
        > ACL DRYRUN nobody GET a
        < -ERR User 'nobody' not found
        > ACL DELUSER default
        < -ERR The 'default' user cannot be removed
        > ACL DELUSER bob nobody
        < :1
        > AUTH bob pw
        < -WRONGPASS invalid username-password pair or user is disabled.
        "#,
    );
    assert!(client.say("ACL LOG 1").contains(r#""reason" "auth""#));
    let queued = client.say("ACL LOG 3");
    assert!(queued.contains(r#""context" "multi""#), "{queued}");
    assert_eq!(client.say("CONFIG SET acllog-max-len 1"), "+OK");
    client.say("AUTH nobody pw");
    assert_eq!(client.say("ACL LOG").matches("reason").count(), 1);
    converse(&mut client, "> ACL LOG RESET\n< +OK\n> ACL LOG\n< []");
    assert_eq!(client.say("ACL GENPASS").len(), 64 + 2);
    assert_eq!(client.say("ACL GENPASS 5").len(), 2 + 2);
}

#[test]
fn rules_are_shown_as_redis_shows_them() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    for (rules, shown) in [
        ("reset", "off sanitize-payload resetchannels -@all"),
        ("on +@all", "on sanitize-payload resetchannels +@all"),
        ("+client|id", "on sanitize-payload resetchannels +@all"),
        (
            "-get -client|kill",
            "on sanitize-payload resetchannels +@all -get -client|kill",
        ),
        (
            "+client|kill",
            "on sanitize-payload resetchannels +@all -get",
        ),
        (
            "+@all -@dangerous",
            "on sanitize-payload resetchannels +@all -@dangerous",
        ),
        (
            "nocommands +get|foo",
            "on sanitize-payload resetchannels -@all +get|foo",
        ),
        ("+get", "on sanitize-payload resetchannels -@all +get"),
        (
            "+@string +set",
            "on sanitize-payload resetchannels -@all +@string",
        ),
        (
            "nocommands +config -config|set +get|x -@admin",
            "on sanitize-payload resetchannels -@all +config +get|x -@admin",
        ),
        (
            "-@all +client -client|id",
            "on sanitize-payload resetchannels -@all +client -client|id",
        ),
        (
            "nocommands (+get ~x) (+set %R~y &z) nopass",
            "on nopass sanitize-payload resetchannels -@all (~x resetchannels -@all +get) \
             (%R~y resetchannels &z -@all +set)",
        ),
        (
            "clearselectors allkeys allchannels",
            "on nopass sanitize-payload ~* &* -@all",
        ),
        (
            "resetkeys %R~a %W~a resetpass",
            "on sanitize-payload ~a &* -@all",
        ),
    ] {
        assert_eq!(
            client.say(&format!("ACL SETUSER eve {rules}")),
            "+OK",
            "{rules}"
        );
        let list = client.say("ACL LIST");
        let want = format!("user eve {shown}\"]");
        assert!(list.ends_with(&want), "after {rules}: {list}, not {want}");
    }
    for (rule, why) in [
        ("+nosuch", "Unknown command or category name in ACL"),
        ("+@nosuch", "Unknown command or category name in ACL"),
        ("+client|foo", "Unknown command or category name in ACL"),
        (
            "+client|id|x",
            "Allowing first-arg of a subcommand is not supported",
        ),
        ("foo", "Syntax error"),
        ("%X~a", "Syntax error"),
        (
            "<nopw",
            "The password you are trying to remove from the user does not exist",
        ),
    ] {
        let want = format!("-ERR Error in ACL SETUSER modifier '{rule}': {why}");
        assert_eq!(client.say(&format!("ACL SETUSER eve on {rule}")), want);
    }
    let unmatched = "-ERR Unmatched parenthesis in acl selector starting at '(+get'.";
    assert_eq!(client.say("ACL SETUSER eve (+get ~x"), unmatched);
    // A rule that is none leaves the user as it was.
    assert!(
        client
            .say("ACL LIST")
            .ends_with("user eve on sanitize-payload ~a &* -@all\"]")
    );
}

#[test]
fn the_selector_that_comes_farthest_explains_and_may_read_all() {
    let server = server(|_| {});
    let mut admin = Client::new(server.local_addr());
    let mut bob = Client::new(server.local_addr());
    admin.say("ACL SETUSER bob on nopass +mget ~key (+mget ~key ~other) (+sort +sort_ro ~list)");
    admin.say("RPUSH list 1");
    assert_eq!(bob.say("AUTH bob x"), "+OK");
    for words in ["MGET other third", "MGET key other third"] {
        admin.say("ACL LOG RESET");
        assert!(bob.say(words).starts_with("-NOPERM"));
        let log = admin.say("ACL LOG");
        assert!(log.contains(r#""object" "third""#), "{log}");
    }
    let denied = "-ERR BY option of SORT denied due to insufficient ACL permissions.";
    assert_eq!(bob.say("SORT list BY v*"), denied);
    // Who may read any key by another rule than this command's may not by this one.
    admin.say("ACL SETUSER bob (+get %R~*) (+sort ~list %W~*)");
    assert_eq!(bob.say("SORT list BY v*"), denied);
    admin.say("ACL SETUSER bob (+sort ~list %R~*)");
    assert_eq!(bob.say("SORT list BY v*"), "[\"1\"]");
    server.shutdown();
}

#[test]
fn who_may_not_hear_a_channel_any_more_is_cut_off() {
    let server = server(|_| {});
    let mut admin = Client::new(server.local_addr());
    for (subscribe, keeps, loses) in [
        ("SUBSCRIBE a", "&a", "&b* &s"),
        ("SSUBSCRIBE s", "&*", "&a &b*"),
        ("PSUBSCRIBE b*", "&a &b*", "&a &b1 &s"),
    ] {
        admin.say("ACL SETUSER bob on nopass +@all resetchannels &a &b* &s");
        let mut client = Client::new(server.local_addr());
        for command in ["AUTH bob x", "CLIENT SETNAME listener", subscribe] {
            client.say(command);
        }
        for (rules, stays) in [(keeps, true), (loses, false)] {
            admin.say(&format!("ACL SETUSER bob resetchannels {rules}"));
            let listed = admin.say("CLIENT LIST").contains("name=listener");
            assert_eq!(listed, stays, "{subscribe}, then {rules}");
        }
    }
}

#[test]
fn a_transaction_goes_by_the_rules_of_its_end() {
    let server = server(|_| {});
    let mut admin = Client::new(server.local_addr());
    let mut client = Client::new(server.local_addr());
    assert_eq!(admin.say("ACL SETUSER bob on nopass ~* +@all"), "+OK");
    converse(
        &mut client,
        "> AUTH bob x\n< +OK\n> MULTI\n< +OK\n> SET a 1\n< +QUEUED\n> GET b\n< +QUEUED",
    );
    assert_eq!(admin.say("ACL SETUSER bob -set"), "+OK");
    let denied = "-NOPERM this user has no permissions to run the 'set' command";
    assert_eq!(client.say("EXEC"), format!("[{denied} nil]"));
    assert_eq!(admin.say("ACL DELUSER bob"), ":1");
    client.send(&[b"PING"]);
    assert!(
        client.try_reply().is_none(),
        "the user is gone, and the connection with it"
    );
}

fn at(memory: HeapMemory, acl_file: Option<PathBuf>) -> Result<Server, BindError> {
    let options = Options {
        buckets: 16,
        ..Options::default()
    };
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        acl_file,
        ..ServerConfig::default()
    };
    Server::bind(Store::open(memory, options).unwrap(), config)
}

#[test]
fn every_node_has_the_same_users() {
    let memory = HeapMemory::new(4096, 64 << 20, 2);
    let servers = [
        at(memory.clone(), None).unwrap(),
        at(memory.node(1), None).unwrap(),
    ];
    let [mut here, mut there] = servers
        .each_ref()
        .map(|server| Client::new(server.local_addr()));
    assert_eq!(here.say("ACL SETUSER bob on >pw ~b* +get +ping"), "+OK");
    // A login looks at once, and so does whatever is asked after it.
    assert_eq!(there.say("AUTH bob pw"), "+OK");
    assert_eq!(there.say("GET b"), "nil");
    assert_eq!(
        there.say("GET a"),
        "-NOPERM this user has no permissions to access one of the keys used as arguments"
    );
    assert_eq!(here.say("ACL DELUSER bob"), ":1");
    // An open connection ends with the next look, a tenth of a second later at most.
    while there.say_maybe("PING").is_some() {}
    let mut there = Client::new(servers[1].local_addr());
    assert!(there.say("AUTH bob pw").starts_with("-WRONGPASS"));
    // And the default user's rules are the rack's once they were changed.
    assert_eq!(here.say("ACL SETUSER default >secret"), "+OK");
    let mut there = Client::new(servers[1].local_addr());
    assert_eq!(there.say("AUTH default secret"), "+OK");
    while Client::new(servers[1].local_addr()).say("PING") == "+PONG" {}
    drop(servers);
    let restarted = at(memory, None).unwrap();
    let mut client = Client::new(restarted.local_addr());
    assert_eq!(client.say("GET b"), "-NOAUTH Authentication required.");
}

#[test]
fn users_come_from_a_file_and_go_to_it() {
    let path = std::env::temp_dir().join(format!("kv-users-{}.acl", std::process::id()));
    std::fs::write(
        &path,
        "# people\nuser bob on nopass ~* +@all\n\nuser eve off\n",
    )
    .unwrap();
    let memory = HeapMemory::new(4096, 64 << 20, 1);
    let server = at(memory.clone(), Some(path.clone())).unwrap();
    let mut client = Client::new(server.local_addr());
    assert_eq!(client.say("ACL USERS"), r#"["bob" "default" "eve"]"#);
    assert_eq!(client.say("ACL DELUSER eve"), ":1");
    assert_eq!(client.say("ACL SAVE"), "+OK");
    let saved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        saved,
        "user bob on nopass ~* resetchannels +@all\nuser default on nopass ~* &* +@all\n"
    );
    std::fs::write(&path, "user bob on >other +get\n").unwrap();
    assert_eq!(client.say("ACL LOAD"), "+OK");
    assert!(client.say("AUTH bob x").starts_with("-WRONGPASS"));
    std::fs::write(&path, "user bob on +nosuch\n").unwrap();
    assert!(
        client
            .say("ACL LOAD")
            .contains("line 1: Error in ACL SETUSER modifier '+nosuch'")
    );
    assert_eq!(client.say("AUTH bob other"), "+OK");
    drop(server);
    assert!(matches!(
        at(memory, Some(path.clone())),
        Err(BindError::Users(_))
    ));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn nobody_comes_in_from_outside_without_a_password() {
    let memory = HeapMemory::new(4096, 64 << 20, 2);
    let here = at(memory.clone(), None).unwrap();
    let options = Options {
        buckets: 16,
        ..Options::default()
    };
    let config = ServerConfig {
        addr: SocketAddr::from(([0, 0, 0, 0], 0)),
        password: Some("secret".into()),
        ..ServerConfig::default()
    };
    let store = Store::open(memory.node(1), options).unwrap();
    let open = Server::bind(store, config).unwrap();
    let port = open.local_addr().port();
    let mut inside = Client::new(here.local_addr());
    let mut outside = Client::new(SocketAddr::from(([127, 0, 0, 1], port)));
    // The first user of the rack leaves the default user of each node as it is.
    assert_eq!(inside.say("ACL SETUSER bob on nopass +@all"), "+OK");
    assert_eq!(outside.say("PING"), "-NOAUTH Authentication required.");
    let refused = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(outside.say("AUTH bob x"), refused);
    assert_eq!(outside.say("AUTH default secret"), "+OK");
    assert_eq!(
        inside.say("ACL SETUSER default on nopass ~* &* +@all"),
        "+OK"
    );
    let mut outside = Client::new(SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(outside.say("AUTH default x"), refused);
    assert_eq!(outside.say("PING"), "-NOAUTH Authentication required.");
}
