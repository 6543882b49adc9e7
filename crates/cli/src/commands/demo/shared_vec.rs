//! Vectors of numbers in shared memory, read and written in whole blocks.

use super::halt::Played;
use rackmem::Node;

/// A number of fixed size.
pub trait Number: Copy {
    /// Its bytes.
    const BYTES: usize;
    /// Adds its bytes.
    fn put(self, bytes: &mut Vec<u8>);
    /// Reads it from exactly its bytes.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            const BYTES: usize = size_of::<$number>();

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Self {
                let mut own = [0; Self::BYTES];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }
    )*};
}

numbers!(u32, u64, f64);

/// Memory for so many numbers at this node, in blocks of their own.
pub fn alloc<T: Number>(node: &Node, count: usize) -> Played<u64> {
    let bytes = (count * T::BYTES).max(node.block_size());
    Ok(node.alloc_bytes(bytes)?)
}

/// Writes numbers.
pub fn write<T: Number>(node: &Node, addr: u64, numbers: &[T]) -> Played<()> {
    let mut bytes = Vec::with_capacity(numbers.len() * T::BYTES);
    numbers.iter().for_each(|number| number.put(&mut bytes));
    Ok(node.write(addr, &bytes)?)
}

/// Adds so many numbers to `numbers`.
pub fn read_into<T: Number>(
    node: &Node,
    addr: u64,
    count: usize,
    numbers: &mut Vec<T>,
) -> Played<()> {
    let mut bytes = vec![0; count * T::BYTES];
    node.read(addr, &mut bytes)?;
    numbers.extend(bytes.chunks_exact(T::BYTES).map(T::get));
    Ok(())
}

/// So many numbers.
pub fn read<T: Number>(node: &Node, addr: u64, count: usize) -> Played<Vec<T>> {
    let mut numbers = Vec::with_capacity(count);
    read_into(node, addr, count, &mut numbers)?;
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;

    #[test]
    fn another_node_reads_what_was_written() {
        let rack = Rack::local(2).unwrap();
        let numbers: Vec<f64> = (0..3000).map(f64::from).collect();
        let (Ok(addr), second) = (alloc::<f64>(&rack.node(0), 3000), rack.node(1)) else {
            panic!("no memory");
        };
        assert!(write(&rack.node(0), addr, &numbers).is_ok());
        assert!(read(&second, addr, 3000).is_ok_and(|found: Vec<f64>| found == numbers));
        let part = read(&second, addr + 8 * 1000, 3);
        assert!(part.is_ok_and(|found: Vec<f64>| found == [1000.0, 1001.0, 1002.0]));
    }
}
