//! The users of a rack, as one node knows them.
//!
//! The record `acl:users` of the servers' own database holds them as text. A change is a
//! transaction on that record. Other nodes take it over at their next tick; every login looks the
//! record up before, so that a user who was removed is refused from then on at every node.
//!
//! A default user that nobody has changed is not in the record: it has the password of its node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use super::catalog::Catalog;
use super::check::Context;
use super::log::{Entry, Log};
use super::text;
use super::user::{DEFAULT, User};
use crate::command::Failure;
use crate::memory::Memory;
use crate::server::registry::Client;
use crate::server::session::Identity;
use crate::store::{Plan, Store};

pub(crate) use super::text::apply_all as apply;

/// Where the users are.
const RECORD: &[u8] = b"acl:users";
/// Bytes of all users' lines, at most.
const MAX_TEXT: usize = 1 << 20;

/// Users by name.
pub(crate) type Table = BTreeMap<Vec<u8>, Arc<User>>;

/// What a node knows.
#[derive(Debug)]
struct Known {
    users: Table,
    /// The record when it was last looked at; `None` before the first time.
    record: Option<Vec<u8>>,
}

/// The users.
#[derive(Debug)]
pub(crate) struct Users {
    catalog: Arc<Catalog>,
    /// The default user while nobody has changed it.
    own: Mutex<Arc<User>>,
    known: RwLock<Known>,
    /// Rises with every change: sessions look again when it has.
    generation: AtomicU64,
    log: Mutex<Log>,
    file: Option<PathBuf>,
    /// Others than this machine can connect: nobody comes in without a password.
    exposed: bool,
}

