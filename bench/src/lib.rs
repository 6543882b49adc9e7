//! What every bench of rackmem is made of: workloads, clocks, baselines, real input and reports.
//!
//! | module | gives |
//! |---|---|
//! | [`zipf`], [`ycsb`] | skewed keys, and YCSB's workloads A, B and C over anything that gets and sets |
//! | [`packages`], [`pagerank`] | a real graph, and the ranks a correct computation finds in it |
//! | [`timing`], [`histogram`] | threads that start together, operations counted, latencies kept |
//! | [`pingpong`], [`plain`] | what the machine itself can do: a cache line's way, a datagram's way |
//! | [`system`], [`locks`], [`delegated`], [`objects`] | what rackmem is measured against, on its own nodes (`bench/baselines` has the protocols) |
//! | [`recorded`] | histories of what clients did meanwhile, for the checker of linearizability |
//! | [`run`], [`stop`] | the benches themselves, and their end before they are through |
//! | [`report`], [`machine`], [`table`] | one JSON object a bench, and a table for people |

pub mod busy;
pub mod delegated;
pub mod histogram;
pub mod judged;
pub mod locks;
pub mod machine;
pub mod objects;
pub mod packages;
pub mod pagerank;
pub mod pingpong;
pub mod plain;
pub mod recorded;
pub mod report;
pub mod run;
pub mod stop;
pub mod system;
pub mod table;
pub mod timeline;
pub mod timing;
pub mod ycsb;
pub mod zipf;
