// The register arrays of the directory of locks, for Tofino: a TAG for each way, in a stage each, and behind them one array of
// everything else for all ways.
//
// A version is 64 bits in two arrays. Its low half is in one word with the mode and the holder, because each changes by what the
// other is. Its high half (the epoch, and how often the low half has run over) only the control plane changes: see docs/p4.md.

#ifndef RACKMEM_TNA_LOCKS
#define RACKMEM_TNA_LOCKS

#include "../locks.p4"

// Locks in each way, and the bits of their index; those of an entry, with its way.
#ifndef LOCK_SETS
#define LOCK_SETS 8192
#define LOCK_SET_BITS 13
#endif
#define LOCK_SLOT_BITS 14
#define LOCK_SLOTS 16384

typedef bit<LOCK_SET_BITS> lock_set_t;
typedef bit<LOCK_SLOT_BITS> lock_slot_t;

// TAG of a way of locks. Says the low half of the tag that it has, if the high one is the packet's; a lock that is placed takes
// a free location.
control LockTag(in lock_set_t at, in bit<32> high, in bit<32> low, in lock_ask_t ask, inout bit<32> there) {
    Register<tag_t, lock_set_t>(LOCK_SETS, {0, 0}) tag;
    RegisterAction<tag_t, lock_set_t, bit<32>>(tag) match_tag = {
        void apply(inout tag_t held, out bit<32> value) {
            value = 0;
            if (held.high == high) {
                value = held.low;
            }
        }
    };
    RegisterAction<tag_t, lock_set_t, bit<32>>(tag) take_place = {
        void apply(inout tag_t held, out bit<32> value) {
            value = 0;
            if (held.low == 0) {
                held.high = high;
                held.low = low;
                value = held.low;
            } else if (held.high == high) {
                value = held.low;
            }
        }
    };
    action match() {
        there = match_tag.execute(at);
    }
    action take() {
        there = take_place.execute(at);
    }
    apply {
        if (ask == ASK_PLACE) {
            take();
        } else {
            match();
        }
    }
}

struct held_t {
    bit<32> low;
    bit<32> who;
}

// What is done to the word of number and holder. It is there twice, because a pass reads one half of it only: `Number` tells
// the number as it is then, and to a commit as it was, `Who` tells mode and holder as they were.
control Number(in lock_slot_t slot, inout state_t s) {
    Register<held_t, lock_slot_t>(LOCK_SLOTS, {0, 0}) number;
    RegisterAction<held_t, lock_slot_t, bit<32>>(number) ask_number = {
        void apply(inout held_t held, out bit<32> value) {
            if (held.who != s.l.mine) {
                held.low = held.low + s.l.operand;
            }
            value = held.low;
        }
    };
    RegisterAction<held_t, lock_slot_t, bit<32>>(number) write_number = {
        void apply(inout held_t held, out bit<32> value) {
            if (held.who != s.l.mine) {
                held.low = held.low + 1;
            }
            if (held.who >= MODE_SHARES) {
                held.who = s.l.mine;
            }
            value = held.low;
        }
    };
    RegisterAction<held_t, lock_slot_t, bit<32>>(number) commit_number = {
        void apply(inout held_t held, out bit<32> value) {
            value = held.low;
            if (held.low == s.l.operand) {
                held.low = held.low + 1;
                held.who = s.l.mine;
            }
        }
    };
    RegisterAction<held_t, lock_slot_t, bit<32>>(number) place_number = {
        void apply(inout held_t held, out bit<32> value) {
            value = held.low;
            if (held.who == 0) {
                held.low = s.l.operand;
                held.who = s.l.mine;
            }
        }
    };
    action ask() {
        s.l.low = ask_number.execute(slot);
    }
    action write() {
        s.l.low = write_number.execute(slot);
    }
    action commit() {
        s.l.low = commit_number.execute(slot);
    }
    action place() {
        s.l.low = place_number.execute(slot);
    }
    table numbers {
        key = { s.l.ask: exact; }
        actions = { ask; write; commit; place; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            ASK_READ: ask();
            ASK_LOOK: ask();
            ASK_WRITE: write();
            ASK_COMMIT: commit();
            ASK_PLACE: place();
        }
    }
    apply {
        numbers.apply();
    }
}

