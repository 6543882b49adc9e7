//! What a packet is for. Each protocol has a range of sixteen numbers of its own.

use crate::OWN_LEN;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// The kind of a packet.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name = $byte,)* }

        impl Kind {
            /// Every kind there is.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// From its byte on the wire.
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($byte => Some(Kind::$name),)* _ => None }
            }

            /// Its name in documents, metrics and traces.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$name => stringify!($name),)* }
            }
        }
    };
}

kinds! {
    // 0x00..0x0f: the rack itself.
    /// Requester to home agent: objects of as many bytes as `tag` says in place of an offset,
    /// please. `offset` is the call.
    Alloc = 0x01,
    /// Home agent to requester: bit n of `copyset` is the object n times its size behind `tag`;
    /// or the reason why not.
    AllocAck = 0x02,
    /// Anyone to anyone: are you there?
    Ping = 0x03,
    /// The answer.
    Pong = 0x04,
    /// A tool to a node: who holds the locks behind `tag`, and who waits?
    Inspect = 0x05,
    /// The answer, in the order of addresses; with `DATA`, more follow.
    Inspected = 0x06,
    /// Requester to home agent: these objects are free. The body is records: address, bytes.
    /// `offset` is the call.
    Free = 0x07,
    /// Home agent to requester: they are, but `copyset` of them, of which `tag` is the first,
    /// were not given out.
    FreeAck = 0x08,
    /// Node to everyone: nothing of my memory is under way any more, and I go.
    Farewell = 0x09,

    // 0x10..0x2f: FlowCC, the `Coherent` contract.
    /// The block is not in the requester's cache and will be read.
    ReadMiss = 0x10,
    /// The block is not in the requester's cache and will be written.
    WriteMiss = 0x11,
    /// The block is in the requester's cache, clean, and will be written.
    WriteShared = 0x12,
    /// The requester drops a clean copy.
    EvictShared = 0x13,
    /// The requester drops a dirty copy, which it writes back first.
    EvictModified = 0x14,
    /// The synchronization primitive of §6: hold the entry's lock as a reader.
    LockRead = 0x15,
    /// The synchronization primitive of §6: hold the entry's lock as the writer.
    LockWrite = 0x16,
    /// Requester to home agent: do this to a word of the block in your memory, of which nobody has
    /// copies ([`AtomicOp`](crate::AtomicOp)). `offset`: as in `Store`.
    Operate = 0x17,
    /// To a requester: granted and executed (with a segment of the block from its provider),
    /// or the reason why not.
    Ack = 0x18,
    /// Requester to the owner that granted: the event is over, this is the new metadata.
    Unlock = 0x19,
    /// Owner to requester: the unlock is done.
    UnlockAck = 0x1a,
    /// To the home agent: a segment of a dirty block.
    WriteBack = 0x1b,
    /// Home agent to requester: the whole block is home.
    WriteBackAck = 0x1c,
    /// Home agent to switch: you own this entry now.
    AddToSwitch = 0x1d,
    /// Switch to home agent, and a copy to the shadow node: so I do, or the reason why not.
    AddAck = 0x1e,
    /// Home agent to switch: give the entry back.
    RemoveFromSwitch = 0x1f,
    /// Switch to home agent, and a copy to the shadow node: the entry's metadata,
    /// or the reason why not.
    RemoveAck = 0x20,
    /// Shadow node to home agent: take this entry back from the switch.
    Demote = 0x21,
    /// Cache agent to shadow node: how often the switch's blocks were invalidated here.
    /// The body is records.
    HeatReport = 0x22,
    /// Shadow node to switch: which tags are in your sets from `offset` on?
    ReadTags = 0x23,
    /// The answer. The body is records.
    Tags = 0x24,
    /// Requester to home agent: these whole blocks, from `tag` on, are to be in its memory, of
    /// which nobody has copies. `offset`: how far behind the number is under which they were sent
    /// first, in an epoch that has ended.
    Store = 0x25,
    /// Home agent to requester: the first `copyset` of them are; none, or the reason why not.
    StoreAck = 0x26,
    /// Home agent to requester: with `DATA`, done, and what the word was before is in `copyset`
    /// (its low half) and `offset`; without, not done, or the reason why not.
    OperateAck = 0x27,
    /// A part of what one member tells another while directory entries are rebuilt.
    /// The body is records.
    Rebuild = 0x28,
    /// This part has come.
    RebuildAck = 0x29,
    /// Node to home agent, while directory entries are rebuilt: a segment of a block that home may
    /// not have.
    Rescue = 0x2c,
    /// Home agent to node: the whole block is home.
    RescueAck = 0x2d,
    /// Requester to home agent: the block's last content is lost, go on with what home's memory
    /// has.
    AcceptLoss = 0x2a,
    /// Home agent to requester: done.
    AcceptLossAck = 0x2b,
    /// Requester to home agent: the bytes of `offset` blocks from `tag` on,
    /// of which the requester keeps no copy.
    Fetch = 0x2e,
    /// Home agent to requester: the first of these blocks, whole, as many as it has; none,
    /// or the reason why not.
    FetchAck = 0x2f,

    // 0x30..0x3f: the baselines.
    /// Directory: a cache agent tells the gathering home agent that it is done.
    GatherAck = 0x38,

    // 0x40..0x4f: GCP, the `Locked` contract. `seq` carries the lock's version.
    /// Node to directory: this lock, please, with this permission (`status`).
    Acquire = 0x40,
    /// Directory to the queue holder: this node waits for the lock.
    Wait = 0x41,
    /// Directory to who is concerned: the lock is granted, to read (`Shared`) or to the next writer
    /// (`Modified`).
    Grant = 0x42,
    /// Directory to the sharers and to the writer that they wait for:
    /// acknowledge to it when you are done.
    Invalidate = 0x43,
    /// Sharer to the waiting writer: I am done, the copy is gone.
    InvAck = 0x44,
    /// Keeper of the data to who was granted the lock: a part of what the lock protects.
    Give = 0x45,
    /// Queue holder to the next one: who waits. The body is records.
    Queue = 0x46,
    /// Queue holder to directory: the lock goes to these readers, the queue to this writer.
    Release = 0x47,
    /// Directory to who releases: not yet (`Moved`), or it is over already.
    ReleaseAck = 0x48,
    /// Home agent to switch: serve this lock.
    Place = 0x49,
    /// Switch to home agent: I do, or the reason why not.
    PlaceAck = 0x4a,
    /// Node that leaves the rack to the home of a lock: take it, with what it protects.
    Yield = 0x4b,
    /// Home to the leaving node: the lock is home, without obligations of yours.
    YieldAck = 0x4c,
    // From 0x50 on a kind has 16 bytes of its own behind the header.

    // 0x50..0x5f: ABD, the `Replicated` contract. `a` is a stamp, `b` the number of the group's
    // config in its high half.
    /// Requester to members: which stamp does this line have at yours?
    AbdStamp = 0x50,
    /// The answer.
    AbdStampAck = 0x51,
    /// Requester to members: which stamp does this line have, and from the provider its content.
    AbdRead = 0x52,
    /// The answer, and that of `AbdFetch`; with `DATA`, a segment of the line as it was stored
    /// under this stamp.
    AbdReadAck = 0x53,
    /// Requester to members: store a segment of this line under the stamp.
    AbdWrite = 0x54,
    /// The whole line is stored, or one with a higher stamp.
    AbdWriteAck = 0x55,
    /// Reader to members: likewise, of a line that it has read.
    AbdWriteBack = 0x56,
    /// The answer.
    AbdWriteBackAck = 0x57,
    /// Reader, or member that fills, to one member: the line, if its stamp is at least this one.
    AbdFetch = 0x58,
    /// Requester to members: under which stamp has this call of mine come to you, if it has?
    AbdAsk = 0x59,
    /// The answer: a stamp, or none; `Refused` if the member may have forgotten.
    AbdTold = 0x5a,
    /// Member that fills to member: which lines have you from `tag` on, with which stamps?
    AbdFill = 0x5b,
    /// The answer. The body is records, in the order of addresses; with `DATA`, more follow.
    AbdFillAck = 0x5c,
    /// Member to requester: the group has this config by now.
    AbdConfig = 0x5d,
    /// Requester to a switch that holds lines: this line. Answered by `AbdReadAck` with the line,
    /// or without when the switch cannot.
    AbdLineRead = 0x5e,
    /// Likewise: this is the line. Answered by `AbdWriteAck`, under no stamp when the switch
    /// cannot.
    AbdLineWrite = 0x5f,

    // 0x60..0x6f: SABRes, the `Object` contract. `a` is a version,
    // `b` a generation in its high half and a length in its low one, unless a kind says otherwise.
    /// Requester to home agent: the object's bytes from `offset` on, so many or all, unless its
    /// version is `a`.
    ObjRead = 0x60,
    /// The answer: with `DATA`, a segment of the object as it was under the version `a`, whose
    /// length is the object's; otherwise the reason why not.
    ObjData = 0x61,
    /// Requester to home agent: likewise, and no writer may be in meanwhile.
    ObjReadLocked = 0x62,
    /// Requester to home agent: a segment of the object's new content, if its version is `a` or `a`
    /// is zero. The length is the new one.
    ObjWrite = 0x64,
    /// The content is in place under the version `a`, or the reason why not.
    ObjWriteAck = 0x65,
    /// Requester to home agent: a new object of so many bytes in the region at `tag`; a region of
    /// `a` bytes, if that is not zero.
    ObjAlloc = 0x66,
    /// It is at `tag`, or the reason why not.
    ObjAllocAck = 0x67,
    /// Requester to home agent: this object is free; with `a` = 1, the region that `tag` names.
    ObjFree = 0x68,
    /// It is, or the reason why not.
    ObjFreeAck = 0x69,
    /// Coordinator to home agent: a segment of what a transaction writes there. `a`: the homes that
    /// it writes at, and how many objects here; the length is that of all. When all is here, the
    /// objects are locked if they have the versions that are named, all of them.
    TxLock = 0x6c,
    /// They are, when the length is all; so many bytes are here, when it is not; or the reason why
    /// not, with the object and the version that it has.
    TxLockAck = 0x6d,
    /// Coordinator to home agent: the transaction takes effect, or with `a` = 0 never does. To the
    /// keeper of objects with copies: a segment of all that it writes there and has read of such
    /// objects, `a` of them; the length is that of all.
    TxCommit = 0x6e,
    /// It has, or never will, and its objects are not locked any more; from a keeper why not,
    /// with the object.
    TxCommitAck = 0x6f,

    // 0x70..0x7f: Bounded Incoherence, the `Bounded` contract. `tag` is a region, whose home
    // numbers its writes.
    /// Reader to home agent: item `b`.
    BiRead = 0x70,
    /// The answer: the item, of `b` bytes, when so many writes were made as `a` says. Without
    /// `DATA` it is zeros.
    BiData = 0x71,
    /// Writer to home agent: item `b` is this.
    BiWrite = 0x72,
    /// It is, by the write of the number `a`.
    BiWriteAck = 0x73,
    /// Home agent to member: what was modified up to the write `a`. `b`: how many items the body
    /// names, or all ones where it may be any.
    BiNews = 0x74,
    /// Member to home agent: what was modified after the write `a`?
    BiAskNews = 0x75,
    /// Node to home agent: a region of `b` items of `a` bytes in the memory that `tag` is in; with
    /// `b` = 0, the region is no more.
    BiReserve = 0x76,
    /// `tag` is the region.
    BiReserveAck = 0x77,

    // 0xf0..0xff: guests, which are baselines and protocols on trial;
    // a node that has none drops their packets.
    /// A question of a guest.
    GuestAsk = 0xf0,
    /// An answer of one.
    GuestTell = 0xf1,
}

