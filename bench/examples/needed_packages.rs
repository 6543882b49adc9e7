//! Prints the most needed packages of this machine's package lists, with their needs among each
//! other, in the format of a package list. This is how `data/packages.lz4` was made:
//!
//! ```sh
//! cargo run --release -p rackmem-bench --example needed_packages 8000 \
//!     | lz4 -12 > data/packages.lz4
//! ```

use std::io::{self, BufWriter, Write};

use rackmem_bench::packages::{self, Graph, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(8000), |count| count.parse())?;
    let loaded = packages::load()?;
    if loaded.source == Source::Shipped {
        return Err("this machine has no package lists".into());
    }
    let kept = most_needed(&loaded.graph, count);
    let mut output = BufWriter::new(io::stdout().lock());
    for node in (0..loaded.graph.nodes()).filter(|&node| kept[node]) {
        writeln!(output, "Package: {}", loaded.graph.names()[node])?;
        let needs: Vec<&str> = loaded
            .graph
            .successors(node)
            .iter()
            .filter(|&&need| kept[need as usize])
            .map(|&need| loaded.graph.names()[need as usize].as_str())
            .collect();
        if !needs.is_empty() {
            writeln!(output, "Depends: {}", needs.join(","))?;
        }
        writeln!(output)?;
    }
    output.flush()?;
    Ok(())
}

/// Whether each package is among those that most others need, names deciding between equals.
fn most_needed(graph: &Graph, count: usize) -> Vec<bool> {
    let mut needed = vec![0u32; graph.nodes()];
    for node in 0..graph.nodes() {
        for &need in graph.successors(node) {
            needed[need as usize] += 1;
        }
    }
    let mut order: Vec<usize> = (0..graph.nodes()).collect();
    order.sort_by_key(|&node| std::cmp::Reverse(needed[node]));
    let mut kept = vec![false; graph.nodes()];
    order.iter().take(count).for_each(|&node| kept[node] = true);
    kept
}
