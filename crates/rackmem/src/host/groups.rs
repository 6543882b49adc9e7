//! The groups of the rack, as this process knows them: the newest from the store, given to this
//! process's nodes and switch, and what this process has to propose.
//!
//! Who proposes a config does not matter: the store takes one for each version, and each step is
//! made from the version that it follows. See decision 28.

use crate::host::agents::Agents;
use crate::membership::{Group, Groups, KeptAs, MembershipError, Role, Store};
use rackmem_fabric::{Port, Whole};
use rackmem_proto::abd::first_line;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Contract, Copyset, HomeId, NodeId, Tag};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the store may be asked for at a time, in a rack whose nodes are all in this process.
const AT_HOME: Duration = Duration::from_millis(50);

/// How long such a node's copy has been gone until it is made anew.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// A node of this process, and a way to send for it.
struct Local {
    agents: Weak<Agents>,
    port: Box<dyn Port>,
}

/// A member that is dead: its group, its node, and the number of the config that names it.
type Dead = (u16, NodeId, u32);

/// What is told of new groups beside nodes.
type Hears = Box<dyn Fn(&Groups) + Send + Sync>;

/// Where a region with copies begins: its first line, or the beginning of the home that its lines
/// are blocks of.
pub(crate) fn address(number: u16, group: &Group) -> u64 {
    match group.home {
        Some(kept) => {
            let start = HomeId::of_group(number).start().0 + group.base_of_home();
            Tag(start).under(kept.contract()).0
        }
        None => first_line(number).0,
    }
}

/// See the module.
pub(crate) struct Book {
    /// None: the members of the rack are fixed, and none could be told from one that has forgotten.
    store: Option<Arc<dyn Store>>,
    /// How often the store is looked at, and how long it may take to answer.
    beat: Duration,
    /// How long a member is dead until another takes its place; none: until a person says so.
    replace_after: Option<Duration>,
    known: Mutex<Groups>,
    locals: Mutex<Vec<Local>>,
    switch: OnceLock<Hears>,
    /// Members found dead, and since when.
    dead: Mutex<Vec<(Dead, Instant)>>,
    /// Somebody wants a look at the store now.
    hurry: Mutex<bool>,
    woken: Condvar,
    closed: Arc<AtomicBool>,
}

