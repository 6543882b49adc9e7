//! The threads that keep this process in the rack.

use super::current_view::Looked;
use super::duty::Duty;
use super::pace::{Pace, Rounds};
use super::term::Term;
use super::{Links, MembershipError, Result, Role, Standing, Store, View};
use rackmem_fabric::{Whole, short_turns};
use rackmem_proto::membership::{Member, Observed, Timing};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a keeper tells. Calls come from its threads, and it waits for them to return: do little,
/// and do not call the keeper. The first view comes before `lease(true)`, and before
/// [`Keeper::join`] returns.
///
/// ```
/// use rackmem::membership::{Events, View};
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// #[derive(Default)]
/// struct Serving(AtomicBool);
/// impl Events for Serving {
///     fn view(&self, _: &View) {}
///     fn lease(&self, held: bool) {
///         self.0.store(held, Ordering::Relaxed);
///     }
///     fn fenced(&self) {
///         std::process::exit(3);
///     }
/// }
/// Serving::default().lease(true);
/// ```
pub trait Events: Send + Sync {
    /// The rack has agreed on another view, and this process is in it.
    /// Versions rise and may be skipped.
    fn view(&self, view: &View);
    /// Whether this process may answer others and serve from its cache from now on.
    /// Before the first call it may not.
    fn lease(&self, held: bool);
    /// What this process knows of its links to the other members, or to those that it would be one
    /// of: asked before each look. Where nothing is known, all can be reached.
    fn links(&self) -> Links {
        Links::default()
    }
    /// The rack goes on without this process, for ever. `lease(false)` has been told,
    /// and nothing more will be.
    fn fenced(&self);
}

/// This process' place in the rack. Dropping it ends its threads;
/// the others then declare this process dead when its lease is over,
/// unless [`Keeper::leave`] came first.
///
/// ```
/// use rackmem::membership::{Events, Keeper, Memory, MembershipError, Role, Standing, View};
/// use std::{sync::Arc, time::Duration};
///
/// struct Quiet;
/// impl Events for Quiet {
///     fn view(&self, _: &View) {}
///     fn lease(&self, _: bool) {}
///     fn fenced(&self) {}
/// }
///
/// # fn main() -> Result<(), MembershipError> {
/// let (lease, patience) = (Duration::from_millis(500), Duration::from_secs(10));
/// let store = Arc::new(Memory::default());
/// let join = |role| Keeper::join(store.clone(), role, lease, patience, Arc::new(Quiet));
/// let first = join(Role::Node(0))?;
/// assert!(matches!(join(Role::Node(0)), Err(MembershipError::Taken { .. })));
/// assert_ne!(first.standing(), Standing::Fenced);
/// # Ok(())
/// # }
/// ```
pub struct Keeper {
    shared: Arc<Inner>,
    role: Role,
    threads: Vec<JoinHandle<()>>,
}

struct Inner {
    /// A heartbeat is due so often; never where members are fixed.
    beat: Duration,
    duty: Duty,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    view: Option<View>,
    standing: Option<Standing>,
    /// What went wrong last with the store; none when it did not.
    trouble: Option<MembershipError>,
    stop: bool,
    /// It is to leave, as one that is done with this epoch.
    leave: Option<u32>,
    hurry: bool,
    /// How often the store has said who the members are.
    looks: u64,
    rounds: Rounds,
}

