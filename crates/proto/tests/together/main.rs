//! Objects with copies that are written together, where lines are so short that a record takes
//! several, and calls that no coordinator sends; and what a coordinator makes of what nodes' homes
//! say.

mod calls;
mod coordinator;
mod doubts;
mod epochs;
mod rack;
mod records;
mod removed;
mod several;
