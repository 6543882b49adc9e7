//! Connections that speak TLS, and clients that do it wrong.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rackmem_kv::{BindError, ServerConfig, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use support::Client;
use support::talk::server;

/// An authority, a server and a client that it signed, as files.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kv-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = Self(folder);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        files.put("ca.pem", &params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        for who in ["127.0.0.1", "client"] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![who.to_owned()]).unwrap();
            files.put(
                &format!("{who}.pem"),
                &params.signed_by(&key, &issuer).unwrap().pem(),
            );
            files.put(&format!("{who}.key"), &key.serialize_pem());
        }
        files
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::write(self.0.join(name), content).unwrap();
    }

    fn config(&self) -> TlsConfig {
        TlsConfig {
            cert: self.0.join("127.0.0.1.pem"),
            key: self.0.join("127.0.0.1.key"),
            ca: None,
            port: None,
        }
    }

    fn certificate(&self, name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.0.join(name)).unwrap()
    }

    /// Connects and trusts the authority; `who` it says it is.
    fn connect(&self, addr: SocketAddr, who: Option<&str>) -> Secure {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate("ca.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match who {
            None => builder.with_no_client_auth(),
            Some(who) => {
                let key = PrivateKeyDer::from_pem_file(self.0.join(format!("{who}.key"))).unwrap();
                let chain = vec![self.certificate(&format!("{who}.pem"))];
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(addr).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Secure(BufReader::new(StreamOwned::new(connection, socket)))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Secure(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Secure {
    /// Says a line; the first line of the reply.
    fn say(&mut self, line: &str) -> std::io::Result<String> {
        self.0
            .get_mut()
            .write_all(format!("{line}\r\n").as_bytes())?;
        self.line()
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut reply = String::new();
        self.0.read_line(&mut reply)?;
        Ok(reply.trim_end().to_owned())
    }
}

#[test]
fn values_of_any_size_pass() {
    let files = Files::new("sizes");
    let server = server(|config| config.tls = Some(files.config()));
    assert_eq!(server.tls_addr(), Some(server.local_addr()));
    let mut client = files.connect(server.local_addr(), None);
    assert_eq!(client.say("PING").unwrap(), "+PONG");
    for len in [1, 16 << 10, (16 << 10) + 1, 200_000, 5 << 20] {
        let value = vec![b'v'; len];
        client
            .0
            .get_mut()
            .write_all(&support::encode(&[b"SET", b"k", &value]))
            .unwrap();
        assert_eq!(client.line().unwrap(), "+OK");
        assert_eq!(client.say("GET k").unwrap(), format!("${len}"));
        let mut back = vec![0; len + 2];
        client.0.read_exact(&mut back).unwrap();
        assert!(back[..len] == value, "{len} bytes");
    }
    // Many replies at once, to a client that takes them late.
    let many: Vec<u8> = b"PING\r\n".repeat(20_000);
    client.0.get_mut().write_all(&many).unwrap();
    for _ in 0..20_000 {
        assert_eq!(client.line().unwrap(), "+PONG");
    }
    assert_eq!(client.say("QUIT").unwrap(), "+OK");
    assert_eq!(
        client.line().unwrap(),
        "",
        "the connection has been ended with a farewell"
    );
}

#[test]
fn those_who_speak_something_else_are_turned_away() {
    let files = Files::new("garbage");
    let server = server(|config| config.tls = Some(files.config()));
    let mut inside = files.connect(server.local_addr(), None);
    assert_eq!(inside.say("PING").unwrap(), "+PONG");
    let mut random = fastrand::Rng::with_seed(7);
    let mut hello = vec![22, 3, 1, 255, 255];
    hello.extend(std::iter::repeat_with(|| random.u8(..)).take(3000));
    for bytes in [
        b"PING\r\n".to_vec(),
        b"*1\r\n$4\r\nPING\r\n".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100_000],
        hello,
        std::iter::repeat_with(|| random.u8(..))
            .take(5000)
            .collect(),
    ] {
        let mut socket = TcpStream::connect(server.local_addr()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // The server may have ended it before all was sent.
        let _ = socket.write_all(&bytes);
        let mut heard = Vec::new();
        // An alert at most, and the end.
        let _ = socket.read_to_end(&mut heard);
        assert!(heard.len() < 16 && !heard.starts_with(b"+"), "{heard:?}");
    }
    // Half a handshake, and gone.
    let mut socket = TcpStream::connect(server.local_addr()).unwrap();
    socket.write_all(&[22, 3, 1, 0, 200, 1]).unwrap();
    drop(socket);
    assert_eq!(inside.say("PING").unwrap(), "+PONG");
}

#[test]
fn clients_may_have_to_show_a_certificate() {
    let files = Files::new("clients");
    let ca = Some(files.0.join("ca.pem"));
    let server = server(|config| {
        config.tls = Some(TlsConfig {
            ca,
            ..files.config()
        })
    });
    let mut known = files.connect(server.local_addr(), Some("client"));
    assert_eq!(known.say("PING").unwrap(), "+PONG");
    let mut unknown = files.connect(server.local_addr(), None);
    assert!(unknown.say("PING").is_err());
    let other = Files::new("others");
    let mut forged = other.connect(server.local_addr(), Some("client"));
    assert!(forged.say("PING").is_err());
    assert_eq!(known.say("PING").unwrap(), "+PONG");
}

#[test]
fn two_doors() {
    let files = Files::new("doors");
    let server = server(|config| {
        config.tls = Some(TlsConfig {
            port: Some(0),
            ..files.config()
        });
        config.workers = 2;
    });
    let secure = server.tls_addr().unwrap();
    assert_ne!(secure, server.local_addr());
    let mut plain = Client::new(server.local_addr());
    let mut clients: Vec<_> = (0..4).map(|_| files.connect(secure, None)).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.say(&format!("SET k{i} {i}")).unwrap(), "+OK");
    }
    assert_eq!(plain.say("MGET k0 k1 k2 k3"), r#"["0" "1" "2" "3"]"#);
}

#[test]
fn files_that_are_none_are_told_before_the_server_starts() {
    let files = Files::new("files");
    let nothing = files.0.join("nothing.pem");
    std::fs::write(&nothing, "nothing").unwrap();
    let refused = |tls: TlsConfig| {
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServerConfig {
            addr,
            tls: Some(tls),
            ..ServerConfig::default()
        };
        matches!(config.probe(), Err(BindError::Tls(why)) if why.contains("kv-tls-files"))
    };
    assert!(refused(TlsConfig {
        cert: nothing.clone(),
        ..files.config()
    }));
    assert!(refused(TlsConfig {
        key: nothing.clone(),
        ..files.config()
    }));
    assert!(refused(TlsConfig {
        key: files.0.join("client.key"),
        ..files.config()
    }));
    assert!(refused(TlsConfig {
        ca: Some(nothing),
        ..files.config()
    }));
    assert!(refused(TlsConfig {
        cert: files.0.join("missing"),
        ..files.config()
    }));
    assert!(!refused(files.config()));
}
