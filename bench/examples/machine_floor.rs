//! Prints what this machine itself can do: the way of a cache line between two cores and of a
//! request through three hops as plain datagrams.

use std::error::Error;

use rackmem_bench::pingpong;
use rackmem_bench::plain::{self, Chain, Wait};
use rackmem_bench::report::Report;

fn main() -> Result<(), Box<dyn Error>> {
    let mut report = Report::new("machine_floor");
    match pingpong::measure(1_000_000) {
        Ok(found) => report.add("cache_line_one_way", found.ns as f64, "ns")?,
        Err(error) => eprintln!("no cache line times: {error}"),
    }
    for (name, wait) in [("block", Wait::Block), ("spin", Wait::Spin)] {
        for (size, answer) in [("64", 64), ("4k", 4096)] {
            let chain = Chain {
                answer,
                wait,
                ..Chain::default()
            };
            let times = plain::measure(chain)?;
            for percent in [50.0, 99.0] {
                let case = format!("datagrams_{name}_{size}_p{percent}");
                report.add(&case, times.percentile(percent) as f64, "ns")?;
            }
        }
    }
    if std::env::args().any(|argument| argument == "--json") {
        return Ok(write(&(report.to_json()? + "\n"))?);
    }
    Ok(report.table().print()?)
}

fn write(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    std::io::stdout().write_all(text.as_bytes())
}
