// The paper's Tables 2 and 3. Their rows are made from crates/proto/src/flowcc/tables.rs: see ../generated/wire.p4.

#ifndef RACKMEM_CHECK
#define RACKMEM_CHECK

#include "state.p4"

// The requester's node as a bit of a copyset, and its multicast group.
control Me(in headers_t hdr, inout state_t s) {
    action is(bit<32> bit_of_node, bit<16> group) {
        s.me = bit_of_node;
        s.my_group = group;
    }
    table me {
        key = { hdr.rackmem.node_id: exact; }
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
        me.apply();
    }
}

// The multicast group of the block's home.
control Home(in headers_t hdr, inout state_t s) {
    action at(bit<16> group) {
        s.home_group = group;
    }
    table homes {
        key = { hdr.rackmem.tag[63:48]: exact @name("home"); }
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
        homes.apply();
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
