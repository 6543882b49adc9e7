// GCP's directory of locks (crates/proto/src/gcp/entry.rs, crates/proto/src/switch/locks.rs): what is asked of an entry, what
// becomes of the packet, and to whom. The registers are each target's own.
//
// A release has two passes. The first one looks whether it is the holder's and knows the last number; the second one, which only
// such a release makes, carries it out if the number is still the last. A number says all about an entry, so who held it
// then holds it now. Everything else has one pass.

#ifndef RACKMEM_LOCKS
#define RACKMEM_LOCKS

#include "deliver.p4"

// What is asked of a lock's entry. `mine`, and where a lock is placed `kept`, are made of parts of fields: each target does it its way.
control LockOperation(in headers_t hdr, inout state_t s) {
    action ask(lock_ask_t what, bit<32> more) {
        s.l.ask = what;
        s.l.operand = more;
    }
    action look() {
        s.l.ask = ASK_LOOK;
    }
    action commit() {
        s.l.ask = ASK_COMMIT;
        s.l.operand = hdr.rackmem.seq_low;
        s.l.number_high = hdr.rackmem.seq_high;
        s.l.number = hdr.rackmem.seq_low + 1;
        s.l.kept = hdr.rackmem.sender;
        s.l.why = hdr.rackmem.reason;
    }
    action place() {
        s.l.ask = ASK_PLACE;
        s.l.operand = hdr.rackmem.seq_low;
        s.l.number_high = hdr.rackmem.seq_high;
        s.l.number = hdr.rackmem.seq_low;
        s.l.why = hdr.rackmem.reason;
    }
    // Who releases is answered, and whoever keeps the data is sent to: both must be nodes.
    table lock_operation {
        key = {
            s.step: exact;
            hdr.rackmem.kind: exact;
            hdr.rackmem.global_status: ternary;
            hdr.rackmem.sender: ternary;
            hdr.rackmem.offset: ternary;
        }
        actions = { ask; look; commit; place; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (STEP_FRESH, KIND_ACQUIRE, STATUS_UNSHARED, _, _): ask(ASK_NOTHING, 0);
            (STEP_FRESH, KIND_ACQUIRE, STATUS_SHARED, _, _): ask(ASK_READ, 1);
            (STEP_FRESH, KIND_ACQUIRE, STATUS_MODIFIED, _, _): ask(ASK_WRITE, 1);
            (STEP_FRESH, KIND_RELEASE, _, 0 &&& 0xffe0, _): look();
            (STEP_COMMIT, KIND_RELEASE, _, 0 &&& 0xffe0, _): commit();
            (STEP_FRESH, KIND_PLACE, _, _, 0 &&& 0xffffffe0): place();
        }
    }
    apply {
        lock_operation.apply();
    }
}

