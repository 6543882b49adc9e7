//! Blocks that the kernel of a home's host answers: what it says the home agent says at a moment of
//! the read, wherever in the home's stores the read comes.

#[allow(
    dead_code,
    reason = "some of it is of answers that say who has given them"
)]
mod beside;

use beside::{Dice, Memory, Said, race_as};
use rackmem_proto::engine::{Home, Memory as HomeMemory};
use rackmem_proto::flowcc::twin::{
    FRONT, TWIN_BLOCK, TwinPassed, Twins, answer, concerns, segments,
};
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, Migration};
use rackmem_proto::wire::{
    Contract, Copyset, Flags, GRANULES, GlobalStatus, Header, HomeId, Kind, NodeId, Own, Reason,
    RequesterId, Seq, Tag, segment_len,
};
use rackmem_proto::words::Words;
use rackmem_proto::{Dest, Output, Outputs};
use std::collections::BTreeMap;

const ME: NodeId = 3;
const EPOCH: u32 = 7;
const BLOCK: u32 = 256;
/// From one that is a packet to the longest that has places, and slabs for about 200 of each.
const SIZES: [(u32, usize); 4] = [(BLOCK, 1), (1024, 3), (4096, 17), (TWIN_BLOCK, 50)];
/// The requester's node, and its life.
const ASKER: NodeId = 1;
const LIFE: u32 = 4;

/// Home's memory, and the second copy.
struct Blocks {
    block: u32,
    blocks: BTreeMap<Tag, Vec<u64>>,
    came: Vec<u64>,
    twins: Twins,
    words: Memory,
}

impl Blocks {
    fn block(&self, tag: Tag) -> Vec<u64> {
        let block = self.blocks.get(&tag).cloned();
        block.unwrap_or_else(|| self.zeros())
    }

    fn zeros(&self) -> Vec<u64> {
        vec![0; self.block as usize / 8]
    }

    fn set(&mut self, tag: Tag, block: Vec<u64>) {
        self.blocks.insert(tag, block.clone());
        self.twins.write(tag, block.into_iter(), &mut self.words);
    }
}

impl HomeMemory for Blocks {
    type Bytes = Vec<u64>;

    fn store(&mut self, header: &Header) {
        let came = self.came.clone();
        self.set(header.tag, came);
    }

    fn put(&mut self, tag: Tag, bytes: &Vec<u64>) {
        self.set(tag, bytes.clone());
    }

    fn clear(&mut self, tag: Tag) {
        self.set(tag, self.zeros());
    }

    fn gather(&mut self, _: Tag) -> bool {
        false
    }

    fn scatter(&mut self, tag: Tag, _: u16) {
        let came = self.came.clone();
        self.blocks.insert(tag, came);
    }

    fn can_operate(&self, _: Tag) -> bool {
        false
    }

    fn operate(&mut self, _: Tag) -> u64 {
        0
    }

    fn show(&mut self, tag: Tag) {
        let block = self.block(tag);
        self.twins.show(tag, block.into_iter(), &mut self.words);
    }

    fn hide(&mut self, tag: Tag) {
        self.twins.hide(tag, &mut self.words);
    }

    fn hide_all(&mut self) {
        self.twins.hide_all(&mut self.words);
    }
}

/// A node's home, as a host has it.
struct Node {
    home: Home,
    memory: Blocks,
    seq: u64,
}

impl Node {
    fn new(slabs: usize) -> Node {
        Node::of(BLOCK, slabs)
    }

    /// With blocks of so many bytes.
    fn of(block: u32, slabs: usize) -> Node {
        let config = HomeConfig {
            node: ME,
            epoch: EPOCH,
            block,
            chunks: 1,
            incarnation: 1,
            migration: Some(Migration {
                top: 0,
                ..Migration::default()
            }),
            answering: None,
            seed: 0,
        };
        let mut agent = HomeAgent::new(config);
        agent.grow(1);
        let twins = Twins::new(block, slabs);
        let mut words = Memory::new(Twins::words(slabs));
        let segment = segment_len(block, 1404);
        twins.begin((ME, segment), [5, 6, 7, 8].into_iter(), &mut words);
        twins.open(EPOCH, &[1, LIFE, 1, 1], &mut words);
        // As the program hears of them.
        let [.., macs, _] = FRONT;
        for node in [0, 1, 3] {
            words.store(macs + node, 9);
        }
        Node {
            home: Home::new(agent),
            memory: Blocks {
                block,
                blocks: BTreeMap::new(),
                came: Vec::new(),
                twins,
                words,
            },
            seq: 0,
        }
    }

