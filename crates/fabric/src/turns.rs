//! Short turns of the processor, for threads that wait for others and for those they wait for.
//!
//! Where more threads want to run than there are processors, each has the processor for a turn of
//! some milliseconds, and who is woken waits for the end of another's. A miss is several wake-ups
//! in a row. A thread with short turns has no more of the processor than others, but has it sooner
//! (EEVDF's request size, Linux 6.12). A thread that waits for the first time
//! ([`Awake`](crate::awake::Awake)) gets them: one of an agent or the switch, or of the program.

use std::cell::Cell;

/// The shortest that Linux gives.
const SHORT: u64 = 100_000;
/// What the system gives to who asks for nothing.
const USUAL: u64 = 0;

thread_local! {
    /// Whether this thread has asked for one or the other.
    static CHOSEN: Cell<bool> = const { Cell::new(false) };
}

/// Asks the system for short turns of the processor for the calling thread, or for the usual ones
/// again, and says whether it has short ones: not before Linux 6.12, and not if it runs by priority
/// or by deadline or gives way to all others. Its share of the processor, niceness and policy stay
/// what they are. Threads that it starts from then on have the same.
///
/// A thread gets short turns when it waits for another node for the first time, over shared memory
/// or UDP, unless it has called this before. What they cost a thread that computes is one or two
/// percent of its time, where it shares a processor.
pub fn short_turns(yes: bool) -> bool {
    CHOSEN.set(true);
    let Some(mut attributes) = attributes() else {
        return false;
    };
    let policy = attributes.sched_policy.cast_signed();
    if policy == libc::SCHED_OTHER || policy == libc::SCHED_BATCH {
        attributes.sched_runtime = if yes { SHORT } else { USUAL };
        // SAFETY: the attributes are a local, which the system only reads; 0 is this thread.
        // A system that refuses them changes nothing, which is looked at below.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
    turn_nanos() == Some(SHORT)
}

/// This thread is about to wait for others for the first time.
#[cold]
pub(crate) fn first_wait() {
    if !CHOSEN.get() {
        short_turns(true);
    }
}

/// How long a turn of the calling thread is, where the system says it.
fn turn_nanos() -> Option<u64> {
    let nanos = attributes()?.sched_runtime;
    (nanos > 0).then_some(nanos)
}

fn attributes() -> Option<libc::sched_attr> {
    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
    // SAFETY: a struct of integers, for all of which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let all = &raw mut attributes;
    // SAFETY: the system writes no more than the size that it is told, which is the local's.
    let said = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, all, SIZE, 0) };
    attributes.size = SIZE;
    (said == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::{SHORT, attributes, short_turns, turn_nanos};
    use crate::awake::{Awake, SPIN};

    /// In a thread of its own, where the system has turns of several lengths.
    fn in_a_thread(f: impl FnOnce(u64) + Send + 'static) {
        let thread = std::thread::spawn(|| match turn_nanos() {
            Some(usual) => f(usual),
            None => eprintln!("this system has turns of one length only: Linux 6.12 has others"),
        });
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_has_short_turns_and_stays_as_nice_as_it_was() {
        in_a_thread(|usual| {
            // SAFETY: it takes integers; 0 is the calling thread.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 7) }, 0);
            assert_ne!(usual, SHORT);
            assert!(short_turns(true));
            let after = attributes().unwrap();
            assert_eq!((after.sched_runtime, after.sched_nice), (SHORT, 7));
            assert_eq!(after.sched_policy, libc::SCHED_OTHER.cast_unsigned());
            assert!(!short_turns(false));
            assert_eq!(turn_nanos(), Some(usual));
        });
    }

    #[test]
    fn a_thread_that_gives_way_to_all_others_goes_on_to_do_so() {
        in_a_thread(|_| {
            let idle = libc::sched_param { sched_priority: 0 };
            // SAFETY: the parameters are a local; 0 is the calling thread.
            let said = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const idle) };
            assert_eq!(said, 0);
            assert!(!short_turns(true));
            let policy = attributes().unwrap().sched_policy;
            assert_eq!(policy, libc::SCHED_IDLE.cast_unsigned());
        });
    }

    #[test]
    fn who_waits_for_the_first_time_has_short_turns_unless_it_has_said_otherwise() {
        in_a_thread(|usual| {
            Awake::begin(SPIN);
            assert_eq!(turn_nanos(), Some(SHORT));
            short_turns(false);
            Awake::begin(SPIN);
            assert_eq!(turn_nanos(), Some(usual), "it is asked for once");
        });
        in_a_thread(|usual| {
            short_turns(false);
            Awake::begin(SPIN);
            assert_eq!(turn_nanos(), Some(usual));
        });
    }
}
