//! Copies that come before they are read.

use super::Node;
use crate::host::ahead::Come;
use rackmem_proto::wire::Tag;

impl Node {
    /// Brings copies of the blocks that these addresses lie in, several at a time, for reads that
    /// follow: over a network eight are asked for before the first has answered. How many of the
    /// addresses have a copy here when it returns; another node may take it before it is read.
    ///
    /// Nobody is waited for: what cannot be had at once, since others have locked it, its home is
    /// lost or it is no coherent memory, is left to its own read, which waits or says why. A cache
    /// that has no room gives up what was used longest ago, and may give up what has just come
    /// where more is asked for than it has room for.
    ///
    /// What comes may be read, not changed: whoever changes it asks for that by itself.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Rack, Shared};
    ///
    /// let rack = Rack::local(2)?;
    /// let (here, there) = (rack.node(0), rack.node(1));
    /// let all: rackmem::Result<Vec<u64>, _> = (0..20u64)
    ///     .map(|nth| here.alloc_isolated(nth).map(|value| value.addr()))
    ///     .collect();
    /// let all = all?;
    /// assert_eq!(there.prefetch(&all), 20);
    /// for (nth, addr) in all.iter().enumerate() {
    ///     assert_eq!(there.load(*addr)?, nth as u64); // nobody is asked any more
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefetch(&self, addrs: &[u64]) -> usize {
        if self.open().is_err() {
            return 0;
        }
        let access = &self.inner.access;
        let cache = &access.agents.cache;
        let blocks: Vec<Tag> = addrs.iter().map(|addr| cache.tag_of(*addr)).collect();
        // Each once, and all of them, whatever is wrong with some.
        let mut wanted = blocks.clone();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|tag| access.is_reachable(*tag));
        access.bring_ahead(&wanted, Come::Copies);
        blocks.iter().filter(|tag| access.has_copy(**tag)).count()
    }
}
