//! A small HTTP server for what watches a process: one request a connection, answered as a whole.
//! Whatever a client does, it takes one thread of few, some kilobytes and some seconds.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Connections at a time; one more is answered 503 at once.
const CONNECTIONS: usize = 8;
/// Bytes of a request, up to the empty line.
const HEAD_BYTES: usize = 8 << 10;
/// Header fields of a request.
const FIELDS: usize = 64;
/// How long a client may take to send its request, and then to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a listener's error, as when the process has no more descriptors.
const REST: Duration = Duration::from_millis(100);
/// Bytes that are read and dropped behind a refused request, so that its answer arrives.
const DRAIN_BYTES: usize = 4 << 20;

/// What a client asks for.
pub struct Asked {
    /// Without the query.
    pub path: String,
    /// What it would like, by its `Accept`.
    pub accept: String,
}

/// What it is answered.
pub struct Answer {
    pub status: &'static str,
    pub media: &'static str,
    pub body: String,
}

impl Answer {
    /// A page of this type.
    pub fn page(media: &'static str, body: String) -> Self {
        Answer {
            status: "200 OK",
            media,
            body,
        }
    }

    /// A refusal, in a line.
    pub fn refusal(status: &'static str, why: &str) -> Self {
        Answer {
            status,
            media: "text/plain; charset=utf-8",
            body: format!("{why}\n"),
        }
    }

    fn encode(&self, with_body: bool) -> Vec<u8> {
        let Answer {
            status,
            media,
            body,
        } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        let body = if with_body { body.as_str() } else { "" };
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

type Serve = dyn Fn(&Asked) -> Answer + Send + Sync;

/// A server; it takes no more connections when it is dropped.
pub struct HttpServer {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl HttpServer {
    /// Serves from threads of its own.
    pub fn start(
        listener: TcpListener,
        serve: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (addr, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let (stopped, serve): (_, Arc<Serve>) = (stop.clone(), Arc::new(serve));
        let here = addr.ip();
        let accept = move || accept(&listener, here, &stopped, &serve);
        let named = std::thread::Builder::new().name("watching".into());
        named.spawn(accept)?;
        Ok(HttpServer { addr, stop })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        // The listener's thread wakes and ends; if it cannot be reached, with the process.
        let _ = TcpStream::connect_timeout(&self.addr, REST);
    }
}

fn accept(listener: &TcpListener, here: IpAddr, stop: &AtomicBool, serve: &Arc<Serve>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if stop.load(SeqCst) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            std::thread::sleep(REST);
            continue;
        };
        let place = Place(open.clone());
        if open.fetch_add(1, SeqCst) >= CONNECTIONS {
            let full = Answer::refusal("503 Service Unavailable", "too many connections");
            let _ = stream.set_nonblocking(true);
            // What the socket does not take at once is not said.
            let _ = (&stream).write(&full.encode(true));
            continue;
        }
        let serve = serve.clone();
        let named = std::thread::Builder::new().name("watching".into());
        // Without a thread the connection is closed.
        let _ = named.spawn(move || {
            let _place = place;
            talk(&stream, here, &*serve);
        });
    }
}

/// One of the connections at a time.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Reads a request and answers it; a client that goes away is not missed.
fn talk(stream: &TcpStream, here: IpAddr, serve: &Serve) {
    let mut reader = Until(stream, Instant::now() + PATIENCE);
    let (answer, with_body) = match read(&mut reader, here) {
        Ok(asked) => (serve(&asked.0), asked.1),
        Err(Some(refusal)) => (refusal, true),
        Err(None) => return,
    };
    let mut writer = Until(stream, Instant::now() + PATIENCE);
    let written = writer.write_all(&answer.encode(with_body));
    if written.is_err() || stream.shutdown(std::net::Shutdown::Write).is_err() {
        return;
    }
    // Bytes that nobody has read would make the answer a reset at the client.
    let (mut drain, mut left) = ([0; 4096], DRAIN_BYTES);
    while let Ok(read @ 1..) = writer.read(&mut drain) {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

/// A stream until a deadline, however little comes or goes at a time.
struct Until<'a>(&'a TcpStream, Instant);

impl Until<'_> {
    fn left(&self) -> std::io::Result<Duration> {
        let left = self.1.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(left),
        }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.set_read_timeout(Some(self.left()?))?;
        self.0.read(bytes)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.set_write_timeout(Some(self.left()?))?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A request, and whether its answer has a body; or a refusal; or nothing, of a client that went.
fn read(reader: &mut impl Read, here: IpAddr) -> Result<(Asked, bool), Option<Answer>> {
    let (mut head, mut known) = (vec![0; HEAD_BYTES], 0);
    loop {
        let read = match reader.read(&mut head[known..]) {
            Ok(0) => return Err(None),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => {
                let why = format!("no whole request within {} s", PATIENCE.as_secs());
                return Err(Some(Answer::refusal("408 Request Timeout", &why)));
            }
        };
        known += read;
        match parse(&head[..known], here) {
            Ok(Some(asked)) => return Ok(asked),
            Ok(None) if known < HEAD_BYTES => {}
            Ok(None) => {
                let why = format!("a request has {HEAD_BYTES} bytes at most");
                let status = "431 Request Header Fields Too Large";
                return Err(Some(Answer::refusal(status, &why)));
            }
            Err(refusal) => return Err(Some(refusal)),
        }
    }
}

/// What the bytes ask for, when they are a whole request.
fn parse(head: &[u8], here: IpAddr) -> Result<Option<(Asked, bool)>, Answer> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            let why = format!("a request has {FIELDS} header fields at most");
            let status = "431 Request Header Fields Too Large";
            return Err(Answer::refusal(status, &why));
        }
        Err(error) => {
            let why = format!("this is no HTTP/1 request: {error}");
            return Err(Answer::refusal("400 Bad Request", &why));
        }
    }
    let field = |name: &str| {
        let mut found = request.headers.iter();
        let found = found.find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    let with_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => {
            let status = "405 Method Not Allowed";
            return Err(Answer::refusal(status, "GET is all that there is"));
        }
    };
    // A page of elsewhere that has its name point here would have the user's browser read for it.
    if here.is_loopback() && !field("host").is_none_or(|host| is_here(&host)) {
        let why = "ask by an address or as localhost";
        return Err(Answer::refusal("421 Misdirected Request", why));
    }
    let path = request.path.unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let accept = field("accept").unwrap_or_default();
    Ok(Some((Asked { path, accept }, with_body)))
}

