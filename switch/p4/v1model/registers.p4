// The register arrays, for v1model. Each is read and written once a pass, in one place: what an RMT stage can do.

#ifndef RACKMEM_V1MODEL_REGISTERS
#define RACKMEM_V1MODEL_REGISTERS

#include "../decide.p4"

#ifndef SETS
#define SETS 32768
#endif
#define ROWS 6144
#ifndef LOCK_SETS
#define LOCK_SETS 4096
#endif

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

// One way of the directory of locks. A lock that is placed takes the first free location, and nothing if it is here already.
control LockWay(in headers_t hdr, in bit<32> at, inout state_t s) {
    register<bit<64>, bit<32>>(LOCK_SETS) tag;
    register<bit<32>, bit<32>>(LOCK_SETS) version_high;
    register<bit<32>, bit<32>>(LOCK_SETS) version_low;
    register<bit<32>, bit<32>>(LOCK_SETS) since_high;
    register<bit<32>, bit<32>>(LOCK_SETS) since_low;
    register<bit<32>, bit<32>>(LOCK_SETS) who;
    register<bit<16>, bit<32>>(LOCK_SETS) kept;
    register<bit<8>, bit<32>>(LOCK_SETS) why;
    register<bit<32>, bit<32>>(LOCK_SETS) sharers;

    apply {
        if (s.l.here == 0) {
            bit<64> wanted = hdr.rackmem.tag | 1;
            bit<64> there;
            tag.read(there, at);
            bit<64> number = hdr.rackmem.seq_high ++ hdr.rackmem.seq_low;
            if (s.l.ask == ASK_PLACE && there == 0) {
                s.l.here = 1;
                tag.write(at, wanted);
                version_high.write(at, hdr.rackmem.seq_high);
                version_low.write(at, hdr.rackmem.seq_low);
                since_high.write(at, hdr.rackmem.seq_high);
                since_low.write(at, hdr.rackmem.seq_low);
                who.write(at, s.l.mine);
                kept.write(at, hdr.rackmem.offset[15:0]);
                why.write(at, s.l.why);
                sharers.write(at, hdr.rackmem.copyset);
            } else if (there == wanted) {
                s.l.here = 1;
                version_high.read(s.l.high, at);
                version_low.read(s.l.low, at);
                since_high.read(s.l.since_high, at);
                since_low.read(s.l.since_low, at);
                bit<64> last = s.l.high ++ s.l.low;
                who.read(s.l.who, at);
                sharers.read(s.l.sharers, at);
                if (s.l.ask == ASK_READ || s.l.ask == ASK_WRITE) {
                    kept.read(s.l.kept, at);
                    why.read(s.l.why, at);
                    if (s.l.who != s.l.mine) {
                        last = last + 1;
                        s.l.high = last[63:32];
                        s.l.low = last[31:0];
                        version_high.write(at, s.l.high);
                        version_low.write(at, s.l.low);
                        if (s.l.who >= MODE_SHARES) {
                            if (s.l.ask == ASK_WRITE) {
                                who.write(at, s.l.mine);
                                s.l.since_high = s.l.high;
                                s.l.since_low = s.l.low;
                                since_high.write(at, s.l.since_high);
                                since_low.write(at, s.l.since_low);
                            } else {
                                s.l.sharers = s.l.sharers | s.me;
                                sharers.write(at, s.l.sharers);
                            }
                        }
                    }
                } else if (s.l.ask == ASK_COMMIT && last == number) {
                    bit<64> next = last + 1;
                    s.l.number_high = next[63:32];
                    s.l.number = next[31:0];
                    s.l.sharers = hdr.rackmem.copyset;
                    version_high.write(at, s.l.number_high);
                    version_low.write(at, s.l.number);
                    since_high.write(at, s.l.number_high);
                    since_low.write(at, s.l.number);
                    who.write(at, s.l.mine);
                    kept.write(at, s.l.kept);
                    why.write(at, s.l.why);
                    sharers.write(at, s.l.sharers);
#if PLANT == 8
                    who.write(at, s.l.who);
#endif
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
            s.age = s.row_seq - hdr.rackmem.seq_low;
            if (s.row_op == ROW_ENTER && s.age >= SEQ_WINDOW) {
                seq.write((bit<32>) s.row, hdr.rackmem.seq_low);
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
