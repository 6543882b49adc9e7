// The paper's Tables 2 and 3. Their rows are made from crates/proto/src/flowcc/tables.rs: see ../generated/wire.p4.

#ifndef RACKMEM_CHECK
#define RACKMEM_CHECK

#include "state.p4"

// The requester's node as a bit of a copyset.
control Me(in headers_t hdr, inout state_t s) {
    action is(bit<32> bit_of_node) {
        s.me = bit_of_node;
    }
    table me {
        key = { hdr.rackmem.node_id: exact; }
        actions = { is; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            0: is(0x00000001);
            1: is(0x00000002);
            2: is(0x00000004);
            3: is(0x00000008);
            4: is(0x00000010);
            5: is(0x00000020);
            6: is(0x00000040);
            7: is(0x00000080);
            8: is(0x00000100);
            9: is(0x00000200);
            10: is(0x00000400);
            11: is(0x00000800);
            12: is(0x00001000);
            13: is(0x00002000);
            14: is(0x00004000);
            15: is(0x00008000);
            16: is(0x00010000);
            17: is(0x00020000);
            18: is(0x00040000);
            19: is(0x00080000);
            20: is(0x00100000);
            21: is(0x00200000);
            22: is(0x00400000);
            23: is(0x00800000);
            24: is(0x01000000);
            25: is(0x02000000);
            26: is(0x04000000);
            27: is(0x08000000);
            28: is(0x10000000);
            29: is(0x20000000);
            30: is(0x40000000);
            31: is(0x80000000);
        }
    }
    apply {
        me.apply();
    }
}

// Table 2: whether a request is valid under the entry's metadata. `member` is zero when the node holds no copy.
control Check(in headers_t hdr, inout state_t s) {
    action valid() {
        s.valid = 1;
    }
    action invalid() {
        s.valid = 0;
    }
    table check {
        key = {
            hdr.rackmem.kind: exact;
            s.status: ternary;
            s.member: ternary;
        }
        actions = { valid; invalid; }
        const default_action = invalid;
        const entries = {
            CHECK_ENTRIES
        }
    }
    apply {
        check.apply();
    }
}

// Table 3: where a granted request goes.
control Forward(in headers_t hdr, inout state_t s) {
    action to(forward_t forward) {
        s.forward = forward;
    }
    table forward {
        key = {
            hdr.rackmem.kind: exact;
            s.status: exact;
        }
        actions = { to; }
        const default_action = to(NOWHERE);
        const entries = {
            FORWARD_ENTRIES
        }
    }
    apply {
        forward.apply();
    }
}

#endif
