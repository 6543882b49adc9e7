// The register arrays, for v1model. Each is read and written once a pass, in one place: what an RMT stage can do.

#ifndef RACKMEM_V1MODEL_REGISTERS
#define RACKMEM_V1MODEL_REGISTERS

#include "../decide.p4"

#ifndef SETS
#define SETS 32768
#endif
#define ROWS 6144

// One way of the entry table: TAG, and behind it LOCK, G-STATUS and COPYSET (crates/proto/src/switch/entry.rs). The low bit of
// a tag says that the location is taken.
control Way(in headers_t hdr, in bit<32> at, inout state_t s) {
    register<bit<64>, bit<32>>(SETS) tag;
    register<bit<16>, bit<32>>(SETS) lock;
    register<bit<8>, bit<32>>(SETS) status;
    register<bit<32>, bit<32>>(SETS) copyset;

    apply {
        if (s.tag_op != TAG_NONE && s.found == 0) {
            bit<64> wanted = hdr.rackmem.tag | 1;
            bit<64> there;
            tag.read(there, at);
            if (s.tag_op == TAG_TAKE) {
                if (there == 0) {
                    s.found = 1;
                    tag.write(at, wanted);
                }
            } else if (there == wanted) {
                s.found = 1;
                if (s.tag_op == TAG_GIVE) {
                    tag.write(at, 0);
                }
            }
            if (s.found == 1) {
                bit<16> held;
                lock.read(held, at);
                if (s.lock_op == LOCK_ACQUIRE) {
                    if (held <= s.lock_limit) {
                        s.acquired = 1;
                        held = held + s.lock_amount;
                    }
                } else if (s.lock_op == LOCK_RELEASE_SHARED) {
                    if (held != 0 && held < LOCK_WRITER) {
                        held = held - 1;
                    }
                } else if (s.lock_op == LOCK_RELEASE_ALONE) {
                    if (held == LOCK_WRITER) {
                        held = 0;
                    }
                } else if (s.lock_op == LOCK_CLEAR) {
                    held = 0;
                }
                lock.write(at, held);

                bit<32> members;
                copyset.read(members, at);
                if (s.meta_op == META_READ) {
                    status.read(s.status, at);
                    s.copyset = members;
                } else if (s.meta_op == META_WRITE) {
                    status.write(at, hdr.rackmem.global_status);
                    copyset.write(at, hdr.rackmem.copyset);
                } else if (s.meta_op == META_JOIN) {
                    status.write(at, hdr.rackmem.global_status);
                    copyset.write(at, hdr.rackmem.copyset | members);
                } else if (s.meta_op == META_CLEAR) {
                    status.write(at, 0);
                    copyset.write(at, 0);
                }
            }
        }
    }
}

// SCOREBOARD and MOVES in one: row `node:5 | slot:6 | parity:1` is a score, row 4096 + `node:5 | slot:6` a move.
control RowSeq(in headers_t hdr, inout state_t s) {
    register<bit<32>, bit<32>>(ROWS) seq;

    apply {
        if (s.row_op != ROW_NONE) {
            seq.read(s.row_seq, (bit<32>) s.row);
            s.age = s.row_seq - hdr.rackmem.seq;
            if (s.row_op == ROW_ENTER && s.age >= SEQ_WINDOW) {
                seq.write((bit<32>) s.row, hdr.rackmem.seq);
            }
        }
    }
}

control RowScore(inout state_t s) {
    register<score_t, bit<32>>(ROWS) score;

    action enter() {
        score.write((bit<32>) s.row, s.score);
    }
    action refuse() {
        s.score = SCORE_NOTHING;
        score.write((bit<32>) s.row, SCORE_NOTHING);
    }
    action refuse_and_undo() {
        refuse();
        s.undo = 1;
    }
    action read() {
        score.read(s.score, (bit<32>) s.row);
    }
    action read_and_undo() {
        read();
        s.undo = 1;
    }
    action undo() {
        s.undo = 1;
    }
    action leave() {
        score.read(s.score, (bit<32>) s.row);
        score.write((bit<32>) s.row, s.score & SCORE_LEFT);
    }
    table scores {
        key = SCORE_KEY
        actions = SCORE_ACTIONS
        const default_action = NoAction;
        const entries = SCORE_ENTRIES
    }
    apply {
        scores.apply();
    }
}

control RowRoute(inout state_t s) {
    register<bit<8>, bit<32>>(ROWS) status;
    register<bit<16>, bit<32>>(ROWS) provider;

    action keep() {
        s.provider = s.choice;
        status.write((bit<32>) s.row, s.status);
        provider.write((bit<32>) s.row, s.choice);
    }
    action clear() {
        status.write((bit<32>) s.row, 0);
        provider.write((bit<32>) s.row, 0);
    }
    action read() {
        status.read(s.status, (bit<32>) s.row);
        provider.read(s.provider, (bit<32>) s.row);
    }
    table routes {
        key = SCORE_KEY
        actions = ROUTE_ACTIONS
        const default_action = NoAction;
        const entries = ROUTE_ENTRIES
    }
    apply {
        routes.apply();
    }
}

#endif
