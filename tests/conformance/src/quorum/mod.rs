//! Golden packets of replicated memory, whose packets have bodies and whose groups change while
//! packets are on their way.
//!
//! A form of the program counts for the groups that its control plane has told it. A packet of
//! another group, or of another config than the one that was told, is for the control plane, which
//! multiplies it or passes it on uncounted.

mod held;
mod reference;
pub mod scenarios;
mod sequence;
mod text;

pub use held::{ABOUT_HELD, held};
pub use reference::QuorumReference;
pub use sequence::sequence;
pub use text::write;

use crate::Reply;
use rackmem_proto::abd::Config;
use rackmem_proto::switch::QuorumRegister;

/// What happens to a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Its control plane tells it a group's config, or that it shall not count for it.
    Group(u16, Option<Config>),
    /// A packet comes, and this must become of it.
    Packet(Vec<u8>, Reply),
}

/// One golden case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuorumCase {
    /// Its name, unique in the file.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// The incarnation of the switch.
    pub life: u32,
    /// Lines whose stamps it has room for.
    pub lines: usize,
    /// What happens.
    pub events: Vec<Event>,
    /// All registers that are not zero in the end.
    pub after: Vec<QuorumRegister>,
}

/// A form of the program that counts. Errors are of the machinery around it.
pub trait QuorumImplementation {
    /// Starts over: counts for no group, and remembers nothing.
    fn begin(&mut self, life: u32, lines: usize) -> Result<(), String>;
    /// What its control plane tells it.
    fn group(&mut self, group: u16, config: Option<&Config>) -> Result<(), String>;
    /// Takes a packet: header and body, as a datagram's payload.
    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String>;
    /// All registers that are not zero, in any order.
    fn registers(&mut self) -> Result<Vec<QuorumRegister>, String>;
}

/// Plays a case. An error says what differs, or what has failed.
pub fn replay(subject: &mut dyn QuorumImplementation, case: &QuorumCase) -> Result<(), String> {
    let name = &case.name;
    subject.begin(case.life, case.lines)?;
    for (nth, event) in case.events.iter().enumerate() {
        match event {
            Event::Group(group, config) => subject.group(*group, config.as_ref())?,
            Event::Packet(bytes, expected) => {
                let found = subject.packet(bytes)?.sorted();
                if found != *expected {
                    let packet = crate::text::packet_line(bytes, None);
                    return Err(format!(
                        "case quorum/{name}: {}\npacket {nth}: {packet}\nexpected {}\nfound    {}",
                        case.about,
                        text::in_words(expected),
                        text::in_words(&found)
                    ));
                }
            }
        }
    }
    let mut found = subject.registers()?;
    found.sort_unstable();
    let differs = |a: &[QuorumRegister], b: &[QuorumRegister]| {
        let more = a.iter().find(|register| !b.contains(register));
        more.map(text::register_line)
    };
    let (missing, more) = (differs(&case.after, &found), differs(&found, &case.after));
    match (missing, more) {
        (None, None) => Ok(()),
        (missing, more) => Err(format!(
            "case quorum/{name}: {}\nregisters differ in the end\nexpected {}\nfound    {}",
            case.about,
            missing.unwrap_or_default(),
            more.unwrap_or_default()
        )),
    }
}
