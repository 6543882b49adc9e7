//! Items of bounded memory read in the kernel, by test runs: what the Rust rule says becomes of
//! each packet, chosen, random and forged; a writer beside, and differences that are planted.
#![cfg(feature = "xdp")]

#[path = "../support/mod.rs"]
mod support;

use crate::support::{
    AGENT, BODY_LEN_AT, Dice, REPLY, Shared, at, became, beside, frame, load, planted, tally,
    words_of,
};
use rackmem_fabric::shm::Lent;
use rackmem_proto::bi::cached::shelf::{
    SHELF_ROWS, Shelf, ShelfHome, ShelfPassed, answer, concerns,
};
use rackmem_proto::bi::cached::{BiOut, MAX_ITEM, Stock};
use rackmem_proto::words::Words;
use rackmem_wire::{
    Contract, HEADER_LEN, Header, HomeId, Kind, OWN_LEN, Own, RequesterId, Seq, Tag, decode, encode,
};
use rackmem_xdp::{ItemReadCounts, ObjectReads, Served, Sizes};

const SLABS: u32 = 5;
const SIZES: Sizes = Sizes {
    slabs: 1,
    sets: 1,
    cached: 0,
    items: SLABS,
    lines: 0,
};
const OF: ShelfHome = ShelfHome {
    node: 3,
    epoch: 7,
    base: 5 << 20,
};

/// What the home's process has.
struct Regions {
    stock: Stock,
    shelf: Shelf,
    words: Shared,
    seq: u64,
}

struct Home {
    reads: ObjectReads,
    regions: Regions,
}

impl Regions {
    fn call(&mut self, kind: Kind, tag: Tag, own: Own, body: &[u8]) -> Tag {
        self.seq += 1;
        let who = RequesterId { node: 2, slot: 0 };
        let header = Header::request(kind, OF.epoch, tag, who, Seq(self.seq));
        let mut out = BiOut::new(OF.node, OF.epoch);
        self.stock.packet(&header, &own, body, &mut out);
        if let Some(changed) = out.changed {
            self.shelf.follow(&self.stock, changed, &mut self.words);
        }
        out.sent.pop().expect("an answer").header.tag
    }

    fn reserve(&mut self, bytes: u32, items: u32) -> Tag {
        let home = HomeId::of(OF.node).start().under(Contract::Bounded);
        let (a, b) = (bytes.into(), items.into());
        self.call(Kind::BiReserve, home, Own { a, b }, &[])
    }

    fn remove(&mut self, region: Tag) {
        self.call(Kind::BiReserve, region, Own::default(), &[]);
    }

    fn write(&mut self, region: Tag, item: u32, value: &[u8]) {
        let own = Own {
            a: 0,
            b: item.into(),
        };
        self.call(Kind::BiWrite, region, own, value);
    }
}

impl Home {
    /// None: the kernel takes no program from this process, which is said.
    fn new(test: &str, object: Option<&[u8]>) -> Option<Home> {
        let mut reads = load(test, object, SIZES)?;
        let words = Shelf::words(SLABS as usize);
        let lent = Lent::map(reads.items().expect("its memory"), words).expect("it is mapped");
        let served = Served {
            agent: at(AGENT),
            node: OF.node,
            epoch: OF.epoch,
            base: OF.base,
        };
        reads.serve(&served).expect("its map");
        let regions = Regions {
            stock: Stock::new(HomeId::of(OF.node), OF.base, 1 << 40),
            shelf: Shelf::new(SLABS as usize),
            words: Shared(lent),
            seq: 0,
        };
        Some(Home { reads, regions })
    }

    /// What becomes of a packet in the program.
    fn became(&self, packet: &[u8]) -> Option<Vec<u8>> {
        became(&self.reads, packet)
    }

    /// What the rule says becomes of it.
    fn ruled(&self, packet: &[u8]) -> Result<Vec<u8>, Option<ShelfPassed>> {
        let (header, body) = decode(packet).map_err(|_| None)?;
        if !concerns(&OF, &header) {
            return Err(None);
        }
        let (own, _) = Own::split(body).ok_or(None)?;
        let (header, own, rest) = answer(&self.regions.words, &OF, &header, &own).map_err(Some)?;
        let mut payload = encode(&header, OWN_LEN + rest.len()).to_vec();
        payload.extend(own.to_bytes());
        payload.extend(rest);
        Ok(payload)
    }

    /// Whether both say the same, and what.
    fn agree(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let (became, ruled) = (self.became(packet), self.ruled(packet));
        assert_eq!(became, ruled.clone().ok(), "{ruled:?} of {packet:x?}");
        became
    }

    fn counts(&self) -> ItemReadCounts {
        self.reads.item_counts().expect("counters")
    }
}

