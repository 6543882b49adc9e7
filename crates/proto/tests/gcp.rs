//! GCP's roles where the explorer does not look: the switch's program, hostile packets,
//! what a dead node leaves behind.

use rackmem_proto::Outputs;
use rackmem_proto::gcp::{
    Access, Before, Blade, BladeConfig, Entry, Event, LockDirectory, LockPlace, Mode, Queue,
    Region, Regions, Report, Reports, Right, Steps, first, settle, version, with_version,
};
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{
    Copyset, Dest, Flags, GlobalStatus, Header, Kind, MAX_NODES, NodeId, Reason, RequesterId, Seq,
    Tag,
};

const EPOCH: u32 = 3;

/// A stream of draws.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

fn packet(dice: &mut Dice, kinds: &[Kind], tags: u64) -> Header {
    let requester = RequesterId {
        node: dice.roll(32) as NodeId,
        slot: dice.roll(64) as u16,
    };
    let kind = kinds[dice.roll(kinds.len() as u64) as usize];
    let tag = Tag(dice.roll(tags) << 12);
    let mut header = Header::request(kind, EPOCH, tag, requester, Seq(0));
    header.status = GlobalStatus::from_byte(dice.roll(3) as u8).unwrap();
    header.sender = dice.roll(33) as NodeId;
    header.copyset = Copyset(dice.roll(1 << 31) as u32);
    header.flags = Flags(dice.roll(2) as u8);
    header.reason = Reason::from_byte(dice.roll(10) as u8).unwrap();
    header.offset = dice.roll(4096) as u32;
    with_version(header, first(EPOCH) + dice.roll(40))
}

fn placed(home: &mut LockDirectory, switch: &mut LockProgram, tag: Tag) -> LockPlace {
    assert!(home.create(tag));
    let mut outputs = Outputs::default();
    home.place(tag, &mut outputs);
    for output in outputs.iter() {
        for answer in switch.handle(&output.header).iter() {
            assert_eq!(answer.to, Dest::Home(tag.home()));
            home.handle(&answer.header);
        }
    }
    home.entry(tag).unwrap().1
}

#[test]
fn the_switch_does_what_the_table_says_in_one_pass() {
    let mut switch = LockProgram::new(LockConfig {
        epoch: EPOCH,
        ways: 2,
        sets: 2,
    });
    let mut home = LockDirectory::new(0, EPOCH);
    let tags: Vec<Tag> = (0..8).map(|n| Tag(n << 12)).collect();
    let places: Vec<LockPlace> = tags
        .iter()
        .map(|t| placed(&mut home, &mut switch, *t))
        .collect();
    let at_switch = places.iter().filter(|p| **p == LockPlace::Switch).count();
    assert!((1..=4).contains(&at_switch), "{places:?}");
    let mut table: Vec<Entry> = tags.iter().map(|_| Entry::new(0, EPOCH)).collect();
    let mut dice = Dice(5);
    let kinds = [Kind::Acquire, Kind::Acquire, Kind::Release];
    for _ in 0..20_000 {
        let mut header = packet(&mut dice, &kinds, 8);
        let nth = (header.tag.0 >> 12) as usize;
        if dice.roll(2) == 0 {
            // A release that counts.
            header.sender = table[nth].state.holder.into();
            header = with_version(header, table[nth].state.version);
        }
        if header.kind == Kind::Release {
            // The switch drops what nobody can be answered.
            header.sender %= MAX_NODES as NodeId;
        }
        let outputs = switch.handle(&header);
        let output = outputs.iter().next().copied();
        if places[nth] == LockPlace::Here {
            assert_eq!(
                output.map(|o| (o.to, o.header)),
                Some((Dest::Home(header.tag.home()), header))
            );
            let served = home.handle(&header).iter().next().copied();
            assert_eq!(served, table[nth].handle(&header, 0));
            assert_eq!(home.entry(header.tag).unwrap().0, table[nth]);
        } else {
            assert_eq!(output, table[nth].handle(&header, NodeId::MAX));
            assert_eq!(switch.entry(header.tag), Some(table[nth]));
        }
    }
    assert_eq!(switch.counters().violations, 0);
    assert_eq!(switch.passes(), 20_000 + 8, "one pass a packet");
}

