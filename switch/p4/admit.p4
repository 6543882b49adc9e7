// Which packets are for the program, and what each asks of the registers (crates/proto/src/switch/program.rs, `handle`).

#ifndef RACKMEM_ADMIT
#define RACKMEM_ADMIT

#include "state.p4"

// What crates/wire refuses to decode is dropped here: every field must be in its range, and the lengths must agree with
// each other. A packet for the program has no body.
control WellFormed(in headers_t hdr, inout state_t s) {
    action good() {
        s.good = 1;
    }
    action good_with_body() {
        s.good = 1;
        s.body = 1;
    }
    table well_formed {
        key = {
            hdr.ipv4.total_len: ternary;
            hdr.udp.length: ternary;
            hdr.rackmem.body_len: ternary;
            hdr.rackmem.magic: ternary;
            hdr.rackmem.version: ternary;
            hdr.rackmem.tag[63:48]: ternary @name("home");
            hdr.rackmem.node_id: ternary;
            hdr.rackmem.requester: ternary;
            hdr.rackmem.global_status: ternary;
            hdr.rackmem.flags: ternary;
            hdr.rackmem.reason: ternary;
            hdr.rackmem.reserved: ternary;
        }
        actions = { good; good_with_body; @defaultonly NoAction; }
        const default_action = NoAction;
        // A body is no longer than 32 KiB, a home and a slot are below 64, a node below 32, a status below 3 and a
        // reason below 13: ranges that are not powers of two take two rows or three. What is about a home that a group keeps,
        // from 32 on, counts as one with a body: the program has nothing of these, and the control plane gets its packets.
#define OWN_HOME 0 &&& 0xffe0
#define ANY_HOME 0 &&& 0xffc0
#define ROW(total, udp, body, home, status, why, what) \
            (total, udp, body, MAGIC, VERSION, home, 0 &&& 0xe0, 0 &&& 0xc0, status, 0 &&& 0x80, why, 0): what;
#define REASONS(total, udp, body, home, status, what) \
            ROW(total, udp, body, home, status, 0 &&& 0xf8, what) \
            ROW(total, udp, body, home, status, REASON_FENCED &&& 0xfc, what) \
            ROW(total, udp, body, home, status, REASON_NOT_MODIFIED, what)
#define STATUSES(total, udp, body, home, what) \
            REASONS(total, udp, body, home, 0 &&& 0xfe, what) \
            REASONS(total, udp, body, home, STATUS_MODIFIED, what)
        const entries = {
            STATUSES(IPV4_WITHOUT_BODY, UDP_WITHOUT_BODY, 0, OWN_HOME, good())
            STATUSES(_, _, 0 &&& 0x8000, ANY_HOME, good_with_body())
            STATUSES(_, _, MAX_BODY, ANY_HOME, good_with_body())
        }
#undef STATUSES
#undef REASONS
#undef ROW
#undef ANY_HOME
#undef OWN_HOME
    }
    // What a kind has of its own is there, all of it.
    action cut_short() {
        s.good = 0;
    }
    table own {
        key = {
            hdr.rackmem.kind: ternary;
            hdr.rackmem.body_len: ternary;
        }
        actions = { cut_short; @defaultonly NoAction; }
        const default_action = NoAction;
        // Lengths below OWN_LEN, of kinds from FIRST_WITH_OWN on.
        const entries = {
            (0x50 &&& 0xf0, 0 &&& 0xfff0): cut_short();
            (0x60 &&& 0xe0, 0 &&& 0xfff0): cut_short();
            (0x80 &&& 0x80, 0 &&& 0xfff0): cut_short();
        }
    }
    apply {
        well_formed.apply();
        own.apply();
        // With a body these must be 20 and 56.
        s.ip_rest = hdr.ipv4.total_len - hdr.udp.length;
        s.udp_rest = hdr.udp.length - hdr.rackmem.body_len;
    }
}

