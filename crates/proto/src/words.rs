//! Words that a program in the kernel of this host reads while a node writes them.

/// See the module. Loads and stores stay in order.
pub trait Words {
    /// A word; 0 outside.
    fn load(&self, word: usize) -> u64;
    /// Changes one.
    fn store(&mut self, word: usize, value: u64);
}
