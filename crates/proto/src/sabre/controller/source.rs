//! A SABRe at its source: the pipelines that generate requests (RGP) and complete them (RCP).

use super::{Abort, Reply, Request, SabreId};

/// One SABRe of a source. In-order delivery: a source sends all requests of one before those of
/// the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Transfer {
    id: SabreId,
    base: u64,
    blocks: u16,
    piece: u16,
    /// Requests that were sent, the registration among them.
    sent: u16,
    /// Blocks that were answered.
    answered: u16,
    verdict: Option<Option<Abort>>,
}

/// The entry of the completion queue (§5.2): why it failed, if it has.
pub type Completed = Result<(), Abort>;

/// A reply to nothing that was asked. It has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unasked;

impl Transfer {
    /// One that has not begun; `piece` is as in [`Request::Register`].
    pub fn new(id: SabreId, base: u64, blocks: u16, piece: u16) -> Self {
        Transfer {
            id,
            base,
            blocks,
            piece,
            sent: 0,
            answered: 0,
            verdict: None,
        }
    }

    /// Its name.
    pub fn id(&self) -> SabreId {
        self.id
    }

    /// What is to be sent next.
    pub fn request(&self) -> Option<Request> {
        let Transfer {
            id,
            base,
            blocks,
            piece,
            ..
        } = *self;
        match self.sent {
            0 => Some(Request::Register {
                id,
                base,
                blocks,
                piece,
            }),
            sent if sent <= blocks => Some(Request::Block(id)),
            _ => None,
        }
    }

    /// It has been sent.
    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// A reply comes: the last one completes it.
    pub fn reply(&mut self, reply: &Reply) -> Result<Option<Completed>, Unasked> {
        match *reply {
            // The first request was the registration.
            Reply::Block { id, .. } if id == self.id && self.answered + 1 < self.sent => {
                self.answered += 1;
            }
            Reply::Verdict { id, failed }
                if id == self.id && self.sent > 0 && self.verdict.is_none() =>
            {
                self.verdict = Some(failed);
            }
            _ => return Err(Unasked),
        }
        let verdict = self.verdict.filter(|_| self.answered == self.blocks);
        Ok(verdict.map(|failed| failed.map_or(Ok(()), Err)))
    }
}
