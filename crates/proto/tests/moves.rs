//! Which entries move to the switch, and what a shadow reads: nothing hot is forgotten, and no set.

use rackmem_proto::flowcc::{HomeAgent, HomeConfig, KeptBlocks, Migration, Shadow, ShadowConfig};
use rackmem_proto::switch::{SwitchConfig, SwitchProgram, set_of};
use rackmem_proto::wire::{
    Copyset, Flags, GlobalStatus, Header, HomeId, Kind, Reason, Record, RequesterId, Seq, Tag,
};
use rackmem_proto::{Dest, Output};

const BLOCK: u64 = 4096;

/// A home whose blocks are worth moving, one of them a period.
struct Home {
    agent: HomeAgent,
    seq: u64,
}

fn config() -> HomeConfig {
    HomeConfig {
        node: 0,
        epoch: 1,
        block: BLOCK as u32,
        chunks: 1,
        incarnation: 1,
        migration: Some(Migration {
            top: 1,
            least: 1,
            tracked: 64,
        }),
        answering: None,
        seed: 0,
    }
}

impl Home {
    fn new() -> Home {
        let mut agent = HomeAgent::new(config());
        agent.grow(1);
        Home { agent, seq: 0 }
    }

    /// Grants a block to a node, whose copy the block's last owner gives up:
    /// that is what makes blocks hot.
    fn grant(&mut self, block: u64, node: u16) -> Header {
        self.seq += 1;
        let requester = requester(node, block);
        let tag = Tag(block * BLOCK);
        let request = Header::request(Kind::WriteMiss, 1, tag, requester, Seq(self.seq));
        let (outputs, _) = self.agent.handle(&request, 0);
        let granted = outputs.iter().next().expect("an answer").header;
        assert_eq!(granted.reason, Reason::None);
        granted
    }

    fn unlock(&mut self, block: u64, node: u16) -> Vec<Output> {
        let requester = requester(node, block);
        let tag = Tag(block * BLOCK);
        let mut unlock = Header::request(Kind::Unlock, 1, tag, requester, Seq(self.seq));
        unlock.status = GlobalStatus::Modified;
        unlock.copyset = Copyset::of(node);
        let (outputs, _) = self.agent.handle(&unlock, 0);
        outputs.iter().copied().collect()
    }

    /// A block goes from node to node so many times.
    fn heat(&mut self, block: u64, times: u16) {
        for turn in 0..times {
            let node = 1 + turn % 2;
            self.grant(block, node);
            self.unlock(block, node);
        }
    }
}

/// Each block has a requester of its own at every node.
fn requester(node: u16, block: u64) -> RequesterId {
    let slot = block as u16;
    RequesterId { node, slot }
}

fn moving(outputs: &[Output]) -> Vec<Tag> {
    let adds = outputs
        .iter()
        .filter(|o| o.header.kind == Kind::AddToSwitch);
    adds.map(|output| output.header.tag).collect()
}

/// One that could not move because its lock was held was marked as wanted, and another took its
/// place: it must be unmarked, or it is never wanted again.
#[test]
fn a_hot_entry_that_could_not_move_moves_when_it_is_hot_again() {
    let mut home = Home::new();
    home.heat(1, 9);
    home.grant(1, 2);
    assert_eq!(moving(&home.agent.end_period()), [], "its lock is held");
    // In the next period another is the hottest, and there is room for one a period.
    home.heat(2, 9);
    // The holder is slow: its unlock comes when nobody wants the entry any more.
    assert_eq!(moving(&home.agent.end_period()), [Tag(2 * BLOCK)]);
    home.seq = 10;
    let late = home.unlock(1, 2);
    assert_eq!(moving(&late), [], "nobody wants it now");
    home.seq = 100;
    home.heat(1, 9);
    assert_eq!(moving(&home.agent.end_period()), [Tag(BLOCK)]);
}

/// What a group keeps is home when a majority of it has it, of which the switch knows nothing.
#[test]
fn nothing_that_a_group_keeps_moves_however_hot_it_is() {
    let mut agent = HomeAgent::of_groups(config());
    agent.lay_out(3, KeptBlocks::of_bytes(8 * BLOCK));
    let mut home = Home { agent, seq: 0 };
    let block = HomeId::of_group(3).start().0 / BLOCK + 1;
    home.heat(block, 9);
    assert_eq!(moving(&home.agent.end_period()), []);
}

/// A switch with these entries.
fn switch(sets: usize, tags: &[Tag]) -> SwitchProgram {
    let mut switch = SwitchProgram::new(SwitchConfig {
        ways: 2,
        sets,
        ..SwitchConfig::default()
    });
    for (nth, tag) in tags.iter().enumerate() {
        let requester = RequesterId {
            node: 0,
            slot: nth as u16,
        };
        let add = Header::request(Kind::AddToSwitch, 1, *tag, requester, Seq(1));
        assert!(!switch.handle(&add).is_empty());
    }
    switch
}

