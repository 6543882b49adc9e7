//! Lines that the kernel of a member's host answers: what it says the member's agent says at a
//! moment of the read, wherever in the member's stores the read comes.

mod beside;

use beside::{Dice, Memory, Said, by_agent};
use rackmem_proto::abd::mirror::{Mirror, MirrorPassed, answer, concerns};
use rackmem_proto::abd::{
    Change, Config, Effect, Effects, Layout, Member, Replica, ReplicatedMemory, Stamp, first_line,
    own,
};
use rackmem_proto::call::Parcel;
use rackmem_proto::wire::{
    Contract, Dest, Flags, Header, Kind, NodeId, OWN_LEN, Own, Reason, RequesterId, Seq, Tag,
};

const ME: NodeId = 3;
const LIFE: u64 = 9;
/// Bytes of a packet's body.
const ROOM: usize = OWN_LEN + 1024;

/// A node that keeps copies, as a host has it.
struct Node {
    memory: ReplicatedMemory,
    mirror: Mirror,
    words: Memory,
    seq: u64,
}

fn member(node: NodeId) -> Member {
    let life = if node == ME { LIFE } else { 1 };
    Member { node, life }
}

fn first() -> Config {
    Config::first(&[1, ME, 2].map(member)).expect("three")
}

impl Node {
    fn new(slabs: usize) -> Node {
        Node {
            memory: ReplicatedMemory::new((ME, LIFE as u32), ROOM),
            mirror: Mirror::new(slabs),
            words: Memory::new(Mirror::words(slabs)),
            seq: 0,
        }
    }

    fn follow(&mut self, effects: &[Effect]) {
        self.mirror.follow(&self.memory, effects, &mut self.words);
        self.memory.lines.kernels.are_here(self.mirror.groups());
    }

    /// As the library adopts a group of the rack's view.
    fn adopt(&mut self, group: u16, layout: Layout, config: &Config) {
        let is_member = config.role(member(ME)).is_some();
        let (_, effects) = self.memory.section((0, &[]), |abd, fx| {
            abd.end_removed(group, config, fx);
            if abd.life(group).is_some() && !is_member {
                abd.end(group);
                fx.forget(group);
            }
            if is_member && abd.replica(group).is_none() {
                abd.keep(group, LIFE, Replica::new(false));
            }
            fx.lines.lay_out(group, layout);
            abd.learn(group, layout, config, fx);
        });
        self.follow(&effects);
    }

    fn config(&self, group: u16) -> Config {
        *self.memory.abd.config(group).expect("it is known")
    }

    fn step(&mut self, group: u16, change: Change) {
        let next = self.config(group).step(change).expect("a step");
        let layout = self.memory.lines.layout(group).expect("it is known");
        self.adopt(group, layout, &next);
    }

    /// A packet comes, and this is sent.
    fn packet(&mut self, header: Header, own: Own, rest: &[u8]) -> Vec<Parcel> {
        let parcel = Parcel::new(Dest::Agent(ME), header, own, rest);
        let effects = self.memory.packet(&parcel);
        self.follow(&effects);
        let sent = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send(parcel) => Some(parcel),
            _ => None,
        });
        sent.collect()
    }

    fn write(&mut self, tag: Tag, stamp: u64, seed: u32) {
        self.seq += 1;
        let who = RequesterId { node: 1, slot: 7 };
        let header = Header::request(Kind::AbdWrite, 0, tag, who, Seq(self.seq));
        let layout = self.memory.lines.layout(tag.home().0).expect("a group");
        let config = self.config(tag.home().0).number;
        let value = value(layout.line, seed);
        let segment = layout.line.min(1024) as usize;
        for (nth, part) in value.chunks(segment).enumerate() {
            let mut header = header;
            header.flags = Flags::DATA;
            header.offset = (nth * segment) as u32;
            self.packet(header, own(Stamp(stamp), config), part);
        }
    }

    /// What the agent answers, if it is one line or one stamp.
    fn agent(&self, (header, own): &(Header, Own)) -> Option<Said> {
        let mut memory = self.memory.clone();
        let parcel = Parcel::new(Dest::Agent(ME), *header, *own, &[]);
        let [Effect::Send(parcel)] = &memory.packet(&parcel)[..] else {
            return None;
        };
        let tells = matches!(parcel.header.kind, Kind::AbdReadAck | Kind::AbdStampAck);
        if parcel.to != Dest::Agent(1) || !tells {
            return None;
        }
        let (own, rest) = parcel.split();
        Some((parcel.header, own, rest.to_vec()))
    }
}

fn line(group: u16, offset: u64) -> Tag {
    Tag(first_line(group).0 + offset)
}

