// The register arrays, for Tofino. Each belongs to one stage and is touched once a pass, by a stateful ALU that compares
// twice at most.

#ifndef RACKMEM_TNA_REGISTERS
#define RACKMEM_TNA_REGISTERS

#include "../decide.p4"

// Entries in each way, and the bits of their index.
#ifndef SETS
#define SETS 65536
#define SET_BITS 16
#endif
// Rows of scores, and behind them those of moves.
#define ROWS 8192

typedef bit<SET_BITS> set_t;

struct tag_t {
    bit<32> high;
    bit<32> low;
}

// TAG of a way. The low bit of a tag says that the location is taken.
control Tag(in set_t at, in bit<32> high, in bit<32> low, in tag_op_t op, inout bit<1> here) {
    Register<tag_t, set_t>(SETS, {0, 0}) tag;
    RegisterAction<tag_t, set_t, bit<1>>(tag) match_tag = {
        void apply(inout tag_t there, out bit<1> yes) {
            yes = 0;
            if (there.high == high && there.low == low) {
                yes = 1;
            }
        }
    };
    RegisterAction<tag_t, set_t, bit<1>>(tag) take_place = {
        void apply(inout tag_t there, out bit<1> yes) {
            yes = 0;
            if (there.low == 0) {
                there.high = high;
                there.low = low;
                yes = 1;
            }
        }
    };
    RegisterAction<tag_t, set_t, bit<1>>(tag) give_place = {
        void apply(inout tag_t there, out bit<1> yes) {
            yes = 0;
            if (there.high == high && there.low == low) {
                there.high = 0;
                there.low = 0;
                yes = 1;
            }
        }
    };
    action match() {
        here = match_tag.execute(at);
    }
    action take() {
        here = take_place.execute(at);
    }
    action give() {
        here = give_place.execute(at);
    }
    table tags {
        key = { op: exact; }
        actions = { match; take; give; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            TAG_MATCH: match();
            TAG_TAKE: take();
            TAG_GIVE: give();
        }
    }
    apply {
        tags.apply();
    }
}