/// Whether a `Host` is an address or this machine's own name for itself.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn status(head: &str) -> Option<&'static str> {
        match parse(head.as_bytes(), HERE) {
            Ok(asked) => asked.map(|_| "200 OK"),
            Err(refusal) => Some(refusal.status),
        }
    }

    #[test]
    fn requests_are_read_when_they_are_whole() {
        let head = "GET /metrics?a=b HTTP/1.1\r\nHost: [::1]:9400\r\nACCEPT: text/plain\r\n\r\n";
        for end in 0..head.len() {
            assert!(
                matches!(parse(&head.as_bytes()[..end], HERE), Ok(None)),
                "{end}"
            );
        }
        let (asked, with_body) = parse(head.as_bytes(), HERE).ok().flatten().unwrap();
        assert_eq!(
            (asked.path.as_str(), asked.accept.as_str()),
            ("/metrics", "text/plain")
        );
        assert!(with_body);
        let head = parse(b"HEAD / HTTP/1.0\r\n\r\n", HERE)
            .ok()
            .flatten()
            .unwrap();
        assert!(!head.1);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(
            status("POST / HTTP/1.1\r\n\r\n"),
            Some("405 Method Not Allowed")
        );
        assert_eq!(status("\x16\x03\x01\x02"), Some("400 Bad Request"));
        let fields = "a: b\r\n".repeat(FIELDS + 1);
        let many = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(status(&many), Some("431 Request Header Fields Too Large"));
        let endless = format!("GET /{}", "a".repeat(2 * HEAD_BYTES));
        let refused = read(&mut endless.as_bytes(), HERE).err().flatten().unwrap();
        assert_eq!(refused.status, "431 Request Header Fields Too Large");
        assert!(read(&mut &b"GET / HT"[..], HERE).err().unwrap().is_none());
    }

    #[test]
    fn a_name_of_elsewhere_is_not_answered() {
        let of = |host: &str| status(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        for host in ["localhost", "LOCALHOST:9400", "127.0.0.1:9400", "[::1]"] {
            assert_eq!(of(host), Some("200 OK"), "{host}");
        }
        assert_eq!(of("evil.example:9400"), Some("421 Misdirected Request"));
        let anywhere = parse(
            b"GET / HTTP/1.1\r\nHost: rack7\r\n\r\n",
            [0, 0, 0, 0].into(),
        );
        assert!(anywhere.is_ok());
    }
}
