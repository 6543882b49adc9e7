//! Memory without caches: operations travel to the data (the `delegate` baseline).

use crate::error::Result;
use crate::node::Node;
use rackmem_proto::wire::Kind;

impl Node {
    pub(crate) fn delegated_read(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let at = addr + done as u64;
            let shift = (at % 8) as usize;
            let word = self
                .inner
                .access
                .delegate(Kind::DelegateRead, at - shift as u64, &[])?
                .to_ne_bytes();
            let n = (8 - shift).min(out.len() - done);
            out[done..done + n].copy_from_slice(&word[shift..shift + n]);
            done += n;
        }
        Ok(())
    }

    pub(crate) fn delegated_write(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = addr + done as u64;
            let shift = (at % 8) as usize;
            let n = (8 - shift).min(bytes.len() - done);
            let part = &bytes[done..done + n];
            if n == 8 {
                self.inner.access.delegate(Kind::DelegateWrite, at, part)?;
            } else {
                self.delegated_patch(at - shift as u64, shift, part)?;
            }
            done += n;
        }
        Ok(())
    }

    /// Part of a word: read, change, and exchange until nobody came between.
    pub(crate) fn delegated_patch(&self, word: u64, shift: usize, part: &[u8]) -> Result<()> {
        let mut old = self.inner.access.delegate(Kind::DelegateRead, word, &[])?;
        loop {
            let mut new = old.to_ne_bytes();
            new[shift..shift + part.len()].copy_from_slice(part);
            let seen = self.delegated_exchange(word, old, u64::from_ne_bytes(new))?;
            if seen == old {
                return Ok(());
            }
            old = seen;
        }
    }

    pub(crate) fn delegated_exchange(&self, addr: u64, expected: u64, new: u64) -> Result<u64> {
        let mut operand = [0; 16];
        operand[..8].copy_from_slice(&expected.to_ne_bytes());
        operand[8..].copy_from_slice(&new.to_ne_bytes());
        self.inner
            .access
            .delegate(Kind::DelegateCas, addr, &operand)
    }

    pub(crate) fn delegated_update(
        &self,
        addr: u64,
        f: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64> {
        let mut old = self.inner.access.delegate(Kind::DelegateRead, addr, &[])?;
        loop {
            let Some(new) = f(old) else { return Ok(old) };
            let seen = self.delegated_exchange(addr, old, new)?;
            if seen == old {
                return Ok(old);
            }
            old = seen;
        }
    }
}