    /// A packet comes with this block behind it.
    fn packet(&mut self, header: &Header, block: Vec<u64>) -> Vec<Output> {
        let len = block.len() as u32 * 8;
        self.memory.came = block;
        let mut outputs = Outputs::default();
        let body = (len, Vec::new());
        self.home
            .packet(header, body, &mut self.memory, None, &mut outputs);
        outputs.iter().copied().collect()
    }

    /// The entry goes to the switch.
    fn leave(&mut self, tag: Tag) {
        let add = self.home.agent.want(tag).expect("it is here and free");
        let ack = add.header.answer(Kind::AddAck, 99);
        self.packet(&ack, Vec::new());
    }

    /// It comes back.
    fn come_back(&mut self, tag: Tag) {
        let who = RequesterId { node: ME, slot: 0 };
        let demote = Header::request(Kind::Demote, EPOCH, tag, who, Seq(1));
        for _ in 0..2 {
            let open = self.home.agent.resend().next();
            let sent = match open {
                Some(sent) => sent,
                None => self.packet(&demote, Vec::new()).remove(0),
            };
            let ack = sent.header.answer(Kind::RemoveAck, 99);
            self.packet(&ack, Vec::new());
        }
    }

    /// A block comes home.
    fn write_back(&mut self, tag: Tag, block: u64) {
        self.seq += 1;
        let who = RequesterId { node: 2, slot: 0 };
        let mut header = Header::request(Kind::WriteBack, EPOCH, tag, who, Seq(self.seq));
        header.flags = Flags::DATA;
        let sent = self.packet(&header, self.of_word(block));
        assert_eq!(sent[0].header.kind, Kind::WriteBackAck);
    }

    fn of_word(&self, word: u64) -> Vec<u64> {
        of(self.memory.block, word)
    }

    /// Home's memory is written by who keeps no copy, if it may be.
    fn store(&mut self, tag: Tag, block: u64) {
        self.seq += 1;
        let who = RequesterId { node: 2, slot: 1 };
        let header = Header::request(Kind::Store, EPOCH, tag, who, Seq(self.seq));
        self.memory.came = self.of_word(block);
        self.home.store(&header, (tag, 0), &mut self.memory, None);
    }

    /// The epoch ends, as a host ends it.
    fn end(&mut self) {
        self.memory.twins.close(&mut self.memory.words);
        self.memory.hide_all();
        self.home.agent.freeze(EPOCH + 1);
    }

    /// Entries are made anew for the next one.
    fn settle(&mut self) {
        self.home.agent.settle(Copyset::EMPTY, false);
    }

    /// The node has begun to live in it.
    fn begin(&mut self) {
        let lives = [1, LIFE, 1, 1];
        let Blocks { twins, words, .. } = &mut self.memory;
        twins.open(EPOCH + 1, &lives, words);
    }

    /// What the agent answers with a block.
    fn agent(&self, header: &Header) -> Option<Said> {
        let mut agent = self.home.agent.clone();
        let (outputs, _) = agent.handle(header, 0);
        let output = outputs.iter().next()?;
        let gives = output.header.flags.has(Flags::DATA);
        assert_eq!(output.to, Dest::Requester(header.requester));
        let block = self.memory.block(header.tag);
        gives.then(|| (output.header, Own::default(), bytes(&block)))
    }

    /// What the kernel does.
    fn kernel(&self, header: &Header) -> Result<Said, TwinPassed> {
        said(&self.memory.words, header)
    }
}

fn said(words: &impl Words, header: &Header) -> Result<Said, TwinPassed> {
    answer(words, header).map(|(header, bytes)| (header, Own::default(), bytes))
}

