//! A process' control plane: it keeps its place in the rack, and lets its node or switch live by
//! the newest view.

use crate::config::Config;
use crate::error::OpenError;
use crate::host::inner::NodeInner;
use crate::membership::current_view::{Looked, News};
use crate::membership::reach::{Knocking, Reach};
use crate::membership::{Events, Keeper, Links, Role, View};
use crate::rack::switch::SoftSwitch;
use rackmem_fabric::Whole;
use rackmem_proto::wire::Copyset;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;

/// What the membership has told this process.
#[derive(Default)]
struct Told {
    view: Option<View>,
    held: bool,
    fenced: bool,
    stop: bool,
    node: Weak<NodeInner>,
}

impl Told {
    fn apply(&self) {
        if let Some(node) = self.node.upgrade() {
            if self.fenced {
                node.access.standing.fence();
            }
            node.serve(self.held && !self.fenced);
        }
    }
}

/// Takes what the membership tells, and passes it on.
#[derive(Default)]
struct Inbox {
    told: Mutex<Told>,
    changed: Condvar,
    /// On a network whose cables can be cut.
    reach: Option<Arc<Reach>>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().whole()
    }

    fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// The next view after `version`; none when this process stops.
    fn after(&self, version: u64) -> Option<View> {
        let mut told = self.lock();
        loop {
            if told.stop {
                return None;
            }
            if let Some(view) = told.view.filter(|view| view.version > version) {
                return Some(view);
            }
            let wait = self.changed.wait(told);
            told = wait.whole();
        }
    }

    /// Whether what this process does for an epoch has become pointless.
    /// A newer view of the same epoch waits until it is done: what the others have told for it, and
    /// will not tell again, still counts.
    fn beyond(&self, epoch: u32) -> bool {
        let told = self.lock();
        told.stop || told.fenced || told.view.is_some_and(|view| view.epoch > epoch)
    }
}

impl Events for Inbox {
    fn links(&self) -> Links {
        let reach = self.reach.as_ref();
        reach.map_or_else(Links::default, |reach| reach.links())
    }

    fn view(&self, view: &View) {
        if let Some(reach) = &self.reach {
            reach.follow(view);
        }
        self.tell(|told| told.view = Some(*view));
    }

    fn lease(&self, held: bool) {
        self.tell(|told| {
            told.held = held;
            told.apply();
        });
    }

    fn fenced(&self) {
        self.tell(|told| {
            told.fenced = true;
            told.apply();
        });
    }
}

/// What the keeper hears, for as long as there is one.
struct Kept(Weak<Keeper>);

impl News for Kept {
    fn hurry(&self) {
        self.0.upgrade().iter().for_each(|keeper| keeper.hurry());
    }

    fn looked(&self) -> Looked {
        let keeper = self.0.upgrade();
        keeper.map_or_else(Looked::default, |keeper| keeper.looked())
    }
}

/// This process' place in a rack. Dropping it gives the place up without a word, as a crash does.
pub(crate) struct ControlPlane {
    inbox: Arc<Inbox>,
    keeper: Arc<Keeper>,
    thread: Option<JoinHandle<()>>,
    /// Whether members can come and go.
    changes: bool,
    /// The view that this process begins to live by.
    pub view: View,
}

impl ControlPlane {
    /// Waits until the rack has a place for this process. `knock` asks the others whether they can
    /// be reached while it is kept.
    pub fn take(
        config: &Config,
        role: Role,
        knock: impl FnOnce(Arc<Reach>) -> Result<Option<Knocking>, OpenError>,
    ) -> Result<ControlPlane, OpenError> {
        let settings = &config.settings;
        let members = &config.membership;
        let reach = Arc::new(Reach::new(role, members.lease));
        let knocking = match members.can_change() {
            true => knock(reach.clone())?,
            false => None,
        };
        let inbox = Arc::new(Inbox {
            reach: knocking.is_some().then_some(reach),
            ..Inbox::default()
        });
        let keeper = members.join(role, settings.patience, inbox.clone())?;
        let mut view = inbox.lock().view.unwrap_or_else(|| keeper.view());
        if !members.can_change() {
            view.epoch = settings.epoch;
        }
        Ok(ControlPlane {
            inbox,
            keeper: Arc::new(keeper),
            thread: None,
            changes: members.can_change(),
            view,
        })
    }

    /// What a node knows before it lives by the seat's view: if it is one of those that rebuild the
    /// directory for its epoch, the others wait for it, so it comes from the epoch before.
    pub fn view_before(&self, role: Role) -> View {
        let founds = match role {
            Role::Node(node) => self.view.founders.contains(node),
            Role::Switch => !self.view.founders.is_empty(),
        };
        if !founds || !self.changes || self.view.epoch == 1 {
            return self.view;
        }
        View {
            epoch: self.view.epoch - 1,
            // A node kept nothing in that one: what groups keep is another's until all have told.
            founders: match role {
                Role::Node(_) => Copyset::EMPTY,
                Role::Switch => self.view.founders,
            },
            ..self.view
        }
    }

    /// Lets the node follow the rack from now on.
    pub fn follow(&mut self, node: &Arc<NodeInner>) -> Result<(), OpenError> {
        self.inbox.tell(|told| {
            told.node = Arc::downgrade(node);
            told.apply();
        });
        if let Some(reach) = &self.inbox.reach {
            node.access.agents.know(reach.clone());
        }
        if self.changes {
            node.access.standing.lease(self.keeper.term());
            let keeper = Arc::downgrade(&self.keeper);
            node.access.standing.hear_from(Box::new(Kept(keeper)));
        }
        let port = node.access.requesters.open_port()?;
        let (inbox, node, first) = (self.inbox.clone(), Arc::downgrade(node), self.view);
        self.spawn(move || {
            let mut next = Some(first);
            while let Some(view) = next {
                let Some(node) = node.upgrade() else { return };
                node.live_by(&view, &*port, || inbox.beyond(view.epoch));
                drop(node);
                next = inbox.after(view.version);
            }
        })
    }

    /// Lets the switch follow the rack from now on.
    pub fn follow_with(&mut self, switch: Arc<SoftSwitch>) -> Result<(), OpenError> {
        if let Some(reach) = &self.inbox.reach {
            switch.know(reach.clone());
        }
        let news = Kept(Arc::downgrade(&self.keeper));
        switch.when_behind(Box::new(move || news.hurry()));
        let (inbox, first) = (self.inbox.clone(), self.view);
        self.spawn(move || {
            let mut next = Some(first);
            while let Some(view) = next {
                switch.live_by(&view);
                next = inbox.after(view.version);
            }
        })
    }

    fn spawn(&mut self, run: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let thread = std::thread::Builder::new().name("rackmem-control".into());
        self.thread = Some(thread.spawn(run)?);
        Ok(())
    }

    /// The keeper of this place.
    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.inbox.tell(|told| told.stop = true);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::wire::Copyset;

    #[test]
    fn a_member_more_does_not_end_what_is_done_for_the_epoch() {
        let inbox = Inbox::default();
        let founded = View::first(Copyset(0b11), false).admit_switch().unwrap();
        inbox.view(&founded);
        assert!(!inbox.beyond(founded.epoch));
        let joined = founded.admit(2).unwrap();
        inbox.view(&joined);
        assert!(!inbox.beyond(founded.epoch));
        assert_eq!(inbox.after(founded.version), Some(joined));
        inbox.view(&joined.exclude(1).unwrap());
        assert!(inbox.beyond(founded.epoch));
        inbox.tell(|told| told.stop = true);
        assert!(inbox.beyond(u32::MAX));
    }
}
