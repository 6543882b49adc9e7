//! This process as a node of the rack: it joins when it first uses a file of the rack's, and leaves
//! when it ends.

use crate::answer::{Done, refuse};
use crate::inside::Inside;
use crate::say;
use crate::settings::{self, PARENT};
use crate::signals;
use crate::table;
use rackmem::locked::{RwLockArray, Writing};
use rackmem::{Config, Node, Rack, Region, RegionSpec, Wait, Window, WindowMut};
use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Locks of a file: the first ones are its tables', the others those of objects in it.
pub const LOCKS: usize = 2048;
/// Bytes that a lock has a page of, at most.
pub const PAGE: usize = 64 << 10;

/// How long a process that ends waits until what it has is at home.
const LEAVING: Duration = Duration::from_secs(30);

const REGION: &str = "rackmem-dropin";

/// See the module.
pub struct Member {
    pub node: Node,
    rack: Mutex<Option<Rack>>,
    pid: u32,
    /// The memory whose addresses all locks have.
    region: Region,
    /// The table of files, under its lock.
    table: RwLockArray,
    /// This process has changed the table since the table was home.
    changed: AtomicBool,
}

static MEMBER: OnceLock<Member> = OnceLock::new();
/// This process is a child by `fork` of a member.
static FORKED: AtomicBool = AtomicBool::new(false);

pub fn pid() -> u32 {
    // SAFETY: a question without arguments. Not `getpid`, which this library answers itself.
    unsafe { libc::syscall(libc::SYS_getpid) as u32 }
}

/// Whether this process is a child by `fork`, and has none of what its parent has of the rack.
#[inline]
pub fn is_forked() -> bool {
    FORKED.load(Relaxed)
}

/// The member that this process is, if it is one by now.
#[inline]
pub fn get() -> Option<&'static Member> {
    MEMBER.get().filter(|_| !is_forked())
}

/// The same, which joins if need be.
pub fn join() -> Done<&'static Member> {
    static TURN: Mutex<()> = Mutex::new(());
    if is_forked() {
        return refuse(libc::EPERM, FORK);
    }
    if let Some(member) = MEMBER.get() {
        return Ok(member);
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(member) = MEMBER.get() {
        return Ok(member);
    }
    let settings = settings::get();
    if settings.parent.is_some_and(|parent| parent != pid()) {
        return refuse(libc::EPERM, CHILD);
    }
    let _inside = Inside::enter();
    signals::begin();
    let member = open(settings.home)?;
    watch_fork();
    // SAFETY: what other threads do to the environment meanwhile is the program's to see to, as
    // with each of its own calls; this is in its first use of a file of the rack's.
    unsafe { std::env::set_var(PARENT, pid().to_string()) };
    Ok(MEMBER.get_or_init(|| member))
}

const FORK: &str = "this process is a child by fork() of a node of the rack, and has none of its \
                    files; start it as a node of its own (`rackmem run --drop-in`), or let it \
                    exec() a program that uses none of them";
const CHILD: &str = "this program was started by a node of the rack, and is none itself: files of \
                     the rack are not to be had here; start it as a node of its own \
                     (`rackmem run --drop-in`)";

fn open(home: u16) -> Done<Member> {
    let joined = Config::from_env().and_then(|(config, node)| Rack::join(&config, node));
    let rack = joined.or_else(|why| {
        let text = format!("the rack cannot be joined: {why}");
        refuse(libc::EHOSTUNREACH, &text)
    })?;
    let Some(node) = rack.nodes().first().cloned() else {
        return refuse(libc::EHOSTUNREACH, "the rack has no node in this process");
    };
    let bytes = (1 + table::FILES * LOCKS) * RwLockArray::STRIDE;
    let region = node.create_region(&RegionSpec::new(REGION, bytes).on(home))?;
    let table = RwLockArray::attach(&node, region.addr(), 1, PAGE)?;
    let member = Member {
        node,
        rack: Mutex::new(Some(rack)),
        pid: pid(),
        region,
        table,
        changed: AtomicBool::new(false),
    };
    let (id, pid) = (member.node.id(), member.told_pid());
    let same = member.change(|view| {
        let same = table::same_pid(view, (id, pid), member.live(view));
        if same.is_none() {
            table::enter(view, id, (pid, member.node.incarnation_of(id)));
        }
        Ok(same)
    })?;
    match same {
        None => Ok(member),
        Some(other) => {
            let text = format!(
                "process {pid} is node {other}'s process too, on another host, and programs know \
                 each other by such numbers: set {}=node for all of them",
                settings::PIDS
            );
            refuse(libc::EAGAIN, &text)
        }
    }
}