impl Users {
    /// Nobody is known before [`Users::refresh`].
    pub fn new(
        catalog: Arc<Catalog>,
        password: Option<&str>,
        file: Option<PathBuf>,
        exposed: bool,
    ) -> Self {
        let own = User::first(&catalog, password.filter(|word| !word.is_empty()));
        let closed = User {
            on: false,
            ..own.clone()
        };
        let users = Table::from([(DEFAULT.to_vec(), Arc::new(closed))]);
        Self {
            catalog,
            own: Mutex::new(Arc::new(own)),
            known: RwLock::new(Known {
                users,
                record: None,
            }),
            generation: AtomicU64::new(1),
            log: Mutex::default(),
            file,
            exposed,
        }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn own(&self) -> Arc<User> {
        self.own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// All users.
    pub fn all(&self) -> Table {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .users
            .clone()
    }

    pub fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.users.get(name).cloned()
    }

    /// Whether no password is asked of a user here.
    pub fn is_free(&self, user: &User) -> bool {
        user.on && user.nopass && !self.exposed
    }

    /// Whether somebody who says this is the user.
    pub fn admit(&self, user: &User, password: &[u8]) -> bool {
        user.admits(password) && !(user.nopass && self.exposed)
    }

    /// Who a client is that has said nothing yet.
    pub fn newcomer(&self) -> Identity {
        let generation = self.generation();
        let user = self.get(DEFAULT).unwrap_or_else(|| self.own());
        let trusted = self.is_free(&user);
        Identity {
            user,
            trusted,
            generation,
        }
    }

    /// Who somebody is after a change of the users; `None` when there is no such user any more.
    pub fn renew(&self, identity: &Identity) -> Option<Identity> {
        let generation = self.generation();
        let user = self.get(&identity.user.name)?;
        let open = user.name == DEFAULT && self.is_free(&user);
        Some(Identity {
            trusted: identity.trusted || open,
            user,
            generation,
        })
    }

    /// The users of a record.
    fn read(&self, record: &[u8]) -> Result<Table, Failure> {
        let users = text::parse(&self.catalog, record).map_err(|bad| {
            Failure::from(format!(
                "ERR the rack's users, line {}: {}",
                bad.line, bad.why
            ))
        })?;
        let mut users: Table = users
            .into_iter()
            .map(|user| (user.name.clone(), Arc::new(user)))
            .collect();
        users.entry(DEFAULT.to_vec()).or_insert_with(|| self.own());
        Ok(users)
    }

    fn write(&self, users: &Table) -> Vec<u8> {
        let mut record = Vec::new();
        let own = self.own();
        for user in users.values().filter(|user| ***user != *own) {
            record.extend(text::line(user));
            record.push(b'\n');
        }
        record
    }

    fn adopt(&self, users: Table, record: Vec<u8>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Known {
            users,
            record: Some(record),
        };
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Takes over what other nodes have changed. Whether there was something.
    ///
    /// # Errors
    /// The record cannot be read: what was known stays in force.
    pub fn refresh<M: Memory>(&self, store: &Store<M>) -> Result<bool, Failure> {
        let mut record = Vec::new();
        store.internal().get(RECORD, &mut record)?;
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.record.as_deref() == Some(&record) {
                return Ok(false);
            }
        }
        let users = self.read(&record)?;
        self.adopt(users, record);
        Ok(true)
    }

    /// Changes the users of the rack with `f`, all that it does or nothing.
    ///
    /// # Errors
    /// Those of `f`, or the record cannot be read or written.
    pub fn change<M: Memory, R>(
        &self,
        store: &Store<M>,
        f: impl FnOnce(&Catalog, &mut Table) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let transaction = store.transaction([RECORD], Plan::default())?;
        let db = transaction
            .db(0)
            .ok_or("ERR DB index is out of range")?
            .internal();
        let mut record = Vec::new();
        db.get(RECORD, &mut record)?;
        let mut users = self.read(&record)?;
        let result = f(&self.catalog, &mut users)?;
        let record = self.write(&users);
        if record.len() > MAX_TEXT {
            return Err("ERR the users' rules are too long".into());
        }
        db.set(RECORD, &record)?;
        drop(transaction);
        self.adopt(users, record);
        Ok(result)
    }

    /// Gives the default user another password, or none: at this node while nobody has given it
    /// other rules, else in the rack.
    ///
    /// # Errors
    /// Those of [`Users::change`].
    pub fn set_password<M: Memory>(
        &self,
        store: &Store<M>,
        password: &[u8],
    ) -> Result<(), Failure> {
        let set = |user: &User| User {
            nopass: password.is_empty(),
            passwords: match password.is_empty() {
                true => Vec::new(),
                false => vec![super::hash(password)],
            },
            ..user.clone()
        };
        self.change(store, |_, users| {
            let (own, user) = (
                self.own(),
                users.get(DEFAULT).cloned().unwrap_or_else(|| self.own()),
            );
            let new = Arc::new(set(&user));
            if *user == *own {
                *self.own.lock().unwrap_or_else(PoisonError::into_inner) = new.clone();
            }
            users.insert(DEFAULT.to_vec(), new);
            Ok(())
        })
    }

    /// The file of users, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Makes the users of the file those of the rack. `only_first`: unless the rack has any.
    ///
    /// # Errors
    /// The file cannot be read or is not one of users, or those of [`Users::change`].
    pub fn load<M: Memory>(&self, store: &Store<M>, only_first: bool) -> Result<(), Failure> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let why = |error: &dyn std::fmt::Display| -> Failure {
            format!("ERR {}: {error}", path.display()).into()
        };
        let content = std::fs::read(path).map_err(|error| why(&error))?;
        let users = text::parse(&self.catalog, &content)
            .map_err(|bad| why(&format!("line {}: {}", bad.line, bad.why)))?;
        self.change(store, |_, table| {
            if only_first && (table.len() > 1 || table.get(DEFAULT) != Some(&self.own())) {
                return Ok(());
            }
            *table = users
                .into_iter()
                .map(|user| (user.name.clone(), Arc::new(user)))
                .collect();
            table.entry(DEFAULT.to_vec()).or_insert_with(|| self.own());
            Ok(())
        })
    }

    /// Writes the users to the file.
    ///
    /// # Errors
    /// The system's.
    pub fn save(&self) -> std::io::Result<()> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let mut content = Vec::new();
        for user in self.all().values() {
            content.extend(text::line(user));
            content.push(b'\n');
        }
        // A crash must leave the old file or the new one.
        let next = path.with_extension("next");
        std::fs::write(&next, content)?;
        std::fs::rename(&next, path)
    }

    fn entries(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a refusal: the reason, and what was refused. `most` are kept.
    pub fn log(
        &self,
        client: &Client,
        user: &[u8],
        context: Context,
        what: (&'static str, &[u8]),
        most: usize,
    ) {
        let mut line = String::new();
        client.line(&self.catalog, &mut line);
        let entry = Entry {
            count: 1,
            reason: what.0,
            context: context.name(),
            object: what.1.to_vec(),
            user: user.to_vec(),
            at: Instant::now(),
            client: line,
        };
        self.entries().add(entry, most);
    }

    /// The newest refusals.
    pub fn refusals(&self, count: usize) -> Vec<Entry> {
        self.entries().newest(count)
    }

    /// Forgets all refusals.
    pub fn forget_refusals(&self) {
        self.entries().clear();
    }
}
