//! A rack: all its nodes in this process, or this process's part of one.

mod at_home;
pub(crate) mod builder;
pub(crate) mod control;
mod counting;
#[cfg(test)]
mod durable;
pub(crate) mod inspecting;
mod leaving;
pub(crate) mod parts;
pub(crate) mod switch;
#[cfg(test)]
mod unlocking;

use crate::bytes::pending::Pending;
use crate::config::{Config, Fabric, Settings};
use crate::data_plane::kernel::reads::{self, Attached};
use crate::data_plane::kernel::{KernelPlace, KernelSwitch};
use crate::error::{LeaveError, OpenError, RackError};
use crate::host::access::Access;
use crate::host::agents::Agents;
use crate::host::alloc::{Allocator, rest};
use crate::host::cleaning::LOOK;
use crate::host::driving::driver::Driver;
use crate::host::groups::Book;
use crate::host::inner::NodeInner;
use crate::host::kept;
use crate::host::metrics::{RackMetrics, SwitchMetrics};
use crate::host::names;
use crate::host::objects::Reachable;
use crate::membership::{MembershipError, Role, Standing, View};
use crate::node::Node;
use crate::ports::place::Place;
use crate::ports::requester::{OpenPort, Requesters};
use crate::ports::wires::Wires;
use crate::rack::builder::Builder;
use crate::rack::control::ControlPlane;
use crate::rack::parts::{agents, chunks, soft_switch, switch_in_kernel};
use crate::rack::switch::SoftSwitch;
use rackmem_fabric::inline::{Inline, InlinePort};
use rackmem_fabric::udp::Peers;
use rackmem_fabric::{End, FaultControl, Handler, Service};
use rackmem_proto::CHUNK;
use rackmem_proto::flowcc::RequesterConfig;
use rackmem_proto::wire::{Copyset, MAX_BODY, NodeId, RequesterId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Retransmission never waits less than this. Where hosts are loaded it waits longer,
/// by what it measures.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// How often requesters of a lossy fabric are looked after whose thread has gone on.
const TICK: Duration = Duration::from_millis(5);
/// The same while one of them waits for an acknowledgement: until then a block stays locked.
const BUSY_TICK: Duration = Duration::from_millis(1);

/// One memory, shared by its nodes. Dropping it ends the threads and sockets of this process's
/// part; nodes and handles that are left answer [`RackError::Closed`].
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Fabric, Rack};
///
/// let rack = Rack::builder(3).fabric(Fabric::Udp).memory(64 << 20).build()?;
/// let count = rack.node(0).alloc(1u64)?;
/// rack.node(2).attach::<u64>(count.addr())?.fetch_add(1)?;
/// assert_eq!(count.read()?, 2);
/// drop(rack);
/// assert!(count.read().is_err());
/// # Ok(())
/// # }
/// ```
pub struct Rack {
    nodes: Vec<Node>,
    /// Number of the first node in this process.
    first: usize,
    switch: Option<Arc<SoftSwitch>>,
    closed: Arc<AtomicBool>,
    wires: Wires,
    services: Vec<Service>,
    keepers: Vec<std::thread::JoinHandle<()>>,
    /// The keeper of memory, which talks to others.
    tidier: Option<std::thread::JoinHandle<()>>,
    /// Which members keep copies of which region.
    book: Arc<Book>,
    /// Its place among members that come and go, in a rack of processes.
    seat: Option<ControlPlane>,
    patience: Duration,
    /// Where durable copies stay of a rack whose nodes are all here.
    folder: Option<at_home::Folder>,
}

impl std::fmt::Debug for Rack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rack")
            .field("nodes", &self.nodes)
            .field("switch", &self.switch.is_some())
            .finish()
    }
}

impl Rack {
    /// A rack of so many nodes in this process, with an embedded switch.
    pub fn local(nodes: usize) -> Result<Rack, OpenError> {
        Rack::builder(nodes).build()
    }

    /// Sets up a rack of so many nodes in this process.
    pub fn builder(nodes: usize) -> Builder {
        Builder::new(nodes)
    }