impl Kind {
    /// The first byte of kinds that have something of their own between the header and the body.
    pub const FIRST_WITH_OWN: u8 = 0x50;

    /// Bytes that this kind has of its own between the header and the body: none, or [`OWN_LEN`].
    #[inline]
    pub const fn own_len(self) -> usize {
        if (self as u8) < Self::FIRST_WITH_OWN {
            0
        } else {
            OWN_LEN
        }
    }

    /// Whether this asks an owner for an entry: takes its lock, is checked and forwarded.
    #[inline]
    pub const fn is_request(self) -> bool {
        matches!(
            self,
            Kind::ReadMiss
                | Kind::WriteMiss
                | Kind::WriteShared
                | Kind::EvictShared
                | Kind::EvictModified
                | Kind::LockRead
                | Kind::LockWrite
        )
    }

    /// Whether the switch program itself takes this. Such packets have no body, and the switch
    /// drops one that has; every other kind is for the switch's control plane.
    #[inline]
    pub const fn in_data_plane(self) -> bool {
        self.is_request()
            || self.asks_lock_switch()
            || matches!(
                self,
                Kind::Unlock | Kind::AddToSwitch | Kind::RemoveFromSwitch
            )
    }

    /// Whether this is for the switch's directory of locks, which is beside its directory of blocks
    /// and shares nothing with it.
    #[inline]
    pub const fn asks_lock_switch(self) -> bool {
        matches!(self, Kind::Acquire | Kind::Release | Kind::Place)
    }

