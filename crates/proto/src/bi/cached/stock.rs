//! A home's regions: their items, and what was modified lately.
//!
//! A region is named by an address of its home's memory that no other region of this life of the
//! home has had. Items that nobody has written are zeros, and take no memory.

use super::news::{BiNews, pack_value};
use super::shelf::Changed;
use super::{BiOut, Defect, MAX_ITEM, MAX_ITEMS, MAX_REGIONS, NAMED, NEWS_BYTES, REMEMBERED};
use crate::call::PerRequester;
use crate::wire::{Contract, Dest, Flags, Header, HomeId, Kind, Own, Reason, Tag};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Bytes between names of regions.
pub const STEP: u64 = 64;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Region {
    /// Bytes of an item.
    bytes: u32,
    items: u32,
    /// How many writes there were.
    writes: u64,
    /// The items of the last ones.
    modified: VecDeque<u32>,
    /// How many of them are remembered.
    remembered: usize,
    /// Items that an answer names, and bytes of it that may be items and values.
    told: (usize, usize),
    /// By item; those that nobody has written are not there.
    values: BTreeMap<u32, Vec<u8>>,
}

impl Region {
    fn item(&self, own: &Own) -> Result<u32, Reason> {
        let item = u32::try_from(own.b).ok();
        let item = item.filter(|item| *item < self.items);
        item.ok_or(Reason::Refused)
    }

    fn write(&mut self, item: u32, bytes: &[u8]) -> u64 {
        self.values.insert(item, bytes.into());
        self.writes += 1;
        self.modified.push_back(item);
        if self.modified.len() > self.remembered {
            self.modified.pop_front();
        }
        self.writes
    }

    /// What was modified after that write.
    fn news(&self, from: u64, broken: Option<Defect>) -> BiNews {
        let forgotten = self.writes - self.modified.len() as u64;
        // Who says that it has heard of more than there was has heard of another region.
        let known = (forgotten..=self.writes).contains(&from);
        // As many as there is room for, and up to which write that is.
        let named = |from: u64| -> (Vec<u32>, u64) {
            let (mut all, mut upto) = (BTreeSet::new(), from);
            for item in self.modified.iter().skip((from - forgotten) as usize) {
                if all.len() == self.told.0 && !all.contains(item) {
                    break;
                }
                all.insert(*item);
                upto += 1;
            }
            (all.into_iter().collect(), upto)
        };
        let (items, upto) = match broken {
            Some(Defect::NameTheRest) => Some(named(from.clamp(forgotten, self.writes))),
            _ => known.then(|| named(from)),
        }
        .unzip();
        let upto = upto.unwrap_or(self.writes);
        let room = self
            .told
            .1
            .saturating_sub(4 * items.as_ref().map_or(0, Vec::len));
        let mut values = Vec::new();
        for value in items
            .iter()
            .flatten()
            .map_while(|item| self.values.get(item))
        {
            let before = values.len();
            pack_value(value, &mut values);
            if values.len() > room {
                values.truncate(before);
                break;
            }
        }
        BiNews {
            upto,
            more: u32::try_from(self.writes - upto).unwrap_or(u32::MAX),
            shape: (self.bytes, self.items),
            values,
            items,
        }
    }

    fn size(&self) -> u64 {
        u64::from(self.bytes) * u64::from(self.items)
    }
}

/// The last call of a requester that changes something, and what it was answered.
#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
struct Row {
    incarnation: u32,
    number: u64,
    answer: Option<(Reason, Tag, u64)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Stock {
    home: HomeId,
    /// Where memory begins, and how much there is: earlier lives of the home had what is below.
    base: u64,
    limit: u64,
    regions: BTreeMap<u64, Region>,
    /// The next one's number.
    next: u64,
    /// Bytes that regions may have together.
    reserved: u64,
    /// Writes of a region that it remembers the items of.
    remembered: usize,
    /// Items that an answer names, and bytes of it that may be items and values.
    told: (usize, usize),
    rows: PerRequester<Row>,
    /// The kernel of its host answers reads, which all its answers say.
    pub in_kernel: bool,
}

impl Stock {
    /// Of a home with room for so many bytes of items, whose addresses begin there.
    pub fn new(home: HomeId, base: u64, limit: u64) -> Self {
        Stock {
            home,
            base,
            limit,
            regions: BTreeMap::new(),
            next: 0,
            reserved: 0,
            remembered: REMEMBERED,
            told: (NAMED, NEWS_BYTES),
            rows: PerRequester::default(),
            in_kernel: false,
        }
    }