// The epoch that is served. The control plane freezes the program by taking the row away.
control Epoch(in headers_t hdr, inout state_t s) {
    action serve(bit<32> seed, bit<32> shadow, bit<32> sets_mask) {
        s.served = 1;
        s.seed = seed[4:0];
#if PLANT != 5
        s.shadow = shadow;
#endif
        s.sets_mask = sets_mask;
    }
    table epochs {
        key = { hdr.rackmem.epoch: exact; }
        actions = { serve; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 4;
    }
    apply {
        epochs.apply();
    }
}

// Who may ask: the nodes of the rack and the requesters of each, or the slots for moves of a home agent.
control Known(in headers_t hdr, inout state_t s) {
    action known() {
        s.known = 1;
    }
    table known_requesters {
        key = {
            hdr.rackmem.kind: ternary;
            hdr.rackmem.node_id: ternary;
            hdr.rackmem.requester: ternary;
        }
        actions = { known; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 16;
    }
    apply {
        known_requesters.apply();
    }
}

// What each kind does in each of its passes.
control Operation(in headers_t hdr, inout state_t s) {
    action request_shared() {
        s.work = WORK_REQUEST;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_ACQUIRE;
        s.lock_limit = LOCK_MAX_READERS - 1;
        s.lock_amount = 1;
        s.meta_op = META_READ;
        s.row_op = ROW_ENTER;
    }
    action request_alone() {
        s.work = WORK_REQUEST;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_ACQUIRE;
        s.lock_limit = 0;
        s.lock_amount = LOCK_WRITER;
        s.meta_op = META_READ;
        s.row_op = ROW_ENTER;
    }
    action undo_shared() {
        s.work = WORK_REQUEST;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_RELEASE_SHARED;
    }
    action undo_alone() {
        s.work = WORK_REQUEST;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_RELEASE_ALONE;
    }
    action unlock() {
        s.work = WORK_UNLOCK;
        s.row_op = ROW_READ;
    }
    action release_shared(meta_op_t meta) {
        s.work = WORK_UNLOCK;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_RELEASE_SHARED;
        s.meta_op = meta;
    }
    action release_alone(meta_op_t meta) {
        s.work = WORK_UNLOCK;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_RELEASE_ALONE;
        s.meta_op = meta;
    }
    action add() {
        s.work = WORK_ADD;
        s.tag_op = TAG_MATCH;
        s.meta_op = META_READ;
        s.row_op = ROW_ENTER;
    }
    action take() {
        s.work = WORK_ADD;
        s.tag_op = TAG_TAKE;
        s.lock_op = LOCK_CLEAR;
        s.meta_op = META_WRITE;
    }
    action refuse() {
        s.work = WORK_ADD;
    }
    action remove() {
        s.work = WORK_REMOVE;
        s.row_op = ROW_ENTER;
    }
    action retire() {
        s.work = WORK_REMOVE;
        s.tag_op = TAG_MATCH;
        s.lock_op = LOCK_ACQUIRE;
        s.lock_limit = 0;
        s.lock_amount = LOCK_WRITER;
        s.meta_op = META_READ;
    }
    action look() {
        s.work = WORK_REMOVE;
        s.tag_op = TAG_MATCH;
        s.meta_op = META_READ;
    }
    action free() {
        s.work = WORK_REMOVE;
        s.tag_op = TAG_GIVE;
        s.lock_op = LOCK_CLEAR;
        s.meta_op = META_CLEAR;
    }
    action lock() {
        s.work = WORK_LOCK;
    }
    action control_plane() {
        s.work = WORK_CONTROL;
    }
    table operation {
        key = {
            s.step: ternary;
            hdr.rackmem.kind: exact;
            hdr.rackmem.flags: ternary;
        }
        actions = {
            request_shared; request_alone; undo_shared; undo_alone; unlock; release_shared; release_alone;
            add; take; refuse; remove; retire; look; free; lock; control_plane; @defaultonly NoAction;
        }
        const default_action = NoAction;
        const entries = {
            // A request that is granted already is another switch's, or a mistake.
            (STEP_FRESH, KIND_READ_MISS, WITHOUT(FLAG_GRANTED)): request_shared();
            (STEP_FRESH, KIND_WRITE_MISS, WITHOUT(FLAG_GRANTED)): request_alone();
            (STEP_FRESH, KIND_WRITE_SHARED, WITHOUT(FLAG_GRANTED)): request_alone();
            (STEP_FRESH, KIND_EVICT_SHARED, WITHOUT(FLAG_GRANTED)): request_alone();
            (STEP_FRESH, KIND_EVICT_MODIFIED, WITHOUT(FLAG_GRANTED)): request_alone();
            (STEP_FRESH, KIND_LOCK_READ, WITHOUT(FLAG_GRANTED)): request_shared();
            (STEP_FRESH, KIND_LOCK_WRITE, WITHOUT(FLAG_GRANTED)): request_alone();
            (WITH(STEP_UNDO), KIND_READ_MISS, _): undo_shared();
            (WITH(STEP_UNDO), KIND_WRITE_MISS, _): undo_alone();
            (WITH(STEP_UNDO), KIND_WRITE_SHARED, _): undo_alone();
            (WITH(STEP_UNDO), KIND_EVICT_SHARED, _): undo_alone();
            (WITH(STEP_UNDO), KIND_EVICT_MODIFIED, _): undo_alone();
            (WITH(STEP_UNDO), KIND_LOCK_READ, _): undo_shared();
            (WITH(STEP_UNDO), KIND_LOCK_WRITE, _): undo_alone();
            // Read unlocks race with each other: union, never overwrite.
            (STEP_FRESH, KIND_UNLOCK, WITH(FLAG_IN_SWITCH)): unlock();
            (STEP_RELEASE, KIND_UNLOCK, WITH((FLAG_READER | FLAG_KEEP))): release_shared(META_NONE);
#if PLANT == 1
            (STEP_RELEASE, KIND_UNLOCK, WITH(FLAG_READER)): release_shared(META_WRITE);
#else
            (STEP_RELEASE, KIND_UNLOCK, WITH(FLAG_READER)): release_shared(META_JOIN);
#endif
            (STEP_RELEASE, KIND_UNLOCK, WITH(FLAG_KEEP)): release_alone(META_NONE);
            (STEP_RELEASE, KIND_UNLOCK, _): release_alone(META_WRITE);
            (STEP_FRESH, KIND_ADD_TO_SWITCH, _): add();
            (STEP_TAKE, KIND_ADD_TO_SWITCH, _): take();
            (STEP_REFUSE, KIND_ADD_TO_SWITCH, _): refuse();
            (STEP_FRESH, KIND_REMOVE_FROM_SWITCH, _): remove();
            (STEP_RETIRE, KIND_REMOVE_FROM_SWITCH, _): retire();
            (STEP_LOOK, KIND_REMOVE_FROM_SWITCH, _): look();
            (STEP_FREE, KIND_REMOVE_FROM_SWITCH, _): free();
            (STEP_FRESH, KIND_ACQUIRE, _): lock();
            (STEP_FRESH, KIND_RELEASE, _): lock();
            (STEP_COMMIT, KIND_RELEASE, _): lock();
            (STEP_FRESH, KIND_PLACE, _): lock();
            // Everything else that is a kind goes to the control plane.
            CONTROL_PLANE_ENTRIES
        }
    }
    apply {
        operation.apply();
    }
}

#endif
