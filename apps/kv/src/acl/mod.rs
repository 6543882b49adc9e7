//! Users: who may run which commands on which keys and channels.
//!
//! A user has rules ([`user`]), given as words ([`rules`]): a base and any number of further
//! selectors ([`selector`]), each of which may allow a command by itself. All nodes of a rack have
//! the same users ([`users`]): they are kept in the store's own database, as text in the form of an
//! ACL file ([`text`]), and each node looks for changes ten times a second.

mod catalog;
mod check;
mod key_use;
mod log;
mod rules;
mod selector;
mod text;
mod user;
mod users;

pub(crate) use self::catalog::{CATEGORIES, Catalog, Unit, category};
pub(crate) use self::check::{Context, Denied, may_read_all, permitted, unlogged};
pub(crate) use self::key_use::uses;
pub(crate) use self::selector::Selector;
pub(crate) use self::text::{channels, commands, flags, keys, line};
pub(crate) use self::user::{DEFAULT, User, hash};
pub(crate) use self::users::{Users, apply};
