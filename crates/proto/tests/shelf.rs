//! Items as the kernel of a home's host reads them: whatever it answers, the home's agent would
//! have answered at a moment of the read, however loads and stores come between each other.

mod beside;

use beside::{Dice, Memory, Said, by_agent};
use rackmem_proto::bi::cached::shelf::{
    SHELF_ROWS, SHELF_SLAB, Shelf, ShelfHome, ShelfPassed, answer, concerns,
};
use rackmem_proto::bi::cached::{BiOut, MAX_ITEM, Stock};
use rackmem_proto::wire::{
    Contract, Flags, Header, HomeId, Kind, NodeId, Own, Reason, RequesterId, Seq, Tag,
};

const HOME: NodeId = 3;
const EPOCH: u32 = 7;
const BASE: u64 = 1 << 20;
const OF: ShelfHome = ShelfHome {
    node: HOME,
    epoch: EPOCH,
    base: BASE,
};

struct Home {
    stock: Stock,
    shelf: Shelf,
    memory: Memory,
    seq: u64,
}

impl Home {
    fn new(slabs: usize) -> Home {
        let mut stock = Stock::new(HomeId::of(HOME), BASE, 1 << 40);
        stock.in_kernel = true;
        Home {
            stock,
            shelf: Shelf::new(slabs),
            memory: Memory::new(Shelf::words(slabs)),
            seq: 0,
        }
    }

    fn request(&self, kind: Kind, tag: Tag) -> Header {
        let who = RequesterId { node: 1, slot: 2 };
        let mut header = Header::request(kind, EPOCH, tag, who, Seq(self.seq));
        header.reply_port = 9;
        header
    }

    /// What the agent answers.
    fn agent(&mut self, header: &Header, own: Own, body: &[u8]) -> Said {
        let mut out = BiOut::new(HOME, EPOCH);
        self.stock.packet(header, &own, body, &mut out);
        if let Some(changed) = out.changed {
            self.shelf.follow(&self.stock, changed, &mut self.memory);
        }
        let parcel = out.sent.pop().expect("an answer");
        let (own, body) = parcel.split();
        (parcel.header, own, body.to_vec())
    }

    fn call(&mut self, kind: Kind, tag: Tag, own: Own, body: &[u8]) -> Header {
        self.seq += 1;
        let header = self.request(kind, tag);
        self.agent(&header, own, body).0
    }

    fn reserve(&mut self, bytes: u32, items: u32) -> Tag {
        let own = Own {
            a: bytes.into(),
            b: items.into(),
        };
        let told = self.call(
            Kind::BiReserve,
            HomeId::of(HOME).start().under(Contract::Bounded),
            own,
            &[],
        );
        assert_eq!(told.reason, Reason::None);
        told.tag
    }

    fn remove(&mut self, region: Tag) {
        self.call(Kind::BiReserve, region, Own::default(), &[]);
    }

    fn write(&mut self, region: Tag, item: u32, value: &[u8]) {
        let own = Own {
            a: 0,
            b: item.into(),
        };
        let told = self.call(Kind::BiWrite, region, own, value);
        assert_eq!(told.reason, Reason::None);
    }

    fn question(&self, region: Tag, ask: Ask) -> (Header, Own) {
        let (kind, own) = match ask {
            Ask::Item(item) => (Kind::BiRead, Own { a: 0, b: item }),
            Ask::News(from) => (Kind::BiAskNews, Own { a: from, b: 0 }),
        };
        (self.request(kind, region), own)
    }
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Item(u64),
    News(u64),
}

fn value(bytes: u32, seed: u32) -> Vec<u8> {
    (0..bytes).map(|nth| (nth * 7 + seed) as u8 | 1).collect()
}