    /// This process as one node of a rack of processes.
    ///
    /// Where members can come and go (`membership` in the configuration) it returns when the rack
    /// has a place for this process. Dropping the rack then gives the place up as a crash does;
    /// [`Rack::leave`] is the graceful shutdown. [`Rack::close`] is the end of a process of a rack
    /// that ends as a whole.
    pub fn join(config: &Config, node: usize) -> Result<Rack, OpenError> {
        config.check()?;
        if node >= config.nodes.len() {
            return Err(OpenError::Config(format!(
                "node {node} is not in the configuration: its nodes are 0 to {}",
                config.nodes.len().saturating_sub(1)
            )));
        }
        config.settings.check_here()?;
        // Before anyone can send: the process that has the place is the node.
        let place = Place::take(config, End::Node(node as NodeId))?;
        // Before it has a place in the rack, so that a refusal disturbs nobody.
        let attached = reads::attach(config, node as NodeId)?;
        let mut rack = Rack::of_processes(node, config)?;
        let (nodes, settings) = (config.nodes.len(), &config.settings);
        rack.wires = place.wires(settings, nodes)?;
        let role = Role::Node(node as NodeId);
        let mut seat = ControlPlane::take(config, role, |reach| place.knock(reach))?;
        let view = seat.view_before(role);
        rack.add_networked_node(node as NodeId, (place, attached), nodes, settings, &view)?;
        rack.keep_memory()?;
        seat.follow(&rack.nodes[0].inner)?;
        rack.seat = Some(seat);
        rack.keep_groups(config.membership.can_change())?;
        rack.keep_names()?;
        Ok(rack)
    }

    /// This process as the switch of a rack of processes. Serves until the rack is dropped.
    pub fn serve_switch(config: &Config) -> Result<Rack, OpenError> {
        Rack::serve_switch_with(config, None)
    }

    /// [`Rack::join`] as the environment says: see [`Config::from_env`].
    pub fn from_env() -> Result<Rack, OpenError> {
        let (config, node) = Config::from_env()?;
        Rack::join(&config, node)
    }

    /// The same with the switch program in the kernel, where packets meet it before there is a
    /// socket; this process keeps its control plane. Takes a build with the feature `xdp`,
    /// and root.
    ///
    /// # Errors
    /// [`OpenError::Kernel`] says why the kernel does not take the program;
    /// [`Rack::serve_switch`] works all the same.
    pub fn serve_switch_in_kernel(
        config: &Config,
        kernel: &KernelSwitch,
    ) -> Result<Rack, OpenError> {
        Rack::serve_switch_with(config, Some(kernel))
    }

    fn serve_switch_with(
        config: &Config,
        kernel: Option<&KernelSwitch>,
    ) -> Result<Rack, OpenError> {
        config.check()?;
        if config.switch.is_none() {
            let why = "the configuration names no `switch` address";
            return Err(OpenError::Config(why.into()));
        }
        if kernel.is_some() && config.fabric == Fabric::Shm {
            let why = "a switch in the kernel needs packets: it serves fabric \"udp\"";
            return Err(OpenError::Config(why.into()));
        }
        let place = Place::take(config, End::Switch)?;
        // Before it has a place in the rack, so that a refusal disturbs nobody.
        let kernel = kernel.map(|kernel| switch_in_kernel(kernel, config, place.room()));
        let kernel = kernel.transpose()?;
        let mut rack = Rack::of_processes(0, config)?;
        rack.wires = place.wires(&config.settings, config.nodes.len())?;
        let mut seat = ControlPlane::take(config, Role::Switch, |reach| place.knock(reach))?;
        // Which life of the switch this is, whatever has become of the place since.
        let life = match seat.keeper().standing() {
            Standing::Member { incarnation } => Some(incarnation),
            _ => None,
        };
        let view = seat.view_before(Role::Switch);
        let switch = match kernel {
            Some(switch) => {
                switch.begin(&view);
                switch
            }
            None => soft_switch(&config.settings, place.room(), &view),
        };
        let switch = rack.add_networked_switch(place, (switch, life))?;
        seat.follow_with(switch)?;
        rack.seat = Some(seat);
        rack.keep_groups(config.membership.can_change())?;
        Ok(rack)
    }

