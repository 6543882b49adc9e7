//! Staying awake for what is about to come, as long as the processor is not wanted by others.
//!
//! Waking a sleeping thread on another processor costs more than everything else in a miss. So a
//! thread that waits looks again for a while before it sleeps, giving the processor away between
//! looks. To a scheduler that means that the thread is in no hurry: where other programs keep the
//! processor busy it gets its next turn when all of them have had theirs, some milliseconds later,
//! while a thread that slept is woken before them. On such a machine a rack whose threads stayed
//! awake did a twenty-fifth of the work. So a thread that has found that sleeps at once for some
//! time.
//!
//! Threads of this process that want the processor are no reason: on two processors the nodes of a
//! whole rack come back late from each other's turns, and sleeping costs a fifth of their work.
//! They are recognized by what they do meanwhile, which is to wait as well.
//!
//! A thread that can leave what else it has to do to another thread ([`before_sleep`]) looks less
//! long: after two turns of others it sleeps.

use crate::turns;
use crate::work::{self, What};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a thread that has just had a packet, or waits for an answer, stays awake.
pub const SPIN: Duration = Duration::from_micros(50);
/// A processor that comes back later than this was wanted by others, unless many threads of this
/// process have had it meanwhile.
const LATE: Duration = Duration::from_micros(500);
/// And later than this by others in any case: they have it for a tick of the scheduler.
const VERY_LATE: Duration = Duration::from_millis(3);
/// How often threads of this process begin to wait, or look again, in [`LATE`] when it is them.
const MANY: u64 = 8;
/// A processor that comes back later than this was another thread's meanwhile.
const SWITCHED: Duration = Duration::from_micros(3);
/// As often does a thread give it to others that has somebody to leave its work to.
const TURNS: u8 = 2;
/// How long a thread does not stay awake whose processor others wanted.
const CROWDED: Duration = Duration::from_millis(100);

/// How often threads of this process have begun to wait, or have looked again.
static WAITS: Waits = Waits(AtomicU64::new(0));

/// A counter with a cache line to itself.
#[repr(align(128))]
struct Waits(AtomicU64);

thread_local! {
    /// Until when this thread does not stay awake.
    static CROWDED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// See [`waits`].
    static BEGUN: Cell<u64> = const { Cell::new(0) };
    /// See [`before_sleep`].
    static BEFORE_SLEEP: RefCell<Option<BeforeSleep>> = const { RefCell::new(None) };
}

/// What a thread does before it sleeps.
pub type BeforeSleep = Rc<dyn Fn()>;

/// From now on this thread calls `f` whenever it is about to sleep until others have answered:
/// it may leave to another thread what must not wait as well. In the middle of an operation, so `f`
/// asks the rack for nothing.
pub fn before_sleep(f: Option<BeforeSleep>) {
    BEFORE_SLEEP.replace(f);
}

/// How often this thread has begun to wait for others, since it started: what it does without has
/// found all that it needs here. Exact, and of this thread alone.
#[inline]
pub fn waits() -> u64 {
    BEGUN.get()
}

/// Whether this thread has another one to leave its work to.
fn leaves_work() -> bool {
    BEFORE_SLEEP.with_borrow(Option::is_some)
}

/// This thread is about to sleep until others have answered.
#[cold]
pub fn sleeps() {
    let f = BEFORE_SLEEP.with_borrow(Option::clone);
    f.into_iter().for_each(|f| f());
}

/// One wait of a thread.
pub struct Awake {
    began: Instant,
    /// How long it stays awake.
    spin: Duration,
    /// When it gave the processor away last, and the count of waits then.
    gave: Option<(Duration, u64)>,
    /// How often others have had it.
    turns: u8,
}

/// What a thread does that has looked in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    LookAgain,
    Sleep,
    /// As a waiting thread of this machine does from now on.
    SleepAtOnce,
}

impl Awake {
    /// A wait begins; `spin` of it are to be awake.
    #[inline]
    pub fn begin(spin: Duration) -> Awake {
        WAITS.0.fetch_add(1, Relaxed);
        let begun = BEGUN.get();
        if begun == 0 {
            turns::first_wait();
        }
        BEGUN.set(begun.wrapping_add(1));
        let began = Instant::now();
        let crowded = CROWDED_UNTIL.get().is_some_and(|until| began < until);
        Awake {
            began,
            spin: if crowded { Duration::ZERO } else { spin },
            gave: None,
            turns: 0,
        }
    }

    /// How long it has been.
    #[inline]
    pub fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// After a look in vain, `waited` after the beginning: has given the processor away and says
    /// that it is time to look again, or that it is time to sleep.
    #[inline]
    pub fn look_again(&mut self, waited: Duration) -> bool {
        self.note_turn(waited);
        let then = match self.then(waited, WAITS.0.load(Relaxed)) {
            Then::LookAgain if self.turns >= TURNS && leaves_work() => Then::Sleep,
            then => then,
        };
        self.gave = None;
        match then {
            Then::LookAgain => {
                self.gave = Some((waited, WAITS.0.fetch_add(1, Relaxed)));
                work::count(What::Yields, 1);
                std::thread::yield_now();
            }
            Then::Sleep => sleeps(),
            Then::SleepAtOnce => {
                CROWDED_UNTIL.set(Some(self.began + waited + CROWDED));
                self.spin = Duration::ZERO;
                sleeps();
            }
        }
        then == Then::LookAgain
    }

