//! Several datagrams in one system call: the segments of a block on their way out, and what has
//! come in a row.

use crate::work::{self, What};
use rackmem_wire::{HEADER_LEN, MAX_BODY};
use socket2::SockAddr;
use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams of one call, at most.
pub(crate) const MOST: usize = 16;
/// Bytes of the longest datagram, and one by which a longer one is noticed.
const LONGEST: usize = (HEADER_LEN + MAX_BODY + 1).next_multiple_of(64);

/// Datagrams for one address, put together one behind the other.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// It only grows: what is in it is written over.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Outgoing {
    /// Begins anew.
    pub fn clear(&mut self) {
        self.ends.clear();
    }

    /// Where one more datagram of so many bytes is put together.
    pub fn add(&mut self, len: usize) -> &mut [u8] {
        let begin = self.ends.last().copied().unwrap_or(0);
        let end = begin + len;
        self.bytes.resize(end.max(self.bytes.len()), 0);
        self.ends.push(end);
        &mut self.bytes[begin..end]
    }

    /// Sends them. How many the system has refused.
    pub fn send(&mut self, socket: &UdpSocket, to: SocketAddr) -> u64 {
        work::count(What::Out, self.ends.len() as u64);
        if let [only] = self.ends[..] {
            work::count(What::Sends, 1);
            return u64::from(socket.send_to(&self.bytes[..only], to).is_err());
        }
        let (mut done, mut refused) = (0, 0);
        while done < self.ends.len() {
            work::count(What::Sends, 1);
            match self.send_some(socket, to, done) {
                Ok(sent) => done += sent.max(1),
                // It says so of the first of those that are left.
                Err(_) => (done, refused) = (done + 1, refused + 1),
            }
        }
        refused
    }

    /// Sends those from this one on, as far as one call goes; how many.
    fn send_some(&mut self, socket: &UdpSocket, to: SocketAddr, from: usize) -> io::Result<usize> {
        let to = SockAddr::from(to);
        // SAFETY: all of both are integers and pointers, for which zeros are values.
        let (mut parts, mut messages): ([libc::iovec; MOST], [libc::mmsghdr; MOST]) =
            unsafe { (zeroed(), zeroed()) };
        let mut begin = from.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut count = 0;
        for &end in self.ends[from..].iter().take(MOST) {
            parts[count] = libc::iovec {
                iov_base: self.bytes[begin..end].as_mut_ptr().cast(),
                iov_len: end - begin,
            };
            let header = &mut messages[count].msg_hdr;
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.len();
            header.msg_iov = &raw mut parts[count];
            header.msg_iovlen = 1;
            (begin, count) = (end, count + 1);
        }
        // SAFETY: so many messages are there, each with one part, which is of `bytes`, and an
        // address that outlives the call; the system writes to the messages' lengths only.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                0,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Datagrams that have come, and have their turns one after another.
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    lens: [usize; MOST],
    /// The one whose turn is next, and how many there are.
    next: usize,
    count: usize,
    /// Datagrams that a call takes: several where blocks come in segments.
    most: usize,
}

impl Incoming {
    /// None yet; a call takes so many.
    pub fn new(most: usize) -> Self {
        let most = most.clamp(1, MOST);
        Incoming {
            // The system gives pages of it when something has come there.
            bytes: vec![0; most * LONGEST],
            lens: [0; MOST],
            next: 0,
            count: 0,
            most,
        }
    }

    /// Whether one has come that has not had its turn.
    pub fn has_next(&self) -> bool {
        self.next < self.count
    }

    /// The next one, if there is one.
    pub fn next(&mut self) -> Option<&[u8]> {
        let nth = (self.next..self.count).next()?;
        self.next += 1;
        Some(&self.bytes[nth * LONGEST..][..self.lens[nth]])
    }

    /// Takes what has come at a socket, when all have had their turns. Waits for it, as long as the
    /// socket's own timeout says, or does not.
    pub fn look(&mut self, socket: &UdpSocket, waits: bool) -> bool {
        debug_assert!(!self.has_next(), "nothing is written over");
        work::count(What::Receives, 1);
        let found = match self.most {
            1 => self.take_one(socket, waits),
            _ => self.take_several(socket, waits),
        };
        (self.next, self.count) = (0, found);
        match found {
            0 => work::count(What::InVain, 1),
            _ => work::count(What::In, found as u64),
        }
        found > 0
    }