/// With so many bytes behind what its kind has of its own.
fn packet(kind: Kind, tag: Tag, own: Own, room: usize) -> Vec<u8> {
    let requester = RequesterId { node: 1, slot: 9 };
    let mut header = Header::request(kind, OF.epoch, tag, requester, Seq(77));
    (header.incarnation, header.reply_port) = (2, REPLY);
    let mut packet = encode(&header, OWN_LEN + room).to_vec();
    packet.extend(own.to_bytes());
    packet.resize(HEADER_LEN + OWN_LEN + room, 0);
    packet
}

fn read(region: Tag, item: u64, room: usize) -> Vec<u8> {
    packet(Kind::BiRead, region, Own { a: 0, b: item }, room)
}

fn news(region: Tag, from: u64, room: usize) -> Vec<u8> {
    packet(Kind::BiAskNews, region, Own { a: from, b: 0 }, room)
}

fn value(bytes: u32, seed: u32) -> Vec<u8> {
    let byte = |nth: u32| nth.wrapping_mul(7).wrapping_add(seed) as u8 | 1;
    (0..bytes).map(byte).collect()
}

/// As long as an item's answer.
fn room(bytes: u32) -> usize {
    (OWN_LEN + bytes as usize).next_multiple_of(64) - OWN_LEN
}

#[test]
fn items_of_every_size_are_answered_as_by_the_agent() {
    let Some(mut home) = Home::new("items in the kernel", None) else {
        return;
    };
    for bytes in [1, 8, 47, 48, 49, 64, 112, 113, 500, 1023, MAX_ITEM] {
        let region = home.regions.reserve(bytes, 130);
        for item in [0, 1, 59, 60, 61, 129] {
            home.regions.write(region, item, &value(bytes, item));
            for room in [0, room(bytes)] {
                let answer = home.agree(&read(region, item.into(), room));
                let answer = answer.expect("an answer");
                let (header, body) = decode(&answer).expect("a packet");
                let (own, rest) = Own::split(body).expect("what it has of its own");
                assert_eq!((own.b, header.kind), (bytes.into(), Kind::BiData));
                assert_eq!(rest, value(bytes, item));
                // As long as it is, no frame grows.
                let ran = home.reads.run(&frame(&read(region, item.into(), room)), 1);
                let longer =
                    ran.expect("it runs").frame.len() > frame(&read(region, 0, room)).len();
                assert_eq!(longer, room == 0);
            }
        }
        let zeros = home
            .agree(&read(region, 77, room(bytes)))
            .expect("an answer");
        assert_eq!(zeros.len(), HEADER_LEN + OWN_LEN);
        assert_eq!(
            home.agree(&news(region, 6, 8)).expect("none").len(),
            HEADER_LEN + OWN_LEN + 8
        );
        assert_eq!(home.agree(&news(region, 5, 8)), None);
        assert_eq!(home.agree(&read(region, 130, 0)), None);
        home.regions.remove(region);
        assert_eq!(home.agree(&read(region, 0, 0)), None);
        assert_eq!(home.agree(&news(region, 6, 8)), None);
    }
    let counts = home.counts();
    assert_eq!((counts.locked, counts.torn, counts.no_room), (0, 0, 0));
    assert_eq!((counts.news, counts.elsewhere), (11, 33));
    assert_eq!((counts.answered, counts.unchanged), (11 * 25, 11));
}

/// Random packets beside a home that writes, makes regions and removes them.
fn random(home: &mut Home, (seed, packets): (u64, u32), mut see: impl FnMut(&Home, &[u8])) {
    let mut dice = Dice(seed);
    let mut all: Vec<(Tag, u32, u32)> = Vec::new();
    for nth in 0..packets {
        if all.len() < 4 || dice.below(200) == 0 {
            let sizes = [1, 8, 48, 49, 400, MAX_ITEM];
            let (bytes, items) = (sizes[dice.below(6) as usize], 1 + dice.below(150) as u32);
            all.push((home.regions.reserve(bytes, items), bytes, items));
        }
        let (region, bytes, items) = all[dice.below(all.len() as u64) as usize];
        if dice.below(3) == 0 {
            let item = dice.below(items.min(6).into()) as u32;
            home.regions.write(region, item, &value(bytes, nth));
        }
        if all.len() > 4 {
            let gone = all.swap_remove(dice.below(4) as usize);
            home.regions.remove(gone.0);
        }
        let writes = home.regions.stock.shape(region).map_or(0, |shape| shape.2);
        let room = [0, 8, room(bytes), room(MAX_ITEM)][dice.below(4) as usize];
        let mut came = match dice.below(8) {
            0 => news(region, writes, room),
            1 => news(region, dice.below(writes + 2), room),
            2 => read(region, dice.next(), room),
            3 => read(region, dice.below(u64::from(items) + 2), room),
            4 => read(Tag(region.0 ^ 1 << dice.below(64)), 0, room),
            _ => read(region, dice.below(items.min(6).into()), room),
        };
        if dice.below(8) == 0 {
            let at = dice.below(came.len() as u64) as usize;
            came[at] = dice.next() as u8;
        }
        see(home, &came);
    }
}

