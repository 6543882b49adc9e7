//! The thread of a node that asks homes what was modified, for all domains of the node.

use rackmem_fabric::Whole;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The longest rest: a domain that comes meanwhile has its first question asked by a section.
pub(crate) const REST: Duration = Duration::from_millis(20);

/// What has to ask now and then.
pub(crate) trait Asks: Send + Sync {
    /// Asks if it is time to; how long until the next time, or nothing if there is none.
    fn ask_if_due(&self) -> Option<Duration>;
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Askers(Arc<Mutex<Asking>>);

#[derive(Default)]
struct Asking {
    all: Vec<Weak<dyn Asks>>,
    runs: bool,
}

impl Askers {
    /// It is asked for until its last handle is gone.
    pub fn add(&self, one: &Arc<dyn Asks>) {
        let mut asking = self.0.lock().whole();
        asking.all.push(Arc::downgrade(one));
        if !asking.runs {
            let askers = self.clone();
            let spawned = std::thread::Builder::new().name("rackmem-bounded".to_owned());
            // Without the thread each section asks for itself.
            asking.runs = spawned.spawn(move || askers.ask()).is_ok();
        }
    }

    /// Those that are there; none if the thread is to end.
    fn all(&self) -> Option<Vec<Arc<dyn Asks>>> {
        let mut asking = self.0.lock().whole();
        let all: Vec<_> = asking.all.iter().filter_map(Weak::upgrade).collect();
        asking.all.retain(|one| one.strong_count() > 0);
        asking.runs = !all.is_empty();
        asking.runs.then_some(all)
    }

    fn ask(&self) {
        while let Some(all) = self.all() {
            let rests = all.iter().map(|one| one.ask_if_due());
            let rest = rests
                .map(|rest| rest.unwrap_or(REST))
                .fold(REST, Duration::min);
            drop(all);
            std::thread::sleep(rest);
        }
    }
}
