//! The baseline of a miss over UDP: plain datagrams through the same hops.
//! [`memory`] is that of a miss through shared memory.
//!
//! A request goes from a client to a forwarder, which sends it on to a server,
//! which answers the client: the way of a request through a switch to a home and of the data back.
//! Nothing is computed on the way. So what a miss costs beyond this is the protocol's.
//!
//! Requests and answers larger than a datagram travel as several, as blocks do.

mod datagram;
mod hops;
pub mod memory;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use datagram::{Header, parts};
use hops::{Link, Received};

pub use datagram::{MAX_DATAGRAM_BYTES, MAX_PARTS, MIN_DATAGRAM_BYTES};

/// How long a client waits for an answer; loopback loses nothing that is not lost for good.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How often a hop asks in vain before it lets others run: always where cores are too few.
const PATIENCE: [u32; 2] = [1, 1000];
/// The largest message through shared memory: a block and a header.
pub const MAX_MESSAGE_BYTES: usize = 65_536 + 64;

/// What each hop does while it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Sleeps in the kernel until a datagram comes.
    Block,
    /// Asks again and again; where there are fewer cores than hops, lets others run in between.
    Spin,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// Bytes of a request, headers of this baseline included.
    pub request: usize,
    /// Bytes of an answer.
    pub answer: usize,
    /// The largest payload of one datagram.
    pub datagram: usize,
    /// How hops wait.
    pub wait: Wait,
    /// Requests that are measured.
    pub rounds: u32,
    /// Requests before these.
    pub warm_up: u32,
    /// How long the client computes between one answer and the next request.
    pub pause: Duration,
}

impl Default for Chain {
    /// A small request for a block of 4 KiB over a network with an MTU of 1500 bytes.
    fn default() -> Self {
        Chain {
            request: 64,
            answer: 4096,
            datagram: 1472,
            wait: Wait::Block,
            rounds: 20_000,
            warm_up: 1_000,
            pause: Duration::ZERO,
        }
    }
}

/// Why there is no measurement.
#[derive(Debug)]
pub enum PlainError {
    /// A datagram must have [`MIN_DATAGRAM_BYTES`] to [`MAX_DATAGRAM_BYTES`].
    DatagramSize(usize),
    /// A request or an answer of so many bytes takes more than [`MAX_PARTS`] datagrams, or no slot.
    TooLarge(usize),
    /// A socket did not work.
    Socket(io::Error),
    /// No answer came in time.
    Lost,
}

impl fmt::Display for PlainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlainError::DatagramSize(bytes) => write!(
                f,
                "a datagram of {bytes} bytes: {MIN_DATAGRAM_BYTES} to {MAX_DATAGRAM_BYTES} are possible"
            ),
            PlainError::TooLarge(bytes) => {
                write!(
                    f,
                    "{bytes} bytes take more than {MAX_PARTS} datagrams, or one slot of memory"
                )
            }
            PlainError::Socket(error) => write!(f, "a socket on loopback: {error}"),
            PlainError::Lost => write!(f, "no answer on loopback within {TIMEOUT:?}"),
        }
    }
}

impl std::error::Error for PlainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PlainError::Socket(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for PlainError {
    fn from(error: io::Error) -> Self {
        PlainError::Socket(error)
    }
}

/// Measures the time from the first datagram of a request to the last of its answer,
/// in nanoseconds.
pub fn measure(chain: Chain) -> Result<Histogram, PlainError> {
    if !(MIN_DATAGRAM_BYTES..=MAX_DATAGRAM_BYTES).contains(&chain.datagram) {
        return Err(PlainError::DatagramSize(chain.datagram));
    }
    let [client, forwarder, server] = [socket()?, socket()?, socket()?];
    let addresses = [
        client.local_addr()?,
        forwarder.local_addr()?,
        server.local_addr()?,
    ];
    let request = parts(chain.request, chain.datagram)?;
    let answer = parts(chain.answer, chain.datagram)?;
    let stop = AtomicBool::new(false);
    let mut link = Link::new(client, chain.wait)?;
    let forwarder = Link::new(forwarder, chain.wait)?;
    let server = Link::new(server, chain.wait)?;
    std::thread::scope(|scope| {
        let (stop, request, answer) = (&stop, &request, &answer);
        scope.spawn(move || hops::forward(forwarder, addresses[2], stop));
        scope.spawn(move || hops::serve(server, addresses[0], request.len(), answer, stop));
        let result = ask(&mut link, addresses[1], chain, request, answer.len());
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
}

/// The client: one request after the other.
fn ask(
    link: &mut Link,
    forwarder: std::net::SocketAddr,
    chain: Chain,
    request: &[usize],
    answers: usize,
) -> Result<Histogram, PlainError> {
    let mut times = Histogram::new();
    for round in 0..chain.warm_up.saturating_add(chain.rounds) {
        let start = Instant::now();
        for (part, &bytes) in (0..).zip(request) {
            link.send(Header { round, part }, bytes, forwarder)?;
        }
        let mut missing = answers;
        while missing > 0 {
            match link.receive()? {
                Received::Part(header) if header.round == round => missing -= 1,
                // An answer to a request that was given up, or from elsewhere.
                Received::Part(_) => {}
                Received::Nothing if start.elapsed() > TIMEOUT => return Err(PlainError::Lost),
                Received::Nothing => {}
            }
        }
        if round >= chain.warm_up {
            times.record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        compute(chain.pause);
    }
    Ok(times)
}

/// Keeps the processor busy for a while, as an application does between two requests.
pub fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Chain = Chain {
        request: 64,
        answer: 4096,
        datagram: 1472,
        wait: Wait::Block,
        rounds: 200,
        warm_up: 20,
        pause: Duration::ZERO,
    };

    #[test]
    fn answers_come_through_the_chain_either_way_of_waiting() {
        for wait in [Wait::Block, Wait::Spin] {
            for (request, answer) in [(1, 1), (64, 4096), (4096, 64), (5000, 5000)] {
                let chain = Chain {
                    request,
                    answer,
                    wait,
                    ..SHORT
                };
                let times = measure(chain).unwrap();
                assert_eq!(times.count(), 200);
                // Two system calls a hop take more than a microsecond on any machine.
                assert!(times.min() > 1000, "{wait:?} {times:?}");
            }
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let sized = |answer, datagram| {
            measure(Chain {
                answer,
                datagram,
                ..SHORT
            })
        };
        assert!(matches!(sized(64, 4), Err(PlainError::DatagramSize(4))));
        assert!(matches!(
            sized(64, 70_000),
            Err(PlainError::DatagramSize(70_000))
        ));
        assert!(matches!(sized(1 << 30, 1472), Err(PlainError::TooLarge(_))));
    }
}