    /// One whose nodes are all in this process.
    fn at_home(settings: &Settings) -> Result<Rack, OpenError> {
        let closed = Arc::new(AtomicBool::new(false));
        let Some(path) = &settings.store else {
            return Ok(Rack::with(0, Book::at_home(None, closed.clone()), closed));
        };
        let folder = at_home::Folder::take(path)?;
        let store = Arc::new(crate::membership::Folder::open(&path.join("groups"))?);
        let mut rack = Rack::with(0, Book::at_home(Some(store), closed.clone()), closed);
        rack.folder = Some(folder);
        Ok(rack)
    }

    /// This process's part of one.
    fn of_processes(first: usize, config: &Config) -> Result<Rack, OpenError> {
        let members = &config.membership;
        let store = members.source.open(&members.name)?;
        let closed = Arc::new(AtomicBool::new(false));
        let times = (members.lease / 5, members.replace_after);
        let book = Book::new(store, times, closed.clone());
        Ok(Rack::with(first, book, closed))
    }

    fn with(first: usize, book: Arc<Book>, closed: Arc<AtomicBool>) -> Rack {
        Rack {
            nodes: Vec::new(),
            first,
            switch: None,
            book,
            closed,
            wires: Wires::default(),
            services: Vec::new(),
            keepers: Vec::new(),
            tidier: None,
            seat: None,
            patience: Duration::ZERO,
            folder: None,
        }
    }

    /// The view of a rack whose nodes are all here.
    fn whole(&self, count: usize, settings: &Settings) -> View {
        let nodes = (0..count as NodeId).fold(Copyset::EMPTY, Copyset::with);
        let first = View::first(nodes, settings.mode.has_switch());
        let starts = self.folder.as_ref().map_or(1, |folder| folder.starts);
        View {
            // What copies have is of an earlier epoch.
            epoch: settings.epoch + (starts - 1),
            incarnations: first.incarnations.map(|incarnation| incarnation * starts),
            ..first
        }
    }

    /// The members of the rack, as this process last heard:
    /// `(version, epoch, live nodes as bits, whether there is a switch)`. Where members are fixed,
    /// it is what the configuration says.
    pub fn view(&self) -> Option<View> {
        self.seat.as_ref().map(|seat| seat.keeper().view())
    }

    /// Whether the store in which the members are agreed on keeps pace with this process'
    /// heartbeats: one that is too slow costs it its place. `None` where members are fixed.
    pub fn membership_pace(&self) -> Option<crate::membership::Pace> {
        self.seat.as_ref()?.keeper().pace()
    }

    /// Whether the rack has declared this process dead and goes on without it. That stays:
    /// drop the rack and join again, as the next incarnation. Everything here answers
    /// [`RackError::Fenced`] from then on.
    pub fn is_fenced(&self) -> bool {
        let standing = self.seat.as_ref().map(|seat| seat.keeper().standing());
        standing == Some(crate::membership::Standing::Fenced)
    }

    /// Gives this node's place back: writes its cache home, lets homes have the locks that it has
    /// used, and leaves the rack without anyone waiting for a lease.
    ///
    /// # Errors
    /// [`LeaveError::InUse`] when its memory has been given out: its content would be lost.
    /// [`LeaveError::LocksInUse`] when a thread is inside a lock of another node or waits for one.
    /// To give them up, drop the rack.
    pub fn leave(self) -> Result<(), LeaveError> {
        if let Some(node) = self.nodes.iter().find(|node| node.is_in_use()) {
            let node = node.id();
            return Err(LeaveError::InUse { node });
        }
        self.close()
    }

