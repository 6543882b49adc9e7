//! A group with one writer in each epoch: what it has acknowledged outlives it, and what it left
//! unfinished is settled when the next one has begun, whatever comes late.

use crate::{Dice, Registers};
use rackmem_proto::abd::{Command, Outcome, Replica, first_line};
use rackmem_proto::wire::{NodeId, Tag};

const COPIES: NodeId = 3;
const EPOCHS: u32 = 8;

/// The writer of an epoch: neither has a copy.
fn writer(epoch: u32) -> NodeId {
    COPIES + (epoch % 2) as NodeId
}

struct Run {
    rack: Registers,
    line: Tag,
    /// What the line holds, by its first byte.
    acknowledged: u8,
    /// What the last writer had begun to write when its epoch ended.
    cut: Option<u8>,
    last: u8,
}

impl Run {
    fn new(seed: u64, (fenced, durable): (bool, bool)) -> Self {
        let mut rack = Registers::new((COPIES, 256, false), seed);
        for (abd, _) in &mut rack.nodes {
            abd.keep(0, 1, Replica::new(durable));
            if fenced {
                abd.fence_by_epochs(0);
            }
        }
        Run {
            rack,
            line: first_line(0),
            acknowledged: 0,
            cut: None,
            last: 0,
        }
    }

    fn read(&mut self, node: NodeId) -> u8 {
        let (outcome, bytes) = self.rack.read(node, self.line);
        assert!(matches!(outcome, Outcome::Read { .. }), "{outcome:?}");
        let first = bytes[0];
        let whole =
            |(at, byte): (usize, &u8)| *byte == first ^ at as u8 || first == 0 && *byte == 0;
        assert!(bytes.iter().enumerate().all(whole), "bytes of two writes");
        first
    }

    /// What is written is told by its first byte.
    fn write(&mut self, node: NodeId, byte: u8) {
        let written = self.rack.write(node, self.line, byte);
        assert!(matches!(written, Outcome::Written { .. }), "{written:?}");
        self.acknowledged = byte;
    }

    /// Begins a write of which so many packets arrive before the epoch ends.
    fn cut_off(&mut self, node: NodeId, byte: u8, arrive: usize) {
        let len = self.rack.layout.line as usize;
        let value = (0..len).map(|at| byte ^ at as u8).collect();
        self.rack.nodes[usize::from(node)].1.operand = value;
        let line = self.line;
        self.rack.act(node, (0, &[]), |abd, fx| {
            abd.command(0, Command::Write(line), fx)
        });
        for _ in 0..arrive {
            if self.rack.packets.is_empty() {
                break;
            }
            let nth = self.rack.dice.below(self.rack.packets.len());
            let packet = self.rack.packets.swap_remove(nth);
            self.rack.arrive(&packet);
            self.rack.sync_one();
        }
        match self.rack.nodes[usize::from(node)].1.done.pop() {
            Some(_) => self.acknowledged = byte,
            None => self.cut = Some(byte),
        }
    }

    /// All but the last writer, which the rack has gone on without, are in the epoch.
    fn enter(&mut self, epoch: u32) {
        let gone = writer(epoch + 1);
        for (node, (abd, bytes)) in (0..).zip(&mut self.rack.nodes) {
            if node != gone {
                abd.enter(epoch);
            }
            if node == writer(epoch) {
                abd.abandon(0);
                bytes.done.clear();
            }
        }
    }

    /// The last writer does not know that it is over, and sends again what it waits for.
    fn haunt(&mut self, epoch: u32) {
        let gone = writer(epoch + 1);
        self.rack.act(gone, (0, &[]), |abd, fx| abd.retry(0, fx));
    }

    /// A write of the last writer that its successor has not found is not acknowledged any more,
    /// although members may make it durable only now.
    fn is_not_told(&mut self, epoch: u32, found: bool) -> Result<(), String> {
        let gone = usize::from(writer(epoch + 1));
        let told = self.rack.nodes[gone].1.done.iter();
        match told.clone().any(|it| matches!(it, Outcome::Written { .. })) && !found {
            true => Err(format!(
                "epoch {epoch}: the last writer is told that it has written"
            )),
            false => Ok(()),
        }
    }

    fn next(&mut self) -> u8 {
        self.last += 1;
        self.last
    }

    fn epoch(&mut self, epoch: u32) -> Result<(), String> {
        self.enter(epoch);
        self.haunt(epoch);
        let me = writer(epoch);
        let found = self.read(me);
        let cut = self.cut.take();
        if found != self.acknowledged && Some(found) != cut {
            return Err(format!("epoch {epoch}: {found} for {}", self.acknowledged));
        }
        self.haunt(epoch);
        self.write(me, found);
        self.is_not_told(epoch, Some(found) == cut)?;
        for _ in 0..self.rack.dice.below(3) {
            self.haunt(epoch);
            self.is_not_told(epoch, Some(found) == cut)?;
            let again = self.read(me);
            if again != self.acknowledged {
                return Err(format!(
                    "epoch {epoch}: {again} after {}",
                    self.acknowledged
                ));
            }
            let byte = self.next();
            self.write(me, byte);
        }
        let (byte, arrive) = (self.next(), self.rack.dice.below(16));
        self.cut_off(me, byte, arrive);
        Ok(())
    }

    fn all(mut self) -> Result<(), String> {
        (1..=EPOCHS).try_for_each(|epoch| self.epoch(epoch))
    }
}

#[test]
fn what_a_writer_has_acknowledged_outlives_its_epoch_whatever_comes_late() {
    for (seed, durable) in (0..2_000).flat_map(|seed| [(seed, false), (seed, true)]) {
        let judged = Run::new(seed, (true, durable)).all();
        assert_eq!(judged, Ok(()), "seed {seed}, durable: {durable}");
    }
}

#[test]
fn without_the_fence_the_same_runs_find_what_was_over() {
    let wrong = (0..2_000).filter(|seed| Run::new(*seed, (false, false)).all().is_err());
    assert!(wrong.count() > 0);
}

#[test]
fn a_member_in_another_epoch_says_nothing() {
    let mut run = Run::new(1, (true, false));
    for (abd, _) in &mut run.rack.nodes {
        abd.enter(5);
    }
    run.write(4, 7);
    // One of three has not heard of the next epoch: the other two are a majority.
    for node in [0, 1, 3, 4] {
        run.rack.nodes[node].0.enter(6);
    }
    assert_eq!(run.read(3), 7);
    let answered = |run: &mut Run| {
        run.rack.packets.clear();
        run.rack.dice = Dice(3);
        let line = run.line;
        run.rack.act(3, (0, &[]), |abd, fx| {
            abd.command(0, Command::Read(line), fx)
        });
        for _ in 0..200 {
            run.rack.act(3, (0, &[]), |abd, fx| abd.retry(0, fx));
            while let Some(packet) = run.rack.packets.pop() {
                run.rack.arrive(&packet);
            }
        }
        run.rack.nodes[3].1.done.pop()
    };
    assert!(answered(&mut run).is_some());
    // Now it is one of two that are to say something.
    run.rack.nodes[1].0.enter(7);
    assert!(answered(&mut run).is_none());
}
