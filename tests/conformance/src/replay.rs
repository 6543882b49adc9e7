//! Another form of the program, case by case.

use crate::{Case, Difference, Reference, Reply, Setup, Step};
use rackmem_proto::switch::Register;

/// A form of the switch program. Errors are of the machinery around it (a map that cannot be read),
/// not of the program.
pub trait Implementation {
    /// What to call it in a message.
    fn name(&self) -> String;

    /// Starts over: an empty switch that is not frozen.
    fn configure(&mut self, setup: &Setup) -> Result<(), String>;

    /// Writes registers of a switch that was just configured; what is not named is zero.
    fn load(&mut self, registers: &[Register]) -> Result<(), String>;

    /// The control plane freezes it: data-plane packets do nothing from here on.
    fn freeze(&mut self) -> Result<(), String>;

    /// Takes a packet: header and body, as a datagram's payload.
    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String>;

    /// Takes packets one after the other. An implementation that is slow to start overrides it;
    /// it need not tell the replies of one packet from those of another in any way but their order.
    fn packets(&mut self, packets: &[&[u8]]) -> Result<Vec<Reply>, String> {
        packets.iter().map(|bytes| self.packet(bytes)).collect()
    }

    /// All registers that are not zero, in any order.
    fn registers(&mut self) -> Result<Vec<Register>, String>;
}

/// Plays a case from an empty switch: its prefix, if it has one, and its packets.
/// Registers are loaded only where no packets bring them about.
pub fn replay(subject: &mut dyn Implementation, case: &Case) -> Result<(), Difference> {
    let failed = |error: String| Difference::failed(case, error);
    subject.configure(&case.setup).map_err(failed)?;
    match &case.prefix {
        Some(prefix) => {
            play(subject, case, true, prefix)?;
            let found = subject.registers().map_err(failed)?;
            Difference::of_registers(case, "before its packets", &case.before, found)?;
        }
        None => subject.load(&case.before).map_err(failed)?,
    }
    finish(subject, case)
}

/// Plays a case's packets from its registers, which are loaded.
pub fn replay_loaded(subject: &mut dyn Implementation, case: &Case) -> Result<(), Difference> {
    let failed = |error: String| Difference::failed(case, error);
    subject.configure(&case.setup).map_err(failed)?;
    subject.load(&case.before).map_err(failed)?;
    finish(subject, case)
}

fn finish(subject: &mut dyn Implementation, case: &Case) -> Result<(), Difference> {
    let failed = |error: String| Difference::failed(case, error);
    if case.frozen {
        subject.freeze().map_err(failed)?;
    }
    play(subject, case, false, &case.steps)?;
    let found = subject.registers().map_err(failed)?;
    Difference::of_registers(case, "in the end", &case.after, found)
}

fn play(
    subject: &mut dyn Implementation,
    case: &Case,
    prefix: bool,
    steps: &[Step],
) -> Result<(), Difference> {
    let packets: Vec<&[u8]> = steps.iter().map(|step| &step.packet[..]).collect();
    let replies = subject
        .packets(&packets)
        .map_err(|error| Difference::failed(case, error))?;
    if replies.len() != steps.len() {
        let error = format!("{} replies to {} packets", replies.len(), steps.len());
        return Err(Difference::failed(case, error));
    }
    for (at, (step, reply)) in steps.iter().zip(replies).enumerate() {
        Difference::of_replies(case, (prefix, at), step, reply.sorted())?;
    }
    Ok(())
}

/// The same case with other packets: replies and registers as the Rust program has them.
pub fn again(case: &Case, packets: &[Vec<u8>]) -> Case {
    let mut rust = Reference::new(&case.setup);
    // A case that the Rust program made names only registers that it has.
    let loaded = rust.load(&case.before);
    debug_assert_eq!(loaded, Ok(()));
    if case.frozen {
        rust.program_mut().freeze();
    }
    let steps = packets
        .iter()
        .map(|packet| Step {
            reply: rust.take(packet),
            packet: packet.clone(),
        })
        .collect();
    Case {
        steps,
        after: rust.registers(),
        ..case.clone()
    }
}

/// Leaves out packets of a case that shows a difference as long as it shows one: what is left,
/// and that difference.
pub fn shrink(
    subject: &mut dyn Implementation,
    case: &Case,
    difference: Difference,
) -> (Case, Difference) {
    let (mut least, mut shown) = (case.clone(), difference);
    // What comes after the packet that differs cannot matter.
    if let Some(at) = shown.packet {
        let packets: Vec<_> = packets_of(&least).into_iter().take(at + 1).collect();
        let shorter = again(case, &packets);
        if let Err(difference) = replay(subject, &shorter) {
            (least, shown) = (shorter, difference);
        }
    }
    let mut chunk = least.steps.len().div_ceil(2);
    while chunk > 0 {
        let mut from = 0;
        while from < least.steps.len() {
            let mut packets = packets_of(&least);
            packets.drain(from..(from + chunk).min(packets.len()));
            let shorter = again(case, &packets);
            match replay(subject, &shorter) {
                Err(difference) => (least, shown) = (shorter, difference),
                Ok(()) => from += chunk,
            }
        }
        chunk /= 2;
    }
    (least, shown)
}

fn packets_of(case: &Case) -> Vec<Vec<u8>> {
    case.steps.iter().map(|step| step.packet.clone()).collect()
}