// LOCK, G-STATUS and COPYSET of a way, in the stage behind its TAG.
control Entry(in headers_t hdr, in set_t at, inout state_t s) {
    Register<bit<16>, set_t>(SETS, 0) lock;
    RegisterAction<bit<16>, set_t, bit<1>>(lock) acquire_lock = {
        void apply(inout bit<16> held, out bit<1> yes) {
            yes = 0;
            if (held <= s.lock_limit) {
                held = held + s.lock_amount;
                yes = 1;
            }
        }
    };
    RegisterAction<bit<16>, set_t, bit<1>>(lock) release_lock_shared = {
        void apply(inout bit<16> held) {
            if (held != 0 && held < LOCK_WRITER) {
                held = held - 1;
            }
        }
    };
    RegisterAction<bit<16>, set_t, bit<1>>(lock) release_lock_alone = {
        void apply(inout bit<16> held) {
            if (held == LOCK_WRITER) {
                held = 0;
            }
        }
    };
    RegisterAction<bit<16>, set_t, bit<1>>(lock) clear_lock = {
        void apply(inout bit<16> held) {
            held = 0;
        }
    };
    action acquire() {
        s.acquired = acquire_lock.execute(at);
    }
    action release_shared() {
        release_lock_shared.execute(at);
    }
    action release_alone() {
        release_lock_alone.execute(at);
    }
    action clear() {
        clear_lock.execute(at);
    }
    table locks {
        key = { s.lock_op: exact; }
        actions = { acquire; release_shared; release_alone; clear; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            LOCK_ACQUIRE: acquire();
            LOCK_RELEASE_SHARED: release_shared();
            LOCK_RELEASE_ALONE: release_alone();
            LOCK_CLEAR: clear();
        }
    }

    Register<bit<8>, set_t>(SETS, 0) status;
    RegisterAction<bit<8>, set_t, bit<8>>(status) get_status = {
        void apply(inout bit<8> there, out bit<8> value) {
            value = there;
        }
    };
    RegisterAction<bit<8>, set_t, bit<8>>(status) put_status = {
        void apply(inout bit<8> there) {
            there = hdr.rackmem.global_status;
        }
    };
    RegisterAction<bit<8>, set_t, bit<8>>(status) zero_status = {
        void apply(inout bit<8> there) {
            there = 0;
        }
    };
    action read_status() {
        s.status = get_status.execute(at);
    }
    action write_status() {
        put_status.execute(at);
    }
    action clear_status() {
        zero_status.execute(at);
    }
    table statuses {
        key = { s.meta_op: exact; }
        actions = { read_status; write_status; clear_status; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            META_READ: read_status();
            META_WRITE: write_status();
            META_JOIN: write_status();
            META_CLEAR: clear_status();
        }
    }

    Register<bit<32>, set_t>(SETS, 0) copyset;
    RegisterAction<bit<32>, set_t, bit<32>>(copyset) get_copyset = {
        void apply(inout bit<32> there, out bit<32> value) {
            value = there;
        }
    };
    RegisterAction<bit<32>, set_t, bit<32>>(copyset) put_copyset = {
        void apply(inout bit<32> there) {
            there = hdr.rackmem.copyset;
        }
    };
    RegisterAction<bit<32>, set_t, bit<32>>(copyset) join_copyset = {
        void apply(inout bit<32> there) {
            there = there | hdr.rackmem.copyset;
        }
    };
    RegisterAction<bit<32>, set_t, bit<32>>(copyset) zero_copyset = {
        void apply(inout bit<32> there) {
            there = 0;
        }
    };
    action read_copyset() {
        s.copyset = get_copyset.execute(at);
    }
    action write_copyset() {
        put_copyset.execute(at);
    }
    action join() {
        join_copyset.execute(at);
    }
    action clear_copyset() {
        zero_copyset.execute(at);
    }
    table copysets {
        key = { s.meta_op: exact; }
        actions = { read_copyset; write_copyset; join; clear_copyset; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            META_READ: read_copyset();
            META_WRITE: write_copyset();
            META_JOIN: join();
            META_CLEAR: clear_copyset();
        }
    }
    apply {
        locks.apply();
        statuses.apply();
        copysets.apply();
    }
}

// SCOREBOARD and MOVES in one: row `0 | node:5 | slot:6 | parity:1` is a score, `1 | 0 | node:5 | slot:6` a move. `end` is the
// packet's number and 2^31 - 1: what the row may hold for the packet to be late. Where that wraps around, the two ends of
// the window are on the other sides of it.
control RowSeq(in headers_t hdr, in bit<32> end, inout state_t s) {
    Register<bit<32>, bit<13>>(ROWS, 0) seq;
    RegisterAction<bit<32>, bit<13>, bit<32>>(seq) enter_seq = {
        void apply(inout bit<32> there, out bit<32> old) {
            old = there;
            if (there < hdr.rackmem.seq_low || there > end) {
                there = hdr.rackmem.seq_low;
            }
        }
    };
    RegisterAction<bit<32>, bit<13>, bit<32>>(seq) enter_seq_around = {
        void apply(inout bit<32> there, out bit<32> old) {
            old = there;
            if (there < hdr.rackmem.seq_low && there > end) {
                there = hdr.rackmem.seq_low;
            }
        }
    };
    RegisterAction<bit<32>, bit<13>, bit<32>>(seq) read_seq = {
        void apply(inout bit<32> there, out bit<32> old) {
            old = there;
        }
    };
    action enter() {
        s.row_seq = enter_seq.execute(s.row);
    }
    action enter_around() {
        s.row_seq = enter_seq_around.execute(s.row);
    }
    action read() {
        s.row_seq = read_seq.execute(s.row);
    }
    table seqs {
        key = {
            s.row_op: exact;
            hdr.rackmem.seq_low: ternary;
        }
        actions = { enter; enter_around; read; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (ROW_READ, _): read();
            (ROW_ENTER, 0x80000000): enter();
            (ROW_ENTER, 0x80000000 &&& 0x80000000): enter_around();
            (ROW_ENTER, _): enter();
        }
    }
    apply {
        seqs.apply();
    }
}