impl Keeper {
    /// Joins the rack that `store` keeps, and returns when this process may serve.
    /// The lease is the same in all processes of a rack.
    ///
    /// # Errors
    /// [`MembershipError::Taken`] when a process with this number is alive,
    /// [`MembershipError::Late`] when all of `patience` did not suffice;
    /// errors of the store that do not pass by waiting.
    pub fn join(
        store: Arc<dyn Store>,
        role: Role,
        lease: Duration,
        patience: Duration,
        events: Arc<dyn Events>,
    ) -> Result<Keeper> {
        let timing = Timing::of_lease(u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX));
        let beat = Duration::from_nanos(timing.beat);
        let shared = Arc::new(Inner {
            beat,
            duty: Duty::new(events.clone()),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut keeper = Keeper {
            shared: shared.clone(),
            role,
            threads: Vec::new(),
        };
        let watcher = shared.clone();
        keeper.spawn("lease", move || watcher.duty.watch())?;
        keeper.spawn("members", move || {
            let member = Member::new(role, fastrand::u64(1..), timing);
            Run {
                store,
                shared: &shared,
                events,
                member,
                beat,
                version: 0,
                kept_out: 0,
            }
            .run();
            shared.duty.end();
        })?;
        keeper.wait(patience, |state, serves| match state.standing {
            Some(Standing::Member { .. }) if serves => Some(Ok(())),
            Some(Standing::Taken) => Some(Err(MembershipError::Taken { role })),
            _ => {
                let lasting = state
                    .trouble
                    .as_ref()
                    .is_some_and(MembershipError::is_lasting);
                lasting.then(|| state.trouble.take().map_or(Ok(()), Err))
            }
        })?;
        Ok(keeper)
    }

    /// A place in a rack whose members are fixed: nobody is ever declared dead.
    pub fn fixed(role: Role, view: &View, events: Arc<dyn Events>) -> Keeper {
        events.view(view);
        let duty = Duty::new(events);
        duty.set(u64::MAX);
        let incarnation = match role {
            Role::Node(node) => view.incarnation(node),
            Role::Switch => view.switch,
        };
        let state = State {
            view: Some(*view),
            standing: incarnation.map(|incarnation| Standing::Member { incarnation }),
            ..State::default()
        };
        let shared = Arc::new(Inner {
            beat: Duration::MAX,
            duty,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        Keeper {
            shared,
            role,
            threads: Vec::new(),
        }
    }

    fn spawn(&mut self, what: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let name = format!("rackmem-{what}");
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            short_turns(true);
            run();
        });
        self.threads.push(thread.map_err(MembershipError::Thread)?);
        Ok(())
    }

    /// The newest view that this process has seen.
    pub fn view(&self) -> View {
        // `join` returns after the first.
        let view = self.shared.lock().view;
        view.unwrap_or(View::first(Default::default(), false))
    }

    /// Where this process stands.
    pub fn standing(&self) -> Standing {
        self.shared.lock().standing.unwrap_or(Standing::Joining)
    }

    /// Whether it may serve, as told last.
    pub fn serves(&self) -> bool {
        self.shared.duty.serves()
    }

    /// To when it may serve, for threads that look themselves.
    pub(crate) fn term(&self) -> Arc<Term> {
        self.shared.duty.term()
    }

    /// What is wrong with the store, if something is.
    pub fn trouble(&self) -> Option<String> {
        self.shared
            .lock()
            .trouble
            .as_ref()
            .map(MembershipError::to_string)
    }

    /// Whether the store keeps pace with this process' heartbeats; `None` where members are fixed.
    pub fn pace(&self) -> Option<Pace> {
        let beat = self.shared.beat;
        (beat < Duration::MAX).then(|| self.shared.lock().rounds.pace(beat))
    }

    /// Looks at the store now and not only at the next beat: somebody has shown that there is a
    /// newer view.
    pub fn hurry(&self) {
        self.shared.lock().hurry = true;
        self.shared.changed.notify_all();
    }

    /// How often the store has said who the members are, and its newest view.
    pub(crate) fn looked(&self) -> Looked {
        let state = self.shared.lock();
        Looked {
            times: state.looks,
            version: state.view.map_or(0, |view| view.version),
        }
    }

    /// Leaves the rack. This process may not serve from here on and must have emptied its cache,
    /// and `settled` is the epoch in which it had. If the rack is in another one by now, the others
    /// go on without it in the next, as without one that is dead, and need not wait for the lease.
    /// Where members are fixed this does nothing.
    ///
    /// # Errors
    /// [`MembershipError::Late`] when the store did not take it within `patience`.
    pub fn leave(&self, settled: u32, patience: Duration) -> Result<()> {
        if self.threads.is_empty() {
            self.shared.duty.end();
            return Ok(());
        }
        self.shared.lock().leave = Some(settled);
        self.hurry();
        self.wait(patience, |state, _| match state.standing {
            Some(Standing::Left | Standing::Fenced) => Some(Ok(())),
            _ => None,
        })
    }

    fn wait(
        &self,
        patience: Duration,
        mut done: impl FnMut(&mut State, bool) -> Option<Result<()>>,
    ) -> Result<()> {
        let end = Instant::now() + patience;
        let mut state = self.shared.lock();
        loop {
            if let Some(result) = done(&mut state, self.shared.duty.serves()) {
                return result;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(MembershipError::Late {
                    role: self.role,
                    waited: patience,
                    cause: state.trouble.take().map(Box::new),
                });
            }
            state = self.shared.sleep(state, left);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        self.shared.duty.end();
        for thread in self.threads.drain(..) {
            // A callback that panics has said so itself.
            let _ = thread.join();
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().whole()
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, time);
        waited.whole().0
    }
}

/// Looks of a process that is kept out that come one soon after the other:
/// answers of those who are there are on their way.
const EAGER: u32 = 40;

/// How long after a look the next one comes at most that is to come soon. A process that is kept
/// out waits twice as long each time, up to an eighth of a beat.
const SOON: Duration = Duration::from_millis(50);

/// Between two looks at least: whoever is asked to hurry all the time still leaves the store alone
/// for most of it.
const REST: Duration = Duration::from_millis(1);

/// What the thread does that beats and looks.
struct Run<'a> {
    store: Arc<dyn Store>,
    shared: &'a Inner,
    events: Arc<dyn Events>,
    member: Member,
    beat: Duration,
    /// The last one that was told.
    version: u64,
    /// Looks so far that kept this process out.
    kept_out: u32,
}

impl Run<'_> {
    fn run(mut self) {
        while !self.member.is_over() {
            let begun = Instant::now();
            self.shared.lock().rounds.begin();
            let again = self.look();
            self.shared.lock().rounds.end(self.beat);
            // Members that propose at the same moment do so again at different ones.
            let eager = self.member.is_kept_out() && self.kept_out < EAGER;
            let pause = if again || eager {
                let soon = SOON.saturating_mul(1 << self.kept_out.min(16));
                self.kept_out += u32::from(eager);
                soon.min(self.beat / 8).mul_f64(fastrand::f64())
            } else {
                self.beat.saturating_sub(begun.elapsed())
            };
            if !self.pause(pause) {
                return;
            }
        }
    }