control Who(in lock_slot_t slot, inout state_t s) {
    Register<held_t, lock_slot_t>(LOCK_SLOTS, {0, 0}) holder;
    RegisterAction<held_t, lock_slot_t, bit<32>>(holder) ask_who = {
        void apply(inout held_t held, out bit<32> value) {
            value = held.who;
            if (held.who != s.l.mine) {
                held.low = held.low + s.l.operand;
            }
        }
    };
    RegisterAction<held_t, lock_slot_t, bit<32>>(holder) write_who = {
        void apply(inout held_t held, out bit<32> value) {
            value = held.who;
            if (held.who != s.l.mine) {
                held.low = held.low + 1;
            }
            if (held.who >= MODE_SHARES) {
                held.who = s.l.mine;
            }
        }
    };
    RegisterAction<held_t, lock_slot_t, bit<32>>(holder) commit_who = {
        void apply(inout held_t held, out bit<32> value) {
            value = held.who;
            if (held.low == s.l.operand) {
                held.low = held.low + 1;
                held.who = s.l.mine;
            }
        }
    };
    RegisterAction<held_t, lock_slot_t, bit<32>>(holder) place_who = {
        void apply(inout held_t held, out bit<32> value) {
            value = held.who;
            if (held.who == 0) {
                held.low = s.l.operand;
                held.who = s.l.mine;
            }
        }
    };
    action ask() {
        s.l.who = ask_who.execute(slot);
    }
    action write() {
        s.l.who = write_who.execute(slot);
    }
    action commit() {
        s.l.who = commit_who.execute(slot);
    }
    action place() {
        s.l.who = place_who.execute(slot);
    }
    table holders {
        key = { s.l.ask: exact; }
        actions = { ask; write; commit; place; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            ASK_READ: ask();
            ASK_LOOK: ask();
            ASK_WRITE: write();
            ASK_COMMIT: commit();
            ASK_PLACE: place();
        }
    }
    apply {
        holders.apply();
    }
}

// The number's high half. The first packet that places the lock writes it; it is not zero, since no epoch is.
control NumberHigh(in headers_t hdr, in lock_slot_t slot, inout state_t s) {
    Register<bit<32>, lock_slot_t>(LOCK_SLOTS, 0) high;
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(high) get_high = {
        void apply(inout bit<32> there, out bit<32> value) {
            value = there;
        }
    };
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(high) put_high = {
        void apply(inout bit<32> there, out bit<32> value) {
            if (there == 0) {
                there = hdr.rackmem.seq_high;
            }
            value = there;
        }
    };
    action get() {
        s.l.high = get_high.execute(slot);
    }
    action put() {
        s.l.high = put_high.execute(slot);
    }
    apply {
        if (s.l.ask == ASK_PLACE) {
            put();
        } else {
            get();
        }
    }
}

// What is done to the arrays behind, by what the entry was: nothing but reading, what a lock that is placed brings, a writer over
// readers, one more reader, or a release that is carried out.
typedef bit<3> change_t;
const change_t CHANGE_NONE = 0;
const change_t CHANGE_PLACE = 1;
const change_t CHANGE_WRITER = 2;
const change_t CHANGE_READER = 3;
const change_t CHANGE_PASS = 4;

