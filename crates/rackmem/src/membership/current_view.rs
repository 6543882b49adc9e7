//! What this process knows of the rack's members, where every packet and every miss looks.

use crate::membership::Term;
use rackmem_proto::membership::{Telling, View, host};
use rackmem_proto::wire::{Copyset, Header, HomeId, MAX_NODES, NodeId, Tag};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where newer views come from.
pub(crate) trait News: Send + Sync {
    /// Looks for a newer view now.
    fn hurry(&self);
    /// What has been seen there.
    fn looked(&self) -> Looked;
}

/// How often somebody has looked for a newer view and was told, and which was the newest.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Looked {
    pub times: u64,
    pub version: u64,
}

/// Whether these members are too few for something.
pub(crate) type TooFew = Box<dyn Fn(Copyset) -> bool + Send + Sync>;

/// The newest view that this process has begun to live by.
pub(crate) struct CurrentView {
    /// Nodes that the rack can have.
    nodes: usize,
    version: AtomicU64,
    epoch: AtomicU32,
    /// Its incarnation; 0: there is none.
    switch: AtomicU32,
    /// The live nodes below, and the founders above: who reads those of two views may find that
    /// nobody keeps what groups have.
    members: AtomicU64,
    incarnations: [AtomicU32; MAX_NODES],
    /// How often the rack has gone on after a rebuild.
    resumed: AtomicU32,
    /// Nodes that have said that they go, as bits, and whose memory nobody here has used since.
    farewells: AtomicU32,
    /// The rack goes on without this process, for ever.
    fenced: AtomicBool,
    /// That, or this process has closed the rack, or nobody is left to take what it brings home.
    over: AtomicBool,
    /// The last of these.
    deserted: AtomicBool,
    /// Said once this process leaves: whether these members are too few to take that.
    too_few: Mutex<Option<TooFew>>,
    /// This process' lease, where members can come and go.
    term: OnceLock<Arc<Term>>,
    /// Where to look when somebody shows that there is a newer view.
    news: OnceLock<Box<dyn News>>,
}

// A view is read piece by piece. That is enough: a requester that acts on pieces of two views sends
// a packet of an epoch that its receiver has left, or one to a node that is not there any more.
const ORDER: Ordering = Ordering::SeqCst;

impl CurrentView {
    /// As of this view, in a rack of so many nodes.
    pub fn new(nodes: usize, view: &View) -> Self {
        let standing = CurrentView {
            nodes,
            version: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            switch: AtomicU32::new(0),
            members: AtomicU64::new(0),
            incarnations: [const { AtomicU32::new(0) }; MAX_NODES],
            resumed: AtomicU32::new(0),
            farewells: AtomicU32::new(0),
            fenced: AtomicBool::new(false),
            over: AtomicBool::new(false),
            deserted: AtomicBool::new(false),
            too_few: Mutex::new(None),
            term: OnceLock::new(),
            news: OnceLock::new(),
        };
        standing.adopt(view);
        standing
    }

    pub fn adopt(&self, view: &View) {
        // Before the lives: who has heard of one that is no member takes its memory for lost.
        let members = u64::from(view.founders.0) << 32 | u64::from(view.live.0);
        self.members.store(members, ORDER);
        let lives = self.incarnations.iter().zip(view.incarnations);
        for (node, (mine, theirs)) in (0..).zip(lives) {
            // A view comes more than once, and another life has said no farewell.
            if mine.swap(theirs, ORDER) != theirs {
                self.forget_farewell(node);
            }
        }
        self.switch.store(view.switch.unwrap_or(0), ORDER);
        self.epoch.store(view.epoch, ORDER);
        self.version.store(view.version, ORDER);
        self.look_around();
    }

    /// This process leaves: once these members are too few, it waits for no answer any more. What
    /// was said last counts; `None`: it stays.
    pub fn leave(&self, too_few: Option<TooFew>) {
        *self.too_few() = too_few;
        self.look_around();
    }

    fn too_few(&self) -> MutexGuard<'_, Option<TooFew>> {
        self.too_few.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_around(&self) {
        let live = self.members().0;
        if self.too_few().as_ref().is_some_and(|too_few| too_few(live)) {
            self.deserted.store(true, ORDER);
            self.close();
        }
    }

