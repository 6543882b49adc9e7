// The scoreboard's rules (crates/proto/src/flowcc/score.rs) and those of moves (crates/proto/src/switch/moves.rs): what is
// written into the row, and what becomes of the packet. A row is two registers, the sequence number and, some stages
// later, the rest: no packet can come between, because packets pass all stages in one order.

#ifndef RACKMEM_DECIDE
#define RACKMEM_DECIDE

#include "state.p4"

// How a packet's sequence number stands to the row's, given how far the row is ahead of it (`age`, modulo 2^32). A late
// packet is less than 2^24 events behind; what is further away was never behind.
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
            0 &&& 0xff000000: is(OLDER);
        }
    }
    apply {
        order.apply();
    }
}

// Before the row's second register.
control Rule(in again_t again, inout state_t s) {
    // The first copy of a request, which has the lock and is valid: its route is what all copies will follow.
    action grant(bit<16> status_and_granted) {
        s.score_op = SCORE_WRITE;
        s.score = s.route | status_and_granted;
    }
    action enter(bit<16> score) {
        s.score_op = SCORE_WRITE;
        s.score = score;
    }
    action enter_and_undo(bit<16> score) {
        s.score_op = SCORE_WRITE;
        s.score = score;
        s.undo = 1;
    }
    action read() {
        s.score_op = SCORE_READ;
    }
    action read_and_undo() {
        s.score_op = SCORE_READ;
        s.undo = 1;
    }
    action undo() {
        s.undo = 1;
    }
    action leave() {
        s.score_op = SCORE_LEAVE;
    }
    table rule {
        key = {
            s.work: exact;
            again.step: exact;
            s.order: ternary;
            s.found: ternary;
            s.acquired: ternary;
            s.valid: ternary;
            s.status: ternary;
        }
        actions = { grant; enter; enter_and_undo; read; read_and_undo; undo; leave; NoAction; }
        const default_action = NoAction;
        const entries = {
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 1, STATUS_UNSHARED): grant(GRANTED_UNSHARED);
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 1, STATUS_SHARED): grant(GRANTED_SHARED);
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 1, STATUS_MODIFIED): grant(GRANTED_MODIFIED);
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 1, 0, _): enter_and_undo(0);
            (WORK_REQUEST, STEP_FRESH, NEWER, 1, 0, _, _): enter(0);
            (WORK_REQUEST, STEP_FRESH, NEWER, 0, _, _, _): enter(SCORE_ELSEWHERE);
            (WORK_REQUEST, STEP_FRESH, SAME, _, 1, _, _): read_and_undo();
            (WORK_REQUEST, STEP_FRESH, SAME, _, 0, _, _): read();
            (WORK_REQUEST, STEP_FRESH, OLDER, _, 1, _, _): undo();
            (WORK_UNLOCK, STEP_FRESH, SAME, _, _, _, _): leave();
            (WORK_ADD, STEP_FRESH, NEWER, _, _, _, _): enter(MOVE_CLAIMED);
            (WORK_ADD, STEP_FRESH, SAME, _, _, _, _): read();
            (WORK_ADD, STEP_TAKE, _, 1, _, _, _): enter(MOVE_DONE);
            (WORK_ADD, STEP_TAKE, _, 0, _, _, _): enter(MOVE_REFUSED + 5);
            (WORK_ADD, STEP_REFUSE, _, _, _, _, _): enter(MOVE_REFUSED + 5);
            (WORK_REMOVE, STEP_FRESH, NEWER, _, _, _, _): enter(MOVE_CLAIMED);
            (WORK_REMOVE, STEP_FRESH, SAME, _, _, _, _): read();
            (WORK_REMOVE, STEP_RETIRE, _, 0, _, _, _): enter(MOVE_REFUSED + 3);
            (WORK_REMOVE, STEP_RETIRE, _, 1, 0, _, _): enter(MOVE_REFUSED + 1);
            (WORK_REMOVE, STEP_RETIRE, _, 1, 1, _, _): enter(MOVE_DONE);
            (WORK_REMOVE, STEP_FREE, _, _, _, _, _): enter(MOVE_DONE);
        }
    }
    apply {
        rule.apply();
    }
}

