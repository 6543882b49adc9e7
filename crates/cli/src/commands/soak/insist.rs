//! Asks nodes of a rack that is whole until each command has an answer,
//! on machines where that takes long.
//!
//! A busy machine makes a node answer late, or with a lock that is busy, or while its lease has run
//! out. None of that is an answer, nor a fault of the machine: the command is sent again. A node
//! that has nothing to say for [`PATIENCE`] is a finding.

use super::client::{Answer, Client};
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a node may leave all commands of a window without an answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A node, and the connection to it, if there is one.
pub struct Asked {
    number: usize,
    addr: SocketAddr,
    client: Option<Client>,
    patience: Duration,
}

/// What became of a command in one attempt.
type Heard = std::result::Result<Answer, String>;

impl Asked {
    /// A node.
    pub fn new(number: usize, addr: SocketAddr) -> Self {
        Asked {
            number,
            addr,
            client: None,
            patience: PATIENCE,
        }
    }

    /// Sends commands until `hear` has taken an answer to each, by the command's number: it may be
    /// called with a refusal several times before. `false`: the run was told to stop.
    ///
    /// # Errors
    /// When no command has an answer for too long.
    pub fn insist(
        &mut self,
        commands: &[Vec<&str>],
        stop: &Stop,
        mut hear: impl FnMut(usize, Heard) -> Result<()>,
    ) -> Result<bool> {
        let mut left: Vec<usize> = (0..commands.len()).collect();
        let mut since = Instant::now();
        while !left.is_empty() {
            let before = left.len();
            let mut last = String::new();
            let sent = left
                .iter()
                .map(|nth| &commands[*nth][..])
                .collect::<Vec<_>>();
            let answers = self.attempt(&sent);
            let mut again = Vec::new();
            for (at, nth) in left.iter().enumerate() {
                let heard = match answers.get(at) {
                    Some(Ok(Answer::Error(error))) => Err(error.clone()),
                    Some(Ok(answer)) => Ok(answer.clone()),
                    Some(Err(error)) => Err(describe(error)),
                    None => Err("nothing".into()),
                };
                if let (Err(error), true) = (&heard, last.is_empty()) {
                    last = format!("{}: {error}", commands[*nth].join(" "));
                }
                again.extend(heard.is_err().then_some(*nth));
                hear(*nth, heard)?;
            }
            left = again;
            if left.is_empty() {
                break;
            }
            if left.len() < before {
                since = Instant::now();
            }
            if since.elapsed() >= self.patience {
                return Err(Failure::new(
                    format!(
                        "the rack is whole, and node {} has not answered one of {} commands for {} s; {last}",
                        self.number,
                        left.len(),
                        self.patience.as_secs(),
                    ),
                    "this is a defect: please report it with the seed and the options",
                ));
            }
            if !stop.sleep(PAUSE) {
                return Ok(false);
            }
        }
        Ok(!stop.requested())
    }

    /// Sends all of them once. Where the connection breaks the answers end,
    /// the last of them an error.
    fn attempt(&mut self, commands: &[&[&str]]) -> Vec<io::Result<Answer>> {
        let client = match self.client.take() {
            Some(client) => Ok(client),
            None => Client::connect(self.addr),
        };
        let mut client = match client {
            Ok(client) => client,
            Err(error) => return vec![Err(error)],
        };
        if let Err(error) = client.send(commands.iter().copied()) {
            return vec![Err(error)];
        }
        let mut answers = Vec::with_capacity(commands.len());
        for _ in commands {
            answers.push(client.answer());
            if matches!(answers.last(), Some(Err(_))) {
                return answers;
            }
        }
        self.client = Some(client);
        answers
    }
}

/// The system calls a read that took too long a resource that is temporarily unavailable.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// A node that gives a connection each of these lines in turn for a command,
    /// and then closes it.
    fn node(connections: Vec<Vec<&'static str>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answers in connections {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(&stream);
                for answer in answers {
                    // *1, $4, PING
                    for _ in 0..3 {
                        reader.read_line(&mut String::new()).unwrap();
                    }
                    write!(&stream, "{answer}\r\n").unwrap();
                }
            }
        });
        addr
    }

    fn ask(addr: SocketAddr, patience: Duration) -> (Result<bool>, Vec<(usize, Heard)>) {
        let mut asked = Asked {
            patience,
            ..Asked::new(3, addr)
        };
        let commands = vec![vec!["PING"]; 2];
        let mut heard = Vec::new();
        let done = asked.insist(&commands, &Stop::default(), |nth, what| {
            heard.push((nth, what));
            Ok(())
        });
        (done, heard)
    }

    #[test]
    fn what_is_refused_or_cut_off_is_asked_again_and_nothing_else() {
        let busy = "-BUSY a bucket";
        let addr = node(vec![vec![busy, "+one"], vec!["+never read"], vec![]]);
        // The first connection answers both, and is closed when the first command is sent again.
        let (done, heard) = ask(addr, Duration::from_secs(60));
        assert!(done.unwrap());
        let text = |text: &str| Ok(Answer::Text(text.into()));
        assert_eq!(
            heard[..2],
            [(0, Err("BUSY a bucket".into())), (1, text("one"))]
        );
        assert!(heard[2..].iter().all(|(nth, _)| *nth == 0), "{heard:?}");
        assert_eq!(heard.last(), Some(&(0, text("never read"))));
    }

    #[test]
    fn a_node_that_answers_nothing_for_long_is_named_with_what_it_said() {
        let busy = vec!["-BUSY a bucket"; 1000];
        let (done, heard) = ask(node(vec![busy]), Duration::ZERO);
        let text = done.unwrap_err().to_string();
        assert!(
            text.contains("node 3") && text.contains("PING: BUSY a bucket"),
            "{text}"
        );
        assert_eq!(heard.len(), 2);
    }

    #[test]
    fn a_timeout_is_no_fault_of_the_machine() {
        let late = io::Error::from_raw_os_error(11);
        assert_eq!(describe(&late), "no answer in time");
    }
}