    /// Whether a kind asks a member of a group for something (ABD).
    #[inline]
    pub const fn asks_copies(self) -> bool {
        matches!(
            self,
            Kind::AbdStamp
                | Kind::AbdRead
                | Kind::AbdFetch
                | Kind::AbdWrite
                | Kind::AbdWriteBack
                | Kind::AbdAsk
        )
    }

    /// Whether a kind asks the home of an object for something (SABRes).
    #[inline]
    pub const fn asks_object(self) -> bool {
        matches!(
            self,
            Kind::ObjRead
                | Kind::ObjReadLocked
                | Kind::ObjWrite
                | Kind::ObjAlloc
                | Kind::ObjFree
                | Kind::TxLock
                | Kind::TxCommit
        )
    }

    /// Whether a kind asks the home of a region for something (Bounded Incoherence).
    #[inline]
    pub const fn asks_bounded(self) -> bool {
        matches!(
            self,
            Kind::BiRead | Kind::BiWrite | Kind::BiAskNews | Kind::BiReserve
        )
    }

    /// Whether an answer of this kind is no coherence event's: the node's own value of its protocol
    /// takes it (ABD, SABRes, BI), and no requester.
    #[inline]
    pub const fn is_of_no_event(self) -> bool {
        matches!(self as u8, 0x50..=0x7f)
    }

    /// Whether this is for a lock's directory, and not for the node's own side of the lock,
    /// if an agent gets it.
    #[inline]
    pub const fn asks_directory(self) -> bool {
        matches!(self, Kind::Acquire | Kind::Release | Kind::PlaceAck)
    }

    /// Whether this is fenced by the number of a group's config, and so by no epoch:
    /// no death delays it.
    #[inline]
    pub const fn is_fenced_by_config(self) -> bool {
        matches!(self as u8, 0x50..=0x5f)
    }

    /// Whether this takes the entry's lock as a reader (§5.1.1: read misses;
    /// all others are writers).
    #[inline]
    pub const fn locks_shared(self) -> bool {
        matches!(self, Kind::ReadMiss | Kind::LockRead)
    }

    /// Whether the event leaves the entry's metadata alone.
    #[inline]
    pub const fn only_locks(self) -> bool {
        matches!(self, Kind::LockRead | Kind::LockWrite)
    }
}
