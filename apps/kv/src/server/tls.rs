//! TLS: what a server needs for it, and a socket that may speak it.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

/// What a server shows its clients, and asks of them. Files are in PEM.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// The server's certificate, and those between it and the authority that signed it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authorities whose clients are let in. `None`: no certificate is asked
    /// of clients.
    pub ca: Option<PathBuf>,
    /// The port of a listener of its own, 0 for any free one; the other listener then speaks plain
    /// text. `None`: the only listener speaks TLS.
    pub port: Option<u16>,
}

impl TlsConfig {
    /// Reads the files.
    ///
    /// # Errors
    /// The file and what is wrong with it.
    pub(crate) fn load(&self) -> std::result::Result<Arc<ServerConfig>, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &self.ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(ca)? {
                    roots.add(root).map_err(|error| at(ca, error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| at(ca, error))?)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| at(&self.key, error))?;
        let config = builder.with_single_cert(certificates(&self.cert)?, key);
        Ok(Arc::new(config.map_err(|error| at(&self.cert, error))?))
    }
}

fn at(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn certificates(path: &Path) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| at(path, error))?;
    match found.is_empty() {
        true => Err(at(path, "no certificate in it")),
        false => Ok(found),
    }
}

/// A client's socket.
pub(crate) struct Socket {
    tcp: TcpStream,
    tls: Option<Box<ServerConnection>>,
}

impl Socket {
    /// `secure`: speaks TLS with these settings.
    ///
    /// # Errors
    /// The settings are of no use.
    pub fn new(tcp: TcpStream, secure: Option<Arc<ServerConfig>>) -> Result<Self> {
        let connection = secure.map(ServerConnection::new).transpose();
        let tls = connection.map_err(Error::other)?.map(Box::new);
        Ok(Self { tcp, tls })
    }

    pub fn tcp(&mut self) -> &mut TcpStream {
        &mut self.tcp
    }

    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether there are bytes for the other side that were written and have not been sent.
    pub fn is_behind(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Ends the connection; the other side is told if it still reads.
    pub fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.tcp);
        }
        // It may be gone already; then there is nothing to undo.
        let _ = self.tcp.shutdown(Shutdown::Both);
    }
}

/// Sends what is ready, as far as the other side takes it.
fn push(tls: &mut ServerConnection, tcp: &mut TcpStream) -> Result<()> {
    while tls.wants_write() {
        match tls.write_tls(tcp) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.tcp.read(out);
        };
        loop {
            match tls.reader().read(out) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The other side is gone without a word; what it sent before has been read.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if tls.read_tls(&mut self.tcp)? == 0 && tls.is_handshaking() {
                return Ok(0);
            }
            let came = tls.process_new_packets();
            // The handshake's next step, or the alert that says what is wrong.
            let sent = push(tls, &mut self.tcp);
            came.map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
            sent?;
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.tcp.write(bytes);
        };
        loop {
            let taken = tls.writer().write(bytes)?;
            push(tls, &mut self.tcp)?;
            if taken > 0 || bytes.is_empty() {
                return Ok(taken);
            }
            if tls.wants_write() {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        push(tls, &mut self.tcp)?;
        match tls.wants_write() {
            true => Err(ErrorKind::WouldBlock.into()),
            false => Ok(()),
        }
    }
}