// The epoch in which locks are served: it begins before the one of blocks ends.
control LockEpoch(in headers_t hdr, inout state_t s) {
    action serve_locks(bit<32> sets_mask) {
        s.l.served = 1;
        s.l.sets_mask = sets_mask;
    }
    table lock_epochs {
        key = { hdr.rackmem.epoch: exact; }
        actions = { serve_locks; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 4;
    }
    apply {
        lock_epochs.apply();
    }
}

// How a release's number stands to the entry's: numbers are two words, and a difference that would be negative is zero.
control LockOrder(in headers_t hdr, inout state_t s) {
    action subtract() {
        s.l.apart_high = s.l.high - hdr.rackmem.seq_high;
        s.l.apart_low = s.l.low - hdr.rackmem.seq_low;
        s.l.after_high = hdr.rackmem.seq_high |-| s.l.since_high;
        s.l.before_high = s.l.since_high |-| hdr.rackmem.seq_high;
        s.l.before_low = s.l.since_low |-| hdr.rackmem.seq_low;
    }
    action is(lock_order_t order) {
        s.l.order = order;
    }
    table lock_order {
        key = {
            s.l.apart_high: ternary;
            s.l.apart_low: ternary;
            s.l.after_high: ternary;
            s.l.before_high: ternary;
            s.l.before_low: ternary;
        }
        actions = { is; }
        const default_action = is(NUMBER_OVER);
        const entries = {
            (0, 0, _, 0, 0): is(NUMBER_LAST);
            (_, _, _, 0, 0): is(NUMBER_OTHER);
#if PLANT != 9
            (_, _, 0, 0, _): is(NUMBER_OVER);
#endif
            (0, 0, _, 0, _): is(NUMBER_LAST);
            (_, _, _, 0, _): is(NUMBER_OTHER);
        }
    }
    apply {
        subtract();
        lock_order.apply();
    }
}

// What becomes of the packet.
control LockVerdict(inout state_t s) {
    action is(lock_verdict_t verdict) {
        s.l.verdict = verdict;
    }
    table lock_verdict {
        key = {
            s.l.ask: exact;
            s.l.here: exact;
            s.l.who: ternary;
            s.l.holds: ternary;
            s.l.order: ternary;
        }
        actions = { is; }
        const default_action = is(LOCK_DROP);
        const entries = {
            (ASK_NOTHING, 0, _, _, _): is(LOCK_ELSEWHERE);
            (ASK_READ, 0, _, _, _): is(LOCK_ELSEWHERE);
            (ASK_WRITE, 0, _, _, _): is(LOCK_ELSEWHERE);
            (ASK_LOOK, 0, _, _, _): is(LOCK_ELSEWHERE);
            (ASK_READ, 1, _, 1, _): is(LOCK_MAKE_WAY);
            (ASK_WRITE, 1, _, 1, _): is(LOCK_MAKE_WAY);
            (ASK_READ, 1, WITH(MODE_HOLDS), _, _): is(LOCK_WAIT);
            (ASK_WRITE, 1, WITH(MODE_HOLDS), _, _): is(LOCK_WAIT);
            (ASK_READ, 1, _, _, _): is(LOCK_SHARE);
            (ASK_WRITE, 1, _, _, _): is(LOCK_MAKE_WAY);
            (ASK_LOOK, 1, _, 0, _): is(LOCK_OVER);
            (ASK_LOOK, 1, _, 1, NUMBER_OVER): is(LOCK_OVER);
            (ASK_LOOK, 1, _, 1, NUMBER_OTHER): is(LOCK_DENY);
            (ASK_LOOK, 1, _, 1, NUMBER_LAST): is(LOCK_COMMIT);
            (ASK_COMMIT, 1, _, _, NUMBER_OVER): is(LOCK_OVER);
            (ASK_COMMIT, 1, _, _, NUMBER_OTHER): is(LOCK_DENY);
            (ASK_COMMIT, 1, _, _, NUMBER_LAST): is(LOCK_PASS);
            (ASK_PLACE, 1, _, _, _): is(LOCK_PLACED);
            (ASK_PLACE, 0, _, _, _): is(LOCK_FULL);
        }
    }
    apply {
        lock_verdict.apply();
    }
}

// Who has the data, as a bit of a copyset and as the provider of a multicast.
control Keeper(inout state_t s) {
    action is(bit<32> bit_of_node, bit<16> number_and_one) {
        s.l.keeper = bit_of_node;
        s.l.provider = number_and_one;
    }
    table keepers {
        key = { s.l.kept: exact @name("keeper"); }
        actions = { is; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            0: is(0x00000001, 1);
            1: is(0x00000002, 2);
            2: is(0x00000004, 3);
            3: is(0x00000008, 4);
            4: is(0x00000010, 5);
            5: is(0x00000020, 6);
            6: is(0x00000040, 7);
            7: is(0x00000080, 8);
            8: is(0x00000100, 9);
            9: is(0x00000200, 10);
            10: is(0x00000400, 11);
            11: is(0x00000800, 12);
            12: is(0x00001000, 13);
            13: is(0x00002000, 14);
            14: is(0x00004000, 15);
            15: is(0x00008000, 16);
            16: is(0x00010000, 17);
            17: is(0x00020000, 18);
            18: is(0x00040000, 19);
            19: is(0x00080000, 20);
            20: is(0x00100000, 21);
            21: is(0x00200000, 22);
            22: is(0x00400000, 23);
            23: is(0x00800000, 24);
            24: is(0x01000000, 25);
            25: is(0x02000000, 26);
            26: is(0x04000000, 27);
            27: is(0x08000000, 28);
            28: is(0x10000000, 29);
            29: is(0x20000000, 30);
            30: is(0x40000000, 31);
            31: is(0x80000000, 32);
        }
    }
    apply {
        keepers.apply();
    }
}

// The multicast group of the queue holder.
control Holder(inout state_t s) {
    action at(bit<16> group) {
        s.l.holder_group = group;
    }
    table holders {
        key = { s.l.who[4:0]: exact @name("holder"); }
        actions = { at; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            0: at(1);
            1: at(2);
            2: at(3);
            3: at(4);
            4: at(5);
            5: at(6);
            6: at(7);
            7: at(8);
            8: at(9);
            9: at(10);
            10: at(11);
            11: at(12);
            12: at(13);
            13: at(14);
            14: at(15);
            15: at(16);
            16: at(17);
            17: at(18);
            18: at(19);
            19: at(20);
            20: at(21);
            21: at(22);
            22: at(23);
            23: at(24);
            24: at(25);
            25: at(26);
            26: at(27);
            27: at(28);
            28: at(29);
            29: at(30);
            30: at(31);
            31: at(32);
        }
    }
    apply {
        holders.apply();
    }
}

// The packet that leaves, and to whom: `group` of one node, or of all.
control LockAnswer(inout headers_t hdr, inout state_t s, inout bit<16> group, inout bit<3> again, inout bit<3> dropped) {
    action to_one() {
        s.leave.how = TO_AGENTS;
        s.leave.nodes = ALL_NODES;
    }
    action to_all_concerned(bit<32> nodes) {
        group = EVERYBODY;
        s.leave.how = TO_AGENTS;
        s.leave.nodes = nodes;
        s.leave.provider = s.l.provider;
        hdr.rackmem.sender = SWITCH_SENDER;
        hdr.rackmem.copyset = s.l.sharers;
        hdr.rackmem.reason = s.l.why;
    }
    action share() {
        hdr.rackmem.kind = KIND_GRANT;
        hdr.rackmem.global_status = STATUS_SHARED;
        hdr.rackmem.seq_high = s.l.high;
        hdr.rackmem.seq_low = s.l.low;
        to_all_concerned(s.l.beside);
    }
    // What is told again is told with the number that it had.
    action make_way() {
        hdr.rackmem.kind = KIND_INVALIDATE;
        hdr.rackmem.global_status = STATUS_MODIFIED;
#if PLANT == 7
        hdr.rackmem.seq_high = s.l.high;
        hdr.rackmem.seq_low = s.l.low;
#else
        hdr.rackmem.seq_high = s.l.since_high;
        hdr.rackmem.seq_low = s.l.since_low;
#endif
        to_all_concerned(s.l.everyone);
    }
    action pass(bit<8> status) {
        hdr.rackmem.kind = KIND_GRANT;
        hdr.rackmem.global_status = status;
        hdr.rackmem.seq_high = s.l.number_high;
        hdr.rackmem.seq_low = s.l.number;
        to_all_concerned(s.l.everyone);
    }
    action wait() {
        hdr.rackmem.kind = KIND_WAIT;
        hdr.rackmem.sender = SWITCH_SENDER;
        hdr.rackmem.seq_high = s.l.high;
        hdr.rackmem.seq_low = s.l.low;
        group = s.l.holder_group;
        to_one();
    }
    // The answer names the release that it is about.
    action not_released(bit<8> reason) {
        hdr.rackmem.kind = KIND_RELEASE_ACK;
        group = hdr.rackmem.sender + 1;
        hdr.rackmem.sender = SWITCH_SENDER;
        hdr.rackmem.offset = hdr.rackmem.seq_low;
        hdr.rackmem.seq_high = s.l.high;
        hdr.rackmem.seq_low = s.l.low;
        hdr.rackmem.reason = reason;
        to_one();
    }
    action placed(bit<8> reason) {
        hdr.rackmem.kind = KIND_PLACE_ACK;
        hdr.rackmem.sender = SWITCH_SENDER;
        hdr.rackmem.reason = reason;
        group = s.home_group;
        to_one();
    }
    action pass_on() {
        group = s.home_group;
        to_one();
    }
    action once_more() {
        s.step = STEP_COMMIT;
        again = 1;
    }
    action drop() {
        dropped = 1;
    }
    table lock_answer {
        key = {
            s.l.verdict: exact;
            s.l.mine: ternary;
        }
        actions = { share; make_way; pass; wait; not_released; placed; pass_on; once_more; drop; }
        const default_action = drop;
        const entries = {
            (LOCK_ELSEWHERE, _): pass_on();
            (LOCK_SHARE, _): share();
            (LOCK_MAKE_WAY, _): make_way();
            (LOCK_WAIT, _): wait();
            (LOCK_OVER, _): not_released(REASON_NONE);
            (LOCK_DENY, _): not_released(REASON_MOVED);
            (LOCK_COMMIT, _): once_more();
            (LOCK_PASS, WITH(MODE_HOLDS)): pass(STATUS_MODIFIED);
            (LOCK_PASS, _): pass(STATUS_SHARED);
            (LOCK_PLACED, _): placed(REASON_NONE);
            (LOCK_FULL, _): placed(REASON_FULL);
        }
    }
    apply {
        lock_answer.apply();
    }
}

#endif