/// Regions come and go, with room for them and without; each item is read as the agent says.
#[test]
fn what_it_answers_the_agent_would_have_answered() {
    let mut rng = Dice(88_172_645_463_325_252);
    let mut home = Home::new(6);
    let mut regions: Vec<(Tag, u32, u32)> = Vec::new();
    let (mut answered, mut passed) = (0, [0; 2]);
    for round in 0..20_000u32 {
        match rng.below(40) {
            0 if regions.len() < 5 => {
                let sizes = [1, 8, 47, 48, 49, 112, 1023, MAX_ITEM];
                let bytes = sizes[rng.below(8) as usize];
                let items = 1 + rng.below(300) as u32;
                regions.push((home.reserve(bytes, items), bytes, items));
            }
            1 if !regions.is_empty() && rng.below(4) == 0 => {
                let gone = regions.swap_remove(rng.below(regions.len() as u64) as usize);
                home.remove(gone.0);
                let (header, own) = home.question(gone.0, Ask::Item(0));
                let said = answer(&home.memory, &OF, &header, &own);
                assert_eq!(said, Err(ShelfPassed::Elsewhere));
            }
            _ => {}
        }
        if regions.is_empty() {
            continue;
        }
        let (region, bytes, items) = regions[rng.below(regions.len() as u64) as usize];
        if rng.below(2) == 0 {
            home.write(
                region,
                rng.below(items.min(8).into()) as u32,
                &value(bytes, round),
            );
        }
        let writes = home.stock.shape(region).unwrap().2;
        let few = u64::from(rng.below(items.min(8).into()) as u32);
        let ask = match rng.below(6) {
            0 => Ask::News(writes),
            1 => Ask::News(rng.below(writes + 2)),
            2 => Ask::Item(rng.below(u64::from(items) + 3)),
            3 => Ask::Item(rng.below(u64::MAX)),
            _ => Ask::Item(few),
        };
        let (header, own) = home.question(region, ask);
        assert!(concerns(&OF, &header));
        match answer(&home.memory, &OF, &header, &own) {
            Ok(said) => {
                answered += 1;
                assert_eq!(by_agent(said), home.agent(&header, own, &[]), "{ask:?}");
            }
            Err(ShelfPassed::News) => {
                passed[0] += 1;
                assert!(matches!(ask, Ask::News(from) if from != writes));
            }
            Err(why) => {
                passed[1] += 1;
                assert_eq!(why, ShelfPassed::Elsewhere);
            }
        }
    }
    assert!(
        answered > 5_000 && passed.iter().all(|passed| *passed > 100),
        "{answered} {passed:?}"
    );
}

/// A home does these, and a read comes between any of its stores; from any load on it sees what is
/// there after any more of them.
fn race(home: &mut Home, ask: (Tag, Ask), acts: &[&dyn Fn(&mut Home)]) -> (u32, u32) {
    let before = home.memory.words.clone();
    home.memory.stores.clear();
    let (header, own) = home.question(ask.0, ask.1);
    let mut says = vec![(0, Some(home.agent(&header, own, &[])))];
    for act in acts {
        act(home);
        let made = home.memory.stores.len();
        says.push((made, Some(home.agent(&header, own, &[]))));
    }
    let stores = std::mem::take(&mut home.memory.stores);
    beside::race((&before, &stores), &says, |words| {
        answer(words, &OF, &header, &own).ok()
    })
}

/// A region that was written to, and another one.
fn two(bytes: u32) -> (Home, Tag, Tag) {
    let mut home = Home::new(1);
    let region = home.reserve(bytes, 4);
    home.write(region, 1, &value(bytes, 1));
    home.write(region, 0, &value(bytes, 2));
    let other = Tag(region.0 + 64);
    (home, region, other)
}

#[test]
fn a_read_beside_writes_is_of_one_moment() {
    for bytes in [3, 8, 24, 50] {
        let (mut home, region, _) = two(bytes);
        let own = |home: &mut Home| home.write(region, 1, &value(bytes, 5));
        let other = |home: &mut Home| home.write(region, 2, &value(bytes, 6));
        let (answered, passed) = race(&mut home, (region, Ask::Item(1)), &[&own, &other, &own]);
        assert!(answered > 100 && passed > 100, "{answered} {passed}");
        // Of an item that nobody has written.
        let last = |home: &mut Home| home.write(region, 3, &value(bytes, 5));
        let (answered, passed) = race(&mut home, (region, Ask::Item(3)), &[&other, &last]);
        assert!(answered > 100 && passed > 10, "{answered} {passed}");
    }
}