// After it.
control Verdict(in headers_t hdr, in again_t again, inout state_t s) {
    action drop() {
        s.verdict = DROP;
    }
    action granted() {
        s.verdict = GRANTED;
        s.status = 6w0 ++ s.score[2:1];
        s.provider = s.score[15:8];
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
        s.verdict = AGAIN;
        s.step = step;
    }
    action added(bit<8> reason) {
        s.verdict = ADDED;
        s.reason = reason;
    }
    action removed(bit<8> reason) {
        s.verdict = REMOVED;
        s.reason = reason;
        s.status = STATUS_UNSHARED;
        s.copyset = 0;
    }
    // With the metadata of the entry, which its lock keeps as it is.
    action retired() {
        s.verdict = REMOVED;
        s.reason = REASON_NONE;
    }
    // What the first pass has decided.
    action as_decided() {
        s.verdict = again.verdict;
        s.reason = 4w0 ++ again.reason;
        s.status = 4w0 ++ again.status;
        s.provider = again.provider;
        s.copyset = again.copyset;
    }
    table verdict {
        key = {
            s.work: exact;
            again.step: ternary;
            s.order: ternary;
            s.found: ternary;
            s.acquired: ternary;
            s.score: ternary;
            hdr.rackmem.flags: ternary;
        }
        actions = { drop; granted; refused; elsewhere; unlocked; once_more; added; removed; retired; as_decided; }
        const default_action = drop;
        const entries = {
            (WORK_REQUEST, STEP_UNDO, _, _, _, _, _): as_decided();
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
            (WORK_ADD, _, _, _, _, 0, _): drop();
            (WORK_ADD, _, _, _, _, MOVE_CLAIMED, _): drop();
            (WORK_ADD, _, _, _, _, MOVE_DONE, _): added(REASON_NONE);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + 1, _): added(REASON_LOCKED);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + 2, _): added(REASON_INVALID);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + 3, _): added(REASON_MOVED);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + 4, _): added(REASON_NO_MEMORY);
            (WORK_ADD, _, _, _, _, MOVE_REFUSED + 5, _): added(REASON_FULL);
            (WORK_ADD, _, _, _, _, _, _): added(REASON_REFUSED);

            // With GRANTED, home has the metadata: this is the second step.
            (WORK_REMOVE, STEP_FRESH, OLDER, _, _, _, _): drop();
            (WORK_REMOVE, STEP_FRESH, NEWER, _, _, _, WITH(FLAG_GRANTED)): once_more(STEP_FREE);
            (WORK_REMOVE, STEP_FRESH, NEWER, _, _, _, WITHOUT(FLAG_GRANTED)): once_more(STEP_RETIRE);
            (WORK_REMOVE, STEP_FRESH, SAME, _, _, MOVE_DONE, WITHOUT(FLAG_GRANTED)): once_more(STEP_LOOK);
            (WORK_REMOVE, STEP_LOOK, _, _, _, _, _): retired();
            (WORK_REMOVE, STEP_RETIRE, _, _, _, MOVE_DONE, _): retired();
            (WORK_REMOVE, _, _, _, _, 0, _): drop();
            (WORK_REMOVE, _, _, _, _, MOVE_CLAIMED, _): drop();
            (WORK_REMOVE, _, _, _, _, MOVE_DONE, _): removed(REASON_NONE);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + 1, _): removed(REASON_LOCKED);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + 2, _): removed(REASON_INVALID);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + 3, _): removed(REASON_MOVED);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + 4, _): removed(REASON_NO_MEMORY);
            (WORK_REMOVE, _, _, _, _, MOVE_REFUSED + 5, _): removed(REASON_FULL);
            (WORK_REMOVE, _, _, _, _, _, _): removed(REASON_REFUSED);
        }
    }
    apply {
        verdict.apply();
    }
}

#endif
