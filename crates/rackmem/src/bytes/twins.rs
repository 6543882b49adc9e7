//! Blocks of this node's home that the switch decides about, in memory that a program in the kernel
//! reads ([`rackmem_proto::flowcc::twin`]).

use crate::bytes::lent::LentWords;
use rackmem_fabric::Whole;
#[cfg(any(test, feature = "xdp"))]
use rackmem_fabric::shm::Lent;
use rackmem_proto::flowcc::twin::Twins;
#[cfg(any(test, feature = "xdp"))]
use rackmem_proto::wire::NodeId;
use rackmem_proto::wire::Tag;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// See the module. Whoever changes a block here has the section of its shard; shards share this.
pub(crate) struct LentTwins {
    twins: Mutex<(Twins, LentWords)>,
    /// Blocks that are here: where there are none, nobody waits for others.
    shown: AtomicUsize,
}

fn words(block: &[AtomicU64]) -> impl Iterator<Item = u64> {
    block.iter().map(|word| word.load(Relaxed))
}

impl LentTwins {
    /// Of this node, which sends so many bytes of a block in a packet, with blocks of so many bytes
    /// in so many slabs, in a rack of nodes with these addresses, as they lie in a packet.
    #[cfg(any(test, feature = "xdp"))]
    pub fn new(
        (block, slabs): (usize, usize),
        lent: Lent,
        (node, segment): (NodeId, u32),
        addresses: impl Iterator<Item = u64>,
    ) -> Self {
        let (twins, mut words) = (Twins::new(block as u32, slabs), LentWords(lent));
        twins.begin((node, segment), addresses, &mut words);
        LentTwins {
            twins: Mutex::new((twins, words)),
            shown: AtomicUsize::new(0),
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut Twins, &mut LentWords) -> R) -> R {
        let mut held = self.twins.lock().whole();
        let (twins, words) = &mut *held;
        let result = change(twins, words);
        self.shown.store(twins.shown(), Relaxed);
        result
    }

    /// The node serves in this epoch, in which nodes live these lives.
    pub fn open(&self, epoch: u32, incarnations: &[u32]) {
        self.change(|twins, words| twins.open(epoch, incarnations, words));
    }

    /// It serves in none.
    pub fn close(&self) {
        self.change(|twins, words| twins.close(words));
    }

    /// The switch decides about a block, which is this.
    pub fn show(&self, tag: Tag, block: &[AtomicU64]) {
        self.change(|twins, lent| twins.show(tag, words(block), lent));
    }

    /// Home's memory has this of a block. The section in which its entry came to be the switch's
    /// was entered before, so that what is looked at without the lock is no older.
    pub fn write(&self, tag: Tag, block: &[AtomicU64]) {
        if self.shown() > 0 {
            self.change(|twins, lent| twins.write(tag, words(block), lent));
        }
    }

    /// The switch does not decide about a block any more.
    pub fn hide(&self, tag: Tag) {
        self.change(|twins, words| twins.hide(tag, words));
    }

    /// It decides about none.
    pub fn hide_all(&self) {
        self.change(Twins::hide_all);
    }

    /// Blocks that are here.
    pub fn shown(&self) -> usize {
        self.shown.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::flowcc::twin::{TwinPassed, answer};
    use rackmem_proto::wire::{Flags, Header, Kind, RequesterId, Seq};

    fn asked(tag: Tag) -> Header {
        let who = RequesterId { node: 1, slot: 3 };
        let mut header = Header::request(Kind::ReadMiss, 7, tag, who, Seq(9));
        header.flags = Flags::GRANTED.and(Flags::IN_SWITCH);
        (header.incarnation, header.reply_port) = (2, 5);
        header
    }

    #[test]
    fn what_comes_home_is_there_while_the_switch_decides() {
        let options = std::fs::File::options().read(true).write(true).to_owned();
        let lent = Lent::map(options.open("/dev/zero").expect("it"), Twins::words(1));
        let addresses = [1, 2, 3].into_iter();
        let twins = LentTwins::new((256, 1), lent.expect("memory"), (0, 256), addresses);
        twins.open(7, &[1, 2, 3]);
        // As the program hears it.
        let [.., macs, _] = rackmem_proto::flowcc::twin::FRONT;
        let mac_of_node_1 = macs + 1;
        let mac = |held: &mut (Twins, LentWords)| {
            rackmem_proto::words::Words::store(&mut held.1, mac_of_node_1, 1);
        };
        mac(&mut twins.twins.lock().whole());
        let says = |tag| {
            let held = twins.twins.lock().whole();
            answer(&held.1, &asked(tag)).map(|(_, bytes)| bytes[0])
        };
        let block = |byte| [const { AtomicU64::new(0) }; 32].map(|_| AtomicU64::new(byte));
        let (tag, other) = (Tag(0x100), Tag(0x200));
        twins.write(tag, &block(1));
        assert_eq!(says(tag), Err(TwinPassed::Elsewhere));
        twins.show(tag, &block(2));
        twins.write(other, &block(3));
        assert_eq!((says(tag), twins.shown()), (Ok(2), 1));
        assert_eq!(says(other), Err(TwinPassed::Elsewhere));
        twins.write(tag, &block(4));
        assert_eq!(says(tag), Ok(4));
        twins.close();
        assert_eq!(says(tag), Err(TwinPassed::NotOfNow));
        twins.open(7, &[1, 2, 3]);
        twins.show(other, &block(5));
        twins.hide(tag);
        assert_eq!(
            (says(tag), says(other)),
            (Err(TwinPassed::Elsewhere), Ok(5))
        );
        twins.hide_all();
        assert_eq!(says(other), Err(TwinPassed::Elsewhere));
        assert_eq!(twins.shown(), 0);
    }
}