#[test]
fn news_beside_writes_are_those_of_the_agent() {
    let (mut home, region, _) = two(8);
    let write = |home: &mut Home| home.write(region, 1, &value(8, 5));
    for from in 1..=4 {
        race(&mut home, (region, Ask::News(from)), &[&write]);
    }
}

/// The slab of a region that is no more has another region's items.
#[test]
fn a_read_beside_another_region_is_of_the_first_or_none() {
    for items in [1, 2] {
        let (mut home, region, other) = two(24);
        let gone = |home: &mut Home| home.remove(region);
        let made = |home: &mut Home| assert_eq!(home.reserve(8, 1000 + items), other);
        let write = |home: &mut Home| home.write(other, 1, &value(8, 9));
        let acts: [&dyn Fn(&mut Home); 3] = [&gone, &made, &write];
        let (answered, passed) = race(&mut home, (region, Ask::Item(1)), &acts);
        assert!(answered > 10 && passed > 100, "{answered} {passed}");
        assert_eq!(home.shelf.regions(), 1);
        // The other one's first reads.
        let (mut home, region, other) = two(24);
        let acts: [&dyn Fn(&mut Home); 3] = [&gone, &made, &write];
        assert_eq!(region, home.stock.shape(region).map(|_| region).unwrap());
        let (answered, _) = race(&mut home, (other, Ask::Item(1)), &acts);
        assert!(answered > 10, "{answered}");
    }
}

#[test]
fn a_row_or_slabs_that_are_taken_leave_the_next_region_to_the_agent() {
    let mut home = Home::new(1);
    let first = home.reserve(8, 1024);
    let second = home.reserve(8, 1);
    assert_eq!(home.shelf.regions(), 1);
    home.write(second, 0, &value(8, 1));
    let (header, own) = home.question(second, Ask::Item(0));
    let said = answer(&home.memory, &OF, &header, &own);
    assert_eq!(said, Err(ShelfPassed::Elsewhere));
    home.remove(second);
    home.remove(first);
    // So many regions later its row is that of one that lasts.
    let lasts = home.reserve(8, 1);
    for _ in 1..SHELF_ROWS {
        let next = home.reserve(8, 1);
        home.remove(next);
    }
    let next = home.reserve(8, 1);
    assert_eq!(next.0 - lasts.0, 64 * SHELF_ROWS);
    assert_eq!(home.shelf.regions(), 1);
    home.write(next, 0, &value(8, 1));
    let (header, own) = home.question(lasts, Ask::Item(0));
    let said = answer(&home.memory, &OF, &header, &own);
    assert!(said.is_ok_and(|said| said.2.is_empty()));
    assert_eq!(SHELF_SLAB, 65_536);
}

#[test]
fn other_packets_are_none_of_its_business() {
    let mut home = Home::new(1);
    let region = home.reserve(8, 1);
    let (good, _) = home.question(region, Ask::Item(0));
    assert!(concerns(&OF, &good));
    let none = ShelfHome { epoch: 0, ..OF };
    assert!(!concerns(&none, &Header { epoch: 0, ..good }));
    for other in [
        Header {
            kind: Kind::BiWrite,
            ..good
        },
        Header {
            epoch: EPOCH + 1,
            ..good
        },
        Header {
            tag: region.under(Contract::Object),
            ..good
        },
        Header {
            tag: Tag(region.0 ^ 1 << 48),
            ..good
        },
        Header {
            flags: Flags::DATA,
            ..good
        },
        Header {
            reason: Reason::Torn,
            ..good
        },
        Header {
            reply_port: 0,
            ..good
        },
    ] {
        assert!(!concerns(&OF, &other), "{other:?}");
    }
    // Addresses that no region has had.
    for offset in [1, 8, 64, 63 * 64, u64::from(u32::MAX)] {
        let header = Header {
            tag: Tag(region.0 + offset),
            ..good
        };
        let said = answer(&home.memory, &OF, &header, &Own::default());
        assert_eq!(said, Err(ShelfPassed::Elsewhere), "{offset}");
    }
    let before = Header {
        tag: Tag(region.0 - 64),
        ..good
    };
    let said = answer(&home.memory, &OF, &before, &Own::default());
    assert_eq!(said, Err(ShelfPassed::Elsewhere));
}