    /// The same, which remembers so many writes of a region.
    #[must_use]
    pub fn remembering(mut self, writes: usize) -> Self {
        self.remembered = writes;
        self
    }

    /// The same, whose answers name so many items, one at least, and have so many bytes of items
    /// and values: with none they only name.
    #[must_use]
    pub fn telling(mut self, (items, bytes): (usize, usize)) -> Self {
        self.told = (items.clamp(1, NAMED), bytes.min(NEWS_BYTES));
        self
    }

    /// Regions that there are.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// What an item is; nothing where nobody has written it.
    pub fn value(&self, tag: Tag, item: u32) -> &[u8] {
        let number = self.number(tag).ok();
        let region = number.and_then(|number| self.regions.get(&number));
        let value = region.and_then(|region| region.values.get(&item));
        value.map_or(&[], |value| value)
    }

    /// The number of a region that there is or has been.
    pub fn name(&self, tag: Tag) -> Option<u64> {
        self.number(tag).ok()
    }

    /// Bytes of a region's items, how many there are, and how often it was written to.
    pub fn shape(&self, tag: Tag) -> Option<(u32, u32, u64)> {
        let region = self.regions.get(&self.name(tag)?)?;
        Some((region.bytes, region.items, region.writes))
    }

    fn number(&self, tag: Tag) -> Result<u64, Reason> {
        if !tag.is_under(Contract::Bounded) || tag.home() != self.home {
            return Err(Reason::Refused);
        }
        let offset = tag.offset().checked_sub(self.base).ok_or(Reason::Lost)?;
        match offset / STEP {
            number if offset % STEP != 0 || number >= self.next => Err(Reason::NoMemory),
            number => Ok(number),
        }
    }

    fn region(&mut self, tag: Tag) -> Result<&mut Region, Reason> {
        let number = self.number(tag)?;
        self.regions.get_mut(&number).ok_or(Reason::Gone)
    }

    /// A packet that asks for something.
    pub fn packet(&mut self, header: &Header, own: &Own, body: &[u8], out: &mut BiOut) {
        match header.kind {
            Kind::BiRead => self.read(header, own, out),
            Kind::BiAskNews => self.tell(header, own, out),
            Kind::BiWrite => {
                let mut written = None;
                self.once(header, out, Kind::BiWriteAck, |stock| {
                    let region = stock.region(header.tag)?;
                    let item = region.item(own)?;
                    if body.len() != region.bytes as usize {
                        return Err(Reason::Refused);
                    }
                    written = Some(item);
                    Ok((header.tag, region.write(item, body)))
                });
                let region = header.tag;
                let changed = |item| Changed {
                    region,
                    item: Some(item),
                };
                out.changed = written.map(changed);
            }
            Kind::BiReserve => {
                let mut changed = None;
                self.once(header, out, Kind::BiReserveAck, |stock| {
                    let done = match own.b {
                        0 => stock.remove(header.tag),
                        _ => stock.reserve(header.tag, own),
                    }?;
                    let (region, item) = (done.0, None);
                    changed = Some(Changed { region, item });
                    Ok(done)
                });
                out.changed = changed;
            }
            _ => {}
        }
    }

    fn read(&mut self, header: &Header, own: &Own, out: &mut BiOut) {
        let to = Dest::Requester(header.requester);
        let flags = self.flags();
        let found = self.region(header.tag).and_then(|region| {
            let item = region.item(own)?;
            Ok((region.writes, region.bytes, region.values.get(&item)))
        });
        match found {
            Ok((writes, bytes, value)) => {
                let mut data = header.answer(Kind::BiData, header.sender);
                data.flags = flags;
                let (a, b) = (writes, bytes.into());
                out.send(to, &data, Own { a, b }, value.map_or(&[], |value| value));
            }
            Err(reason) => {
                let no = header.refuse(Kind::BiData, header.sender, reason);
                out.send(to, &no, Own::default(), &[]);
            }
        }
    }