#[test]
fn a_lock_is_placed_once_however_often_it_is_asked_for() {
    let mut switch = LockProgram::new(LockConfig {
        epoch: EPOCH,
        ways: 1,
        sets: 1,
    });
    let mut home = LockDirectory::new(0, EPOCH);
    assert!(home.create(Tag(0x1000)) && !home.create(Tag(0x1000)));
    let mut outputs = Outputs::default();
    home.place(Tag(0x1000), &mut outputs);
    let place = outputs.iter().next().unwrap().header;
    // While nobody knows who serves it, nobody does.
    let mut dice = Dice(1);
    let mut request = packet(&mut dice, &[Kind::Acquire], 1);
    (request.tag, request.status) = (Tag(0x1000), GlobalStatus::Shared);
    assert!(home.handle(&request).is_empty());
    let first_answer = switch.handle(&place).iter().next().unwrap().header;
    switch.handle(&request);
    let entry = switch.entry(Tag(0x1000)).unwrap();
    assert_eq!(
        switch.handle(&place).iter().next().unwrap().header,
        first_answer
    );
    assert_eq!(
        switch.entry(Tag(0x1000)),
        Some(entry),
        "a second copy changes nothing"
    );
    home.handle(&first_answer);
    assert_eq!(home.entry(Tag(0x1000)).unwrap().1, LockPlace::Switch);
    // The set is full for everybody else, and stays so.
    assert_eq!(placed(&mut home, &mut switch, Tag(0x2000)), LockPlace::Here);
    switch.reset(EPOCH + 1);
    assert_eq!(switch.entry(Tag(0x1000)), None);
}

#[test]
fn the_first_request_of_an_epoch_decides_who_serves_a_lock() {
    let mut home = LockDirectory::new(0, EPOCH);
    let tags: Vec<Tag> = (0..1000).map(|n| Tag(n << 12)).collect();
    assert!(tags.iter().all(|tag| home.create(*tag)));
    let undecided = |home: &LockDirectory| {
        let places = tags.iter().map(|tag| home.entry(*tag).unwrap().1);
        places.filter(|p| *p == LockPlace::Undecided).count()
    };
    let mut dice = Dice(1);
    let mut request = |tag: Tag, kind: Kind| {
        let mut header = packet(&mut dice, &[kind], 1);
        (header.tag, header.status) = (tag, GlobalStatus::Shared);
        header
    };
    for epoch in [EPOCH, EPOCH + 1] {
        home.enter_epoch(epoch, Copyset(1), (0, 0), |_, _| (), |_| None);
        assert_eq!(undecided(&home), 1000, "an epoch asks for nothing");
        let mut first = request(tags[5], Kind::Acquire);
        first.epoch = epoch;
        // The question, and the request behind it.
        let sent: Vec<(Dest, Kind)> = home
            .handle_or_place(&first)
            .iter()
            .map(|output| (output.to, output.header.kind))
            .collect();
        let both = [(Dest::Switch, Kind::Place), (Dest::Switch, Kind::Acquire)];
        assert_eq!(sent, both);
        assert_eq!(home.entry(tags[5]).unwrap().1, LockPlace::Placing);
        assert!(home.handle_or_place(&first).is_empty(), "and never again");
        assert_eq!(undecided(&home), 999);
        // The switch has no room: the request comes back, and is served here from now on.
        let mut full = first.answer(Kind::PlaceAck, NodeId::MAX);
        full.reason = Reason::Full;
        assert!(home.handle_or_place(&full).is_empty());
        let served = home.handle_or_place(&first);
        assert_eq!(served.iter().next().unwrap().header.kind, Kind::Wait);
        let mut outputs = Outputs::default();
        home.place(tags[5], &mut outputs);
        assert!(outputs.is_empty(), "decided is decided");
        // Without a switch there is nobody to ask.
        let mut other = request(tags[6], Kind::Acquire);
        other.epoch = epoch;
        assert_eq!(
            home.handle(&other).iter().next().unwrap().header.kind,
            Kind::Wait
        );
        assert_eq!(home.entry(tags[6]).unwrap().1, LockPlace::Here);
    }
}

fn blade(node: NodeId) -> Blade {
    let mut blade = Blade::new(BladeConfig {
        node,
        epoch: EPOCH,
        switch: false,
        cohort: 4,
        locks: 2,
    });
    let region = Region {
        addr: 0x1000,
        len: 1500,
    };
    let regions = Regions::new(&[region]).unwrap();
    match node {
        0 => assert!(blade.create(Tag(0), regions)),
        _ => assert!(blade.open(Tag(0), regions)),
    }
    blade
}