control Tenure(in headers_t hdr, in lock_slot_t slot, in change_t change, inout state_t s) {
    Register<bit<32>, lock_slot_t>(LOCK_SLOTS, 0) high;
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(high) get_high = {
        void apply(inout bit<32> there, out bit<32> value) {
            value = there;
        }
    };
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(high) put_high = {
        void apply(inout bit<32> there, out bit<32> value) {
            there = s.l.high;
            value = there;
        }
    };
    Register<bit<32>, lock_slot_t>(LOCK_SLOTS, 0) low;
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(low) get_low = {
        void apply(inout bit<32> there, out bit<32> value) {
            value = there;
        }
    };
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(low) put_low = {
        void apply(inout bit<32> there, out bit<32> value) {
            there = s.l.low;
            value = there;
        }
    };
    // A release that is carried out finds its number out of date then: what it looks at is how its tenure was.
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(low) new_low = {
        void apply(inout bit<32> there, out bit<32> value) {
            value = there;
            there = s.l.number;
        }
    };
    action get_highs() {
        s.l.since_high = get_high.execute(slot);
    }
    action put_highs() {
        s.l.since_high = put_high.execute(slot);
    }
    action get_lows() {
        s.l.since_low = get_low.execute(slot);
    }
    action put_lows() {
        s.l.since_low = put_low.execute(slot);
    }
    action new_lows() {
        s.l.since_low = new_low.execute(slot);
    }
    table highs {
        key = { change: exact; }
        actions = { get_highs; put_highs; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            CHANGE_NONE: get_highs();
            CHANGE_PLACE: put_highs();
            CHANGE_WRITER: put_highs();
            CHANGE_READER: get_highs();
            CHANGE_PASS: put_highs();
        }
    }
    table lows {
        key = { change: exact; }
        actions = { get_lows; put_lows; new_lows; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            CHANGE_NONE: get_lows();
            CHANGE_PLACE: new_lows();
            CHANGE_WRITER: put_lows();
            CHANGE_READER: get_lows();
            CHANGE_PASS: new_lows();
        }
    }
    apply {
        highs.apply();
        lows.apply();
    }
}

control Sharers(in headers_t hdr, in lock_slot_t slot, in change_t change, inout state_t s) {
    Register<bit<32>, lock_slot_t>(LOCK_SLOTS, 0) sharers;
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(sharers) get_sharers = {
        void apply(inout bit<32> there, out bit<32> value) {
            value = there;
        }
    };
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(sharers) put_sharers = {
        void apply(inout bit<32> there, out bit<32> value) {
            there = hdr.rackmem.copyset;
            value = there;
        }
    };
    RegisterAction<bit<32>, lock_slot_t, bit<32>>(sharers) join_sharers = {
        void apply(inout bit<32> there, out bit<32> value) {
            there = there | s.me;
            value = there;
        }
    };
    action get() {
        s.l.sharers = get_sharers.execute(slot);
    }
    action put() {
        s.l.sharers = put_sharers.execute(slot);
    }
    action join() {
        s.l.sharers = join_sharers.execute(slot);
    }
    table all_sharers {
        key = { change: exact; }
        actions = { get; put; join; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            CHANGE_NONE: get();
            CHANGE_PLACE: put();
            CHANGE_WRITER: get();
            CHANGE_READER: join();
            CHANGE_PASS: put();
        }
    }
    apply {
        all_sharers.apply();
    }
}

// Who has the data, and what is wrong with it.
control Kept(in lock_slot_t slot, in change_t change, inout state_t s) {
    Register<bit<16>, lock_slot_t>(LOCK_SLOTS, 0) kept;
    RegisterAction<bit<16>, lock_slot_t, bit<16>>(kept) get_kept = {
        void apply(inout bit<16> there, out bit<16> value) {
            value = there;
        }
    };
    RegisterAction<bit<16>, lock_slot_t, bit<16>>(kept) put_kept = {
        void apply(inout bit<16> there) {
            there = s.l.kept;
        }
    };
    Register<bit<8>, lock_slot_t>(LOCK_SLOTS, 0) why;
    RegisterAction<bit<8>, lock_slot_t, bit<8>>(why) get_why = {
        void apply(inout bit<8> there, out bit<8> value) {
            value = there;
        }
    };
    RegisterAction<bit<8>, lock_slot_t, bit<8>>(why) put_why = {
        void apply(inout bit<8> there) {
            there = s.l.why;
        }
    };
    action get() {
        s.l.kept = get_kept.execute(slot);
    }
    action put() {
        put_kept.execute(slot);
    }
    action get_reason() {
        s.l.why = get_why.execute(slot);
    }
    action put_reason() {
        put_why.execute(slot);
    }
    table keeps {
        key = { change: exact; }
        actions = { get; put; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            CHANGE_NONE: get();
            CHANGE_PLACE: put();
            CHANGE_WRITER: get();
            CHANGE_READER: get();
            CHANGE_PASS: put();
        }
    }
    table reasons {
        key = { change: exact; }
        actions = { get_reason; put_reason; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            CHANGE_NONE: get_reason();
            CHANGE_PLACE: put_reason();
            CHANGE_WRITER: get_reason();
            CHANGE_READER: get_reason();
            CHANGE_PASS: put_reason();
        }
    }
    apply {
        keeps.apply();
        reasons.apply();
    }
}

