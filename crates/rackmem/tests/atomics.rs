//! Shared numbers of every width are changed in one step, on changing nodes,
//! and keep their neighbours as they are.

use rackmem::{Bool, Fabric, Rack, Shared};

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Udp, Fabric::Shm];

macro_rules! integers {
    ($rack:expr, $($int:ty),*) => {$({
        let first = $rack.node(0).alloc::<$int>(3).unwrap();
        let there: Shared<$int> = $rack.node(1).attach(first.addr()).unwrap();
        for round in 0..4 {
            let (one, other) = if round % 2 == 0 { (&first, &there) } else { (&there, &first) };
            one.write(3).unwrap();
            assert_eq!(other.fetch_add(<$int>::MAX).unwrap(), 3);
            assert_eq!(one.read().unwrap(), (3 as $int).wrapping_add(<$int>::MAX));
            assert_eq!(other.fetch_sub(<$int>::MAX).unwrap(), (3 as $int).wrapping_add(<$int>::MAX));
            assert_eq!(one.compare_exchange(3, 12).unwrap(), Ok(3));
            assert_eq!(other.compare_exchange(3, 13).unwrap(), Err(12));
            assert_eq!(one.fetch_and(!8).unwrap(), 12);
            assert_eq!(other.fetch_or(3).unwrap(), 4);
            assert_eq!(one.fetch_xor(1).unwrap(), 7);
            assert_eq!(other.fetch_max(100).unwrap(), 6);
            assert_eq!(one.fetch_min(50).unwrap(), 100);
            assert_eq!(other.fetch_update(|n| n.checked_mul(2)).unwrap(), Ok(50));
            assert_eq!(one.fetch_update(|n| (n == 0).then_some(1)).unwrap(), Err(100));
            assert_eq!(other.swap(1).unwrap(), 100);
        }
    })*};
}

#[test]
fn every_width_has_the_same_operations() {
    for fabric in FABRICS {
        let rack = Rack::builder(2).fabric(fabric).build().unwrap();
        integers!(rack, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
    }
}

#[test]
fn floats_and_bools_are_compared_by_their_bits() {
    let rack = Rack::local(2).unwrap();
    let x = rack.node(0).alloc(0.0f64).unwrap();
    let y: Shared<f64> = rack.node(1).attach(x.addr()).unwrap();
    assert_eq!(y.compare_exchange(-0.0, 1.0).unwrap(), Err(0.0));
    assert_eq!(x.fetch_add(0.5).unwrap(), 0.0);
    assert_eq!(y.fetch_max(0.25).unwrap(), 0.5);
    y.write(f64::NAN).unwrap();
    assert!(x.compare_exchange(f64::NAN, 2.0).unwrap().is_ok());
    assert_eq!(y.read().unwrap(), 2.0);
    let z = rack.node(1).alloc(1.5f32).unwrap();
    assert_eq!(z.fetch_sub(1.0).unwrap(), 1.5);
    assert_eq!(z.read().unwrap(), 0.5);
    let stop = rack.node(0).alloc(Bool::from(false)).unwrap();
    let same = rack.node(1).attach::<Bool>(stop.addr()).unwrap();
    assert_eq!(
        same.compare_exchange(true.into(), false.into()).unwrap(),
        Err(false.into())
    );
    assert_eq!(same.swap(true.into()).unwrap(), Bool::from(false));
    assert!(bool::from(stop.read().unwrap()));
}

#[test]
fn small_numbers_of_one_word_keep_their_neighbours() {
    let rack = Rack::local(2).unwrap();
    let words: Shared<[u8; 8]> = rack.node(0).alloc([0xaa; 8]).unwrap();
    let first: Shared<u16> = rack.node(1).attach(words.addr()).unwrap();
    first.fetch_add(0x5555).unwrap();
    assert_eq!(
        words.read().unwrap(),
        [0xff, 0xff, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa]
    );
}

#[test]
fn threads_of_all_nodes_count_every_step() {
    const ROUNDS: u32 = 300;
    for fabric in FABRICS {
        let rack = Rack::builder(3).fabric(fabric).build().unwrap();
        let (sum, count) = (rack.node(0).alloc(0.0f64), rack.node(0).alloc(0u8));
        let (sum, count) = (sum.unwrap(), count.unwrap());
        std::thread::scope(|scope| {
            for n in 0..3 {
                let (rack, at) = (&rack, (sum.addr(), count.addr()));
                scope.spawn(move || {
                    let sum: Shared<f64> = rack.node(n).attach(at.0).unwrap();
                    let count: Shared<u8> = rack.node(n).attach(at.1).unwrap();
                    for _ in 0..ROUNDS {
                        sum.fetch_add(0.5).unwrap();
                        count.fetch_add(1).unwrap();
                    }
                });
            }
        });
        assert_eq!(sum.read().unwrap(), f64::from(ROUNDS) * 1.5);
        assert_eq!(count.read().unwrap(), (ROUNDS * 3) as u8);
    }
}
