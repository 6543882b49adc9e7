//! Keepers over a store, in one process.

use crate::witness::{LEASE, PATIENCE, Told, Witness, join, last_lease, last_view};
use rackmem::membership::{
    Keeper, MembershipError, Memory, Role, Standing, Store, View, remove, watch,
};
use rackmem_proto::wire::Copyset;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

fn memory() -> Arc<dyn Store> {
    Arc::new(Memory::default())
}

/// The life of a rack: all join, one leaves, one dies, one comes back.
pub fn live(store: &Arc<dyn Store>) {
    let (zero, seen) = join(store, Role::Node(0)).unwrap();
    let (switch, _) = join(store, Role::Switch).unwrap();
    let (one, _) = join(store, Role::Node(1)).unwrap();
    let (two, _) = join(store, Role::Node(2)).unwrap();
    seen.wait_live(0b111);
    let before = last_view(&seen.told()).unwrap();
    assert!(before.switch.is_some() && before.shadow == Some(0));

    let error = join(store, Role::Node(1)).err().unwrap();
    assert!(
        matches!(
            error,
            MembershipError::Taken {
                role: Role::Node(1)
            }
        ),
        "{error}"
    );

    two.leave(before.epoch, PATIENCE).unwrap();
    assert_eq!(two.standing(), Standing::Left);
    seen.wait_live(0b011);
    assert!(!last_view(&seen.told()).unwrap().is_heavy_after(&before));

    drop(one);
    seen.wait_live(0b001);
    assert!(last_view(&seen.told()).unwrap().is_heavy_after(&before));

    let (one, _) = join(store, Role::Node(1)).unwrap();
    seen.wait_live(0b011);
    assert_eq!(last_view(&seen.told()).unwrap().incarnation(1), Some(2));

    drop(switch);
    seen.wait("a rack without a switch", |told| {
        last_view(told).is_some_and(|view| view.switch.is_none())
    });
    assert_eq!(last_view(&seen.told()).unwrap().shadow, None);
    assert!(zero.trouble().is_none(), "{:?}", zero.trouble());
    assert!(zero.serves() && one.serves());
    let told = seen.told();
    assert!(
        matches!(told[..2], [Told::View(_), Told::Lease(true)]),
        "{told:?}"
    );
    let versions = told.iter().filter_map(|event| match event {
        Told::View(view) => Some(view.version),
        _ => None,
    });
    assert!(versions.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_rack_lives() {
    live(&memory());
}

#[test]
fn one_that_is_removed_is_fenced() {
    let store = memory();
    let (zero, seen) = join(&store, Role::Node(0)).unwrap();
    let (_one, other) = join(&store, Role::Node(1)).unwrap();
    let (roster, signs) = watch(&*store, PATIENCE, Duration::from_millis(100)).unwrap();
    assert_eq!(roster.unwrap().view.live.0, 0b11);
    assert!(signs.len() == 2 && signs.iter().all(|sign| sign.incarnation == 1));
    remove(&*store, Role::Node(0), PATIENCE).unwrap();
    seen.wait("fenced", |told| {
        told.ends_with(&[Told::Lease(false), Told::Fenced])
    });
    other.wait_live(0b10);
    assert_eq!(zero.standing(), Standing::Fenced);
    assert!(!zero.serves());
    let error = remove(&*store, Role::Node(0), PATIENCE).unwrap_err();
    assert!(matches!(error, MembershipError::NotHeld { .. }), "{error}");
}

/// A store that can be away, or stand still with a beat.
#[derive(Default)]
struct Flaky {
    inner: Memory,
    away: AtomicBool,
    still: AtomicBool,
}

impl Flaky {
    fn answer<T>(&self, answer: T) -> Result<T, MembershipError> {
        if self.away.load(Relaxed) {
            let (endpoint, why) = ("http://nowhere".into(), "it is away".into());
            return Err(MembershipError::Unreachable { endpoint, why });
        }
        Ok(answer)
    }
}

impl Store for Flaky {
    fn load(&self, within: Duration) -> Result<rackmem::membership::Snapshot, MembershipError> {
        self.answer(())?;
        self.inner.load(within)
    }

    fn propose(
        &self,
        next: &rackmem::membership::Roster,
        within: Duration,
    ) -> Result<bool, MembershipError> {
        self.answer(())?;
        self.inner.propose(next, within)
    }

    fn beat(
        &self,
        role: Role,
        beat: rackmem::membership::Beat,
        within: Duration,
    ) -> Result<(), MembershipError> {
        self.answer(())?;
        while self.still.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.inner.beat(role, beat, within)
    }

    fn groups(
        &self,
        within: Duration,
    ) -> Result<Option<rackmem::membership::Groups>, MembershipError> {
        self.answer(())?;
        self.inner.groups(within)
    }

    fn propose_groups(
        &self,
        next: &rackmem::membership::Groups,
        within: Duration,
    ) -> Result<bool, MembershipError> {
        self.answer(())?;
        self.inner.propose_groups(next, within)
    }
}

#[test]
fn who_cannot_renew_its_lease_stops_until_it_can() {
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn Store> = flaky.clone();
    let (zero, seen) = join(&store, Role::Node(0)).unwrap();
    let (one, other) = join(&store, Role::Node(1)).unwrap();
    seen.wait_live(0b11);
    flaky.away.store(true, Relaxed);
    for witness in [&seen, &other] {
        witness.wait("lapsed", |told| last_lease(told) == Some(false));
    }
    assert!(zero.trouble().unwrap().contains("http://nowhere"));
    flaky.away.store(false, Relaxed);
    for (keeper, witness) in [(&zero, &seen), (&one, &other)] {
        let again = |told: &[Told]| told.iter().filter(|it| **it == Told::Lease(true)).count() >= 2;
        witness.wait("renewed", again);
        assert!(!witness.told().contains(&Told::Fenced));
        assert_eq!(keeper.view().epoch, 1);
    }
}

#[test]
fn who_reaches_no_store_is_late_and_says_why() {
    let store: Arc<dyn Store> = Arc::new(Flaky {
        away: AtomicBool::new(true),
        ..Flaky::default()
    });
    let patience = Duration::from_millis(20);
    let lease = Duration::from_millis(100);
    let joined = Keeper::join(
        store,
        Role::Switch,
        lease,
        patience,
        Arc::new(Witness::default()),
    );
    let text = joined.err().unwrap().to_string();
    assert!(
        text.contains("the switch") && text.contains("http://nowhere"),
        "{text}"
    );
}

#[test]
fn fixed_members_serve_at_once() {
    let witness = Arc::new(Witness::default());
    let view = View::first(Copyset(0b11), true);
    let keeper = Keeper::fixed(Role::Node(1), &view, witness.clone());
    assert!(keeper.serves());
    assert_eq!(keeper.view(), view);
    assert_eq!(keeper.standing(), Standing::Member { incarnation: 1 });
    keeper.leave(view.epoch, PATIENCE).unwrap();
    assert_eq!(
        witness.told(),
        [Told::View(view), Told::Lease(true), Told::Lease(false)]
    );
}

#[test]
fn a_store_that_stands_still_is_told_of_while_it_does_and_after() {
    let flaky = Arc::new(Flaky::default());
    let store: Arc<dyn Store> = flaky.clone();
    let (zero, seen) = join(&store, Role::Node(0)).unwrap();
    let before = zero.pace().unwrap();
    assert_eq!(before.lease, LEASE);
    flaky.still.store(true, Relaxed);
    seen.wait("lapsed", |told| last_lease(told) == Some(false));
    // Three quarters of a lease have gone by since the last beat, so this one is late.
    let during = zero.pace().unwrap();
    assert!(during.late > before.late, "{during:?}");
    assert!(during.longest > LEASE / 5 * 2, "{during:?}");
    flaky.still.store(false, Relaxed);
    let again = |told: &[Told]| told.iter().filter(|it| **it == Told::Lease(true)).count() >= 2;
    seen.wait("renewed", again);
    let after = zero.pace().unwrap();
    assert!(after.late >= during.late && after.longest >= during.longest);
}

#[test]
fn fixed_members_have_no_store_to_wait_for() {
    let view = View::first(Copyset(0b11), false);
    let fixed = Keeper::fixed(Role::Node(0), &view, Arc::new(Witness::default()));
    assert_eq!(fixed.pace(), None);
}