#[test]
fn a_lock_that_nobody_else_wants_costs_nothing() {
    let (mut blade, mut steps) = (blade(0), Steps::new());
    for access in [Access::Write, Access::Read].repeat(50) {
        let (entered, known) = blade.enter(Tag(0), access, &mut steps);
        assert!(known && entered.is_some());
        blade.leave(Tag(0), access, None, &mut steps);
    }
    assert!(steps.is_empty());
    assert_eq!(
        (blade.counters().local, blade.counters().requests),
        (100, 0)
    );
    assert!(!blade.retry(Tag(0), &mut steps), "it waits for nobody");
}

/// A node's only thread waits no longer when what the lock protects comes, before the grant: that
/// comes after it, and whoever is behind this node waits for it to have both.
#[test]
fn what_comes_for_a_thread_that_waits_no_longer_is_there_when_the_grant_comes() {
    let mut home = LockDirectory::new(0, EPOCH);
    let mut blades = [blade(0), blade(1)];
    let tag = Tag(0x40);
    home.create(tag);
    blades[0].create(tag, Regions::default());
    blades[1].open(tag, Regions::default());
    let mut steps = Steps::new();
    let (inside, _) = blades[0].enter(tag, Access::Write, &mut steps);
    assert!(inside.is_some());
    blades[1].enter(tag, Access::Write, &mut steps);
    let mut gone = false;
    let mut given = 0;
    loop {
        let mut sent = std::mem::take(&mut steps);
        // What holders send to each other is the first to arrive.
        sent.sort_by_key(|event| match event {
            Event::Send(send) => u8::from(send.header.kind != Kind::Give),
            _ => 0,
        });
        let mut answers = Vec::new();
        for event in sent {
            let Event::Send(send) = event else { continue };
            given += usize::from(send.header.kind == Kind::Give);
            match send.to {
                Dest::Agent(node) => {
                    blades[usize::from(node)].handle(&send.header, 0, &[], &mut steps);
                }
                _ => answers.extend(home.handle(&send.header).iter().copied()),
            }
        }
        for answer in answers {
            let (nodes, provider) = match answer.to {
                Dest::Agents { nodes, provider } => (nodes, provider),
                Dest::Agent(node) => (Copyset::of(node), None),
                other => panic!("nobody else is told, and {other:?} is"),
            };
            for node in nodes.iter() {
                let mut header = answer.header;
                if provider == Some(node) {
                    header.flags = header.flags.and(Flags::PROVIDER);
                }
                blades[usize::from(node)].handle(&header, 0, &[], &mut steps);
            }
        }
        if steps.is_empty() && std::mem::replace(&mut gone, true) {
            break;
        }
        if steps.is_empty() {
            blades[1].cancel(tag);
            blades[0].leave(tag, Access::Write, None, &mut steps);
        }
    }
    assert_eq!(given, 1);
    let there = blades[1].lock(tag).unwrap();
    assert_eq!(
        (there.right(), there.unfinished()),
        (Right::Modified, false)
    );
}

#[test]
fn unknown_locks_and_other_epochs_are_dropped() {
    let (mut blade, mut steps) = (blade(1), Steps::new());
    let mut dice = Dice(9);
    let mut header = packet(&mut dice, &[Kind::Grant], 1);
    header.epoch = EPOCH - 1;
    blade.handle(&header, 0, &[], &mut steps);
    (header.epoch, header.tag) = (EPOCH, Tag(0x5000));
    blade.handle(&header, 0, &[], &mut steps);
    assert_eq!(
        blade.enter(Tag(0x5000), Access::Read, &mut steps),
        (None, false)
    );
    assert!(steps.is_empty());
    assert_eq!(blade.counters().dropped, 2);
}

/// Whatever arrives, nothing panics, and what one packet causes is bounded.
#[test]
fn hostile_packets_do_no_more_than_their_share() {
    let kinds: Vec<Kind> = (0x40..=0x4a).filter_map(Kind::from_byte).collect();
    assert_eq!(kinds.len(), 11);
    for seed in 0..20 {
        let mut blades = [blade(0), blade(1)];
        let mut dice = Dice(seed);
        for _ in 0..5_000 {
            let blade = &mut blades[dice.roll(2) as usize];
            let mut steps = Steps::new();
            let access = [Access::Read, Access::Write][dice.roll(2) as usize];
            match dice.roll(10) {
                0 => drop(blade.enter(Tag(0), access, &mut steps)),
                1 => drop(blade.leave(Tag(0), access, None, &mut steps)),
                2 => drop(blade.retry(Tag(0), &mut steps)),
                _ => {
                    let header = packet(&mut dice, &kinds, 1);
                    let mut queue = Queue::default();
                    for version in 0..dice.roll(4) {
                        queue.add(rackmem_proto::gcp::Waiter {
                            version,
                            node: dice.roll(64) as NodeId,
                            access,
                        });
                    }
                    let records: Vec<_> = queue.records().collect();
                    blade.handle(&header, dice.roll(3000) as u32, &records, &mut steps);
                }
            }
            assert!(steps.len() <= 3 * 32, "{}", steps.len());
            let lock = blade.lock(Tag(0)).unwrap();
            assert!(lock.queue().len() <= 32);
            let sends = steps.iter().filter(|step| matches!(step, Event::Send(_)));
            assert!(sends.count() <= 40);
        }
    }
}