    /// Waits; `false` when told to stop.
    fn pause(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        let end = begun + time;
        let mut state = self.shared.lock();
        loop {
            if state.stop {
                return false;
            }
            if let Some(settled) = state.leave {
                self.member.leave(settled);
            }
            let left = end.saturating_duration_since(Instant::now());
            let rested = REST.saturating_sub(begun.elapsed());
            if left.is_zero() || rested.is_zero() && std::mem::take(&mut state.hurry) {
                return true;
            }
            let left = if state.hurry { left.min(rested) } else { left };
            state = self.shared.sleep(state, left);
        }
    }

    /// One round. Says whether to look again at once.
    fn look(&mut self) -> bool {
        let asked = self.shared.duty.now();
        let snapshot = match self.store.load(self.beat) {
            Ok(snapshot) => snapshot,
            Err(error) => return self.report(Some(error)),
        };
        let seen = Observed {
            asked,
            roster: snapshot.roster.as_ref(),
            beats: &snapshot.beats,
        };
        let links = self.events.links();
        self.member.hears(links);
        let acts = self.member.handle(self.shared.duty.now(), &seen);
        self.tell();
        let mut trouble = self.kept_out(links);
        if let Some(beat) = acts.beat {
            let started = self.shared.duty.now();
            match self.store.beat(self.member.role(), beat, self.beat) {
                Ok(()) => self.member.beaten(started, self.shared.duty.now()),
                Err(error) => trouble = Some(error),
            }
        }
        let Some(next) = acts.propose else {
            return self.report(trouble);
        };
        match self.store.propose(&next, self.beat) {
            Ok(_) => {
                self.report(trouble);
                true
            }
            Err(error) => self.report(Some(error)),
        }
    }

    /// Why this process does not ask for the place that it wants.
    fn kept_out(&self, links: Links) -> Option<MembershipError> {
        let roster = self.member.roster().filter(|_| self.member.is_kept_out())?;
        Some(MembershipError::OutOfReach {
            role: self.member.role(),
            unheard: links.unheard.and(roster.held().collect()),
        })
    }

    /// Tells what the last look has changed.
    fn tell(&mut self) {
        let standing = self.member.standing();
        let view = self.member.roster().map(|roster| roster.view);
        // First what can be asked for, then what is told: whoever is told may ask at once.
        let mut state = self.shared.lock();
        state.view = view;
        state.looks += 1;
        state.standing = Some(standing);
        drop(state);
        if self.member.is_over() {
            self.shared.duty.end();
        } else if let (Standing::Member { .. }, Some(view)) = (standing, view) {
            if view.version != self.version {
                self.version = view.version;
                self.events.view(&view);
            }
            self.shared.duty.set(self.member.serves_until());
        }
        if standing == Standing::Fenced {
            self.events.fenced();
        }
        self.shared.changed.notify_all();
    }

    fn report(&self, trouble: Option<MembershipError>) -> bool {
        self.shared.lock().trouble = trouble;
        self.shared.changed.notify_all();
        false
    }
}
