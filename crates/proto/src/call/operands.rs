//! What threads of a node write and read by packets, and what came of it: a place for each slot.

use alloc::vec::Vec;

/// A thread's operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Operand<O> {
    value: Vec<u8>,
    outcome: Option<O>,
    reply_port: u16,
}

/// See the module. `O` is what an operation comes to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operands<O>(Vec<Operand<O>>);

impl<O> Default for Operands<O> {
    fn default() -> Self {
        Operands(Vec::new())
    }
}

impl<O> Operands<O> {
    fn at(&mut self, slot: u8) -> &mut Operand<O> {
        let at = usize::from(slot);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || Operand {
                value: Vec::new(),
                outcome: None,
                reply_port: 0,
            });
        }
        &mut self.0[at]
    }

    /// A thread begins an operation in a slot that it has for itself: what it writes, and where it
    /// listens for answers; zero: nowhere but at the node.
    pub fn begin(&mut self, slot: u8, value: Vec<u8>, reply_port: u16) {
        *self.at(slot) = Operand {
            value,
            outcome: None,
            reply_port,
        };
    }

    /// What it writes, or has read so far.
    pub fn value(&self, slot: u8) -> &[u8] {
        let operand = self.0.get(usize::from(slot));
        operand.map_or(&[], |operand| &operand.value)
    }

    /// The same, to be read into.
    pub fn value_mut(&mut self, slot: u8) -> &mut Vec<u8> {
        &mut self.at(slot).value
    }

    /// Where its thread listens for answers.
    pub fn reply_port(&self, slot: u8) -> u16 {
        let operand = self.0.get(usize::from(slot));
        operand.map_or(0, |operand| operand.reply_port)
    }

    /// It has ended.
    pub fn end(&mut self, slot: u8, outcome: O) {
        self.at(slot).outcome = Some(outcome);
    }

    /// Whether it has ended, and nobody has taken what came of it.
    pub fn has_ended(&self, slot: u8) -> bool {
        let operand = self.0.get(usize::from(slot));
        operand.is_some_and(|operand| operand.outcome.is_some())
    }

    /// What came of it, once it has ended.
    pub fn take(&mut self, slot: u8) -> Option<(O, Vec<u8>)> {
        let operand = self.0.get_mut(usize::from(slot))?;
        let outcome = operand.outcome.take()?;
        Some((outcome, core::mem::take(&mut operand.value)))
    }

    /// The same, when the thread waits no longer.
    pub fn abandon(&mut self, slot: u8) -> Option<(O, Vec<u8>)> {
        let ended = self.take(slot);
        self.at(slot).value = Vec::new();
        ended
    }
}

/// Puts a segment in its place. The role has looked whether it has one.
pub fn put_segment(value: &mut Vec<u8>, (offset, segment): (u32, &[u8])) {
    let from = offset as usize;
    let end = from + segment.len();
    if value.len() < end {
        value.resize(end, 0);
    }
    value[from..end].copy_from_slice(segment);
}
