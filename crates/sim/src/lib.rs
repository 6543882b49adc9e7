//! Judging what a rack did, and racks to judge.
//!
//! [`history`] is the record of what clients asked for and were told, with the times of asking and
//! of answering. [`linear`] decides whether such a record could have come from one memory that does
//! one operation at a time, which is the promise of coherent memory, and shows the few operations
//! that contradict each other where it could not; [`serial`] does so for transactions. [`world`]
//! runs the protocols' roles in virtual time over a network that loses, doubles, delays and
//! reorders, and checks every promise after every packet. [`driver`] visits every state that small
//! racks can get into: [`explore`] brings it racks of coherent memory, [`gcp`] racks of locks,
//! [`abd`] racks of replicated memory, [`sabre`] objects, [`bi`] domains whose caches know nothing
//! of each other, [`pages`] memory that is mapped. The node that all of the first have is a
//! [`site`]. The promises themselves are [`invariants`].

pub mod abd;
pub mod bi;
pub mod driver;
pub mod explore;
pub mod gcp;
pub mod history;
pub mod invariants;
pub mod linear;
pub mod model;
mod names;
pub mod pages;
mod print;
pub mod sabre;
pub mod serial;
pub mod site;
pub mod staleness;
pub mod trial;
pub mod world;

/// All scenarios, by protocol, and those of several protocols. A protocol is registered here.
pub const SUITES: &[driver::Suite] = &[
    explore::SUITE,
    gcp::SUITE,
    abd::SUITE,
    sabre::SUITE,
    bi::SUITE,
    pages::SUITE,
    world::SUITE,
];
