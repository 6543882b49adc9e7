//! Transactions that write objects of several regions: whatever happens after any line of one that
//! a majority has, all of it is there, or nothing, and what somebody has seen does not go.

use crate::rack::{COORDINATOR, LINE, OBJECTS, REGIONS, Rack, laid, object_of};
use rackmem_proto::abd::first_line;
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::transaction::Used;
use rackmem_proto::sabre::{Defect, Outcome, Ref};
use rackmem_proto::wire::{Dest, Header, Kind, Own, Reason, RequesterId, Seq, Tag};
use std::fmt::Debug;

/// What the transaction writes.
const NEW: u8 = 2;
/// What there was, of another transaction over the same objects.
const OLD: u8 = 1;
/// What a thread beside it writes.
const OTHER: u8 = 7;

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// Somebody reads both objects of a region.
    Read(u16),
    /// Somebody writes the first one.
    Write(u16),
    /// A region is removed.
    Remove(u16),
    /// The keeper dies when a majority has so many lines more.
    Die(usize),
    /// A group has no majority until the next keeper.
    Alone(u16),
    /// The coordinator asks again.
    Ask,
}

/// The objects of a region that are written.
fn both(group: u16) -> [Ref; 2] {
    [object_of(group, 1), object_of(group, 4)]
}

/// A transaction writes both objects of each of these regions, which have the versions that it has
/// read.
fn begin(rack: &mut Rack, regions: u16, value: u8, read: u64) -> Vec<Parcel> {
    let content = [value; 8];
    let used = (0..regions).flat_map(both).map(|object| Used {
        object,
        read: Some(read),
        write: Some(&content),
    });
    let used: Vec<Used<'_>> = used.collect();
    rack.commit(&used)
}

/// A rack in which such a transaction is over.
fn rack(regions: u16, broken: Option<Defect>) -> Rack {
    let mut rack = Rack::new(None);
    let sent = begin(&mut rack, regions, OLD, 2);
    assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
    rack.broken = broken;
    rack.stored.clear();
    rack
}

/// What is known of the transaction, and of what threads beside it have written.
struct Watch {
    rack: Rack,
    regions: u16,
    /// Whether it has taken effect, as far as anybody knows.
    took: Option<bool>,
    written: [bool; REGIONS as usize],
    removed: [bool; REGIONS as usize],
    asked: Vec<Parcel>,
    calls: u64,
}

type Judged = Result<(), String>;

impl Watch {
    fn new(rack: Rack, regions: u16) -> Watch {
        Watch {
            rack,
            regions,
            took: None,
            written: Default::default(),
            removed: Default::default(),
            asked: Vec::new(),
            calls: 0,
        }
    }

    /// Somebody has seen that it has taken effect, or that it never does.
    fn know(&mut self, took: bool, by: &dyn Debug) -> Judged {
        match self.took {
            Some(known) if known != took => Err(format!("{by:?}: {took}, and {known} was known")),
            _ => {
                self.took = Some(took);
                Ok(())
            }
        }
    }

    fn next_keeper(&mut self) {
        self.rack.alone = None;
        self.asked = self.rack.next_keeper();
    }

    /// Somebody reads both objects of a region, unless the keeper dies or cannot say.
    fn read(&mut self, group: u16) -> Judged {
        let mut seen = [0; 2];
        for (to, object) in seen.iter_mut().zip(both(group)) {
            match self.rack.look(object) {
                Some(Some(value)) => *to = value,
                Some(None) => return Ok(()),
                None => {
                    self.next_keeper();
                    return Ok(());
                }
            }
        }
        let [first, second] = seen;
        let nth = usize::from(group);
        let is = if self.written[nth] { OTHER } else { second };
        if first != is || (second != NEW && second != OLD) {
            return Err(format!("region {group} has {seen:?}"));
        }
        match (second == NEW, self.took) {
            // It may yet take effect.
            (false, None) => Ok(()),
            (took, _) => self.know(took, &format!("a reader of {group} sees {seen:?}")),
        }
    }