    /// Whether others have had the processor since it was given away.
    fn note_turn(&mut self, waited: Duration) {
        let away = self.gave.map(|(gave, _)| waited.saturating_sub(gave));
        let switched = away.is_some_and(|away| away > SWITCHED);
        self.turns = self.turns.saturating_add(u8::from(switched));
    }

    /// `waits`: the count of them.
    fn then(&self, waited: Duration, waits: u64) -> Then {
        let wanted_by_others = self.gave.is_some_and(|(gave, before)| {
            let away = waited.saturating_sub(gave);
            away > VERY_LATE || away > LATE && waits.wrapping_sub(before) < MANY
        });
        match waited < self.spin {
            _ if wanted_by_others => Then::SleepAtOnce,
            true => Then::LookAgain,
            false => Then::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `others`: waits of other threads since this one gave the processor away.
    fn after(spin_us: u64, gave_us: Option<u64>, waited_us: u64, others: u64) -> Then {
        let awake = Awake {
            began: Instant::now(),
            spin: Duration::from_micros(spin_us),
            gave: gave_us.map(|gave| (Duration::from_micros(gave), 7)),
            turns: 0,
        };
        awake.then(Duration::from_micros(waited_us), 8 + others)
    }

    #[test]
    fn a_thread_looks_again_for_a_while_and_sleeps_at_once_where_others_want_the_processor() {
        assert_eq!(after(50, None, 3, 0), Then::LookAgain);
        assert_eq!(after(50, Some(3), 40, 0), Then::LookAgain);
        assert_eq!(after(50, Some(40), 51, 0), Then::Sleep);
        assert_eq!(after(0, None, 0, 0), Then::Sleep);
        // What comes back after a turn of another program has waited long for nothing,
        // however long it was to stay awake.
        assert_eq!(after(50, Some(3), 1_000, 0), Then::SleepAtOnce);
        assert_eq!(after(10_000, Some(3), 1_000, 3), Then::SleepAtOnce);
        assert_eq!(after(10_000, Some(3), 4_000, 900), Then::SleepAtOnce);
    }

    #[test]
    fn a_thread_stays_awake_where_threads_of_its_process_have_had_the_processor() {
        assert_eq!(after(10_000, Some(3), 1_000, 30), Then::LookAgain);
        assert_eq!(after(50, Some(3), 1_000, 30), Then::Sleep);
    }

    #[test]
    fn a_thread_that_leaves_its_work_to_another_sleeps_after_two_turns_of_others() {
        let waits = |turns| {
            let mut awake = Awake::begin(3600 * SPIN);
            for turn in 0..turns {
                awake.gave = Some((Duration::from_micros(turn * 10), WAITS.0.load(Relaxed)));
                if !awake.look_again(Duration::from_micros(turn * 10 + 4)) {
                    return false;
                }
            }
            true
        };
        assert!(waits(9));
        let left = Rc::new(Cell::new(0));
        let mine = left.clone();
        before_sleep(Some(Rc::new(move || mine.set(mine.get() + 1))));
        assert!(waits(1) && left.get() == 0);
        assert!(!waits(2) && left.get() == 1);
        // Short looks are no turns of others.
        let mut alone = Awake::begin(3600 * SPIN);
        let looks = (1..9).all(|micros| alone.look_again(Duration::from_micros(micros)));
        assert!(looks && left.get() == 1);
        before_sleep(None);
        assert!(waits(9) && left.get() == 1);
    }

    #[test]
    fn a_thread_counts_its_own_waits_each_once() {
        let before = waits();
        let mut awake = Awake::begin(3600 * SPIN);
        assert!(awake.look_again(Duration::from_micros(1)));
        assert!(awake.look_again(Duration::from_micros(2)));
        let other = std::thread::spawn(|| {
            Awake::begin(SPIN);
            waits()
        });
        assert_eq!(other.join().unwrap(), 1);
        assert_eq!(waits() - before, 1);
    }

    #[test]
    fn a_crowded_thread_does_not_stay_awake_and_others_do() {
        let mut first = Awake::begin(SPIN);
        first.gave = Some((Duration::ZERO, WAITS.0.load(Relaxed)));
        assert!(!first.look_again(Duration::from_millis(4)));
        // The time that it slept counts for no packet.
        assert!(!first.look_again(Duration::from_millis(9)));
        CROWDED_UNTIL.set(CROWDED_UNTIL.get().map(|until| until + 3600 * CROWDED));
        assert!(!Awake::begin(SPIN).look_again(Duration::ZERO));
        let other = std::thread::spawn(|| Awake::begin(SPIN).look_again(Duration::ZERO));
        assert!(other.join().unwrap());
        CROWDED_UNTIL.set(Some(Instant::now()));
        assert!(Awake::begin(SPIN).look_again(Duration::ZERO));
    }
}
