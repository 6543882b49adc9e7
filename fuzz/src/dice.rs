//! Decisions out of the bytes of an input, and packets out of decisions.

use rackmem_wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Seq, Tag,
};

/// The epoch of the roles under test.
pub const EPOCH: u32 = 1;

/// Reads decisions from an input; an exhausted input decides for the first choice.
pub struct Dice<'a> {
    rest: &'a [u8],
}

impl<'a> Dice<'a> {
    /// Decisions from these bytes.
    pub fn new(input: &'a [u8]) -> Self {
        Dice { rest: input }
    }

    /// Whether nothing is left to decide by.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&first, rest)) => {
                self.rest = rest;
                first
            }
            None => 0,
        }
    }

    /// The next four bytes as a number.
    pub fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// A number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        self.byte() as usize % end.max(1)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// True for one byte in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// A packet's header: mostly one of a small rack, so that packets are about the same blocks and
    /// requesters; now and then one with every field at random.
    pub fn header(&mut self) -> Header {
        let wild = self.one_in(8);
        let kind = self.pick(Kind::ALL);
        let requester = RequesterId {
            node: self.node(wild),
            slot: if wild {
                self.below(rackmem_wire::MAX_REQUESTERS) as u16
            } else {
                self.below(2) as u16
            },
        };
        let tag = self.tag(wild);
        let seq = Seq(if wild {
            u64::from(self.word()) << 32 | u64::from(self.word())
        } else {
            self.below(6) as u64
        });
        Header {
            epoch: if wild && self.one_in(2) {
                self.word()
            } else {
                EPOCH
            },
            copyset: Copyset(if wild {
                self.word()
            } else {
                self.below(16) as u32
            }),
            status: self.pick(&[
                GlobalStatus::Unshared,
                GlobalStatus::Shared,
                GlobalStatus::Modified,
            ]),
            flags: Flags(self.byte() & Flags::KNOWN),
            reason: Reason::from_byte(self.byte() % 16).unwrap_or_default(),
            offset: if wild {
                self.word()
            } else {
                self.below(64) as u32 * 64
            },
            incarnation: self.below(2) as u32,
            reply_port: 0,
            sender: self.node(wild),
            ..Header::request(kind, EPOCH, tag, requester, seq)
        }
    }

    fn node(&mut self, wild: bool) -> NodeId {
        self.below(if wild { rackmem_wire::MAX_NODES } else { 4 }) as NodeId
    }

    /// The address of a block: one of four at each of four nodes, or any that a packet can name.
    pub fn tag(&mut self, wild: bool) -> Tag {
        let home = (self.node(wild) as u64) << 48;
        let offset = if wild {
            (self.word() as u64) << 16 | self.word() as u64
        } else {
            self.below(4) as u64 * 4096
        };
        Tag(home | offset & 0xffff_ffff_ffff)
    }
}

/// What a role sends must be a packet that its receiver decodes to the same header.
pub fn check_sendable(header: &Header) {
    let packet = rackmem_wire::encode(header, 0);
    assert_eq!(rackmem_wire::decode(&packet), Ok((*header, &[][..])));
}
