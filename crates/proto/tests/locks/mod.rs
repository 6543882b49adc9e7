//! What tests of locks run them with.

use rackmem_proto::engine::LockFx;
use rackmem_proto::gcp::{Body, Entered};
use rackmem_proto::wire::{Dest, Header};

/// A host of which only packets count.
#[derive(Default)]
pub struct Out(pub Vec<(Dest, Header)>);

impl LockFx for Out {
    type Seat = u8;
    fn store(&mut self, _: &Header) {}
    fn install(&mut self, _: bool) {}
    fn clear(&mut self) {}
    fn send(&mut self, to: Dest, header: &Header, _: &Body) {
        self.0.push((to, *header));
    }
    fn inside(&mut self, _: u8, _: Entered, _: bool) {}
    fn send_away(&mut self, _: u8) {}
}
