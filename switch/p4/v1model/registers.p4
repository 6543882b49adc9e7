// The register arrays, for v1model. Each is read and written once a pass, in one place: what an RMT stage can do.

#ifndef RACKMEM_V1MODEL_REGISTERS
#define RACKMEM_V1MODEL_REGISTERS

#include "../state.p4"

#ifndef SETS
#define SETS 32768
#endif
#define ROWS 6144

// One way of the entry table: TAG, and behind it LOCK, G-STATUS and COPYSET (crates/proto/src/switch/entry.rs).
control Way(inout state_t s) {
    register<bit<64>, bit<32>>(SETS) tag;
    register<bit<16>, bit<32>>(SETS) lock;
    register<bit<8>, bit<32>>(SETS) status;
    register<bit<32>, bit<32>>(SETS) copyset;

    apply {
        if (s.tag_op != TAG_NONE && s.found == 0) {
            bit<64> there;
            tag.read(there, s.hash);
            if (s.tag_op == TAG_TAKE) {
                if (there == 0) {
                    s.found = 1;
                    tag.write(s.hash, s.stored);
                }
            } else if (there == s.stored) {
                s.found = 1;
                if (s.tag_op == TAG_GIVE) {
                    tag.write(s.hash, 0);
                }
            }
            if (s.found == 1) {
                bit<16> held;
                lock.read(held, s.hash);
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
                lock.write(s.hash, held);

                status.read(s.status, s.hash);
                copyset.read(s.copyset, s.hash);
                if (s.meta_op == META_WRITE) {
                    status.write(s.hash, s.new_status);
                    copyset.write(s.hash, s.new_copyset);
                } else if (s.meta_op == META_JOIN) {
                    status.write(s.hash, s.new_status);
                    copyset.write(s.hash, s.new_copyset | s.copyset);
                }
            }
        }
    }
}

// SCOREBOARD and MOVES in one: row `node:5 | slot:6 | parity:1` is a score, row 4096 + `node:5 | slot:6` a move. The
// sequence number is the high half of what crates/proto keeps as one word.
control RowSeq(in headers_t hdr, inout state_t s) {
    register<bit<32>, bit<32>>(ROWS) seq;

    apply {
        if (s.row_op != ROW_NONE) {
            seq.read(s.row_seq, (bit<32>) s.row);
            s.age = s.row_seq - hdr.rackmem.seq;
            // Newer is what the row is not ahead of by less than 2^24, and not equal to.
            if (s.row_op == ROW_ENTER && s.age >= 1 << 24) {
                seq.write((bit<32>) s.row, hdr.rackmem.seq);
            }
        }
    }
}

control RowScore(inout state_t s) {
    register<bit<16>, bit<32>>(ROWS) score;

    apply {
        if (s.score_op == SCORE_WRITE) {
            score.write((bit<32>) s.row, s.score);
        } else if (s.score_op == SCORE_READ) {
            score.read(s.score, (bit<32>) s.row);
        } else if (s.score_op == SCORE_LEAVE) {
            score.read(s.score, (bit<32>) s.row);
            score.write((bit<32>) s.row, s.score & ~SCORE_GRANTED);
        }
    }
}

#endif