    /// Whether this process, which leaves, is left with too few others.
    pub fn is_deserted(&self) -> bool {
        self.deserted.load(ORDER)
    }

    /// The live nodes, and the founders, of one view.
    #[inline]
    fn members(&self) -> (Copyset, Copyset) {
        let members = self.members.load(ORDER);
        (Copyset(members as u32), Copyset((members >> 32) as u32))
    }

    /// Who is a member in which life: no more of the view is kept.
    pub fn view(&self) -> View {
        let (live, founders) = self.members();
        View {
            version: 0,
            epoch: self.epoch(),
            live,
            founders,
            incarnations: std::array::from_fn(|node| self.incarnations[node].load(ORDER)),
            switch: Some(self.switch.load(ORDER)).filter(|life| *life != 0),
            shadow: None,
        }
    }

    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(ORDER)
    }

    /// Where members can change: where news of them come from. The first time this is said counts.
    pub fn hear_from(&self, news: Box<dyn News>) {
        let _ = self.news.set(news);
    }

    /// Asks for the newest view.
    pub fn hurry(&self) {
        self.news.get().iter().for_each(|news| news.hurry());
    }

    /// What has been seen of newer views; none where members cannot change.
    pub fn looked(&self) -> Option<Looked> {
        Some(self.news.get()?.looked())
    }

    /// Whether this process lives by everything that was agreed on before this was seen; looks for
    /// it. The look that ends next may have begun earlier: it takes the one after it.
    pub fn has_caught_up(&self, seen: Looked) -> bool {
        let now = self.looked().unwrap_or_default();
        if now.times < seen.times + 2 {
            self.hurry();
            return false;
        }
        self.version.load(ORDER) >= now.version
    }

    /// From now on [`CurrentView::holds`] goes by this lease; the first counts.
    pub fn lease(&self, term: Arc<Term>) {
        let _ = self.term.set(term);
    }

    /// Whether the lease holds, by the clock and not by what has been told. See [`Term::holds`].
    #[inline]
    pub fn holds(&self) -> bool {
        self.term.get().is_none_or(|term| term.holds())
    }

    /// What to do now with what the calling thread has read and written.
    pub fn telling(&self) -> Telling {
        let term = self.term.get();
        term.map_or(Telling::Now, |term| term.telling(self.is_fenced()))
    }

    /// The rack goes on without this process: nothing that waits for an answer will get one.
    pub fn fence(&self) {
        self.fenced.store(true, ORDER);
        self.close();
    }

    /// Whether it does.
    #[inline]
    pub fn is_fenced(&self) -> bool {
        self.fenced.load(ORDER)
    }

    /// This process has closed the rack: nobody here answers, or takes answers, any more.
    pub fn close(&self) {
        self.over.store(true, ORDER);
    }

    /// Whether nothing that waits for an answer will get one.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.load(ORDER)
    }

    /// Whether requests go through a switch.
    pub fn switch(&self) -> bool {
        self.switch.load(ORDER) != 0
    }

    /// Which node serves a home, member or not: here, and nowhere else in this process, a home
    /// becomes a node. None: this rack has no such home.
    #[inline]
    pub fn host(&self, home: HomeId) -> Option<NodeId> {
        match home.is_own() {
            true => host(home).filter(|node| usize::from(*node) < self.nodes),
            false => home.group().and_then(|_| self.keeper()),
        }
    }

    /// The node that keeps what no node owns ([`View::keeper`]).
    pub fn keeper(&self) -> Option<NodeId> {
        let (live, founders) = self.members();
        Copyset(founders.0 & live.0).iter().next()
    }

    /// Whether memory has a home that is a member.
    pub fn serves(&self, tag: Tag) -> bool {
        self.host(tag.home()).is_some_and(|node| self.live(node))
    }

    /// Whether the node that a home dies with is no member.
    #[inline]
    pub fn is_lost(&self, home: HomeId) -> bool {
        home.is_own() && self.host(home).is_some_and(|node| !self.live(node))
    }

    /// A node goes, and nothing of its memory was under way when it said so.
    pub fn hear_farewell(&self, header: &Header) {
        let node = header.requester.node;
        let current = (header.epoch, header.incarnation) == (self.epoch(), self.incarnation(node));
        if current && self.live(node) {
            self.farewells.fetch_or(Copyset::of(node).0, ORDER);
        }
    }

    fn forget_farewell(&self, node: NodeId) {
        self.farewells.fetch_and(!Copyset::of(node).0, ORDER);
    }

    /// Whether the node that a home dies with has gone, with nothing of its memory under way: what
    /// others keep for it nobody will ask for, and nobody answers.
    #[inline]
    pub fn has_gone(&self, home: HomeId) -> bool {
        self.gone(home).is_some()
    }

    /// That node.
    #[inline]
    fn gone(&self, home: HomeId) -> Option<NodeId> {
        let farewells = Copyset(self.farewells.load(ORDER));
        if farewells.is_empty() || !home.is_own() {
            return None;
        }
        self.host(home).filter(|node| farewells.contains(*node))
    }

    /// Memory of a home is used. If its node had gone, another life of it is there: where members
    /// are fixed a process can start at an address that an earlier rack still says farewell to.
    #[inline]
    pub fn uses(&self, home: HomeId) {
        if let Some(node) = self.gone(home) {
            self.forget_farewell(node);
        }
    }

    /// Whether a node is a member.
    #[inline]
    pub fn live(&self, node: NodeId) -> bool {
        self.members().0.contains(node)
    }

    /// A node's incarnation, if it ever had one.
    #[inline]
    pub fn incarnation(&self, node: NodeId) -> u32 {
        self.incarnations
            .get(usize::from(node))
            .map_or(0, |n| n.load(ORDER))
    }

    /// The rack goes on: whoever waits for an answer may ask again now.
    pub fn resume(&self) {
        self.resumed.fetch_add(1, ORDER);
    }

    #[inline]
    pub fn resumed(&self) -> u32 {
        self.resumed.load(ORDER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::wire::{Kind, RequesterId, Seq};

    fn first() -> View {
        View::first(Copyset::of(0), false)
    }

    /// The view that a node has come in.
    fn with(node: NodeId) -> View {
        let mut view = first();
        view.version += 1;
        view.live = view.live.with(node);
        view.incarnations[usize::from(node)] = 1;
        view
    }

    #[test]
    fn who_has_heard_of_a_life_sees_its_node_among_the_members() {
        for _ in 0..1_000 {
            let standing = CurrentView::new(2, &first());
            std::thread::scope(|scope| {
                scope.spawn(|| standing.adopt(&with(1)));
                while standing.incarnation(1) == 0 {
                    std::hint::spin_loop();
                }
                assert!(standing.live(1));
            });
        }
    }

    #[test]
    fn somebody_keeps_what_groups_have_while_views_change() {
        let all = Copyset::of(0).with(1);
        let standing = CurrentView::new(2, &View::first(all, false));
        // Each founds an epoch without the other, by turns.
        let founds = |node, version| {
            let alone = Copyset::of(node);
            View {
                version,
                ..View::first(alone, false)
            }
        };
        std::thread::scope(|scope| {
            let changes = scope.spawn(|| {
                for version in 2..100_000 {
                    standing.adopt(&founds((version % 2) as NodeId, version));
                }
            });
            while !changes.is_finished() {
                assert!(standing.keeper().is_some());
            }
        });
    }

    #[test]
    fn a_farewell_counts_until_that_memory_is_used_or_another_life_is_there() {
        let standing = CurrentView::new(2, &with(1));
        let (home, id) = (HomeId::of(1), RequesterId { node: 1, slot: 0 });
        let farewell = |incarnation| Header {
            incarnation,
            ..Header::request(Kind::Farewell, standing.epoch(), Tag(0), id, Seq(0))
        };
        standing.hear_farewell(&farewell(2));
        assert!(!standing.has_gone(home), "of no life that is a member");
        standing.hear_farewell(&farewell(1));
        standing.adopt(&with(1));
        assert!(standing.has_gone(home) && !standing.has_gone(HomeId::of(0)));
        standing.uses(HomeId::of(0));
        assert!(standing.has_gone(home));
        standing.uses(home);
        assert!(!standing.has_gone(home));
        standing.hear_farewell(&farewell(1));
        let mut again = with(1);
        again.incarnations[1] = 2;
        standing.adopt(&again);
        assert!(!standing.has_gone(home));
    }
}
