//! `bench kv`: written once the store is complete.
