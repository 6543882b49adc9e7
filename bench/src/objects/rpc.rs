//! Asking a thread at the home, as HERD and RAMCloud do: nothing is read one-sidedly, the home's
//! thread reads for whoever asks. Both ends stay awake, so that no wake-up of the operating system
//! is measured.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of an answer in one datagram.
const PART: usize = 32 << 10;
/// How long an answer may take; loopback loses nothing that is not lost for good.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Looks in vain after which the other end is let run.
const LOOKS: u32 = 64;

/// What the home's thread does with a question: fills in the answer.
pub type Serve = Box<dyn FnMut(&[u8], &mut Vec<u8>) + Send>;

struct Pace(u32);

impl Pace {
    fn wait(&mut self) {
        self.0 += 1;
        match self.0 % LOOKS {
            0 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}

/// A home in this process, asked through queues.
pub struct Near {
    ask: Option<Sender<(Vec<u8>, Vec<u8>)>>,
    answers: Receiver<(Vec<u8>, Vec<u8>)>,
    thread: Option<JoinHandle<()>>,
}

impl Near {
    /// With a thread that does this.
    pub fn new(mut serve: Serve) -> Near {
        let (ask, asked) = channel::<(Vec<u8>, Vec<u8>)>();
        let (tell, answers) = channel();
        let thread = std::thread::spawn(move || {
            while let Some((question, mut answer)) = next(&asked) {
                serve(&question, &mut answer);
                if tell.send((question, answer)).is_err() {
                    break;
                }
            }
        });
        Near {
            ask: Some(ask),
            answers,
            thread: Some(thread),
        }
    }

    /// Asks, and puts the answer into `answer`. The buffers go to the home and come back.
    pub fn ask(&mut self, question: &mut Vec<u8>, answer: &mut Vec<u8>) {
        let sent = (std::mem::take(question), std::mem::take(answer));
        let asked = self.ask.as_ref().is_some_and(|ask| ask.send(sent).is_ok());
        if let Some(back) = asked.then(|| next(&self.answers)).flatten() {
            (*question, *answer) = back;
        }
    }
}

fn next<T>(queue: &Receiver<T>) -> Option<T> {
    let mut pace = Pace(0);
    loop {
        match queue.try_recv() {
            Ok(next) => return Some(next),
            Err(TryRecvError::Empty) => pace.wait(),
            Err(TryRecvError::Disconnected) => return None,
        }
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.ask = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A home that is asked by datagrams: a number, and a question; an answer is a number, how many
/// bytes it has, where this part of it begins, and the part.
pub struct Far {
    socket: UdpSocket,
    home: SocketAddr,
    number: u32,
    buffer: Vec<u8>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Bytes in front of a part.
const FRONT: usize = 12;

impl Far {
    /// With a thread that does this.
    ///
    /// # Errors
    /// Those of sockets.
    pub fn new(mut serve: Serve) -> io::Result<Far> {
        let socket = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true).map(|()| socket)
        };
        let (here, there) = (socket()?, socket()?);
        let (home, stop) = (there.local_addr()?, Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut question, mut answer) = (vec![0; 65_536], Vec::new());
            let (mut packet, mut pace) = (Vec::new(), Pace(0));
            while !stopped.load(Relaxed) {
                let Ok((len, from)) = there.recv_from(&mut question) else {
                    pace.wait();
                    continue;
                };
                let Some((number, rest)) = question[..len].split_first_chunk::<4>() else {
                    continue;
                };
                serve(rest, &mut answer);
                let all = (answer.len() as u32).to_be_bytes();
                let parts = answer.len().div_ceil(PART).max(1);
                for nth in 0..parts {
                    let part = &answer[nth * PART..answer.len().min((nth + 1) * PART)];
                    packet.clear();
                    packet.extend(number);
                    packet.extend(all);
                    packet.extend(((nth * PART) as u32).to_be_bytes());
                    packet.extend(part);
                    let _ = there.send_to(&packet, from);
                }
            }
        });
        Ok(Far {
            socket: here,
            home,
            number: 0,
            buffer: vec![0; PART + FRONT],
            stop,
            thread: Some(thread),
        })
    }

    /// Asks, and puts the answer into `answer`.
    ///
    /// # Errors
    /// Those of sockets; [`io::ErrorKind::TimedOut`] when no answer comes.
    pub fn ask(&mut self, question: &[u8], answer: &mut Vec<u8>) -> io::Result<()> {
        self.number = self.number.wrapping_add(1);
        let number = self.number.to_be_bytes();
        self.socket
            .send_to(&[&number[..], question].concat(), self.home)?;
        let (mut come, mut pace, began) = (0, Pace(0), Instant::now());
        loop {
            let len = match self.socket.recv(&mut self.buffer) {
                Ok(len) => len,
                Err(_) if began.elapsed() > TIMEOUT => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) => {
                    pace.wait();
                    continue;
                }
            };
            let (front, part) = self.buffer[..len]
                .split_at_checked(FRONT)
                .unwrap_or_default();
            let word = |at: usize| {
                let word = front.get(at..at + 4).and_then(|word| word.try_into().ok());
                u32::from_be_bytes(word.unwrap_or_default()) as usize
            };
            if front.get(..4) != Some(&number[..]) {
                continue;
            }
            let (all, from) = (word(4), word(8));
            answer.resize(all, 0);
            if let Some(to) = answer.get_mut(from..from + part.len()) {
                to.copy_from_slice(part);
                come += part.len();
            }
            if come >= all {
                return Ok(());
            }
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled() -> Serve {
        Box::new(|question, answer| {
            answer.clear();
            let times = usize::from(question[0]) * 1000;
            answer.extend(question.iter().cycle().take(times));
        })
    }

    #[test]
    fn a_home_answers_what_it_is_asked() {
        let (mut near, mut far) = (Near::new(doubled()), Far::new(doubled()).unwrap());
        for times in [0, 1, 40, 200, 3] {
            let (mut question, mut answer) = (vec![times, 7], Vec::new());
            near.ask(&mut question, &mut answer);
            let expected: Vec<u8> = [times, 7]
                .into_iter()
                .cycle()
                .take(usize::from(times) * 1000)
                .collect();
            assert!(answer == expected && question == [times, 7]);
            far.ask(&[times, 7], &mut answer).unwrap();
            assert!(answer == expected);
        }
    }
}