#[test]
fn random_packets_become_what_the_rule_says() {
    let Some(mut home) = Home::new("random reads of items in the kernel", None) else {
        return;
    };
    let (mut answered, mut passed) = (0, 0);
    random(
        &mut home,
        (88_172_645_463_325_252, 20_000),
        |home, packet| match home.agree(packet) {
            Some(_) => answered += 1,
            None => passed += 1,
        },
    );
    assert!(answered > 5_000 && passed > 3_000, "{answered} {passed}");
}

/// Everything that a byte of a packet can be, one byte at a time, and packets that are cut.
#[test]
fn forged_packets_become_what_the_rule_says() {
    let Some(mut home) = Home::new("forged reads of items in the kernel", None) else {
        return;
    };
    let region = home.regions.reserve(100, 5);
    home.regions.write(region, 2, &value(100, 1));
    for good in [read(region, 2, 0), news(region, 1, 0)] {
        assert!(home.agree(&good).is_some());
        for at in 0..good.len() {
            for value in 0..=255 {
                let mut forged = good.clone();
                forged[at] = value;
                home.agree(&forged);
            }
        }
        for len in 0..good.len() {
            assert_eq!(home.agree(&good[..len]), None, "{len} bytes");
        }
        let mut long = good.clone();
        long[BODY_LEN_AT] = 255;
        assert_eq!(home.agree(&long), None);
        for epoch in [0, OF.epoch - 1, OF.epoch + 1, u32::MAX] {
            let mut forged = good.clone();
            forged[4..8].copy_from_slice(&epoch.to_be_bytes());
            assert_eq!(home.agree(&forged), None);
        }
    }
    home.reads.stop().expect("its map");
    assert_eq!(home.became(&read(region, 2, 0)), None);
}

/// Reads beside a thread that writes one item again and again: how many were answered, and how many
/// of these were of no moment.
fn beside_a_writer(home: &mut Home, reads: u32) -> (u32, u32) {
    let region = home.regions.reserve(MAX_ITEM, 3);
    let packet = frame(&read(region, 1, room(MAX_ITEM)));
    let write = |regions: &mut Regions, number: u64| {
        let value = number.to_ne_bytes().repeat(MAX_ITEM as usize / 8);
        regions.write(region, 1, &value);
    };
    // Nobody writes another item, so the region's number is the item's.
    let is_right = |body: &[u8]| {
        let (own, rest) = Own::split(body).expect("what it has of its own");
        own.a == 0 || words_of(&rest[..MAX_ITEM as usize]).all(|word| word == own.a)
    };
    let look = || tally((&home.reads, &packet), reads, is_right);
    let seen = beside(&mut home.regions, write, look);
    home.regions.remove(region);
    seen
}

#[test]
fn no_answer_is_of_two_moments() {
    let Some(mut home) = Home::new("items in the kernel beside a writer", None) else {
        return;
    };
    let (answered, wrong) = beside_a_writer(&mut home, 50_000);
    assert!(answered > 0 && wrong == 0, "{wrong} of {answered}");
}

#[test]
fn planted_differences_are_noticed() {
    const TEST: &str = "planted differences of items";
    // An item behind the last one, a region of another name, news that are kept back.
    for number in [10, 12, 13] {
        let Some(mut home) = Home::new(TEST, Some(&planted(number))) else {
            return;
        };
        let mut found = 0;
        random(&mut home, (7, 3_000), |home, packet| {
            found += u32::from(home.became(packet) != home.ruled(packet).ok());
        });
        assert!(found > 0, "plant {number} is not found");
    }
    // An item that is being written.
    let mut home = Home::new(TEST, Some(&planted(8))).expect("as before");
    let region = home.regions.reserve(8, 1);
    home.regions.words.store(SHELF_ROWS as usize * 8, 1);
    assert!(home.became(&read(region, 0, 48)).is_some());
    assert_eq!(
        home.ruled(&read(region, 0, 48)),
        Err(Some(ShelfPassed::Locked))
    );
    // No second look; the region's number before the first. A writer beside tells, however long
    // that takes.
    for number in [7, 11] {
        let mut home = Home::new(TEST, Some(&planted(number))).expect("as before");
        let found = (0..200).any(|_| beside_a_writer(&mut home, 20_000).1 > 0);
        assert!(found, "4 million reads, and plant {number} is not found");
    }
}
