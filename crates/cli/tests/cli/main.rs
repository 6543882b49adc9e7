//! The `rackmem` command as its users meet it: processes, ports, real clients, signals.

mod agreement;
mod bench;
mod check;
mod clients;
mod copies;
mod deaths;
mod demo;
mod doctor;
mod durable;
mod errors;
mod fenced;
mod help;
mod history;
mod hostile;
mod inspect;
mod interrupt;
mod members;
mod names;
mod process;
mod racks;
mod resources;
mod resp;
mod serve;
mod sim;
mod soak;
mod tutorial;
