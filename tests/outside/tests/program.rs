//! The program runs, on every fabric, and its types keep others out.

use rackmem::locked::{Mutex, RwLock};
use rackmem::{AccessError, Fabric, Rack, RegionError};
use rackmem_outside::{Advice, Particle, Plan, Simulation, advice};

const PLAN: Plan = Plan {
    step: 0.5,
    steps: 3,
};

#[test]
fn a_simulation_runs_on_all_nodes() {
    const PARTICLES: usize = 50_000;
    for fabric in [Fabric::Inline, Fabric::Udp, Fabric::Shm] {
        let rack = Rack::builder(3).fabric(fabric).build().unwrap();
        let open = |n: usize| Simulation::open(&rack.node(n), "gas", PARTICLES, PLAN).unwrap();
        open(0).place().unwrap();
        std::thread::scope(|scope| {
            for n in 0..3 {
                let simulation = open(n);
                scope.spawn(move || simulation.run(n as u16).unwrap());
            }
        });
        let last = open(2);
        assert_eq!(last.moved().unwrap(), 3 * PARTICLES as u64);
        let mut seen = 0;
        let all = last.particles().for_each_part(|first, part| {
            for (nth, particle) in (first..).zip(part) {
                assert_eq!(particle.place, [nth as f64, 1.5, 0.0], "{fabric:?}");
                assert_eq!((particle.mass, particle.steps), (1.0, 3));
            }
            seen += part.len();
        });
        all.unwrap();
        assert_eq!(seen, PARTICLES);
        assert_eq!(open(0).refine().unwrap(), 0.25);
        assert_eq!(open(1).refine().unwrap(), 0.125);
        assert!(format!("{last:?}").contains("SharedSlice"));
    }
}

#[test]
fn a_slice_of_a_gigabyte_is_written_at_home_and_read_elsewhere() {
    const LEN: usize = 1 << 27;
    let rack = Rack::builder(2).fabric(Fabric::Udp).build().unwrap();
    let here = rack.node(0).named_slice::<f64>("large", LEN).unwrap();
    let there = rack.node(1).named_slice::<f64>("large", LEN).unwrap();
    const PART: usize = 1 << 20;
    let mut part: Vec<f64> = (0..PART).map(|nth| nth as f64).collect();
    for first in (0..LEN).step_by(PART) {
        here.write_from(first, &part).unwrap();
        part.iter_mut().for_each(|value| *value += PART as f64);
    }
    for first in (0..LEN).step_by(PART) {
        let read = there.to_vec(first..first + PART).unwrap();
        let wrong = (first..)
            .zip(&read)
            .find(|(nth, value)| *nth as f64 != **value);
        assert_eq!(wrong, None);
    }
    assert_eq!(there.get(LEN / 4).unwrap(), (LEN / 4) as f64);
    let why = there.to_vec(LEN - 1..LEN + 1).unwrap_err();
    assert!(matches!(why.error, AccessError::OutOfBounds { at, .. } if at == LEN - 1));
    assert_eq!(advice(&why.into()), Advice::Mend);
}

#[test]
fn names_keep_their_types() {
    let rack = Rack::local(2).unwrap();
    let (here, there) = (rack.node(0), rack.node(1));
    RwLock::named(&here, "plan", PLAN).unwrap();
    let wrong = RwLock::<[u64; 2]>::named(&there, "plan", [0; 2]).unwrap_err();
    assert!(matches!(wrong, RegionError::Mismatch { .. }), "{wrong}");
    here.named_slice::<Particle>("cloud", 10).unwrap();
    let wrong = there.named_slice::<[f64; 4]>("cloud", 10).unwrap_err();
    assert!(matches!(wrong, RegionError::Mismatch { .. }), "{wrong}");
    let wrong = there.named_slice::<Particle>("cloud", 11).unwrap_err();
    assert!(matches!(wrong, RegionError::Mismatch { .. }), "{wrong}");
    there.named_slice::<Particle>("cloud", 10).unwrap();
}

#[test]
fn errors_say_what_to_do() {
    let rack = Rack::local(2).unwrap();
    let node = rack.node(0);
    let lock = Mutex::create(&node, 1u64).unwrap();
    let same = Mutex::<u64>::attach(&rack.node(1), lock.addr()).unwrap();
    lock.free().unwrap();
    assert_eq!(advice(&same.lock().unwrap_err().into()), Advice::MakeAnew);
    let wrong = node.attach::<u64>(9 << 48).unwrap_err();
    assert_eq!(advice(&wrong.into()), Advice::Mend);
    let slice = node.alloc_slice::<u64>(1000).unwrap();
    drop(rack);
    let why = slice.write_from(0, &[1; 1000]).unwrap_err();
    assert_eq!((advice(&why.into()), why.done), (Advice::Restart, 0));
}