impl Book {
    /// Of a rack whose groups this store keeps.
    pub fn new(
        store: Option<Arc<dyn Store>>,
        (beat, replace_after): (Duration, Option<Duration>),
        closed: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Book {
            store,
            beat,
            replace_after,
            known: Mutex::default(),
            locals: Mutex::default(),
            switch: OnceLock::new(),
            dead: Mutex::default(),
            hurry: Mutex::default(),
            woken: Condvar::new(),
            closed,
        })
    }

    /// Of a rack whose nodes are all in this process.
    pub fn at_home(store: Option<Arc<dyn Store>>, closed: Arc<AtomicBool>) -> Arc<Self> {
        let store = store.unwrap_or_else(|| Arc::new(crate::membership::Memory::default()));
        Book::new(Some(store), (AT_HOME, Some(FORGOTTEN)), closed)
    }

    /// Whether members can be told from those that have forgotten.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// This node lives by the groups from here on. `port` sends for it.
    pub fn follow(self: &Arc<Self>, agents: &Arc<Agents>, port: Box<dyn Port>) {
        let book = Arc::downgrade(self);
        agents.replicas.when_behind(Box::new(move || {
            if let Some(book) = book.upgrade() {
                book.hurry();
            }
        }));
        let agents = Arc::downgrade(agents);
        self.locals.lock().whole().push(Local { agents, port });
    }

    /// A switch of this process does, by what this makes of them.
    pub fn follow_with(&self, hears: Hears) {
        let _ = self.switch.set(hears);
    }

    /// What was known last.
    pub fn known(&self) -> Groups {
        self.known.lock().whole().clone()
    }

    /// Where a region with copies of this name begins, as known last, its contract and how many
    /// copies it was asked for.
    pub fn address_of(&self, name: &str) -> Option<(u64, Contract, u8)> {
        let known = self.known.lock().whole();
        let (number, group) = known.find(name)?;
        let contract = group.home.map_or(Contract::Replicated, KeptAs::contract);
        Some((address(number, group), contract, group.copies))
    }

    /// Bytes of a line of this group's, as known last, or as the store says where nothing is known
    /// of it.
    pub fn line_of(&self, group: u16) -> Option<u32> {
        let line = |groups: &Groups| Some(groups.get(group)?.layout.line);
        let known = line(&self.known.lock().whole());
        known.or_else(|| line(&self.look().ok()?))
    }

    /// Looks at the store, and lets this process live by what is there.
    pub fn look(&self) -> Result<Groups, MembershipError> {
        let store = self.store.as_ref().ok_or(MembershipError::Fixed)?;
        if let Some(groups) = store.groups(self.beat)? {
            self.adopt(&groups);
        }
        Ok(self.known())
    }

    /// Who is live now, as the store says it: a process may not have heard of the newest members.
    /// `heard` is what this one has.
    pub fn view(&self, heard: View) -> Result<View, MembershipError> {
        let store = self.store.as_ref().ok_or(MembershipError::Fixed)?;
        let roster = store.load(self.beat)?.roster;
        Ok(roster.map_or(heard, |roster| roster.view))
    }

    /// Whether a home that a group keeps cannot be served while only these nodes live, as known
    /// last.
    pub fn is_short(&self, live: Copyset) -> bool {
        let known = self.known.lock().whole();
        known.rows.iter().any(|group| {
            let config = &group.config;
            group.home.is_some() && !config.is_removed() && !config.is_quorum(config.places(live))
        })
    }

    /// Whether a member of these had better not go just now ([`Groups::misses`]), as the store
    /// says it.
    pub fn misses(&self, node: NodeId, heard: View) -> bool {
        let (groups, view) = (self.look(), self.view(heard));
        let replaces = self.replace_after.is_some();
        let both = groups.and_then(|groups| Ok((groups, view?)));
        both.is_ok_and(|(groups, view)| groups.misses(node, &view, replaces))
    }

    /// Has the rack go on without a member, as if it had died.
    pub fn exclude(&self, role: Role) -> Result<(), MembershipError> {
        let store = self.store.as_ref().ok_or(MembershipError::Fixed)?;
        crate::membership::remove(&**store, role, self.beat).map(drop)
    }

    /// Proposes the next groups. Whether they were taken, as far as is known.
    pub fn propose(&self, next: &Groups) -> Result<bool, MembershipError> {
        let store = self.store.as_ref().ok_or(MembershipError::Fixed)?;
        let taken = store.propose_groups(next, self.beat)?;
        if taken {
            self.adopt(next);
        }
        Ok(taken)
    }

    fn adopt(&self, groups: &Groups) {
        // Held over all of it, so that nodes hear of versions in their order.
        let locals = self.locals.lock().whole();
        if groups.version <= self.known.lock().whole().version {
            return;
        }
        if let Some(hears) = self.switch.get() {
            hears(groups);
        }
        for local in locals.iter() {
            if let Some(agents) = local.agents.upgrade() {
                agents.adopt(groups, &*local.port);
            }
        }
        *self.known.lock().whole() = groups.clone();
        // What the first of them have asked of the last was of a config that these did not know,
        // and where packets are calls nothing is sent again by itself.
        for local in locals.iter() {
            if let Some(agents) = local.agents.upgrade() {
                agents.ask_again(&*local.port);
            }
        }
    }

    /// Looks at the store soon.
    pub fn hurry(&self) {
        *self.hurry.lock().whole() = true;
        self.woken.notify_all();
    }

    /// Looks from now on, until the rack is closed.
    pub fn keep(self: &Arc<Self>, changes: bool) -> std::io::Result<JoinHandle<()>> {
        let book = self.clone();
        let thread = std::thread::Builder::new().name("rackmem-groups".into());
        let run = move || {
            while !book.closed.load(Relaxed) {
                // What the store says when it fails, creating and opening regions say as well.
                let known = book.look().unwrap_or_else(|_| book.known());
                book.duties(&known, changes);
                // A rack of one process has groups when it has made some itself.
                let idle = !changes && known.rows.is_empty();
                book.pause(if idle { Duration::MAX } else { book.beat });
            }
        };
        thread.spawn(run)
    }

    fn pause(&self, time: Duration) {
        let mut hurry = self.hurry.lock().whole();
        let end = Instant::now().checked_add(time);
        while !std::mem::take(&mut *hurry) && !self.closed.load(Relaxed) {
            let left = end.map_or(time, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return;
            }
            hurry = self.woken.wait_timeout(hurry, left).whole().0;
        }
    }

    /// What this process has to propose: that a member of it has filled, and, where it is the first
    /// of the rack, what follows from who is there.
    fn duties(&self, known: &Groups, changes: bool) {
        let locals: Vec<Arc<Agents>> = {
            let locals = self.locals.lock().whole();
            locals.iter().filter_map(|l| l.agents.upgrade()).collect()
        };
        for agents in &locals {
            for group in 0..known.rows.len() as u16 {
                let kept = agents.replicas.kept(group).filter(|kept| kept.whole);
                let next = kept.and_then(|kept| known.filled(group, (agents.node, kept.config)));
                if let Some(next) = next {
                    return self.try_to(&next);
                }
            }
        }
        for agents in &locals {
            if let Some(next) = self.forgotten(known, agents) {
                return self.try_to(&next);
            }
        }
        let Some(agents) = locals.first() else {
            return;
        };
        let view = agents.standing.view();
        if view.live.iter().next() != Some(agents.node) || !agents.standing.holds() {
            return;
        }
        if let Some(next) = known.growing(&view) {
            return self.try_to(&next);
        }
        if let Some(next) = known.follow_switch(view.switch) {
            return self.try_to(&next);
        }
        let dead = || self.replacement(known, &view);
        if let Some(next) = changes.then(dead).flatten() {
            self.try_to(&next);
        }
    }

    /// The next groups with this node's present life in the place of one whose store is gone.
    fn forgotten(&self, known: &Groups, agents: &Agents) -> Option<Groups> {
        let (node, view) = (agents.node, agents.standing.view());
        let missing = agents.replicas.stores.missing(self.replace_after?);
        missing.into_iter().find_map(|(group, life)| {
            let config = &known.get(group)?.config;
            let now = config.members[config.place(node)?]?.life;
            let next = || known.replace(group, (node, node), &view).ok();
            (now == life).then(next).flatten()
        })
    }

    /// The next groups with a live node in the place of a member that has been dead for long, or
    /// with its own node, which has come back and has forgotten: nobody waits for what it had.
    fn replacement(&self, known: &Groups, view: &View) -> Option<Groups> {
        let after = self.replace_after?;
        let found = known.replaceable(view);
        let mut dead = self.dead.lock().whole();
        let name = |group: u16, node| {
            let config = known.get(group).map_or(0, |g| g.config.number);
            (group, node, config)
        };
        let names: Vec<_> = found.iter().map(|(g, old, _)| name(*g, *old)).collect();
        dead.retain(|(was, _)| names.contains(was));
        for (&name, &(group, old, new)) in names.iter().zip(&found) {
            match dead.iter().find(|(was, _)| *was == name) {
                _ if old == new => return known.without(group, (old, new), view).ok(),
                None => dead.push((name, Instant::now())),
                Some((_, since)) if since.elapsed() >= after => {
                    return known.without(group, (old, new), view).ok();
                }
                Some(_) => {}
            }
        }
        None
    }

    fn try_to(&self, next: &Groups) {
        // Another may have been faster, or the store away: the next look shows what is to be done.
        let taken = self.propose(next);
        if taken.is_ok_and(|taken| taken) {
            self.hurry();
        }
    }
}
