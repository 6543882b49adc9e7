// The scoreboard's rules (crates/proto/src/flowcc/score.rs) and those of moves (crates/proto/src/switch/moves.rs): what is
// written into the row, and what becomes of the packet. The row's sequence number is in an early stage, since it depends on
// nothing else, and the rest in a late one. No packet can come between, because packets pass all stages in one order.

#ifndef RACKMEM_DECIDE
#define RACKMEM_DECIDE

#include "state.p4"

// How a packet's sequence number stands to the row's, which is the low half of one, given how far the row is ahead of it
// (`age`, modulo 2^32). A late packet is less than 2^31 events behind; what is further away was never behind
// (crates/proto/src/switch/numbers.rs).
control Order(inout state_t s) {
    action is(order_t order) {
        s.order = order;
    }
    table order {
        key = { s.age: ternary; }
        actions = { is; }
        const default_action = is(NEWER);
        const entries = {
            0: is(SAME);
#if PLANT == 4
            0 &&& 0xff000000: is(OLDER);
#else
            0 &&& 0x80000000: is(OLDER);
#endif
        }
    }
    apply {
        order.apply();
    }
}

// What there would be to write into the row.
control Offer(inout state_t s) {
    action offer(score_t score) {
        s.score = score;
    }
    table offers {
        key = {
            s.work: exact;
            s.step: exact;
            s.found: ternary;
            s.acquired: ternary;
        }
        actions = { offer; }
        const default_action = offer(SCORE_NOTHING);
        const entries = {
            (WORK_REQUEST, STEP_FRESH, 1, _): offer(SCORE_GRANTED);
            (WORK_REQUEST, STEP_FRESH, 0, _): offer(SCORE_ELSEWHERE);
            (WORK_ADD, STEP_FRESH, _, _): offer(MOVE_CLAIMED);
            (WORK_ADD, STEP_TAKE, 1, _): offer(MOVE_DONE);
            (WORK_ADD, STEP_TAKE, 0, _): offer(MOVE_REFUSED + REASON_FULL);
            (WORK_ADD, STEP_REFUSE, _, _): offer(MOVE_REFUSED + REASON_FULL);
            (WORK_REMOVE, STEP_FRESH, _, _): offer(MOVE_CLAIMED);
            (WORK_REMOVE, STEP_RETIRE, 0, _): offer(MOVE_REFUSED + REASON_MOVED);
            (WORK_REMOVE, STEP_RETIRE, 1, 0): offer(MOVE_REFUSED + REASON_LOCKED);
            (WORK_REMOVE, STEP_RETIRE, 1, 1): offer(MOVE_DONE);
            (WORK_REMOVE, STEP_FREE, _, _): offer(MOVE_DONE);
        }
    }
    apply {
        offers.apply();
    }
}

// What is done to the row's flags. `enter` writes what is on offer, `refuse` nothing; `and_undo` gives back the lock that
// this pass took.
#define SCORE_KEY { \
            s.work: exact; \
            s.step: exact; \
            s.order: ternary; \
            s.found: ternary; \
            s.acquired: ternary; \
            s.valid: ternary; \
        }
#define SCORE_ACTIONS { enter; refuse; refuse_and_undo; read; read_and_undo; undo; leave; @defaultonly NoAction; }
#define SCORE_ENTRIES { \
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 1): enter(); \
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 0): refuse_and_undo(); \
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 0, _): refuse(); \
            (WORK_REQUEST, STEP_FRESH, NEWER, 0, _, _): enter(); \
            (WORK_REQUEST, STEP_FRESH, SAME, _, 1, _): read_and_undo(); \
            (WORK_REQUEST, STEP_FRESH, SAME, _, 0, _): read(); \
            (WORK_REQUEST, STEP_FRESH, OLDER, _, 1, _): undo(); \
            (WORK_UNLOCK, STEP_FRESH, SAME, _, _, _): leave(); \
            (WORK_ADD, STEP_FRESH, NEWER, _, _, _): enter(); \
            (WORK_ADD, STEP_FRESH, SAME, _, _, _): read(); \
            (WORK_ADD, STEP_TAKE, _, _, _, _): enter(); \
            (WORK_ADD, STEP_REFUSE, _, _, _, _): enter(); \
            (WORK_REMOVE, STEP_FRESH, NEWER, _, _, _): enter(); \
            (WORK_REMOVE, STEP_FRESH, SAME, _, _, _): read(); \
            (WORK_REMOVE, STEP_RETIRE, _, _, _, _): enter(); \
            (WORK_REMOVE, STEP_FREE, _, _, _, _): enter(); \
        }

// What is done to the route in it: status and provider of a granted request, which all copies follow.
#define ROUTE_ACTIONS { keep; clear; read; @defaultonly NoAction; }
#define ROUTE_ENTRIES { \
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 1): keep(); \
            (WORK_REQUEST, STEP_FRESH, NEWER, _, _, _): clear(); \
            (WORK_REQUEST, STEP_FRESH, SAME, _, _, _): read(); \
        }