    fn tell(&mut self, header: &Header, own: &Own, out: &mut BiOut) {
        let to = Dest::Requester(header.requester);
        let (broken, flags) = (out.broken, self.flags());
        match self.region(header.tag) {
            Ok(region) => {
                let (own, body) = region.news(own.a, broken).encode();
                let mut news = header.answer(Kind::BiNews, header.sender);
                news.flags = flags;
                out.send(to, &news, own, &body);
            }
            Err(reason) => {
                let no = header.refuse(Kind::BiNews, header.sender, reason);
                out.send(to, &no, Own::default(), &[]);
            }
        }
    }

    /// Carries a call out once, and answers its copies as the first.
    fn once(
        &mut self,
        header: &Header,
        out: &mut BiOut,
        kind: Kind,
        act: impl FnOnce(&mut Self) -> Result<(Tag, u64), Reason>,
    ) {
        let row = *self.rows.row(header.requester);
        let which = (header.incarnation, header.seq.0);
        let known = (row.incarnation, row.number);
        if which < known {
            return;
        }
        let answer = match row.answer {
            Some(answer) if which == known && out.broken != Some(Defect::WriteTwice) => answer,
            _ => match act(self) {
                Ok((tag, number)) => (Reason::None, tag, number),
                Err(reason) => (reason, header.tag, 0),
            },
        };
        *self.rows.row(header.requester) = Row {
            incarnation: which.0,
            number: which.1,
            answer: Some(answer),
        };
        let (reason, tag, a) = answer;
        let mut told = match reason {
            Reason::None => header.answer(kind, header.sender),
            reason => header.refuse(kind, header.sender, reason),
        };
        told.tag = tag;
        out.send(
            Dest::Requester(header.requester),
            &told,
            Own { a, b: 0 },
            &[],
        );
    }

    /// What its answers to reads say. A question's flags are nobody's business.
    fn flags(&self) -> Flags {
        match self.in_kernel {
            true => Flags::BY_GRANULES,
            false => Flags::default(),
        }
    }

    fn reserve(&mut self, tag: Tag, own: &Own) -> Result<(Tag, u64), Reason> {
        if !tag.is_under(Contract::Bounded) || tag.home() != self.home {
            return Err(Reason::Refused);
        }
        let shape = u32::try_from(own.a).ok().zip(u32::try_from(own.b).ok());
        let sound = |shape: &(u32, u32)| {
            (1..=MAX_ITEM).contains(&shape.0) && (1..=MAX_ITEMS).contains(&shape.1)
        };
        let (bytes, items) = shape.filter(sound).ok_or(Reason::Refused)?;
        let region = Region {
            bytes,
            items,
            writes: 0,
            modified: VecDeque::new(),
            remembered: self.remembered,
            told: self.told,
            values: BTreeMap::new(),
        };
        let reserved = self.reserved + region.size();
        let full = reserved > self.limit || self.regions.len() >= MAX_REGIONS;
        if full || (self.next + 1) * STEP > self.limit {
            return Err(Reason::Full);
        }
        let tag = Tag(self.home.start().0 + self.base + self.next * STEP);
        self.regions.insert(self.next, region);
        (self.next, self.reserved) = (self.next + 1, reserved);
        Ok((tag.under(Contract::Bounded), 0))
    }

