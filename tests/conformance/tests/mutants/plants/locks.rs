//! The lock word and the scoreboard.

use super::*;
use rackmem_proto::flowcc::lock;
use rackmem_proto::switch::provider;
use rackmem_proto::wire::Reason;

pub fn locks() -> Vec<Plant> {
    /// Keeps what a pass took, when its verdict was `which`.
    fn kept(name: &str, which: fn(Ordering, u64) -> bool) -> Plant {
        after(name, move |was, is, asked, _| {
            let Some((held, ..)) = was.inspect(asked.tag) else {
                return;
            };
            let same = is.inspect(asked.tag).is_some_and(|(now, ..)| now == held);
            let mut taken = held;
            let score = score(was, asked).value;
            if asked.kind.is_request()
                && same
                && which(order(was, asked), score)
                && lock::acquire(&mut taken, asked.kind.locks_shared())
            {
                change(is, asked, Field::Lock, |_| taken.into());
            }
        })
    }
    vec![
        kept(
            "a copy of a granted request counts twice",
            |order, score| order == Ordering::Equal && score & 1 != 0,
        ),
        kept(
            "a copy of a refused request keeps the lock",
            |order, score| order == Ordering::Equal && score & 9 == 0,
        ),
        kept("a copy that is passed on keeps the lock", |order, score| {
            order == Ordering::Equal && score & 8 != 0
        }),
        kept("a stale copy keeps the lock", |order, _| {
            order == Ordering::Less
        }),
        kept("an invalid request keeps the lock", |order, _| {
            order == Ordering::Greater
        }),
        before("the count of readers runs over", |program, header| {
            if header.kind.locks_shared() {
                change(program, header, Field::Lock, |lock| {
                    if lock == 0x7ffe { 0x7ffd } else { lock }
                });
            }
            true
        }),
        before("readers wait for readers", |program, header| {
            let held = program.inspect(header.tag).map_or(0, |(lock, ..)| lock);
            !(header.kind.locks_shared() && held != 0 && held < 0x8000)
        }),
        before("writers share with readers", |program, header| {
            if header.kind.is_request() && !header.kind.locks_shared() {
                change(program, header, Field::Lock, |lock| {
                    if lock < 0x8000 { 0 } else { lock }
                });
            }
            true
        }),
    ]
}

pub fn scores() -> Vec<Plant> {
    vec![
        after("a refusal is not final", |was, is, asked, sent| {
            if asked.kind.is_request() && sent.iter().any(|(_, h)| h.reason != Reason::None) {
                is.set_register(score(was, asked));
            }
        }),
        after("what is passed on is not noted", |was, is, asked, sent| {
            if asked.kind.is_request() && sent.iter().any(|(_, h)| h == asked) {
                is.set_register(score(was, asked));
            }
        }),
        before("a copy goes where it would go now", |program, header| {
            let found = score(program, header);
            if let Some((_, status, copyset)) = program.inspect(header.tag)
                && header.kind.is_request()
                && order(program, header) == Ordering::Equal
                && found.value & 1 != 0
            {
                let node = provider(header, copyset, 0).map_or(0, |node| u64::from(node) + 1);
                let value = found.value & !0xffff_ffff | node << 8 | (status as u64) << 1 | 1;
                program.set_register(Register { value, ..found });
            }
            true
        }),
        before("numbers do not wrap", |program, header| {
            let last = (score(program, header).value >> 32) as u32;
            !header.kind.is_request() || header.seq.low() >= last
        }),
        before("the window is smaller", |program, header| {
            let found = score(program, header);
            let behind = ((found.value >> 32) as u32).wrapping_sub(header.seq.low());
            if header.kind.is_request() && (1 << 24..1 << 31).contains(&behind) {
                program.set_register(Register { value: 0, ..found });
            }
            true
        }),
        before("whole numbers are compared", |program, header| {
            let last = (score(program, header).value >> 32) as u32;
            let copy = header.kind.is_request() && header.seq.low() == last;
            !copy || header.seq.0 >> 32 == 0
        }),
        before("a late copy begins anew", |program, header| {
            let found = score(program, header);
            if header.kind.is_request() && order(program, header) == Ordering::Less {
                program.set_register(Register { value: 0, ..found });
            }
            true
        }),
        before("requesters of a node share a score", |_, header| {
            if !is_move(header) && header.requester.slot < 2 {
                header.requester.slot = 0;
            }
            true
        }),
        before("both parities share a score", |program, header| {
            let mut other = *header;
            other.seq = header.seq.next();
            let found = score(program, &other);
            if !is_move(header) {
                program.set_register(Register { value: 0, ..found });
            }
            true
        }),
    ]
}