    /// Gives this node's place back as [`leave`](Rack::leave) does, and has the rack go on at once
    /// without memory that it has given out, as when it dies. For programs that have moved all that
    /// they need of it, and know so by
    /// [`Node::withhold_memory`](crate::Node::withhold_memory). What the node has cached of other
    /// homes' memory, and locks of theirs, go home first.
    ///
    /// # Errors
    /// Those of [`Rack::leave`] but [`LeaveError::InUse`]. The rack is dropped nevertheless:
    /// then the others go on without it after the lease.
    /// [`LeaveError::Deserted`] when others leave too, and those that are left are too few for
    /// memory with copies: nobody is waited for then, and what this node alone had of it is lost.
    pub fn leave_memory_behind(self) -> Result<(), LeaveError> {
        self.among_others().for_each(Node::await_copies);
        if !self.is_in_use() {
            return self.go(true);
        }
        for node in self.among_others() {
            node.bring_home(self.book.has_store())?;
            self.exclude(node)?;
        }
        Ok(())
    }

    /// Whether others have memory of a node of this process.
    fn is_in_use(&self) -> bool {
        self.nodes.iter().any(Node::is_in_use)
    }

    /// Its nodes, unless all of the rack's are here: of such a rack nothing is left.
    fn among_others(&self) -> impl Iterator<Item = &Node> {
        let others = |node: &&Node| node.nodes() > self.nodes.len();
        self.nodes.iter().filter(others)
    }