    /// Somebody writes a region's first object. The transaction has read what there was, so it was
    /// before this, or is never.
    fn write(&mut self, group: u16) -> Judged {
        self.calls += 1;
        let object = both(group)[0].tag;
        let by = (9, self.calls);
        loop {
            match self.rack.calls(Kind::ObjWrite, by, object, 8) {
                None => self.next_keeper(),
                Some(None) => return Ok(()),
                Some(Some((reason, _))) => {
                    assert_eq!(reason, Reason::None);
                    break;
                }
            }
        }
        self.written[usize::from(group)] = true;
        let second = loop {
            match self.rack.look(both(group)[1]) {
                None => self.next_keeper(),
                Some(seen) => break seen,
            }
        };
        match second {
            None => Ok(()),
            Some(seen) => self.know(seen == NEW, &format!("after a write of {group}: {seen}")),
        }
    }

    fn ask(&mut self) -> Judged {
        let asked = std::mem::take(&mut self.asked);
        let ended = self.rack.ends(&asked);
        self.asked = asked;
        match ended {
            Some(Outcome::Committed) => self.know(true, &"it was acknowledged"),
            Some(Outcome::Aborted(Reason::Invalid, _)) => self.know(false, &"it was refused"),
            // Where all that it writes is removed, nobody knows any more.
            Some(Outcome::Aborted(Reason::Gone, _)) => {
                let removed = &self.removed[..self.regions.into()];
                match (removed.contains(&true), removed.contains(&false)) {
                    (true, true) => self.know(false, &"it was told that a region is gone"),
                    (true, false) => Ok(()),
                    (false, _) => Err("nothing is gone".into()),
                }
            }
            None => Ok(()),
            other => Err(format!("it was told {other:?}")),
        }
    }

    fn happens(&mut self, event: Event) -> Judged {
        let is_there = |group: u16| !self.removed[usize::from(group)];
        match event {
            Event::Read(group) if is_there(group) => self.read(group)?,
            Event::Write(group) if is_there(group) => self.write(group)?,
            Event::Remove(group) if is_there(group) => {
                self.removed[usize::from(group)] = true;
                self.rack.remove(group);
            }
            Event::Read(_) | Event::Write(_) | Event::Remove(_) => {}
            Event::Die(0) => self.next_keeper(),
            Event::Die(stores) => self.rack.stores = stores - 1,
            Event::Alone(group) => self.rack.alone = Some(group),
            Event::Ask => self.ask()?,
        }
        Ok(())
    }

    /// In the end all regions that are there say the same, whoever reads which one first, and the
    /// coordinator is told.
    fn ends(&mut self) -> Judged {
        for _ in 0..2 {
            self.next_keeper();
            for group in (0..self.regions).rev() {
                self.happens(Event::Read(group))?;
            }
            self.ask()?;
        }
        for group in 0..self.regions {
            self.happens(Event::Read(group))?;
        }
        match self.asked.is_empty() || self.took.is_some() {
            true => Ok(()),
            false => Err("nobody is told what has come of it".into()),
        }
    }
}

/// How many lines a transaction over these regions stores.
fn lines(regions: u16) -> usize {
    let mut rack = rack(regions, None);
    let sent = begin(&mut rack, regions, NEW, 4);
    assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
    rack.stored.len()
}

/// What happens after a keeper has died when a majority had so many lines of a transaction.
fn follows(regions: u16, stores: usize, broken: Option<Defect>, events: &[Event]) -> Judged {
    let mut watch = Watch::new(rack(regions, broken), regions);
    watch.rack.stores = stores;
    let sent = begin(&mut watch.rack, regions, NEW, 4);
    if watch.rack.ends(&sent) == Some(Outcome::Committed) {
        watch.took = Some(true);
    }
    watch.next_keeper();
    let all = events.iter().try_for_each(|event| watch.happens(*event));
    all.and_then(|()| watch.ends())
        .map_err(|why| format!("{stores} lines, then {events:?}: {why}"))
}

