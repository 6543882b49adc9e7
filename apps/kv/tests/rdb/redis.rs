//! A server of Redis that has loaded a file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A connection to a server.
pub struct Client(BufReader<TcpStream>);

pub struct Redis {
    server: Child,
    folder: PathBuf,
    client: Client,
}

impl Deref for Redis {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Redis {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Redis {
    /// `None`: it is not installed.
    pub fn start(file: &[u8]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rackmem-rdb-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("dump.rdb"), file).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let started = Command::new("redis-server")
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--enable-debug-command",
                "yes",
            ])
            .args(["--port", &port.to_string(), "--dir"])
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn();
        let Ok(server) = started else {
            let _ = std::fs::remove_dir_all(&folder);
            return None;
        };
        let mut tries = 0;
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) => {
                    tries += 1;
                    assert!(tries < 600, "redis-server does not come: {error}");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        };
        let mut redis = Self {
            server,
            folder,
            client: Client(BufReader::new(stream)),
        };
        while redis.ask(&["PING"]) != "PONG" {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(redis)
    }
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(addr).unwrap()))
    }

    pub fn ask(&mut self, words: &[&str]) -> String {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let answer = self.ask_bytes(&words).unwrap_or_default();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The answer: a line without its first letter, or a string. `None` for nothing.
    pub fn ask_bytes(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n", word.len()).bytes());
            command.extend_from_slice(word);
            command.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&command).unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let line = line.trim_end();
        let Some(len) = line.strip_prefix('$') else {
            return Some(line.get(1..)?.as_bytes().to_vec());
        };
        let mut bytes = vec![0; len.parse::<usize>().ok()? + 2];
        self.0.read_exact(&mut bytes).unwrap();
        bytes.truncate(bytes.len() - 2);
        Some(bytes)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
