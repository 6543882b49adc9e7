//! Whether a user may run a command.

use super::catalog::Catalog;
use super::key_use::uses;
use super::selector::Selector;
use super::user::User;
use crate::command::{Command, Failure};
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::server::session::Session;
use crate::server::shared::Shared;

/// Where a command came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Client,
    Transaction,
    Script,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "toplevel",
            Self::Transaction => "multi",
            Self::Script => "lua",
        }
    }
}

/// What a user lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The command, by its full name.
    Command(String),
    Key(Vec<u8>),
    Channel(Vec<u8>),
}

impl Denied {
    /// How far the check came: the selector that came farthest explains best.
    fn depth(&self) -> u8 {
        match self {
            Self::Command(_) => 0,
            Self::Key(_) => 1,
            Self::Channel(_) => 2,
        }
    }

    /// The reason and the object, as ACL LOG names them.
    pub fn parts(&self) -> (&'static str, &[u8]) {
        match self {
            Self::Command(name) => ("command", name.as_bytes()),
            Self::Key(key) => ("key", key),
            Self::Channel(channel) => ("channel", channel),
        }
    }

    fn failure(&self) -> Failure {
        match self {
            Self::Command(name) => {
                format!("NOPERM this user has no permissions to run the '{name}' command").into()
            }
            Self::Key(_) => {
                "NOPERM this user has no permissions to access one of the keys used as arguments"
                    .into()
            }
            Self::Channel(_) => {
                "NOPERM this user has no permissions to access one of the channels used as arguments"
                    .into()
            }
        }
    }
}

/// Commands with channels: whether these are patterns, and how many of the words are.
const CHANNELS: [(&str, bool, usize); 5] = [
    ("publish", false, 1),
    ("spublish", false, 1),
    ("subscribe", false, usize::MAX),
    ("ssubscribe", false, usize::MAX),
    ("psubscribe", true, usize::MAX),
];

/// Whether the session's user may run the command at `position` of the table with these words.
/// A refusal is noted in the log.
///
/// # Errors
/// What the client gets: NOPERM.
#[inline]
pub(crate) fn permitted<M: Memory>(
    shared: &Shared<M>,
    session: &Session,
    position: usize,
    args: Args<'_>,
    context: Context,
) -> Result<(), Failure> {
    if session.user.is_open() {
        return Ok(());
    }
    let users = &shared.control.users;
    let command = shared.commands.at(position);
    unlogged(users.catalog(), &session.user, command, position, args).map_err(|denied| {
        let (user, most) = (&session.user.name, shared.control.settings.acl_log_len());
        users.log(&session.client, user, context, denied.parts(), most);
        denied.failure()
    })
}

/// Whether the session's user may run the command of these words and read any key with it.
pub(crate) fn may_read_all<M: Memory>(
    shared: &Shared<M>,
    session: &Session,
    command: &Command<M>,
    args: Args<'_>,
) -> bool {
    let (catalog, user) = (shared.control.users.catalog(), &session.user);
    let Some(position) = shared.commands.find(args.at(0)) else {
        return false;
    };
    let places = (position, catalog.unit(position, args));
    user.is_open()
        || user.selectors().any(|selector| {
            selector.reads_all() && by_selector(catalog, selector, command, places, args).is_ok()
        })
}

/// The same without a note.
///
/// # Errors
/// What the user lacks.
pub(crate) fn unlogged<M: Memory>(
    catalog: &Catalog,
    user: &User,
    command: &Command<M>,
    position: usize,
    args: Args<'_>,
) -> Result<(), Denied> {
    let unit = catalog.unit(position, args);
    let mut worst: Option<(Denied, usize)> = None;
    for selector in user.selectors() {
        match by_selector(catalog, selector, command, (position, unit), args) {
            Ok(()) => return Ok(()),
            Err((denied, at)) => {
                let farther = |(worst, place): &(Denied, usize)| {
                    (denied.depth(), at) > (worst.depth(), *place)
                };
                if worst.as_ref().is_none_or(farther) {
                    worst = Some((denied, at));
                }
            }
        }
    }
    worst.map_or(Ok(()), |(denied, _)| Err(denied))
}

/// What it lacks, and at which word.
fn by_selector<M: Memory>(
    catalog: &Catalog,
    selector: &Selector,
    command: &Command<M>,
    (position, unit): (usize, usize),
    args: Args<'_>,
) -> Result<(), (Denied, usize)> {
    // What may be sent before the password may be sent by everybody.
    let open = command.flags.has(crate::command::Flags::OPEN);
    if !open && !selector.runs(unit, position, args.at(1)) {
        return Err((Denied::Command(catalog.units[unit].name.clone()), 0));
    }
    for (nth, at) in command.keys.positions(args).enumerate() {
        if !selector.reaches_key(args.at(at), uses(command, args, nth)) {
            return Err((Denied::Key(args.at(at).to_vec()), at));
        }
    }
    let channels = CHANNELS.iter().find(|(name, ..)| *name == command.name);
    if let Some((_, patterns, most)) = channels {
        let mut named = args.from(1).take(*most).enumerate();
        let denied = named.find(|(_, channel)| !selector.reaches_channel(channel, *patterns));
        if let Some((at, channel)) = denied {
            return Err((Denied::Channel(channel.to_vec()), 1 + at));
        }
    }
    Ok(())
}