/// All that may happen beside a transaction over so many regions.
fn events(regions: u16) -> Vec<Event> {
    let of = |make: fn(u16) -> Event| (0..regions).map(make);
    let mut all = vec![Event::Ask, Event::Die(0), Event::Die(1), Event::Die(2)];
    all.extend(of(Event::Read).chain(of(Event::Write)));
    all.extend(of(Event::Remove).chain(of(Event::Alone)));
    all
}

/// Any three things one after the other, after each line.
fn any_three(regions: u16, broken: Option<Defect>) -> Judged {
    let all = events(regions);
    for stores in 0..=lines(regions) {
        for nth in 0..all.len().pow(3) {
            let event = |place: u32| all[nth / all.len().pow(place) % all.len()];
            follows(regions, stores, broken, &[0, 1, 2].map(event))?;
        }
    }
    Ok(())
}

/// Longer ones, as a seed says.
fn some_long(regions: u16, count: u32) -> Judged {
    let (all, lines) = (events(regions), lines(regions));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % bound
    };
    for _ in 0..count {
        let stores = below(lines + 1);
        let long = 4 + below(5);
        let events: Vec<Event> = (0..long).map(|_| all[below(all.len())]).collect();
        follows(regions, stores, None, &events)?;
    }
    Ok(())
}

#[test]
fn two_regions_change_together_whatever_happens() {
    assert_eq!(any_three(2, None), Ok(()));
    assert_eq!(some_long(2, 8_000), Ok(()));
}

#[test]
fn three_regions_change_together_whatever_happens() {
    assert_eq!(any_three(3, None), Ok(()));
    assert_eq!(some_long(3, 8_000), Ok(()));
}

/// A rule that is broken, and how many regions it takes for that to be noticed.
const NOTICED: &[(Defect, u16)] = &[
    (Defect::LowestFirst, 2),
    (Defect::TrustOpen, 2),
    (Defect::ForgetOpen, 2),
    (Defect::LeaveOpen, 2),
    (Defect::ForgetRecord, 2),
    (Defect::OneStretch, 2),
    (Defect::LeaveOpen, 3),
];

#[test]
fn rules_of_several_regions_that_are_broken_are_noticed() {
    for (broken, regions) in NOTICED {
        let judged = any_three(*regions, Some(*broken));
        assert!(judged.is_err(), "{broken:?}");
    }
}

/// Lines say by themselves what was carried out: a region whose group has no majority is in
/// nobody's way, whoever serves the others next.
#[test]
fn a_region_without_a_majority_stops_only_itself() {
    for group in 0..2 {
        let mut rack = rack(2, None);
        rack.next_keeper();
        rack.alone = Some(group);
        let other = both(1 - group);
        assert_eq!(rack.look(both(group)[0]), Some(None));
        assert_eq!(rack.look(other[0]), Some(Some(OLD)));
        let done = Some(Some((Reason::None, other[1].tag)));
        assert_eq!(rack.calls(Kind::ObjWrite, (9, 1), other[1].tag, 8), done);
        // A transaction there overwrites its record of the last one.
        let content = [NEW; 8];
        let used = other.map(|object| Used {
            object,
            read: None,
            write: Some(&content),
        });
        let sent = rack.commit(&used);
        assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
        // The next keeper finds that the last one was over, from the other region's lines.
        rack.next_keeper();
        rack.alone = None;
        for object in both(group) {
            assert_eq!(rack.look(object), Some(Some(OLD)));
        }
        for object in other {
            assert_eq!(rack.look(object), Some(Some(NEW)));
        }
    }
}

/// Another requester's transaction writes these objects.
fn overwrites(rack: &mut Rack, objects: &[Ref]) {
    let who = RequesterId {
        node: COORDINATOR,
        slot: 5,
    };
    let mut body = Vec::new();
    for object in objects {
        body.extend([object.tag.0, 0, 8].map(u64::to_be_bytes).concat());
    }
    body.extend(vec![OTHER; 8 * objects.len()]);
    let tag = objects[0].tag;
    let mut header = Header::request(Kind::TxCommit, rack.epoch, tag, who, Seq(1));
    header.incarnation = 1;
    let own = Own {
        a: objects.len() as u64,
        b: body.len() as u64,
    };
    let packet = Parcel::new(Dest::Home(tag.home()), header, own, &body);
    let answers = rack.serve(&packet).unwrap();
    assert_eq!(answers[0].header.reason, Reason::None);
}

