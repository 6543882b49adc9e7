//! One target for a while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use fastrand::Rng;
use rackmem_fuzz::Target;

use crate::folder;
use crate::guard::{self, MAX_MEMORY, Watch};
use crate::mutate;
use crate::options::Options;

/// Runs what failed once, then the seeds, then mutations of both until the time is up.
/// Whether all held.
pub fn fuzz(target: &Target, options: &Options) -> bool {
    let artifacts = folder("artifacts", target);
    let watch = Watch::start(target.name, &artifacts);
    let mut corpus = regressions(&folder("regressions", target));
    corpus.extend((target.seeds)());
    let mut random = Rng::with_seed(options.seed);
    let begin = Instant::now();
    let mut count = 0;
    let mut known = corpus.clone().into_iter();
    while known.len() > 0 || begin.elapsed() < options.time {
        let input = known
            .next()
            .unwrap_or_else(|| mutate::next(&mut random, &corpus));
        count += 1;
        if let Err(reason) = run_one(target, &watch, &input) {
            let place = keep(&artifacts, "crash", &input);
            println!(
                "fuzz {}: {reason} (seed {}, input {count})",
                target.name, options.seed
            );
            println!(
                "  repeat with: cargo xtask fuzz --target {} --replay {place}",
                target.name
            );
            return false;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "fuzz {}: {count} inputs in {seconds:.1} s, seed {}, ok",
        target.name, options.seed
    );
    true
}

fn run_one(target: &Target, watch: &Watch, input: &[u8]) -> Result<(), String> {
    watch.begin(input);
    let before = guard::begin_memory();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let peak = guard::peak_memory(before);
    watch.end();
    if result.is_err() {
        return Err("an input panics".into());
    }
    if peak > MAX_MEMORY {
        return Err(format!(
            "an input of {} bytes takes {} MiB of memory",
            input.len(),
            peak >> 20
        ));
    }
    Ok(())
}

/// The inputs that failed once and must not again.
fn regressions(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| std::fs::read(path).ok())
        .collect()
}

/// Writes a failing input down, and says where.
pub fn keep(folder: &Path, kind: &str, input: &[u8]) -> String {
    // FNV-1a: the same input gets the same name.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = folder.join(format!("{kind}-{hash:016x}"));
    match std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, input)) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("lost, {}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(run: fn(&[u8])) -> Result<(), String> {
        let target = Target {
            name: "test",
            about: "",
            seeds: Vec::new,
            run,
        };
        run_one(&target, &Watch::default(), b"input")
    }

    #[test]
    fn a_panic_and_a_large_allocation_are_failures() {
        assert_eq!(run(|_| {}), Ok(()));
        assert_eq!(
            run(|input| assert!(input.is_empty())),
            Err("an input panics".into())
        );
        let hog = run(|_| {
            drop(std::hint::black_box(Vec::<u8>::with_capacity(
                MAX_MEMORY + 1,
            )))
        });
        assert_eq!(
            hog,
            Err("an input of 5 bytes takes 256 MiB of memory".into())
        );
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let corpus = [b"one".to_vec(), b"another".to_vec()];
        let inputs = |seed| -> Vec<Vec<u8>> {
            let mut random = Rng::with_seed(seed);
            (0..100)
                .map(|_| mutate::next(&mut random, &corpus))
                .collect()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(
            inputs(1)
                .iter()
                .all(|input| input.len() <= mutate::MAX_INPUT)
        );
    }
}
