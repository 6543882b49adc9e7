// Which member of a copyset provides the data: the first one from a place on that only the event decides
// (crates/proto/src/switch/hash.rs). A hash unit, a table of 32 masks, and a priority encoder.

#ifndef RACKMEM_PROVIDER
#define RACKMEM_PROVIDER

#include "state.p4"

control Place(inout state_t s) {
    action begin(bit<32> mask) {
        s.upper = mask;
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
    action provide(bit<16> route) {
        s.route = route;
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
            (0x00000001 &&& 0x00000001, _): provide(0x0100);
            (0x00000002 &&& 0x00000003, _): provide(0x0200);
            (0x00000004 &&& 0x00000007, _): provide(0x0300);
            (0x00000008 &&& 0x0000000f, _): provide(0x0400);
            (0x00000010 &&& 0x0000001f, _): provide(0x0500);
            (0x00000020 &&& 0x0000003f, _): provide(0x0600);
            (0x00000040 &&& 0x0000007f, _): provide(0x0700);
            (0x00000080 &&& 0x000000ff, _): provide(0x0800);
            (0x00000100 &&& 0x000001ff, _): provide(0x0900);
            (0x00000200 &&& 0x000003ff, _): provide(0x0a00);
            (0x00000400 &&& 0x000007ff, _): provide(0x0b00);
            (0x00000800 &&& 0x00000fff, _): provide(0x0c00);
            (0x00001000 &&& 0x00001fff, _): provide(0x0d00);
            (0x00002000 &&& 0x00003fff, _): provide(0x0e00);
            (0x00004000 &&& 0x00007fff, _): provide(0x0f00);
            (0x00008000 &&& 0x0000ffff, _): provide(0x1000);
            (0x00010000 &&& 0x0001ffff, _): provide(0x1100);
            (0x00020000 &&& 0x0003ffff, _): provide(0x1200);
            (0x00040000 &&& 0x0007ffff, _): provide(0x1300);
            (0x00080000 &&& 0x000fffff, _): provide(0x1400);
            (0x00100000 &&& 0x001fffff, _): provide(0x1500);
            (0x00200000 &&& 0x003fffff, _): provide(0x1600);
            (0x00400000 &&& 0x007fffff, _): provide(0x1700);
            (0x00800000 &&& 0x00ffffff, _): provide(0x1800);
            (0x01000000 &&& 0x01ffffff, _): provide(0x1900);
            (0x02000000 &&& 0x03ffffff, _): provide(0x1a00);
            (0x04000000 &&& 0x07ffffff, _): provide(0x1b00);
            (0x08000000 &&& 0x0fffffff, _): provide(0x1c00);
            (0x10000000 &&& 0x1fffffff, _): provide(0x1d00);
            (0x20000000 &&& 0x3fffffff, _): provide(0x1e00);
            (0x40000000 &&& 0x7fffffff, _): provide(0x1f00);
            (0x80000000 &&& 0xffffffff, _): provide(0x2000);
            (0, 0x00000001 &&& 0x00000001): provide(0x0100);
            (0, 0x00000002 &&& 0x00000003): provide(0x0200);
            (0, 0x00000004 &&& 0x00000007): provide(0x0300);
            (0, 0x00000008 &&& 0x0000000f): provide(0x0400);
            (0, 0x00000010 &&& 0x0000001f): provide(0x0500);
            (0, 0x00000020 &&& 0x0000003f): provide(0x0600);
            (0, 0x00000040 &&& 0x0000007f): provide(0x0700);
            (0, 0x00000080 &&& 0x000000ff): provide(0x0800);
            (0, 0x00000100 &&& 0x000001ff): provide(0x0900);
            (0, 0x00000200 &&& 0x000003ff): provide(0x0a00);
            (0, 0x00000400 &&& 0x000007ff): provide(0x0b00);
            (0, 0x00000800 &&& 0x00000fff): provide(0x0c00);
            (0, 0x00001000 &&& 0x00001fff): provide(0x0d00);
            (0, 0x00002000 &&& 0x00003fff): provide(0x0e00);
            (0, 0x00004000 &&& 0x00007fff): provide(0x0f00);
            (0, 0x00008000 &&& 0x0000ffff): provide(0x1000);
            (0, 0x00010000 &&& 0x0001ffff): provide(0x1100);
            (0, 0x00020000 &&& 0x0003ffff): provide(0x1200);
            (0, 0x00040000 &&& 0x0007ffff): provide(0x1300);
            (0, 0x00080000 &&& 0x000fffff): provide(0x1400);
            (0, 0x00100000 &&& 0x001fffff): provide(0x1500);
            (0, 0x00200000 &&& 0x003fffff): provide(0x1600);
            (0, 0x00400000 &&& 0x007fffff): provide(0x1700);
            (0, 0x00800000 &&& 0x00ffffff): provide(0x1800);
            (0, 0x01000000 &&& 0x01ffffff): provide(0x1900);
            (0, 0x02000000 &&& 0x03ffffff): provide(0x1a00);
            (0, 0x04000000 &&& 0x07ffffff): provide(0x1b00);
            (0, 0x08000000 &&& 0x0fffffff): provide(0x1c00);
            (0, 0x10000000 &&& 0x1fffffff): provide(0x1d00);
            (0, 0x20000000 &&& 0x3fffffff): provide(0x1e00);
            (0, 0x40000000 &&& 0x7fffffff): provide(0x1f00);
            (0, 0x80000000 &&& 0xffffffff): provide(0x2000);
        }
    }
    apply {
        first.apply();
    }
}

#endif
