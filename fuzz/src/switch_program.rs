//! Any sequence of packets through the switch program.

use rackmem_proto::membership::host;
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};

use crate::dice::{Dice, EPOCH, check_sendable};

/// Packets of one run at most.
const MAX_PACKETS: usize = 256;

/// The program never breaks the pipeline's rules, and what it sends decodes.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let mut switch = SwitchProgram::new(SwitchConfig {
        epoch: EPOCH,
        // Few ways and sets, so that tags collide.
        ways: dice.byte() % 12,
        sets: dice.below(5),
        seed: dice.word(),
        ..SwitchConfig::default()
    });
    for _ in 0..MAX_PACKETS {
        if dice.is_empty() {
            break;
        }
        let header = dice.header();
        for output in switch.handle(&header).iter() {
            for (_, copy) in output.copies(host) {
                check_sendable(&copy);
            }
        }
        if let Some((_, _, copyset)) = switch.inspect(header.tag) {
            assert!(
                switch.entries() > 0,
                "an entry is there and not counted: {copyset:?}"
            );
        }
    }
    assert_eq!(switch.counters().violations, 0);
}

/// Bytes of several lengths: every byte string is a sequence of packets.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    [16, 64, 256, 1024, 4096]
        .map(|n| std::iter::repeat_with(|| random.u8(..)).take(n).collect())
        .into()
}