    fn take_one(&mut self, socket: &UdpSocket, waits: bool) -> usize {
        let flags = if waits { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the pointer and the length describe `bytes`, which is ours alone for the length
        // of the call.
        let len = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                self.bytes.as_mut_ptr().cast(),
                LONGEST,
                flags,
            )
        };
        self.lens[0] = usize::try_from(len).unwrap_or(0);
        usize::from(len >= 0)
    }

    fn take_several(&mut self, socket: &UdpSocket, waits: bool) -> usize {
        // SAFETY: all of both are integers and pointers, for which zeros are values.
        let (mut parts, mut messages): ([libc::iovec; MOST], [libc::mmsghdr; MOST]) =
            unsafe { (zeroed(), zeroed()) };
        for (nth, room) in self.bytes.chunks_exact_mut(LONGEST).enumerate() {
            parts[nth] = libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: room.len(),
            };
            messages[nth].msg_hdr.msg_iov = &raw mut parts[nth];
            messages[nth].msg_hdr.msg_iovlen = 1;
        }
        let flags = match waits {
            true => libc::MSG_WAITFORONE,
            false => libc::MSG_DONTWAIT,
        };
        // SAFETY: so many messages are there, each with one part, which is of `bytes` and no
        // other's; nobody asks for addresses; a null timeout is none.
        let found = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                self.most as libc::c_uint,
                flags,
                std::ptr::null_mut(),
            )
        };
        let found = usize::try_from(found).unwrap_or(0);
        for (len, message) in self.lens.iter_mut().zip(&messages[..found]) {
            *len = message.msg_len as usize;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pair() -> (UdpSocket, UdpSocket, SocketAddr) {
        let [from, to] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let address = to.local_addr().unwrap();
        (from, to, address)
    }

    /// As many datagrams as this, of different lengths.
    fn put(outgoing: &mut Outgoing, count: usize) {
        outgoing.clear();
        for nth in 0..count {
            outgoing.add(nth + 1).fill(nth as u8);
        }
    }

    fn all(incoming: &mut Incoming, socket: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        while found.len() < count && incoming.look(socket, true) {
            while let Some(packet) = incoming.next() {
                found.push(packet.to_vec());
            }
        }
        found
    }

    #[test]
    fn what_is_sent_together_comes_one_by_one_in_order() {
        let (from, to, address) = pair();
        to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut outgoing = Outgoing::default();
        for most in [1, 3, MOST, 100] {
            let mut incoming = Incoming::new(most);
            for count in [1, 2, MOST, MOST + 1, 40] {
                put(&mut outgoing, count);
                assert_eq!(outgoing.send(&from, address), 0);
                let expected: Vec<Vec<u8>> =
                    (0..count).map(|nth| vec![nth as u8; nth + 1]).collect();
                assert_eq!(all(&mut incoming, &to, count), expected);
                assert!(!incoming.look(&to, false), "there is no more");
            }
        }
    }

    #[test]
    fn the_longest_datagram_is_whole_and_longer_ones_are_noticed() {
        let (from, to, address) = pair();
        let mut incoming = Incoming::new(2);
        for len in [HEADER_LEN + MAX_BODY, 65_507] {
            from.send_to(&vec![7; len], address).unwrap();
            assert!(incoming.look(&to, true));
            let found = incoming.next().unwrap().len();
            assert_eq!(found, len.min(LONGEST));
            assert_eq!(found > HEADER_LEN + MAX_BODY, len > HEADER_LEN + MAX_BODY);
        }
    }

    #[test]
    fn a_datagram_that_is_refused_does_not_keep_the_others() {
        let (from, to, address) = pair();
        to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut outgoing = Outgoing::default();
        outgoing.add(1).fill(1);
        // Longer than any datagram.
        outgoing.add(70_000).fill(2);
        outgoing.add(3).fill(3);
        assert_eq!(outgoing.send(&from, address), 1);
        let mut incoming = Incoming::new(MOST);
        let found = all(&mut incoming, &to, 2);
        assert_eq!(found, [vec![1; 1], vec![3; 3]]);
    }
}