    fn remove(&mut self, tag: Tag) -> Result<(Tag, u64), Reason> {
        let number = self.number(tag)?;
        let region = self.regions.remove(&number).ok_or(Reason::Gone)?;
        self.reserved -= region.size();
        Ok((tag, 0))
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.next, self.reserved, &self.regions).hash(into);
        self.rows.fingerprint(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(writes: &[u32]) -> Region {
        let mut region = Region {
            bytes: 8,
            items: 10_000,
            writes: 0,
            modified: VecDeque::new(),
            remembered: REMEMBERED,
            told: (NAMED, NEWS_BYTES),
            values: BTreeMap::new(),
        };
        for item in writes {
            region.write(*item, &[1; 8]);
        }
        region
    }

    #[test]
    fn news_name_each_item_once_or_say_that_it_may_be_any() {
        let all = region(&[5, 3, 5, 9]);
        let told = |from| all.news(from, None).items;
        assert_eq!(told(0), Some(alloc::vec![3, 5, 9]));
        assert_eq!(told(2), Some(alloc::vec![5, 9]));
        assert_eq!(told(4), Some(Vec::new()));
        // Of another region.
        assert_eq!(told(5), None);
        // One after the other: the first is written once more before there is no room.
        let many: Vec<u32> = (0..NAMED as u32).chain([0, 1000, 1001]).collect();
        let all = region(&many);
        let first = all.news(0, None);
        assert_eq!(first.items, Some(many[..NAMED].into()));
        assert_eq!((first.upto, first.more), (NAMED as u64 + 1, 2));
        let rest = all.news(first.upto, None);
        assert_eq!(rest.items, Some(alloc::vec![1000, 1001]));
        assert_eq!((rest.upto, rest.more), (first.now(), 0));
        let all = region(&alloc::vec![7; REMEMBERED + 1]);
        assert_eq!(all.news(0, None).items, None);
        assert_eq!(all.news(1, None).items, Some(alloc::vec![7]));
        assert_eq!(all.modified.len(), REMEMBERED);
    }

    #[test]
    fn news_have_as_many_values_as_there_is_room_for() {
        let told = |bytes: u32, writes: u32| {
            let mut region = region(&[]);
            region.bytes = bytes;
            (0..writes).for_each(|item| {
                region.write(item, &alloc::vec![item as u8 | 1; bytes as usize]);
            });
            region.news(0, None)
        };
        let values = |news: &BiNews| -> Vec<Option<u8>> {
            let each = news.each().unwrap();
            each.map(|(_, value)| value.map(|value| value[0])).collect()
        };
        assert_eq!(values(&told(8, 3)), [Some(1), Some(1), Some(3)]);
        let all = values(&told(1000, 4));
        assert_eq!(all, [Some(1), Some(1), Some(3), None]);
        // Without the zeros at its end.
        let mut region = region(&[]);
        region.write(1, &[1, 0, 2, 0, 0, 0, 0, 0]);
        region.write(2, &[0; 8]);
        let news = region.news(0, None);
        let each: Vec<_> = news.each().unwrap().collect();
        assert_eq!(each, [(1, Some(&[1, 0, 2][..])), (2, Some(&[][..]))]);
        let all = values(&told(16, NAMED as u32));
        let sent = all.iter().flatten().count();
        assert_eq!(sent, (NEWS_BYTES - 4 * NAMED) / 18);
        assert!(all[sent..].iter().all(Option::is_none) && sent < NAMED);
    }

    #[test]
    fn a_home_gives_what_it_has_room_and_addresses_for_and_no_more() {
        let home = HomeId::of(1);
        let place = home.start().under(Contract::Bounded);
        let reserve = |stock: &mut Stock, bytes: u64, items: u64| {
            let own = Own { a: bytes, b: items };
            stock.reserve(place, &own).map(|(tag, _)| tag)
        };
        // Bytes of items.
        let mut stock = Stock::new(home, 0, 1024);
        let first = reserve(&mut stock, 8, 64).unwrap();
        reserve(&mut stock, 64, 8).unwrap();
        assert_eq!(reserve(&mut stock, 1, 1), Err(Reason::Full));
        stock.remove(first).unwrap();
        assert_eq!(reserve(&mut stock, 8, 65), Err(Reason::Full));
        reserve(&mut stock, 8, 64).unwrap();
        // Addresses, which are given once.
        let mut stock = Stock::new(home, 0, 1024);
        let all: Vec<Tag> = (0..1024 / STEP)
            .map(|_| reserve(&mut stock, 1, 1).unwrap())
            .collect();
        assert_eq!(reserve(&mut stock, 1, 1), Err(Reason::Full));
        all.iter().for_each(|tag| {
            stock.remove(*tag).unwrap();
        });
        assert_eq!(reserve(&mut stock, 1, 1), Err(Reason::Full));
        // Regions at a time.
        let mut stock = Stock::new(home, 0, 1 << 20);
        let all: Vec<Tag> = (0..MAX_REGIONS)
            .map(|_| reserve(&mut stock, 1, 1).unwrap())
            .collect();
        assert_eq!(reserve(&mut stock, 1, 1), Err(Reason::Full));
        stock.remove(all[7]).unwrap();
        assert_eq!(stock.remove(all[7]).err(), Some(Reason::Gone));
        let next = reserve(&mut stock, 1, 1).unwrap();
        assert!(!all.contains(&next));
    }
}
