//! A real etcd, and what is not one.

use crate::server::Server;
use crate::witness::{PATIENCE, Told, join, last_lease};
use crate::{keepers, stores};
use rackmem::membership::{Etcd, MembershipError, Role, Store};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn etcd_keeps_the_rules() {
    let Some(server) = Server::start("rules") else {
        return;
    };
    stores::demand(&server.store("rules"));
    // Names that begin alike are different racks.
    assert!(
        server
            .store("rule")
            .load(PATIENCE)
            .unwrap()
            .roster
            .is_none()
    );
    assert!(
        server
            .store("rules2")
            .load(PATIENCE)
            .unwrap()
            .roster
            .is_none()
    );
}

#[test]
fn a_rack_lives_on_etcd() {
    let Some(server) = Server::start("lives") else {
        return;
    };
    keepers::live(&server.store("lives"));
}

/// While it is away nobody serves; when it is back all go on, and nobody was declared dead.
#[test]
fn etcd_may_be_killed_and_restarted() {
    let Some(mut server) = Server::start("restart") else {
        return;
    };
    let store = server.store("restart");
    let members: Vec<_> = (0..3)
        .map(|node| join(&store, Role::Node(node)).unwrap())
        .collect();
    members.iter().for_each(|(_, seen)| seen.wait_live(0b111));
    server.kill();
    for (keeper, seen) in &members {
        seen.wait("lapsed", |told| last_lease(told) == Some(false));
        assert!(!keeper.serves());
    }
    let trouble = members[0].0.trouble().unwrap();
    assert!(trouble.contains(&server.endpoint()), "{trouble}");
    server.restart();
    for (keeper, seen) in &members {
        seen.wait("renewed", |told| last_lease(told) == Some(true));
        assert!(!seen.told().contains(&Told::Fenced));
        assert_eq!((keeper.view().live.0, keeper.view().epoch), (0b111, 1));
    }
}

#[test]
fn an_endpoint_that_is_dead_is_passed_over() {
    let Some(server) = Server::start("several") else {
        return;
    };
    let dead = format!("http://{}", rackmem_hosts::addresses(1)[0]);
    let store: Arc<dyn Store> = Arc::new(Etcd::new(vec![dead, server.endpoint()], "several"));
    stores::demand(&store);
}

#[test]
fn what_does_not_answer_is_named() {
    let endpoint = format!("http://{}", rackmem_hosts::addresses(1)[0]);
    let store = Etcd::new(vec![endpoint.clone()], "rack");
    let error = store.load(Duration::from_millis(200)).unwrap_err();
    assert!(
        matches!(error, MembershipError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains(&endpoint), "{error}");
    // One that takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let error = Etcd::new(vec![endpoint], "rack")
        .load(Duration::from_millis(50))
        .unwrap_err();
    assert!(
        matches!(error, MembershipError::Unreachable { .. }),
        "{error:?}"
    );
}

#[test]
fn what_is_not_etcd_is_told() {
    let answers = [
        ("200 OK", "hello"),
        ("200 OK", "[]"),
        ("200 OK", "{\"kvs\":[{\"key\":\"*\"}]}"),
        ("404 Not Found", "nothing here"),
        (
            "400 Bad Request",
            "{\"error\":\"etcdserver: user name is empty\"}",
        ),
    ];
    for (status, body) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}",
                body.len()
            );
            let _ = write!(stream, "{head}\r\n\r\n{body}");
            // The request may come in two pieces: closing with one unread would take the answer
            // back.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let error = Etcd::new(vec![endpoint.clone()], "rack")
            .load(PATIENCE)
            .unwrap_err();
        assert!(
            matches!(error, MembershipError::Refused { .. }),
            "{status} {body}: {error:?}"
        );
        assert!(error.to_string().contains(&endpoint), "{error}");
        server.join().unwrap();
    }
}