fn value(bytes: u32, seed: u32) -> Vec<u8> {
    let byte = |nth: u32| nth.wrapping_mul(7).wrapping_add(seed) as u8 | 1;
    (0..bytes).map(byte).collect()
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Line,
    Read,
    Stamp,
}

const ASKS: [Ask; 3] = [Ask::Line, Ask::Read, Ask::Stamp];

fn question(ask: Ask, tag: Tag, config: u32) -> (Header, Own) {
    let kind = match ask {
        Ask::Stamp => Kind::AbdStamp,
        _ => Kind::AbdRead,
    };
    let who = RequesterId { node: 1, slot: 2 };
    let mut header = Header::request(kind, 0, tag, who, Seq(77));
    (header.reply_port, header.incarnation) = (9, 4);
    if let Ask::Line = ask {
        header.flags = Flags::PROVIDER;
    }
    (header, own(Stamp(0), config))
}

/// The next config of a group, of any kind that there is.
fn next(dice: &mut Dice, config: &Config) -> Config {
    if config.is_removed() {
        return config.again(&[1, ME, 2].map(member)).expect("three");
    }
    let other = |node| Member { node, life: 1 };
    let change = match dice.below(9) {
        0 => Change::Remove,
        1 => Change::ThroughSwitch(true),
        2 => Change::ThroughSwitch(false),
        3 => Change::Replace(ME, other(5)),
        4 => Change::Replace(5, member(ME)),
        5 => Change::Filled(5),
        6 => Change::Filled(ME),
        7 => Change::Replace(1, other(6)),
        _ => Change::Fence,
    };
    config.step(change).unwrap_or(*config)
}

/// Groups come, change and go, with room for them and without; each line is read as the agent says.
#[test]
fn what_it_answers_the_agent_would_have_answered() {
    let layouts = [(64, 40_000), (256, 25_600), (1024, 200_704), (2048, 20_480)];
    let layouts = layouts.map(|(line, bytes)| Layout::new(line, bytes).expect("a layout"));
    let mut node = Node::new(6);
    let mut dice = Dice(88_172_645_463_325_252);
    for (group, layout) in layouts.iter().enumerate() {
        node.adopt(group as u16, *layout, &first());
    }
    let (mut answered, mut passed, mut stamp) = (0, 0, 0);
    for round in 0..40_000u32 {
        let group = dice.below(layouts.len() as u64) as u16;
        let layout = layouts[usize::from(group)];
        let lines = layout.bytes / u64::from(layout.line);
        if dice.below(12) == 0 {
            let next = next(&mut dice, &node.config(group));
            node.adopt(group, layout, &next);
        }
        let few = dice.below(lines.min(5)) * u64::from(layout.line);
        if dice.below(2) == 0 {
            stamp += 1 + dice.below(3);
            // Some are late.
            let of = stamp - dice.below(4).min(stamp - 1);
            node.write(line(group, few), of, round);
        }
        let last = layout.bytes - u64::from(layout.line);
        let offset = match dice.below(6) {
            0 => dice.below(layout.bytes + 128),
            1 => last,
            _ => few,
        };
        let number = node.config(group).number;
        let of = match dice.below(8) {
            0 => number - 1,
            1 => number + 1,
            _ => number,
        };
        let (header, own) = question(ASKS[dice.below(3) as usize], line(group, offset), of);
        assert!(concerns(&header));
        let says = node.agent(&(header, own));
        match answer(&node.words, ME, &header, &own) {
            Ok(said) => {
                answered += 1;
                assert_eq!(Some(by_agent(said)), says);
            }
            Err(why) => {
                passed += 1;
                assert_eq!(why, MirrorPassed::Elsewhere);
                // What the agent answers of a group that is here, the kernel does.
                let here = node.mirror.groups() >> group & 1 == 1;
                assert!(!here || says.is_none(), "{says:?}");
            }
        }
    }
    assert!(answered > 5_000 && passed > 5_000, "{answered} {passed}");
}

/// A member does these, and a question comes between any of its stores; from any load on it sees
/// what is there after any more of them.
fn race(node: &mut Node, asked: (Header, Own), acts: &[&dyn Fn(&mut Node)]) -> (u32, u32) {
    let before = node.words.words.clone();
    node.words.stores.clear();
    let mut says = vec![(0, node.agent(&asked))];
    for act in acts {
        act(node);
        let made = node.words.stores.len();
        says.push((made, node.agent(&asked)));
    }
    let stores = std::mem::take(&mut node.words.stores);
    beside::race((&before, &stores), &says, |words| {
        answer(words, ME, &asked.0, &asked.1).ok()
    })
}

const SHORT: Layout = Layout {
    line: 64,
    bytes: 256,
};

/// A member of a group whose lines have been written.
fn written() -> Node {
    let mut node = Node::new(1);
    node.adopt(0, SHORT, &first());
    for nth in 0..4 {
        node.write(line(0, nth * 64), 5 + nth, nth as u32);
    }
    node
}