/// Whatever answer is lost, the next one says the same: what a home is told of an entry that it
/// takes back, and of a location that it has freed, though the block may have moved since.
#[test]
fn a_copy_of_a_removal_is_answered_as_the_first_one_was() {
    let mut switch = switch(4, &[]);
    let of = |kind, slot, seq| {
        let requester = RequesterId { node: 0, slot };
        Header::request(kind, 1, Tag(BLOCK), requester, Seq(seq))
    };
    let mut said = |header: &Header| {
        let answers = switch.handle(header);
        let ack = answers.iter().next().expect("an answer").header;
        (ack.kind, ack.reason, ack.status, ack.copyset)
    };
    let add = |slot| Header {
        status: GlobalStatus::Modified,
        copyset: Copyset::of(3),
        ..of(Kind::AddToSwitch, slot, 1)
    };
    said(&add(0));
    let take = of(Kind::RemoveFromSwitch, 0, 2);
    let taken = (
        Kind::RemoveAck,
        Reason::None,
        GlobalStatus::Modified,
        Copyset::of(3),
    );
    assert_eq!((said(&take), said(&take)), (taken, taken));
    let free = Header {
        flags: Flags::GRANTED,
        ..of(Kind::RemoveFromSwitch, 0, 3)
    };
    let freed = said(&free);
    assert_eq!(said(&free), freed);
    assert_eq!(said(&add(1)).1, Reason::None);
    assert_eq!(said(&free), freed);
}

/// Pages of what a switch has, as a shadow asks for them: the union is all of it, each once,
/// whatever a page holds.
#[test]
fn pages_of_tags_leave_no_set_out() {
    let tags: Vec<Tag> = (0..24).map(|n| Tag(n * 3 * BLOCK)).collect();
    let switch = switch(16, &tags);
    let (mut all, end) = switch.tags(0, 1000);
    assert_eq!(end, 16);
    assert_eq!(all.len(), switch.entries());
    assert!(all.iter().all(|r| r.word == set_of(r.tag, 16) as u64));
    all.sort_unstable();
    for room in 2..40 {
        let (mut found, mut from) = (Vec::new(), 0);
        while from < 16 {
            let (page, next) = switch.tags(from, room);
            assert!(page.len() <= room && next > from, "{from} {next}");
            let inside = |r: &Record| (from..next).contains(&(r.word as usize));
            assert!(page.iter().all(inside));
            found.extend(page);
            from = next;
        }
        found.sort_unstable();
        assert_eq!(found, all, "pages of {room}");
    }
}

/// Answers a shadow's question as the switch's control plane does.
fn answer(switch: &SwitchProgram, asked: &Header, room: usize) -> (Header, Vec<Record>) {
    let (records, next) = switch.tags(asked.offset as usize, room);
    let mut header = asked.answer(Kind::Tags, u16::MAX);
    header.tag = Tag(next as u64);
    (header, records)
}

/// Where the rounds of a shadow begin: it reads everything at once when it is new, then a page a
/// period, round after round.
#[test]
fn a_shadow_reads_all_tags_again_and_again() {
    const SETS: usize = 8;
    let tags: Vec<Tag> = (0..10).map(|n| Tag(n * BLOCK)).collect();
    let mut there = switch(SETS, &tags);
    let mut shadow = Shadow::new(ShadowConfig::new(0, 1, 2, SETS));
    let mut offsets = Vec::new();
    for period in 0..60 {
        if period == 20 {
            // What the switch has changes, and nobody tells the shadow.
            there = switch(SETS, &tags[3..]);
        }
        let mut asked = shadow.end_period();
        asked.retain(|output| output.to == Dest::Switch);
        while let Some(ask) = asked.pop() {
            assert_eq!(ask.header.kind, Kind::ReadTags);
            offsets.push(ask.header.offset as usize);
            let (header, records) = answer(&there, &ask.header, 2);
            asked.extend(shadow.handle(&header, records));
        }
        if period == 19 {
            assert!(shadow.blocks().count() == there.entries());
        }
    }
    let rounds = offsets.iter().filter(|at| **at == 0).count();
    assert!(rounds > 5, "{offsets:?}");
    // A whole round reads every set.
    assert!(shadow.counters().read >= 4 * SETS as u64);
    let mut known: Vec<Tag> = shadow.blocks().map(|row| row.0).collect();
    let (records, _) = there.tags(0, 1000);
    let mut real: Vec<Tag> = records.iter().map(|record| record.tag).collect();
    known.sort_unstable();
    real.sort_unstable();
    assert_eq!(known, real, "what has left without a word is forgotten");
}