/// A requester whose call took effect asks for it after others have written over its objects, its
/// records, or both; and when the lowest region is removed, as long as another one is there.
#[test]
fn what_came_of_a_call_is_known_when_others_have_overwritten_it() {
    let [low, high] = [both(0), both(1)];
    let unused = [object_of(0, 0), object_of(1, 0)];
    let cases: &[&[Ref]] = &[
        &[],
        &low,
        &high,
        &[high[0]],
        &[low[1], high[1]],
        &unused,
        &unused[1..],
    ];
    for (overwritten, removed) in cases.iter().flat_map(|it| [(it, None), (it, Some(0))]) {
        for writes in [false, true] {
            let mut rack = rack(2, None);
            let sent = begin(&mut rack, 2, NEW, 4);
            // Its answers are lost.
            assert!(sent.iter().all(|packet| rack.serve(packet).is_some()));
            for (nth, object) in (1..).zip(both(1)).filter(|_| writes) {
                let written = rack.calls(Kind::ObjWrite, (9, nth), object.tag, 8);
                assert_eq!(written, Some(Some((Reason::None, object.tag))));
            }
            if !overwritten.is_empty() {
                overwrites(&mut rack, overwritten);
            }
            let again = rack.next_keeper();
            if let Some(group) = removed {
                rack.remove(group);
            }
            let ended = rack.ends(&again);
            assert_eq!(
                ended,
                Some(Outcome::Committed),
                "{overwritten:?} {removed:?}"
            );
        }
    }
}

/// What a keeper has yet to hear of may be an object that a transaction has written: it neither
/// drops that nor answers.
#[test]
fn a_keeper_that_has_not_heard_of_a_region_waits_until_it_has() {
    let mut rack = rack(2, None);
    rack.stores = lines(2) - 5;
    let sent = begin(&mut rack, 2, NEW, 4);
    assert_eq!(rack.ends(&sent), None, "the keeper died");
    rack.next_keeper();
    rack.keeper.sabre.kept.lay_out(1, laid(1, 0, false));
    assert_eq!(rack.look(both(0)[0]), Some(None));
    rack.keeper.sabre.kept.lay_out(1, laid(1, 0, true));
    for object in both(0).into_iter().chain(both(1)) {
        assert_eq!(rack.look(object), Some(Some(NEW)));
    }
}

/// Records that no keeper writes say nothing, whatever they name.
#[test]
fn damaged_records_say_nothing() {
    let rows = RequesterId::COUNT as u64 * 32;
    let record = Tag(first_line(1).0 + OBJECTS * u64::from(LINE) + rows);
    for byte in 0..LINE as usize {
        for flip in [1, 2, 4, 0x80, 0xff] {
            let mut rack = rack(2, None);
            rack.next_keeper();
            let line = rack.lines.get_mut(&record).unwrap();
            line[byte] ^= flip;
            // It is answered, or waits for a region that nobody has heard of.
            let seen = rack.look(both(1)[0]).unwrap();
            assert!(
                seen.is_none_or(|seen| seen == OLD),
                "{byte} {flip}: {seen:?}"
            );
        }
    }
}

/// A call that came to a higher region than the lowest one that it writes would have its records in
/// the wrong order.
#[test]
fn a_forged_call_to_a_higher_region_changes_nothing() {
    let mut rack = rack(2, None);
    let content = [OTHER; 8];
    let used = [both(0)[0], both(1)[0]].map(|object| Used {
        object,
        read: None,
        write: Some(&content),
    });
    let sent = rack.commit(&used);
    let (own, body) = sent[0].split();
    let mut header = sent[0].header;
    header.tag = both(1)[0].tag;
    let forged = Parcel::new(Dest::Home(header.tag.home()), header, own, body);
    let answers = rack.serve(&forged).unwrap();
    assert_eq!(answers[0].header.reason, Reason::Refused);
    assert_eq!(rack.stored, []);
}