#[test]
fn a_read_beside_writes_is_of_one_moment() {
    for ask in ASKS {
        let mut node = written();
        let own = |node: &mut Node| node.write(line(0, 64), 20, 20);
        let other = |node: &mut Node| node.write(line(0, 128), 21, 21);
        let again = |node: &mut Node| node.write(line(0, 64), 22, 22);
        let asked = question(ask, line(0, 64), 1);
        let (answered, passed) = race(&mut node, asked, &[&own, &other, &again]);
        assert!(answered > 100 && passed > 100, "{answered} {passed}");
    }
    // Of a line that nobody has written.
    let mut node = Node::new(1);
    node.adopt(0, SHORT, &first());
    let write = |node: &mut Node| node.write(line(0, 64), 20, 20);
    let (answered, _) = race(&mut node, question(Ask::Line, line(0, 64), 1), &[&write]);
    assert!(answered > 100, "{answered}");
}

/// What is stored in a config is told in no earlier one: a quorum that has left it has promised so.
#[test]
fn nothing_is_told_in_a_config_that_is_over() {
    for ask in ASKS {
        for config in 1..=3 {
            let mut node = written();
            let fence = |node: &mut Node| node.step(0, Change::Fence);
            let write = |node: &mut Node| node.write(line(0, 64), 20, 20);
            let again = |node: &mut Node| node.write(line(0, 64), 21, 21);
            let acts: [&dyn Fn(&mut Node); 4] = [&fence, &write, &fence, &again];
            let asked = question(ask, line(0, 64), config);
            let (answered, passed) = race(&mut node, asked, &acts);
            assert!(answered > 10 && passed > 100, "{answered} {passed}");
        }
    }
}

/// It is replaced, and comes back as a member that fills: what it had is gone.
#[test]
fn a_member_that_fills_tells_nothing() {
    let mut node = written();
    let other = Member { node: 5, life: 1 };
    let gone = |node: &mut Node| node.step(0, Change::Replace(ME, other));
    let back = |node: &mut Node| node.step(0, Change::Replace(5, member(ME)));
    let write = |node: &mut Node| node.write(line(0, 64), 20, 20);
    let whole = |node: &mut Node| node.step(0, Change::Filled(ME));
    let acts: [&dyn Fn(&mut Node); 4] = [&gone, &back, &write, &whole];
    for config in 1..=4 {
        let mut node = written();
        let asked = question(Ask::Line, line(0, 64), config);
        let (answered, passed) = race(&mut node, asked, &acts);
        // While another has its place, and while it fills.
        let tells = [1, 4].contains(&config);
        assert_eq!(answered > 0, tells, "{config}: {answered}");
        assert!(passed > 100, "{passed}");
    }
    acts.iter().for_each(|act| act(&mut node));
    let (header, own) = question(Ask::Line, line(0, 64), 4);
    let said = answer(&node.words, ME, &header, &own).expect("it has filled");
    assert_eq!((said.1.a, said.2), (20, value(64, 20)));
}

/// The slab of a region that is no more has another region's lines: of another group, and of one
/// that has its number.
#[test]
fn a_read_beside_another_region_is_of_the_first_or_none() {
    let long = Layout {
        line: 256,
        bytes: 1024,
    };
    for group in [0, 1] {
        let mut node = written();
        let gone = |node: &mut Node| node.step(0, Change::Remove);
        let made = |node: &mut Node| {
            let config = match group {
                0 => node.config(0).again(&[ME].map(member)).expect("one"),
                _ => first(),
            };
            node.adopt(group, long, &config);
            assert_eq!(node.mirror.groups(), 1 << group);
        };
        let write = |node: &mut Node| node.write(line(group, 0), 2, 30);
        let acts: [&dyn Fn(&mut Node); 3] = [&gone, &made, &write];
        let asked = question(Ask::Line, line(0, 64), 1);
        let (answered, passed) = race(&mut node, asked, &acts);
        assert!(answered > 10 && passed > 100, "{answered} {passed}");
        // The other one's first reads.
        let mut node = written();
        let config = if group == 0 { 3 } else { 1 };
        let asked = question(Ask::Line, line(group, 0), config);
        let (answered, _) = race(&mut node, asked, &acts);
        assert!(answered > 10, "{answered}");
    }
}