    /// Has the rack go on in another epoch, without a node of this process.
    fn exclude(&self, node: &Node) -> Result<(), LeaveError> {
        match self.book.exclude(Role::Node(node.id())) {
            // Nobody is ever declared dead there; or the rack has gone on already.
            Ok(()) | Err(MembershipError::Fixed | MembershipError::NotHeld { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends this process' part of the rack, as dropping it does, and first writes home what its
    /// cache has and lets homes have the locks that it has used. Memory that others have of it goes
    /// with it: so it serves on until they have closed too, as long as the rack's patience.
    /// Processes of a rack that ends close in any order, once none of them uses another one's
    /// memory.
    ///
    /// # Errors
    /// Those of [`Rack::leave`] but [`LeaveError::InUse`]. The rack is closed nevertheless.
    pub fn close(self) -> Result<(), LeaveError> {
        self.among_others().for_each(Node::await_copies);
        self.go(false)
    }

    /// The same. `leaves_memory`: the others stay, and what they have of it by then is left behind.
    /// Copies of memory that is nobody's any more leave their caches when an epoch begins.
    fn go(self, leaves_memory: bool) -> Result<(), LeaveError> {
        let mut alone_has = true;
        for node in self.among_others() {
            node.bring_home(false)?;
            if node.is_deserted() {
                // Its copies are still known at homes.
                self.exclude(node)?;
                continue;
            }
            alone_has &= node.linger(leaves_memory);
        }
        // Looked at first: what is its from another epoch on, it is as one that has not settled.
        let settled = self.nodes.first().map_or(0, Node::settled);
        let is_light = !self.is_in_use() && (alone_has || !leaves_memory);
        match &self.seat {
            Some(seat) if is_light => Ok(seat.keeper().leave(settled, self.patience)?),
            _ if leaves_memory => self.among_others().try_for_each(|node| self.exclude(node)),
            _ => Ok(()),
        }
    }

    pub(crate) fn inline(count: usize, settings: &Settings) -> Result<Rack, OpenError> {
        Rack::inline_between(count, settings, |handler| handler)
    }

    /// The same with something put before every agent and the switch.
    pub(crate) fn inline_between(
        count: usize,
        settings: &Settings,
        before: impl Fn(Arc<dyn Handler>) -> Arc<dyn Handler>,
    ) -> Result<Rack, OpenError> {
        if settings.extras.faults.is_some() {
            return Err(OpenError::Config(
                "packet faults need --fabric shm or udp (`Fabric::Shm`, `Fabric::Udp`): on the inline fabric packets are function calls, and none is retransmitted"
                    .into(),
            ));
        }
        let mut rack = Rack::at_home(settings)?;
        let view = rack.whole(count, settings);
        let wires = Arc::new(Inline::default());
        rack.wires = Wires::new(settings, &Peers::made_up(count), || Ok(wires.clone()))?;
        let switch = settings
            .mode
            .has_switch()
            .then(|| Arc::new(soft_switch(settings, MAX_BODY, &view)));
        let mut handlers: Vec<Arc<dyn Handler>> = Vec::new();
        // What is in one process anyway, all its nodes can reach.
        let reachable = Reachable::new(None);
        for id in 0..count {
            let agents = Arc::new(agents(
                (id as NodeId, count),
                settings,
                false,
                (MAX_BODY, &reachable, None),
                &view,
            ));
            let end = End::Node(id as NodeId);
            handlers.push(before(rack.wires.handler(end, agents.clone())));
            let (wires, wrap) = (wires.clone(), rack.wires.ports(id as NodeId));
            let open: OpenPort =
                Box::new(move || Ok(wrap(Box::new(InlinePort::new(wires.clone())))));
            rack.add_node(id as NodeId, count, agents, open, false, settings)?;
        }
        let plugged = switch
            .clone()
            .map(|s| before(rack.wires.handler(End::Switch, s)));
        wires.plug(plugged, handlers.clone());
        if switch.is_some() {
            rack.keep_migrating(settings.migration.period, wires, handlers)?;
        }
        if let Some(switch) = &switch {
            rack.count_with(switch, view.switch);
        }
        rack.switch = switch;
        rack.keep_memory()?;
        rack.keep_groups(false)?;
        Ok(rack)
    }

    /// Nobody has a thread of its own on the inline fabric: one for all looks after periods.
    fn keep_migrating(
        &mut self,
        period: Duration,
        wires: Arc<Inline>,
        agents: Vec<Arc<dyn Handler>>,
    ) -> Result<(), OpenError> {
        let closed = self.closed.clone();
        let keeper = std::thread::Builder::new()
            .name("rackmem-keeper".into())
            .spawn(move || {
                while !closed.load(Relaxed) {
                    std::thread::park_timeout(period);
                    agents.iter().for_each(|agents| agents.tick(&*wires));
                }
            })?;
        self.keepers.push(keeper);
        Ok(())
    }

    /// All nodes in this process, and between them a network.
    pub(crate) fn networked(
        fabric: Fabric,
        count: usize,
        settings: &Settings,
    ) -> Result<Rack, OpenError> {
        let (nodes, switch) = Place::take_all(fabric, count, settings)?;
        let mut rack = Rack::at_home(settings)?;
        let view = rack.whole(count, settings);
        if let Some(place) = nodes.first() {
            rack.wires = place.wires(settings, count)?;
        }
        if let Some(place) = switch {
            let switch = soft_switch(settings, place.room(), &view);
            rack.add_networked_switch(place, (switch, view.switch))?;
        }
        for (id, place) in nodes.into_iter().enumerate() {
            rack.add_networked_node(id as NodeId, (place, None), count, settings, &view)?;
        }
        rack.keep_memory()?;
        rack.keep_groups(false)?;
        Ok(rack)
    }

    /// A switch of this process, in this life of it, counts by the groups that there are.
    fn count_with(&self, switch: &Arc<SoftSwitch>, life: Option<u32>) {
        switch.lives(life.unwrap_or(0));
        let book = Arc::downgrade(&self.book);
        switch.counting.when_behind(Box::new(move || {
            if let Some(book) = book.upgrade() {
                book.hurry();
            }
        }));
        let switch = Arc::downgrade(switch);
        self.book.follow_with(Box::new(move |groups| {
            if let Some(switch) = switch.upgrade() {
                switch.hear(groups);
            }
        }));
    }

    /// Follows the groups. `changes`: members can come and go.
    fn keep_groups(&mut self, changes: bool) -> Result<(), OpenError> {
        if self.book.has_store() {
            self.keepers.push(self.book.keep(changes)?);
        }
        Ok(())
    }

    /// What nodes keep of one another's memory goes home when they do not use it.
    fn keep_memory(&mut self) -> Result<(), OpenError> {
        let nodes: Vec<_> = self.nodes.iter().map(|n| n.inner.clone()).collect();
        let closed = self.closed.clone();
        let tidy = {
            let nodes = nodes.clone();
            move || {
                let left = nodes.iter().map(|node| {
                    let may = node.serving.load(Relaxed);
                    let cleans = may && node.allocator.clean(&node.access);
                    node.allocator.tidy(&node.access, may) | cleans
                });
                left.fold(false, |any, left| any | left)
            }
        };
        let keeper = std::thread::Builder::new()
            .name("rackmem-memory".into())
            .spawn(move || {
                while !closed.load(Relaxed) {
                    match tidy() {
                        true => rest(&closed),
                        false => std::thread::park_timeout(LOOK),
                    }
                }
            })?;
        for node in nodes {
            node.allocator.set_keeper(keeper.thread().clone());
        }
        self.tidier = Some(keeper);
        Ok(())
    }

    fn add_networked_switch(
        &mut self,
        place: Place,
        (switch, life): (SoftSwitch, Option<u32>),
    ) -> Result<Arc<SoftSwitch>, OpenError> {
        let switch = Arc::new(switch);
        let handler = self.wires.handler(End::Switch, switch.clone());
        self.count_with(&switch, life);
        self.services.push(place.serve("rackmem-switch", handler)?);
        self.switch = Some(switch.clone());
        Ok(switch)
    }

    fn add_networked_node(
        &mut self,
        id: NodeId,
        (place, attached): (Place, Option<Attached>),
        nodes: usize,
        settings: &Settings,
        view: &View,
    ) -> Result<(), OpenError> {
        let (reads, shared) = attached.unzip();
        let reachable = Reachable::new(place.host()).in_kernel(reads.map(Arc::new));
        let agents = Arc::new(agents(
            (id, nodes),
            settings,
            true,
            (place.room(), &reachable, shared.flatten()),
            view,
        ));
        let (ports, wrap) = (place.ports(id), self.wires.ports(id));
        let handler = self.wires.handler(End::Node(id), agents.clone());
        let service = place.serve(&format!("rackmem-node-{id}"), handler)?;
        self.services.push(service);
        let open: OpenPort = Box::new(move || Ok(wrap(ports()?)));
        self.add_node(id, nodes, agents, open, true, settings)?;
        self.keep_homes(id)?;
        self.keep_requesters(id)
    }

    /// What waits for a majority, about memory that groups keep, has threads.
    fn keep_homes(&mut self, id: NodeId) -> Result<(), OpenError> {
        let Some(node) = self.nodes.last().map(|node| &node.inner) else {
            return Ok(());
        };
        if !self.book.has_store() {
            return Ok(());
        }
        let port = node.access.requesters.open_port()?;
        let node = Arc::downgrade(node);
        let name = format!("rackmem-homes-{id}");
        let keeper = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || kept::run(&node, &name, port))?;
        self.keepers.push(keeper);
        Ok(())
    }

    /// Where a group has copies of the table of regions, a thread keeps it.
    fn keep_names(&mut self) -> Result<(), OpenError> {
        let Some(node) = self.nodes.first().map(|node| &node.inner) else {
            return Ok(());
        };
        if node.access.agents.names.is_none() {
            return Ok(());
        }
        let port = node.access.requesters.open_port()?;
        let node = Arc::downgrade(node);
        let keeper = std::thread::Builder::new()
            .name("rackmem-names".into())
            .spawn(move || names::keep(&node, &*port))?;
        self.keepers.push(keeper);
        Ok(())
    }

    /// An idle requester's unlock may still have to be sent again.
    fn keep_requesters(&mut self, id: NodeId) -> Result<(), OpenError> {
        let Some(node) = self.nodes.last() else {
            return Ok(());
        };
        let (requesters, closed) = (node.inner.access.requesters.clone(), self.closed.clone());
        let keeper = std::thread::Builder::new()
            .name(format!("rackmem-keeper-{id}"))
            .spawn(move || {
                let mut busy = false;
                while !closed.load(Relaxed) {
                    std::thread::sleep(if busy { BUSY_TICK } else { TICK });
                    busy = requesters.tick();
                }
            })?;
        self.keepers.push(keeper);
        Ok(())
    }

    fn add_node(
        &mut self,
        id: NodeId,
        nodes: usize,
        agents: Arc<Agents>,
        open: OpenPort,
        lossy: bool,
        settings: &Settings,
    ) -> Result<(), OpenError> {
        let requester = RequesterConfig {
            id: RequesterId { node: id, slot: 0 },
            epoch: agents.standing.epoch(),
            incarnation: agents.standing.incarnation(id),
            block: settings.block_size as u32,
            switch: agents.standing.switch(),
            min_timeout: MIN_TIMEOUT.as_nanos() as u64,
            give_up: settings.patience.as_nanos() as u64,
        };
        let standing = agents.standing.clone();
        let requesters = Arc::new(Requesters::new(requester, open, standing.clone()));
        if lossy {
            agents.plug(&requesters);
        }
        agents.replicas.stores.plug(&requesters);
        self.book.follow(&agents, requesters.open_port()?);
        let span = u64::from(chunks(settings)) * CHUNK;
        let access = Access {
            agents,
            requesters,
            standing,
            span,
            pending: Pending::new(settings.evict_ahead),
            patience: settings.patience,
            closed: self.closed.clone(),
            groups: self.book.clone(),
            room: settings.memory,
        };
        let inner = NodeInner {
            id,
            nodes,
            rack: settings.rack,
            block: settings.block_size,
            access,
            allocator: Allocator::new(settings.block_size, span),
            driver: Driver::default(),
            serving: AtomicBool::new(true),
            closed: self.closed.clone(),
            calls: AtomicU64::new(1),
        };
        self.patience = settings.patience;
        let inner = Arc::new(inner);
        inner.access.agents.kept.plug(Arc::downgrade(&inner));
        self.nodes.push(Node { inner });
        Ok(())
    }

    /// A node in this process.
    ///
    /// # Panics
    /// When it is not; [`Rack::try_node`] says so instead.
    pub fn node(&self, id: usize) -> Node {
        self.try_node(id).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A node in this process.
    pub fn try_node(&self, id: usize) -> Result<Node, RackError> {
        let at = id.checked_sub(self.first).and_then(|at| self.nodes.get(at));
        at.cloned().ok_or(RackError::NoSuchNode { node: id })
    }

    /// The nodes in this process.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The switch, if it is in this process.
    pub fn switch(&self) -> Option<&SoftSwitch> {
        self.switch.as_deref()
    }

    /// Where in the kernel of this host reads of this process's objects are answered, if they are.
    pub fn kernel_reads(&self) -> Option<&KernelPlace> {
        let node = self.nodes.first()?;
        let kernel = node.inner.access.agents.objects.kernel()?;
        Some(&kernel.place)
    }

    /// The faults of this process's part of the network, where it was given any.
    pub fn faults(&self) -> Option<&FaultControl> {
        self.wires.faults()
    }

    /// What this process's part has done so far.
    pub fn metrics(&self) -> RackMetrics {
        let sockets = self.services.iter().map(Service::counters);
        RackMetrics {
            malformed: sockets.clone().map(|c| c.malformed.load(Relaxed)).sum(),
            unsent: sockets.map(|c| c.unsent.load(Relaxed)).sum(),
            nodes: self.nodes.iter().map(Node::metrics).collect(),
            switch: self.switch.as_ref().map(|switch| SwitchMetrics {
                counters: switch.counters(),
                entries: switch.entries(),
                received: switch.received(),
                locks: switch.lock_counters(),
                kernel: switch.kernel_metrics(),
            }),
        }
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.closed.store(true, Relaxed);
        self.book.hurry();
        // First, while there is somebody to answer what it is asking.
        if let Some(tidier) = self.tidier.take() {
            tidier.thread().unpark();
            let _ = tidier.join();
        }
        self.seat = None;
        for node in &self.nodes {
            node.inner.access.standing.close();
            node.inner.serve(false);
            if let Some(desk) = &node.inner.access.agents.desk {
                desk.close();
            }
            if let Some(twins) = &node.inner.access.agents.twins {
                twins.close();
            }
            node.inner.access.agents.objects.withdraw();
            node.inner.driver.close();
        }
        self.services.clear();
        for keeper in self.keepers.drain(..) {
            keeper.thread().unpark();
            // It cannot have panicked with anything that its own thread has not reported.
            let _ = keeper.join();
        }
        for node in &self.nodes {
            node.inner.access.agents.replicas.stores.close();
        }
        self.wires.flush();
    }
}