fn report(right: Right, passing: bool, age: u64) -> Report {
    Report {
        right,
        passing: passing.then_some(EPOCH),
        age,
        reason: Reason::None,
    }
}

#[test]
fn reports_survive_the_wire() {
    for reason in [Reason::None, Reason::OwnerDied, Reason::Lost] {
        for right in [Right::None, Right::Shared, Right::Modified] {
            for passing in [false, true] {
                let report = Report {
                    reason,
                    ..report(right, passing, u64::MAX)
                };
                let mut records: Vec<_> = report.records(Tag(0x40)).collect();
                for _ in 0..2 {
                    let mut told = Reports::default();
                    told.note(2, Report::default().records(Tag(0x40)).next().unwrap());
                    records.iter().for_each(|record| told.note(3, *record));
                    let both = [(2, Report::default()), (3, report)];
                    assert_eq!(told.of(Tag(0x40)).collect::<Vec<_>>(), both);
                    assert_eq!(told.of(Tag(0x50)).count(), 0);
                    // Lists are sorted, and come in parts.
                    records.reverse();
                }
            }
        }
    }
}

/// What a dead node leaves behind, by what the living have and what the directory knew.
#[test]
fn an_entry_is_made_of_what_the_living_have() {
    let entry = |mode, holder: u8, keeper: u8| {
        let mut entry = Entry::new(0, EPOCH);
        (entry.state.mode, entry.state.holder, entry.state.keeper) = (mode, holder, keeper);
        Some(entry)
    };
    let none = |age| report(Right::None, false, age);
    let (m, s) = (Mode::Modified, Mode::Shared);
    let live = Copyset(0b0111);
    let made = |reports: &[Report], before: Option<Entry>, dead| {
        let told: Vec<_> = (0..).zip(reports.iter().copied()).collect();
        let before = before.map_or(Before::Unknown(Reason::None), Before::Entry);
        let entry = settle(&told, before, live, dead, 0, EPOCH + 1);
        assert_eq!(entry.state.version, first(EPOCH + 1));
        (
            entry.state.mode,
            entry.state.holder,
            entry.sharers.0,
            entry.state.reason,
        )
    };
    // Somebody living has it.
    let holds = [none(3), report(Right::Modified, false, 9), none(5)];
    assert_eq!(made(&holds, entry(m, 1, 2), 1), (m, 1, 0, Reason::None));
    let shared = [
        report(Right::Shared, false, 8),
        none(9),
        report(Right::Shared, false, 8),
    ];
    assert_eq!(
        made(&shared, entry(m, 3, 0), 1),
        (s, 0, 0b101, Reason::None)
    );
    // It was told to nobody yet when the next failure came.
    let mut untold = entry(m, 1, 1).unwrap();
    untold.state.reason = Reason::OwnerDied;
    assert_eq!(
        made(&[none(3), none(9)], Some(untold), 1),
        (m, 1, 0, Reason::OwnerDied)
    );
    // A writer died inside; the keeper lives, or does not.
    let kept = [none(3), none(9), none(5)];
    assert_eq!(made(&kept, entry(m, 3, 1), 1), (m, 1, 0, Reason::OwnerDied));
    assert_eq!(made(&kept, entry(m, 3, 4), 1), (m, 1, 0, Reason::Lost));
    // The holder lives and waited for the data.
    assert_eq!(made(&kept, entry(m, 2, 1), 1), (m, 1, 0, Reason::None));
    assert_eq!(made(&kept, entry(m, 2, 3), 1), (m, 1, 0, Reason::Lost));
    // A release under way that was not approved, and one that was.
    let passing = [none(3), report(Right::None, true, 9), none(5)];
    assert_eq!(made(&passing, entry(m, 1, 3), 1), (m, 1, 0, Reason::None));
    assert_eq!(
        made(&passing, entry(m, 3, 1), 1),
        (m, 1, 0, Reason::OwnerDied)
    );
    // The switch died, too.
    assert_eq!(made(&kept, None, 0), (m, 1, 0, Reason::None));
    assert_eq!(made(&kept, None, 1), (m, 1, 0, Reason::Lost));
    assert_eq!(made(&passing, None, 1), (m, 1, 0, Reason::OwnerDied));
    // It may have gone from one of the dead to the other.
    assert_eq!(made(&passing, None, 2), (m, 1, 0, Reason::Lost));
    assert_eq!(made(&[], None, 1), (m, 0, 0, Reason::Lost));
}

