//! Clients that others have written: redis-cli and redis-benchmark of Debian's redis-tools.

use crate::process::has;
use std::net::SocketAddr;
use std::process::Command;

/// Every node is written by redis-cli and read on all nodes.
pub fn redis_cli(addrs: &[SocketAddr]) {
    if !has("redis-cli") {
        return;
    }
    for (node, &addr) in addrs.iter().enumerate() {
        let value = format!("from node {node}");
        assert_eq!(cli(addr, &["set", "greeting", &value]), "OK");
        for &other in addrs {
            assert_eq!(cli(other, &["get", "greeting"]), value, "{addr} to {other}");
        }
        let count = (node + 1).to_string();
        assert_eq!(cli(addr, &["incr", "visits"]), count);
    }
    let info = cli(addrs[0], &["info"]);
    assert!(info.contains("rack_nodes:"), "{info}");
    assert_eq!(cli(addrs[0], &["del", "greeting", "visits"]), "2");
}

fn cli(addr: SocketAddr, words: &[&str]) -> String {
    let port = addr.port().to_string();
    let output = Command::new("redis-cli")
        .args(["-h", "127.0.0.1", "-p", &port])
        .args(words)
        .output()
        .expect("redis-cli runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// redis-benchmark against every node at once, plain and pipelined.
pub fn redis_benchmark(addrs: &[SocketAddr]) {
    if !has("redis-benchmark") {
        return;
    }
    std::thread::scope(|scope| {
        for &addr in addrs {
            scope.spawn(move || {
                benchmark(
                    addr,
                    &["-t", "ping,set,get,incr,mset", "-n", "1000", "-c", "4"],
                );
                benchmark(
                    addr,
                    &["-t", "set,get", "-n", "4000", "-c", "4", "-P", "16"],
                );
            });
        }
    });
}

fn benchmark(addr: SocketAddr, options: &[&str]) {
    let port = addr.port().to_string();
    let output = Command::new("redis-benchmark")
        .args(["-h", "127.0.0.1", "-p", &port, "-q", "-r", "500"])
        .args(options)
        .output()
        .expect("redis-benchmark runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{error}");
    assert!(text.contains("requests per second"), "{text}{error}");
    assert!(
        !text.contains("rror") && !error.contains("rror"),
        "{text}{error}"
    );
}