control RowScore(inout state_t s) {
    Register<score_t, bit<13>>(ROWS, 0) score;
    RegisterAction<score_t, bit<13>, score_t>(score) put_score = {
        void apply(inout score_t there) {
            there = s.score;
        }
    };
    RegisterAction<score_t, bit<13>, score_t>(score) zero_score = {
        void apply(inout score_t there) {
            there = SCORE_NOTHING;
        }
    };
    RegisterAction<score_t, bit<13>, score_t>(score) get_score = {
        void apply(inout score_t there, out score_t value) {
            value = there;
        }
    };
    RegisterAction<score_t, bit<13>, score_t>(score) leave_score = {
        void apply(inout score_t there, out score_t value) {
            value = there;
            there = there & SCORE_LEFT;
        }
    };
    action enter() {
        put_score.execute(s.row);
    }
    action refuse() {
        zero_score.execute(s.row);
        s.score = SCORE_NOTHING;
    }
    action refuse_and_undo() {
        zero_score.execute(s.row);
        s.score = SCORE_NOTHING;
        s.undo = 1;
    }
    action read() {
        s.score = get_score.execute(s.row);
    }
    action read_and_undo() {
        s.score = get_score.execute(s.row);
        s.undo = 1;
    }
    action undo() {
        s.undo = 1;
    }
    action leave() {
        s.score = leave_score.execute(s.row);
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

// The status of a score's route.
control RowStatus(inout state_t s) {
    Register<bit<8>, bit<13>>(ROWS, 0) status;
    RegisterAction<bit<8>, bit<13>, bit<8>>(status) put_status = {
        void apply(inout bit<8> there) {
            there = s.status;
        }
    };
    RegisterAction<bit<8>, bit<13>, bit<8>>(status) zero_status = {
        void apply(inout bit<8> there) {
            there = 0;
        }
    };
    RegisterAction<bit<8>, bit<13>, bit<8>>(status) get_status = {
        void apply(inout bit<8> there, out bit<8> value) {
            value = there;
        }
    };
    action keep() {
        put_status.execute(s.row);
    }
    action clear() {
        zero_status.execute(s.row);
    }
    action read() {
        s.status = get_status.execute(s.row);
    }
    table statuses {
        key = SCORE_KEY
        actions = ROUTE_ACTIONS
        const default_action = NoAction;
        const entries = ROUTE_ENTRIES
    }
    apply {
        statuses.apply();
    }
}

// Its provider.
control RowProvider(inout state_t s) {
    Register<bit<16>, bit<13>>(ROWS, 0) provider;
    RegisterAction<bit<16>, bit<13>, bit<16>>(provider) put_provider = {
        void apply(inout bit<16> there, out bit<16> value) {
            there = s.choice;
            value = there;
        }
    };
    RegisterAction<bit<16>, bit<13>, bit<16>>(provider) zero_provider = {
        void apply(inout bit<16> there) {
            there = 0;
        }
    };
    RegisterAction<bit<16>, bit<13>, bit<16>>(provider) get_provider = {
        void apply(inout bit<16> there, out bit<16> value) {
            value = there;
        }
    };
    action keep() {
        s.provider = put_provider.execute(s.row);
    }
    action clear() {
        zero_provider.execute(s.row);
    }
    action read() {
        s.provider = get_provider.execute(s.row);
    }
    table providers {
        key = SCORE_KEY
        actions = ROUTE_ACTIONS
        const default_action = NoAction;
        const entries = ROUTE_ENTRIES
    }
    apply {
        providers.apply();
    }
}

#endif