/// What a switch had told nobody of when it was lost from sight is told all the same.
#[test]
fn a_death_that_the_home_told_the_switch_of_is_not_forgotten_with_it() {
    let told = [(0, Report::default()), (1, Report::default())];
    for reason in [Reason::None, Reason::OwnerDied, Reason::Lost] {
        let before = Before::Unknown(reason);
        let entry = settle(&told, before, Copyset(0b11), 0, 0, EPOCH + 1);
        assert_eq!(entry.state.reason, reason);
    }
}

/// A node enters two epochs, of which the home settles the first or not.
#[test]
fn a_release_under_way_is_told_until_its_home_has_settled() {
    let tag = Tag(0);
    let live = Copyset(0b11);
    let blade = |node: NodeId| {
        Blade::new(BladeConfig {
            node,
            epoch: EPOCH,
            switch: false,
            cohort: 1,
            locks: 1,
        })
    };
    for settles in [false, true] {
        let mut home = LockDirectory::new(0, EPOCH);
        let mut releases = blade(0);
        assert!(home.create(tag) && releases.create(tag, Regions::default()));
        let requester = RequesterId { node: 1, slot: 0 };
        let mut acquire = Header::request(Kind::Acquire, EPOCH, tag, requester, Seq(0));
        acquire.status = GlobalStatus::Modified;
        let wait = home.handle(&acquire).iter().next().unwrap().header;
        let mut steps = Steps::new();
        releases.handle(&wait, 0, &[], &mut steps);
        let asks =
            |step: &Event| matches!(step, Event::Send(send) if send.header.kind == Kind::Release);
        assert!(steps.iter().any(asks), "it passes the lock on");
        // Its packets are lost.
        for epoch in [EPOCH + 1, EPOCH + 2] {
            releases.enter_epoch(epoch, live, false);
            let (_, report) = releases.reports().next().unwrap();
            assert_eq!((report.right, report.passing), (Right::None, Some(EPOCH)));
            if settles || epoch == EPOCH + 2 {
                let tell = |_, each: &mut dyn FnMut(NodeId, Report)| each(0, report);
                home.enter_epoch(epoch, Copyset::of(0), (0, 1), tell, |_| None);
            }
        }
        let (entry, _) = home.entry(tag).unwrap();
        assert_eq!(entry.state.reason, Reason::None);
        assert_eq!(home.epoch(), EPOCH + 2);
        // What was under way in an epoch that the entry has left behind says nothing about who has
        // died since.
        let verdicts = [EPOCH, EPOCH + 2].map(|passing| {
            let mut home = home.clone();
            let report = Report {
                passing: Some(passing),
                ..Report::default()
            };
            home.place(tag, &mut Outputs::default());
            let tell = |_, each: &mut dyn FnMut(NodeId, Report)| each(0, report);
            home.enter_epoch(EPOCH + 3, Copyset::of(0), (0, 1), tell, |_| None);
            home.entry(tag).unwrap().0.state.reason
        });
        assert_eq!(verdicts, [Reason::Lost, Reason::OwnerDied]);
    }
}

#[test]
fn a_packet_carries_a_version_of_64_bits() {
    let mut dice = Dice(2);
    let header = packet(&mut dice, &[Kind::Acquire], 1);
    for number in [0, 1 << 32, u64::MAX, first(u32::MAX >> 8)] {
        assert_eq!(version(&with_version(header, number)), number);
    }
}

#[test]
fn what_a_switch_had_survives_the_wire() {
    use rackmem_proto::gcp::Entry;
    for mode in [Mode::Shared, Mode::Modified] {
        for reason in [Reason::None, Reason::OwnerDied, Reason::Lost] {
            let mut entry = Entry::default();
            entry.state.mode = mode;
            entry.state.reason = reason;
            (entry.state.holder, entry.state.keeper) = (31, 7);
            let tag = Tag(0x0003_0000_0200_0040);
            let record = entry.to_record(tag, EPOCH);
            assert_eq!(Entry::from_record(record), (tag, EPOCH, entry));
        }
    }
}
