//! Golden packets of reads of objects that the kernel of a home's host answers
//! (`switch/xdp/objects.bpf.c`).
//!
//! The program decides nothing: it sends what the home's agent would, or leaves the packet to the
//! agent. What it answers is made from the home that ships ([`rackmem_proto::sabre::Home`]).

mod reference;
pub mod scenarios;
mod sequence;
mod text;

pub use reference::ReadsReference;
pub use sequence::sequence;
pub use text::write;

use rackmem_proto::sabre::Meta;
use rackmem_proto::wire::NodeId;

/// The home whose objects are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadHome {
    /// Its node.
    pub node: NodeId,
    /// The offset of its first slab.
    pub base: u64,
    /// The class of each slab's objects.
    pub classes: Vec<u8>,
}

/// What is written to a place of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put {
    /// The slab.
    pub slab: u32,
    /// Bytes of the slab before it.
    pub within: u32,
    /// Odd: a writer is in.
    pub version: u64,
    /// The header's second word.
    pub meta: Meta,
    /// Which bytes it has: see [`content`].
    pub seed: u8,
}

/// What becomes of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Became {
    /// The home's agent gets it, as it came.
    Agents,
    /// It is answered, to the port that it names.
    Answer(Vec<u8>),
}

/// What happens at a home's host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The home serves in this epoch; zero: in none.
    Serve(u32),
    /// The home's process writes an object.
    Put(Put),
    /// A packet comes, and this must become of it.
    Packet(Vec<u8>, Became),
}

/// One golden case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadsCase {
    /// Its name, unique in the file.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// Whose objects are read.
    pub home: ReadHome,
    /// What happens.
    pub events: Vec<Event>,
}

/// A program that answers reads. Errors are of the machinery around it.
pub trait ReadsImplementation {
    /// Starts over: a home that serves in no epoch and whose objects are all gone.
    fn begin(&mut self, home: &ReadHome) -> Result<(), String>;
    /// The home serves in this epoch; zero: in none.
    fn serve(&mut self, epoch: u32) -> Result<(), String>;
    /// The home's process writes an object.
    fn put(&mut self, put: &Put) -> Result<(), String>;
    /// Takes a packet: header and body, as a datagram's payload.
    fn packet(&mut self, bytes: &[u8]) -> Result<Became, String>;
}

/// The bytes of an object. No granule is like the next one.
pub fn content(len: u16, seed: u8) -> Vec<u8> {
    let byte = |nth: u32| (nth.wrapping_mul(7) + nth / 1024 * 13) as u8 ^ seed;
    (0..u32::from(len)).map(byte).collect()
}

/// Plays a case. An error says what differs, or what has failed.
pub fn replay(subject: &mut dyn ReadsImplementation, case: &ReadsCase) -> Result<(), String> {
    subject.begin(&case.home)?;
    for (nth, event) in case.events.iter().enumerate() {
        match event {
            Event::Serve(epoch) => subject.serve(*epoch)?,
            Event::Put(put) => subject.put(put)?,
            Event::Packet(bytes, expected) => {
                let found = subject.packet(bytes)?;
                if found != *expected {
                    let node = case.home.node;
                    return Err(format!(
                        "case reads/{}: {}\nevent {nth}: {}\nexpected {}\nfound    {}",
                        case.name,
                        case.about,
                        text::request_line(bytes, node),
                        text::in_words(expected),
                        text::in_words(&found)
                    ));
                }
            }
        }
    }
    Ok(())
}
