// Which member of a copyset provides the data: the first one from a place on that only the event decides
// (crates/proto/src/switch/hash.rs). A hash unit, a table of 32 masks, and a priority encoder.

#ifndef RACKMEM_PROVIDER
#define RACKMEM_PROVIDER

#include "state.p4"

control Place(inout state_t s) {
    action begin(bit<32> mask) {
#if PLANT != 6
        s.upper = mask;
#endif
    }
    table places {
        key = { s.from: exact; }
        actions = { begin; }
        const entries = {
            0: begin(0xffffffff);
            1: begin(0xfffffffe);
            2: begin(0xfffffffc);
            3: begin(0xfffffff8);
            4: begin(0xfffffff0);
            5: begin(0xffffffe0);
            6: begin(0xffffffc0);
            7: begin(0xffffff80);
            8: begin(0xffffff00);
            9: begin(0xfffffe00);
            10: begin(0xfffffc00);
            11: begin(0xfffff800);
            12: begin(0xfffff000);
            13: begin(0xffffe000);
            14: begin(0xffffc000);
            15: begin(0xffff8000);
            16: begin(0xffff0000);
            17: begin(0xfffe0000);
            18: begin(0xfffc0000);
            19: begin(0xfff80000);
            20: begin(0xfff00000);
            21: begin(0xffe00000);
            22: begin(0xffc00000);
            23: begin(0xff800000);
            24: begin(0xff000000);
            25: begin(0xfe000000);
            26: begin(0xfc000000);
            27: begin(0xf8000000);
            28: begin(0xf0000000);
            29: begin(0xe0000000);
            30: begin(0xc0000000);
            31: begin(0x80000000);
        }
    }
    apply {
        places.apply();
    }
}

control First(inout state_t s) {
    action provide(bit<16> number_and_one) {
        s.choice = number_and_one;
    }
    // The lowest member that is not below the place, or else the lowest of all.
    table first {
        key = {
            s.upper: ternary;
            s.copyset: ternary;
        }
        actions = { provide; }
        const default_action = provide(0);
        const entries = {
            (0x00000001 &&& 0x00000001, _): provide(1);
            (0x00000002 &&& 0x00000003, _): provide(2);
            (0x00000004 &&& 0x00000007, _): provide(3);
            (0x00000008 &&& 0x0000000f, _): provide(4);
            (0x00000010 &&& 0x0000001f, _): provide(5);
            (0x00000020 &&& 0x0000003f, _): provide(6);
            (0x00000040 &&& 0x0000007f, _): provide(7);
            (0x00000080 &&& 0x000000ff, _): provide(8);
            (0x00000100 &&& 0x000001ff, _): provide(9);
            (0x00000200 &&& 0x000003ff, _): provide(10);
            (0x00000400 &&& 0x000007ff, _): provide(11);
            (0x00000800 &&& 0x00000fff, _): provide(12);
            (0x00001000 &&& 0x00001fff, _): provide(13);
            (0x00002000 &&& 0x00003fff, _): provide(14);
            (0x00004000 &&& 0x00007fff, _): provide(15);
            (0x00008000 &&& 0x0000ffff, _): provide(16);
            (0x00010000 &&& 0x0001ffff, _): provide(17);
            (0x00020000 &&& 0x0003ffff, _): provide(18);
            (0x00040000 &&& 0x0007ffff, _): provide(19);
            (0x00080000 &&& 0x000fffff, _): provide(20);
            (0x00100000 &&& 0x001fffff, _): provide(21);
            (0x00200000 &&& 0x003fffff, _): provide(22);
            (0x00400000 &&& 0x007fffff, _): provide(23);
            (0x00800000 &&& 0x00ffffff, _): provide(24);
            (0x01000000 &&& 0x01ffffff, _): provide(25);
            (0x02000000 &&& 0x03ffffff, _): provide(26);
            (0x04000000 &&& 0x07ffffff, _): provide(27);
            (0x08000000 &&& 0x0fffffff, _): provide(28);
            (0x10000000 &&& 0x1fffffff, _): provide(29);
            (0x20000000 &&& 0x3fffffff, _): provide(30);
            (0x40000000 &&& 0x7fffffff, _): provide(31);
            (0x80000000 &&& 0xffffffff, _): provide(32);
            (0, 0x00000001 &&& 0x00000001): provide(1);
            (0, 0x00000002 &&& 0x00000003): provide(2);
            (0, 0x00000004 &&& 0x00000007): provide(3);
            (0, 0x00000008 &&& 0x0000000f): provide(4);
            (0, 0x00000010 &&& 0x0000001f): provide(5);
            (0, 0x00000020 &&& 0x0000003f): provide(6);
            (0, 0x00000040 &&& 0x0000007f): provide(7);
            (0, 0x00000080 &&& 0x000000ff): provide(8);
            (0, 0x00000100 &&& 0x000001ff): provide(9);
            (0, 0x00000200 &&& 0x000003ff): provide(10);
            (0, 0x00000400 &&& 0x000007ff): provide(11);
            (0, 0x00000800 &&& 0x00000fff): provide(12);
            (0, 0x00001000 &&& 0x00001fff): provide(13);
            (0, 0x00002000 &&& 0x00003fff): provide(14);
            (0, 0x00004000 &&& 0x00007fff): provide(15);
            (0, 0x00008000 &&& 0x0000ffff): provide(16);
            (0, 0x00010000 &&& 0x0001ffff): provide(17);
            (0, 0x00020000 &&& 0x0003ffff): provide(18);
            (0, 0x00040000 &&& 0x0007ffff): provide(19);
            (0, 0x00080000 &&& 0x000fffff): provide(20);
            (0, 0x00100000 &&& 0x001fffff): provide(21);
            (0, 0x00200000 &&& 0x003fffff): provide(22);
            (0, 0x00400000 &&& 0x007fffff): provide(23);
            (0, 0x00800000 &&& 0x00ffffff): provide(24);
            (0, 0x01000000 &&& 0x01ffffff): provide(25);
            (0, 0x02000000 &&& 0x03ffffff): provide(26);
            (0, 0x04000000 &&& 0x07ffffff): provide(27);
            (0, 0x08000000 &&& 0x0fffffff): provide(28);
            (0, 0x10000000 &&& 0x1fffffff): provide(29);
            (0, 0x20000000 &&& 0x3fffffff): provide(30);
            (0, 0x40000000 &&& 0x7fffffff): provide(31);
            (0, 0x80000000 &&& 0xffffffff): provide(32);
        }
    }
    apply {
        first.apply();
    }
}

#endif
