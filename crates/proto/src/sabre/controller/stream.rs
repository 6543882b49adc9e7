//! A stream buffer: which of the blocks from a base on have been read (§4.1).

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stream {
    base: u64,
    /// Bit *i*: block *i* has been read while the window was open.
    bits: u64,
    /// The base has been read, and not been invalidated since.
    pub base_valid: bool,
}

/// Bits that it takes in hardware, of [`super::DEPTH`] slots.
#[cfg(test)]
pub(super) const BITS: &[(&str, usize)] = &[("base", 42), ("bits", 32), ("base_valid", 1)];

impl Stream {
    pub fn new(base: u64) -> Self {
        Stream {
            base,
            bits: 0,
            base_valid: false,
        }
    }

    /// The subtractor: which slot an address has, if it has one.
    pub fn slot_of(&self, block: u64, depth: u16) -> Option<u16> {
        let slot = block.checked_sub(self.base)?;
        (slot < u64::from(depth)).then_some(slot as u16)
    }

    pub fn mark(&mut self, slot: u16) {
        self.bits |= 1 << (slot & 63);
    }

    pub fn has(&self, slot: u16) -> bool {
        self.bits >> (slot & 63) & 1 == 1
    }
}