#[test]
fn what_has_no_room_or_no_right_is_left_to_the_agent() {
    let asked = |node: &Node, group, config| {
        let (header, own) = question(Ask::Line, line(group, 0), config);
        answer(&node.words, ME, &header, &own).map(drop)
    };
    let elsewhere = Err(MirrorPassed::Elsewhere);
    // One slab of two groups, lines that are too long for a packet, and a group that epochs fence.
    let mut node = Node::new(1);
    let long = Layout {
        line: 2048,
        bytes: 4096,
    };
    let (fenced, config) = (3, first());
    let (_, effects) = node.memory.section((0, &[]), |abd, fx| {
        abd.keep(fenced, LIFE, Replica::new(false));
        fx.lines.lay_out(fenced, SHORT);
        abd.fence_by_epochs(fenced);
        abd.learn(fenced, SHORT, &config, fx);
    });
    node.follow(&effects);
    node.adopt(2, long, &config);
    node.adopt(0, SHORT, &config);
    node.adopt(1, SHORT, &config);
    assert_eq!(node.mirror.groups(), 1);
    for group in [1, 2, 3, 31, 32, 0x7fff] {
        assert_eq!(asked(&node, group, 1), elsewhere, "{group}");
    }
    assert_eq!(asked(&node, 0, 1), Ok(()));
    assert_eq!(asked(&node, 0, 0), elsewhere);
    // Requesters that ask through a switch are answered through it.
    node.step(0, Change::ThroughSwitch(true));
    assert_eq!(asked(&node, 0, 2), elsewhere);
    node.step(0, Change::ThroughSwitch(false));
    assert_eq!(asked(&node, 0, 3), Ok(()));
    // Copies that outlive their process.
    let mut node = Node::new(1);
    let (_, effects) = node.memory.section((0, &[]), |abd, fx| {
        abd.keep(0, LIFE, Replica::new(true));
        fx.lines.lay_out(0, SHORT);
        abd.learn(0, SHORT, &config, fx);
    });
    node.follow(&effects);
    assert_eq!((node.mirror.groups(), asked(&node, 0, 1)), (0, elsewhere));
}

#[test]
fn other_packets_are_none_of_its_business() {
    let (good, _) = question(Ask::Line, line(0, 0), 1);
    assert!(concerns(&good));
    // As for the agent: of any epoch.
    assert!(concerns(&Header { epoch: 7, ..good }));
    let header = good;
    for other in [
        Header {
            kind: Kind::AbdFetch,
            ..header
        },
        Header {
            kind: Kind::AbdStamp,
            ..header
        },
        Header {
            tag: header.tag.under(Contract::Coherent),
            ..header
        },
        Header {
            flags: Flags::HELD.and(Flags::PROVIDER),
            ..header
        },
        Header {
            reason: Reason::Torn,
            ..header
        },
        Header {
            reply_port: 0,
            ..header
        },
    ] {
        assert!(!concerns(&other), "{other:?}");
    }
}

/// Who asks for a line makes room for it where the member's kernel has said that it answers.
#[test]
fn room_is_made_for_kernels_that_answer() {
    let mut node = Node::new(1);
    node.adopt(0, SHORT, &first().step(Change::Fence).expect("a step"));
    let who = RequesterId { node: ME, slot: 0 };
    let read = |memory: &mut ReplicatedMemory| {
        memory.lines.operands.begin(0, Vec::new(), 55);
        let (_, effects) = memory.section((0, &[]), |abd, fx| {
            abd.command(0, rackmem_proto::abd::Command::Read(line(0, 64)), fx);
        });
        let lens = effects.iter().filter_map(|effect| match effect {
            Effect::Send(parcel) if parcel.to != Dest::Agent(ME) => Some(parcel.bytes.len()),
            _ => None,
        });
        let lens: Vec<usize> = lens.collect();
        memory.abandon(0);
        lens
    };
    // This node has a copy, and is asked for the line itself.
    assert_eq!(read(&mut node.memory), [OWN_LEN; 2]);
    let other = Member { node: 5, life: 1 };
    node.step(0, Change::Replace(ME, other));
    node.step(0, Change::Filled(5));
    let before = read(&mut node.memory);
    assert_eq!(before, [OWN_LEN; 3]);
    for (flags, most) in [
        (Flags::BY_GRANULES, 128),
        (Flags::BY_KERNEL.and(Flags::BY_GRANULES), 128),
        (Flags::default(), OWN_LEN),
    ] {
        for sender in [1, 2, 5] {
            let mut said = Header::request(Kind::AbdStampAck, 0, line(0, 0), who, Seq(1));
            (said.sender, said.flags, said.incarnation) = (sender, flags, LIFE as u32);
            node.packet(said, own(Stamp(0), 4), &[]);
        }
        // One is asked for the line.
        let lens = read(&mut node.memory);
        assert_eq!(lens.iter().max(), Some(&most));
        assert_eq!(
            lens.iter().filter(|len| **len != most).count() >= 2,
            most != OWN_LEN
        );
    }
    let answerers = node.memory.lines.kernels.answerers;
    assert_eq!((answerers.kernel, answerers.agent), (3, 6));
}