impl Member {
    /// The number of this process, as the program is told it.
    pub fn told_pid(&self) -> u32 {
        crate::calls::process::told_pid(pid())
    }

    /// Whether this is the process that has joined, and not a child that has its memory.
    pub fn is_process(&self) -> bool {
        self.pid == pid()
    }

    /// Live nodes, as bits.
    pub fn live(&self, table: &Window<'_>) -> u64 {
        table::live(table, |node, life| self.lives(node, life))
    }

    /// Whether a life of a node has not ended. One of which this process has not heard yet has
    /// not.
    fn lives(&self, node: u16, life: u32) -> bool {
        match self.node.incarnation_of(node).cmp(&life) {
            Ordering::Less => true,
            Ordering::Equal => self.node.is_member(node),
            Ordering::Greater => false,
        }
    }

    /// This node and which life of it, in one word.
    pub fn life(&self) -> u64 {
        let id = self.node.id();
        u64::from(id) << 32 | u64::from(self.node.incarnation_of(id))
    }

    /// Whether the node of such a word has died since.
    pub fn is_dead(&self, word: u64) -> bool {
        !self.lives((word >> 32) as u16, word as u32)
    }

    /// The locks of a row of the table.
    pub fn locks(&self, row: usize) -> Done<RwLockArray> {
        let first = self.region.addr() + ((1 + row * LOCKS) * RwLockArray::STRIDE) as u64;
        Ok(RwLockArray::attach(&self.node, first, LOCKS, PAGE)?)
    }

    /// Reads the table.
    pub fn look<R>(&self, f: impl FnOnce(&Window<'_>) -> R) -> Done<R> {
        let held = self.table.read(0)?;
        Ok(f(&held.view()))
    }

    /// Changes the table, alone in the rack.
    pub fn change<R>(&self, f: impl FnOnce(&mut WindowMut<'_>) -> Done<R>) -> Done<R> {
        let entered = self.table.enter::<Writing>(0, Wait::Forever)?;
        let Some(mut entered) = entered else {
            return refuse(libc::EIO, "the table of files is not to be had");
        };
        let done = f(&mut self.table.view_mut(&mut entered, table::TABLE));
        self.table.leave(entered);
        self.changed.store(true, Release);
        done
    }

    /// What this process has changed of the table goes home.
    pub fn sync(&self) -> Done {
        if self.changed.swap(false, AcqRel) {
            self.table
                .bring_home(0)
                .inspect_err(|_| self.changed.store(true, Release))?;
        }
        Ok(())
    }
}

/// What a child by `fork` does first.
extern "C" fn forked() {
    FORKED.store(true, Relaxed);
    signals::begin_child();
}

fn watch_fork() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: the handler only stores, and sets a handler of a signal.
        let watched = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        if watched != 0 {
            say::once("children by fork() cannot be told apart from this process: do not fork");
        }
    });
}

/// The end of the process: what it has changed goes home. A thread of its own does it, since this
/// one's memory is on its way out.
pub fn leave() {
    let Some(member) = get().filter(|member| member.is_process()) else {
        return;
    };
    crate::calls::stream::flush();
    let (left, has_left) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _inside = Inside::enter();
        crate::files::close_all(member);
        let rack = member
            .rack
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Err(why)) = rack.map(Rack::close) {
            say::line(&format!(
                "this node has left, and not all of it went home: {why}"
            ));
        }
        drop(left);
    });
    // Nothing is ever sent: it ends.
    if has_left.recv_timeout(LEAVING) == Err(RecvTimeoutError::Timeout) {
        say::line("this node ends, and not all of it went home: others do not answer");
    }
}

/// Called when the process ends by `exit` or by returning from `main`, after the program's own
/// destructors.
extern "C" fn at_end() {
    leave();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;