// All of it.
@pa_container_size("ingress", "meta.s.l.mine", 32)
@pa_container_size("ingress", "meta.s.l.operand", 32)
control Locks(inout headers_t hdr, in lock_set_t at, in bit<32> high, in bit<32> low, inout state_t s, inout bit<16> group,
              inout bit<3> again, inout bit<3> dropped) {
    LockTag() tag0;
    LockTag() tag1;
    NumberHigh() number_high;
    Number() number;
    Who() holder;
    Tenure() tenure;
    Sharers() sharers;
    Kept() kept;
    LockOrder() lock_order;
    LockVerdict() lock_verdict;
    Keeper() keeper;
    Holder() holder_group;
    LockAnswer() lock_answer;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) keeper_of;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) holding_node;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) sharing_node;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) holding_sender;
    bit<32> there = 0;
    lock_slot_t slot = 0;
    change_t change = CHANGE_NONE;

    action in_way0() {
        s.l.here = 1;
        slot = 1w0 ++ at;
    }
    action in_way1() {
        s.l.here = 1;
        slot = 1w1 ++ at;
    }
    action node_holds() {
        s.l.mine = holding_node.get({ 27w1, hdr.rackmem.node_id[4:0] });
    }
    action node_shares() {
        s.l.mine = sharing_node.get({ 27w2, hdr.rackmem.node_id[4:0] });
    }
    action sender_holds() {
        s.l.mine = holding_sender.get({ 27w1, hdr.rackmem.sender[4:0] });
    }
    action move_keeper() {
        s.l.kept = keeper_of.get({ 11w0, hdr.rackmem.offset[4:0] });
    }
    action is(change_t what) {
        change = what;
    }
    table changes {
        key = {
            s.l.ask: exact;
            s.l.who: ternary;
        }
        actions = { is; }
        const default_action = is(CHANGE_NONE);
        const entries = {
            (ASK_PLACE, 0): is(CHANGE_PLACE);
            (ASK_WRITE, WITH(MODE_SHARES)): is(CHANGE_WRITER);
            (ASK_READ, WITH(MODE_SHARES)): is(CHANGE_READER);
        }
    }
    action beside() {
        s.l.beside = s.me | s.l.keeper;
    }
    action everyone() {
        s.l.everyone = s.l.beside | s.l.sharers;
    }

    apply {
        if (s.l.ask == ASK_LOOK) {
            sender_holds();
        } else if (s.l.ask == ASK_COMMIT && hdr.rackmem.global_status != STATUS_MODIFIED) {
            node_shares();
        } else if (s.l.ask == ASK_PLACE && hdr.rackmem.global_status == STATUS_SHARED) {
            node_shares();
        } else {
            node_holds();
        }
        if (s.l.ask == ASK_PLACE) {
            move_keeper();
        }
        tag0.apply(at, high, low, s.l.ask, there);
        if (there == low) {
            in_way0();
        } else {
            tag1.apply(at, high, low, s.l.ask, there);
            if (there == low) {
                in_way1();
            }
        }
        if (s.l.here == 1) {
            number_high.apply(hdr, slot, s);
            number.apply(slot, s);
            holder.apply(slot, s);
            if (s.l.ask == ASK_COMMIT) {
                if (s.l.low == hdr.rackmem.seq_low) {
                    is(CHANGE_PASS);
                }
            } else {
                changes.apply();
            }
            if (s.l.who == s.l.mine) {
                s.l.holds = 1;
            }
            tenure.apply(hdr, slot, change, s);
            sharers.apply(hdr, slot, change, s);
            kept.apply(slot, change, s);
            lock_order.apply(hdr, s);
        }
        lock_verdict.apply(s);
        keeper.apply(s);
        holder_group.apply(s);
        beside();
        everyone();
        lock_answer.apply(hdr, s, group, again, dropped);
    }
}

#endif