fn bytes(block: &[u64]) -> Vec<u8> {
    block.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn of(block: u32, word: u64) -> Vec<u64> {
    let words = 0..u64::from(block) / 8;
    words.map(|nth| word << 16 | nth).collect()
}

fn nth(block: u64) -> Tag {
    nth_of(BLOCK, block)
}

fn nth_of(size: u32, block: u64) -> Tag {
    Tag(HomeId::of(ME).start().0 + block * u64::from(size))
}

/// What the switch forwards.
fn granted(kind: Kind, tag: Tag) -> Header {
    let who = RequesterId {
        node: ASKER,
        slot: 2,
    };
    let mut header = Header::request(kind, EPOCH, tag, who, Seq(77));
    (header.incarnation, header.reply_port, header.sender) = (LIFE, 9, 99);
    header.flags = Flags::GRANTED.and(Flags::IN_SWITCH);
    header
}

/// Entries go and come, blocks come home and are written in place, with room for few of them.
#[test]
fn what_it_answers_the_agent_would_have_answered() {
    SIZES.into_iter().for_each(beside_an_agent);
}

fn beside_an_agent((block, slabs): (u32, usize)) {
    let mut node = Node::of(block, slabs);
    let mut dice = Dice(88_172_645_463_325_252);
    let (mut answered, mut passed, mut full) = (0, 0, 0);
    for round in 1..40_000 {
        let tag = nth_of(block, dice.below(400));
        let away = node.home.agent.is_away(tag);
        match (dice.below(4), away) {
            (0, false) => node.leave(tag),
            (0, true) => node.come_back(tag),
            (1, _) => node.write_back(tag, round),
            (2, _) => node.store(tag, round),
            _ => {}
        }
        let kind = [Kind::ReadMiss, Kind::WriteMiss][dice.below(2) as usize];
        let mut asked = granted(kind, tag);
        match dice.below(12) {
            0 => asked.epoch += 1,
            1 => asked.incarnation += 1,
            2 => asked.reply_port = 0,
            3 => (asked.requester.node, asked.incarnation) = (ME, 1),
            4 => (asked.requester.node, asked.incarnation) = (2, 1),
            _ => {}
        }
        assert!(concerns(&asked));
        match node.kernel(&asked) {
            Ok(said) => {
                answered += 1;
                assert!(asked.requester.node == ASKER && asked.reply_port != 0);
                assert_eq!((asked.epoch, asked.incarnation), (EPOCH, LIFE));
                assert_eq!(Some(said), node.agent(&asked));
            }
            Err(TwinPassed::Elsewhere) => {
                full += u32::from(node.home.agent.is_away(tag));
                passed += 1;
            }
            Err(why) => {
                let now = why == TwinPassed::NotOfNow;
                let asker = asked.requester.node == ASKER;
                let life = if asker { LIFE } else { 1 };
                let strange = asked.epoch != EPOCH || asked.incarnation != life;
                assert_eq!(now, strange, "{why:?}");
                assert!(now || why == TwinPassed::NoWay, "{why:?}");
            }
        }
    }
    assert!(
        answered > 3_000 && passed > 3_000 && full > 0,
        "{block}: {answered} {passed} {full}"
    );
    let shown = node.memory.twins.shown();
    node.memory.hide_all();
    assert!(shown > 20 && node.memory.twins.shown() == 0, "{shown}");
}

/// A home does these, and a request comes between any of its stores; from any load on it sees what
/// is there after any more of them.
fn race(node: &mut Node, asked: &Header, acts: &[&dyn Fn(&mut Node)]) -> (u32, u32) {
    let before = node.memory.words.words.clone();
    node.memory.words.stores.clear();
    let mut says = vec![(0, node.agent(asked))];
    for act in acts {
        act(node);
        let made = node.memory.words.stores.len();
        says.push((made, node.agent(asked)));
    }
    let stores = std::mem::take(&mut node.memory.words.stores);
    race_as(
        (&before, &stores),
        &says,
        |said| said,
        |words| self::said(words, asked).ok(),
    )
}

/// A home whose first block the switch decides about.
fn away() -> Node {
    let mut node = Node::new(1);
    node.store(nth(0), 5);
    node.leave(nth(0));
    node
}

/// Where a block's name is while no other has a place.
fn place(tag: Tag) -> usize {
    let mut node = Node::new(1);
    node.leave(tag);
    let words = node.memory.words.words.iter();
    let place = { words }.position(|word| *word == tag.0 | 1);
    place.expect("it has one")
}

#[test]
fn a_read_beside_writes_is_of_one_moment() {
    for kind in [Kind::ReadMiss, Kind::WriteMiss] {
        let write = |node: &mut Node| node.write_back(nth(0), 20);
        let other = |node: &mut Node| node.write_back(nth(1), 21);
        let again = |node: &mut Node| node.write_back(nth(0), 22);
        let mut node = away();
        node.leave(nth(1));
        let asked = granted(kind, nth(0));
        let (answered, passed) = race(&mut node, &asked, &[&write, &other, &again]);
        assert!(answered > 100 && passed > 100, "{answered} {passed}");
    }
}

/// What is written in place while the entry is home's is never missed, and a place that another
/// block has been given is noticed.
#[test]
fn a_read_beside_moves_is_of_what_home_has() {
    let tag = nth(0);
    let asked = granted(Kind::ReadMiss, tag);
    let back = |node: &mut Node| node.come_back(tag);
    let stored = |node: &mut Node| node.store(tag, 30);
    let there = |node: &mut Node| node.leave(tag);
    let (answered, passed) = race(&mut away(), &asked, &[&back, &stored, &there]);
    assert!(answered > 50 && passed > 50, "{answered} {passed}");
    // One that has the same place.
    let others = (1..4096).map(nth);
    let other = { others }.find(|other| place(*other) == place(tag));
    let other = other.expect("one of the same set");
    let takes = |node: &mut Node| node.leave(other);
    let writes = |node: &mut Node| node.write_back(other, 31);
    let (answered, passed) = race(&mut away(), &asked, &[&back, &takes, &writes]);
    assert!(answered > 50 && passed > 50, "{answered} {passed}");
}

/// What comes home while the entries are made anew, or in the next epoch, is told nobody of the
/// last.
#[test]
fn nothing_is_told_of_an_epoch_that_is_over() {
    let tag = nth(0);
    for epoch in [EPOCH, EPOCH + 1] {
        let mut asked = granted(Kind::ReadMiss, tag);
        asked.epoch = epoch;
        let end = |node: &mut Node| node.end();
        let rescued = |node: &mut Node| node.memory.put(tag, &of(BLOCK, 40));
        let settled = |node: &mut Node| node.settle();
        let there = |node: &mut Node| node.leave(tag);
        let begin = |node: &mut Node| node.begin();
        let acts: [&dyn Fn(&mut Node); 5] = [&end, &rescued, &settled, &there, &begin];
        let (answered, passed) = race(&mut away(), &asked, &acts);
        assert!(answered > 0 && passed > 50, "{epoch}: {answered} {passed}");
    }
}

#[test]
fn long_blocks_have_no_place() {
    for block in [16_384, 32_768, 65_536, 32, 0] {
        assert!(!Twins::new(block, 9).has_room(), "{block}");
    }
    for block in [256, 512, 1024, 2048, 4096, 8192] {
        assert!(Twins::new(block, 1).has_room() && !Twins::new(block, 0).has_room());
    }
    // Words that nobody has written.
    let words = Memory::new(Twins::words(1));
    let asked = granted(Kind::ReadMiss, nth(0));
    assert_eq!(said(&words, &asked).err(), Some(TwinPassed::Elsewhere));
}

/// Whatever the front says of blocks, no place is outside of the words.
#[test]
fn a_front_that_says_nonsense_is_passed() {
    let [block, sets, _, _, segment, ..] = FRONT;
    for (word, value) in [
        (block, 16_384),
        (block, 8),
        (sets, 0),
        (segment, 0),
        (segment, 257),
        (segment, u64::MAX),
    ] {
        let mut node = away();
        let asked = granted(Kind::ReadMiss, nth(0));
        assert!(node.kernel(&asked).is_ok());
        node.memory.words.store(word, value);
        assert_eq!(node.kernel(&asked).err(), Some(TwinPassed::Elsewhere));
    }
}

/// A block is cut as the home's fabric cuts it.
#[test]
fn segments_are_the_block() {
    for (size, mtu_body, packets) in [
        (256, 1404, 1),
        (1024, 1404, 1),
        (4096, 1404, 4),
        (4096, 1184, 4),
        (4096, 8904, 1),
        (8192, 1404, 7),
    ] {
        let twins = Twins::new(size, 1);
        let mut words = Memory::new(Twins::words(1));
        let each = segment_len(size, mtu_body);
        twins.begin((ME, each), [5, 6].into_iter(), &mut words);
        let block: Vec<u8> = bytes(&of(size, 9));
        let said = granted(Kind::ReadMiss, nth(0)).answer(Kind::Ack, ME);
        let cut: Vec<_> = segments(&words, said, &block).collect();
        assert_eq!(cut.len(), packets, "{size}");
        let mut at = 0;
        for (header, bytes) in cut {
            let offset = at as u32;
            assert_eq!(header, Header { offset, ..said });
            assert_eq!(bytes, &block[at..at + bytes.len()]);
            assert!(bytes.len() <= mtu_body as usize);
            assert_eq!(bytes.len() as u32 % (size / GRANULES), 0);
            at += bytes.len();
        }
        assert_eq!(at, block.len());
    }
}

#[test]
fn other_packets_are_none_of_its_business() {
    let good = granted(Kind::ReadMiss, nth(0));
    assert!(concerns(&good) && concerns(&Header { epoch: 9, ..good }));
    for &kind in Kind::ALL {
        let misses = matches!(kind, Kind::ReadMiss | Kind::WriteMiss);
        assert_eq!(concerns(&Header { kind, ..good }), misses, "{kind:?}");
    }
    for flags in (0..=Flags::KNOWN).map(Flags).filter(|it| *it != good.flags) {
        assert!(!concerns(&Header { flags, ..good }), "{flags:?}");
    }
    for other in [
        Header {
            status: GlobalStatus::Shared,
            ..good
        },
        Header {
            status: GlobalStatus::Modified,
            ..good
        },
        Header {
            reason: Reason::Locked,
            ..good
        },
        Header {
            tag: good.tag.under(Contract::Object),
            ..good
        },
    ] {
        assert!(!concerns(&other), "{other:?}");
    }
}