// What becomes of the packet.
control Verdict(in headers_t hdr, inout state_t s) {
    action drop() {
        s.verdict = DROP;
    }
    action granted() {
        s.verdict = GRANTED;
    }
    action refused(bit<8> reason) {
        s.verdict = REFUSED;
        s.reason = reason;
    }
    action elsewhere() {
        s.verdict = ELSEWHERE;
    }
    action unlocked() {
        s.verdict = UNLOCKED;
    }
    action once_more(step_t step) {
        s.verdict = RESUBMITTED;
        s.step = step;
    }
    action added(bit<8> reason) {
        s.verdict = ADDED;
        s.reason = reason;
    }
    action removed(bit<8> reason) {
        s.verdict = REMOVED;
        s.reason = reason;
    }
    action retired() {
        s.verdict = RETIRED;
        s.reason = REASON_NONE;
    }
    table verdict {
        key = {
            s.work: exact;
            s.step: ternary;
            s.order: ternary;
            s.found: ternary;
            s.acquired: ternary;
            s.score: ternary;
            hdr.rackmem.flags: ternary;
        }
        actions = { drop; granted; refused; elsewhere; unlocked; once_more; added; removed; retired; }
        const default_action = drop;
        const entries = {
            // What the first pass has decided. It had the lock to give back, so if it has refused, then not for want of it.
            (WORK_REQUEST, STEP_UNDO + GRANTED, _, _, _, _, _): granted();
            (WORK_REQUEST, STEP_UNDO + REFUSED, _, _, _, _, _): refused(REASON_INVALID);
            (WORK_REQUEST, STEP_UNDO + ELSEWHERE, _, _, _, _, _): elsewhere();
            (WORK_REQUEST, WITH(STEP_UNDO), _, _, _, _, _): drop();
            (WORK_REQUEST, _, OLDER, _, _, _, _): drop();
            (WORK_REQUEST, _, _, 1, _, WITH(SCORE_GRANTED), _): granted();
            // It was granted, and the entry has left since.
            (WORK_REQUEST, _, _, 0, _, WITH(SCORE_GRANTED), _): drop();
            (WORK_REQUEST, _, _, _, _, WITH(SCORE_ELSEWHERE), _): elsewhere();
            (WORK_REQUEST, _, _, _, 0, _, _): refused(REASON_LOCKED);
            (WORK_REQUEST, _, _, _, 1, _, _): refused(REASON_INVALID);

            (WORK_UNLOCK, STEP_FRESH, SAME, _, _, WITH(SCORE_GRANTED), _): once_more(STEP_RELEASE);
            (WORK_UNLOCK, _, _, _, _, _, _): unlocked();

            (WORK_ADD, STEP_FRESH, OLDER, _, _, _, _): drop();
            (WORK_ADD, STEP_FRESH, NEWER, 1, _, _, _): once_more(STEP_REFUSE);
            (WORK_ADD, STEP_FRESH, NEWER, 0, _, _, _): once_more(STEP_TAKE);
            (WORK_ADD, _, _, _, _, SCORE_NOTHING, _): drop();
            (WORK_ADD, _, _, _, _, MOVE_CLAIMED, _): drop();
            (WORK_ADD, _, _, _, _, MOVE_DONE, _): added(REASON_NONE);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + REASON_LOCKED, _): added(REASON_LOCKED);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + REASON_MOVED, _): added(REASON_MOVED);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + REASON_FULL, _): added(REASON_FULL);
            (WORK_ADD, _, _, _, _, _, _): added(REASON_REFUSED);

            // With GRANTED, home has the metadata: this is the second step.
            (WORK_REMOVE, STEP_FRESH, OLDER, _, _, _, _): drop();
            (WORK_REMOVE, STEP_FRESH, NEWER, _, _, _, WITH(FLAG_GRANTED)): once_more(STEP_FREE);
            (WORK_REMOVE, STEP_FRESH, NEWER, _, _, _, WITHOUT(FLAG_GRANTED)): once_more(STEP_RETIRE);
            (WORK_REMOVE, STEP_FRESH, SAME, _, _, MOVE_DONE, WITHOUT(FLAG_GRANTED)): once_more(STEP_LOOK);
            (WORK_REMOVE, STEP_LOOK, _, _, _, _, _): retired();
            (WORK_REMOVE, STEP_RETIRE, _, _, _, MOVE_DONE, _): retired();
            (WORK_REMOVE, _, _, _, _, SCORE_NOTHING, _): drop();
            (WORK_REMOVE, _, _, _, _, MOVE_CLAIMED, _): drop();
            (WORK_REMOVE, _, _, _, _, MOVE_DONE, _): removed(REASON_NONE);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + REASON_LOCKED, _): removed(REASON_LOCKED);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + REASON_MOVED, _): removed(REASON_MOVED);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + REASON_FULL, _): removed(REASON_FULL);
            (WORK_REMOVE, _, _, _, _, _, _): removed(REASON_REFUSED);
        }
    }
    apply {
        verdict.apply();
    }
}

#endif
