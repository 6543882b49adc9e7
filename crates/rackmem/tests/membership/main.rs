//! Racks agree on their members through real stores: memory, a folder, a real etcd.

#[path = "../support/child.rs"]
mod child;
mod etcd;
mod folder;
mod keepers;
mod server;
mod stopped;
mod stores;
mod witness;
