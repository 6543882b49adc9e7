//! Redis' own tools against every node of a rack. Skipped where they are not installed.

use std::net::SocketAddr;
use std::process::{Command, Output};

use rackmem::{Node, Rack};
use rackmem_kv::{Options, Server, ServerConfig, Store};

fn serve(node: &Node) -> Server {
    let options = Options {
        buckets: 1024,
        ..Options::default()
    };
    let store = Store::open(node.clone(), options).unwrap();
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::bind(
        store,
        ServerConfig {
            addr,
            ..ServerConfig::default()
        },
    )
    .unwrap()
}

/// Runs a tool against a port; `None` when it is not installed.
fn run(tool: &str, port: u16, words: &[&str]) -> Option<Output> {
    let port = port.to_string();
    match Command::new(tool)
        .args(["-h", "127.0.0.1", "-p", &port])
        .args(words)
        .output()
    {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{tool}: {error}"),
    }
}

fn cli(port: u16, words: &[&str]) -> Option<String> {
    let output = run("redis-cli", port, words)?;
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned(),
    )
}

#[test]
fn redis_cli_at_every_node() {
    let rack = Rack::local(3).unwrap();
    let servers: Vec<_> = rack.nodes().iter().map(serve).collect();
    let ports: Vec<_> = servers.iter().map(|s| s.local_addr().port()).collect();
    for (i, port) in ports.iter().enumerate() {
        let value = format!("from {i}");
        let Some(reply) = cli(*port, &["set", "greeting", &value]) else {
            return;
        };
        assert_eq!(reply, "OK");
        for other in &ports {
            assert_eq!(cli(*other, &["get", "greeting"]).unwrap(), value);
            assert_eq!(cli(*other, &["-3", "get", "greeting"]).unwrap(), value);
        }
    }
    assert_eq!(cli(ports[1], &["--scan"]).unwrap(), "greeting");
    assert_eq!(
        cli(ports[2], &["--bigkeys"])
            .unwrap()
            .matches("1 strings with 6 bytes")
            .count(),
        1
    );
    assert!(
        cli(ports[0], &["info", "keyspace"])
            .unwrap()
            .contains("db0:keys=1,")
    );
    assert!(
        cli(ports[0], &["client", "list"])
            .unwrap()
            .starts_with("id=")
    );
}

#[test]
fn redis_benchmark_at_every_node() {
    let rack = Rack::local(2).unwrap();
    let servers: Vec<_> = rack.nodes().iter().map(serve).collect();
    for server in &servers {
        let words = "-t ping,set,get,incr,mset -n 5000 -r 1000 -c 4 -P 8 -q --csv";
        let words: Vec<_> = words.split(' ').collect();
        let Some(output) = run("redis-benchmark", server.local_addr().port(), &words) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        for test in ["PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"] {
            assert!(text.contains(&format!("\"{test}\"")), "{test}: {text}");
        }
    }
}
