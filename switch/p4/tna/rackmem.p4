// The switch program for Tofino.
//
//   p4c --target tofino --arch tna -o OUT switch/p4/tna/rackmem.p4
//
// Blocks and locks. Other shapes that fit, of one kind of directory: -DLOCK_WAYS=0 -DWAYS=4, or with -DWAYS=5 -DSETS=32768
// -DSET_BITS=15; -DWAYS=0. What is for a directory that is not there goes to the control plane.

#include <core.p4>
#include <tna.p4>

#include "../headers.p4"
#include "../state.p4"
#include "../admit.p4"
#include "../check.p4"
#include "../provider.p4"
#include "../decide.p4"
#include "../deliver.p4"

#ifndef WAYS
#define WAYS 2
#endif

#ifndef LOCK_WAYS
#define LOCK_WAYS 2
#endif

#include "registers.p4"
#if LOCK_WAYS > 0
#include "locks.p4"
#endif

// The control plane's port.
const PortId_t CPU_PORT = 64;

// What goes with a packet that is resubmitted.
header again_t {
    bit<8>  step;
    bit<8>  status;
    bit<16> provider;
    bit<32> copyset;
}
const ResubmitType_t RESUBMIT = 1;

// What goes with a packet from ingress to egress.
header bridge_t {
    bit<8>  how;
    bit<16> provider;
    bit<32> nodes;
}

struct ingress_t {
    state_t s;
    again_t again;
    bridge_t bridge;
}

struct egress_t {
    bridge_t bridge;
}

parser IngressParser(packet_in packet, out headers_t hdr, out ingress_t meta, out ingress_intrinsic_metadata_t ig) {
    Carrier() carrier;

    state start {
        packet.extract(ig);
        meta.s.step = STEP_FRESH;
        meta.s.status = 0;
        meta.s.provider = 0;
        meta.s.copyset = 0;
        transition select(ig.resubmit_flag) {
            0: fresh;
            1: resubmitted;
        }
    }
    state fresh {
        packet.advance(PORT_METADATA_SIZE);
        transition headers;
    }
    state resubmitted {
        packet.extract(meta.again);
        meta.s.step = meta.again.step;
        meta.s.status = meta.again.status;
        meta.s.provider = meta.again.provider;
        meta.s.copyset = meta.again.copyset;
        transition headers;
    }
    state headers {
        carrier.apply(packet, hdr);
        transition accept;
    }
}

// What a pass has not set is zero, as in v1model.
@pa_auto_init_metadata
control Ingress(inout headers_t hdr, inout ingress_t meta, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    WellFormed() well_formed;
    Epoch() epoch;
    Known() known;
    Operation() operation;
    Me() me;
    Home() home;
    Place() place;
    RowSeq() row_seq;
    Tag() tag0;
    Entry() entry0;
    bit<1> here0 = 0;
#if WAYS > 1
    Tag() tag1;
    Entry() entry1;
    bit<1> here1 = 0;
#endif
#if WAYS > 2
    Tag() tag2;
    Entry() entry2;
    bit<1> here2 = 0;
#endif
#if WAYS > 3
    Tag() tag3;
    Entry() entry3;
    bit<1> here3 = 0;
#endif
#if WAYS > 4
    Tag() tag4;
    Entry() entry4;
    bit<1> here4 = 0;
#endif
#if WAYS > 5
    Tag() tag5;
    Entry() entry5;
    bit<1> here5 = 0;
#endif
#if WAYS > 6
    Tag() tag6;
    Entry() entry6;
    bit<1> here6 = 0;
#endif
#if WAYS > 7
    Tag() tag7;
    Entry() entry7;
    bit<1> here7 = 0;
#endif
    First() first;
    Check() check;
    Order() order;
    Offer() offer;
    RowScore() row_score;
    RowStatus() row_status;
    RowProvider() row_provider;
    Verdict() verdict;
    Forward() forward;
    Deliver() deliver;
#if LOCK_WAYS > 0
    LockOperation() lock_operation;
    LockEpoch() lock_epoch;
    Locks() locks;
    Hash<lock_set_t>(HashAlgorithm_t.CRC32) lock_hash;
    lock_set_t lock_at;
#endif
    Hash<set_t>(HashAlgorithm_t.CRC32) set_hash;
    Hash<bit<5>>(HashAlgorithm_t.CRC32) event_hash;
    Hash<bit<13>>(HashAlgorithm_t.IDENTITY) score_row;
    Hash<bit<13>>(HashAlgorithm_t.IDENTITY) move_row;
    set_t at;

    action to_switch() {
        meta.s.ours = 1;
    }
    action to_port(PortId_t port, bit<48> mac) {
        hdr.ethernet.to = mac;
        for_tm.ucast_egress_port = port;
    }
    action unknown() {
        for_deparser.drop_ctl = 1;
    }
    // The rest of a rack's traffic goes through the same switch.
    table hosts {
        key = {
            hdr.ipv4.to: exact;
            hdr.udp.isValid(): ternary @name("udp");
            hdr.udp.to: ternary;
        }
        actions = { to_switch; to_port; unknown; }
        const default_action = unknown;
        size = 128;
    }
    action to_control_plane() {
        for_tm.ucast_egress_port = CPU_PORT;
    }

    // Where there is a body, the lengths must agree with each other.
    table control_packets {
        key = {
            meta.s.body: ternary;
            meta.s.ip_rest: ternary;
            meta.s.udp_rest: ternary;
        }
        actions = { to_control_plane; unknown; }
        const default_action = unknown;
        const entries = {
            (0, _, _): to_control_plane();
            (1, IPV4_LEN, UDP_WITHOUT_BODY): to_control_plane();
        }
    }

    action look_where() {
        at = set_hash.get({ hdr.rackmem.tag });
    }
#if LOCK_WAYS > 0
    action look_where_locks_are() {
        lock_at = lock_hash.get({ hdr.rackmem.tag });
    }
#endif
    action hash_event() {
        meta.s.from = event_hash.get({ 8w0, hdr.rackmem.node_id, 8w0, hdr.rackmem.requester, hdr.rackmem.seq_low });
    }
    action row_of_score() {
        meta.s.row = score_row.get({ 1w0, hdr.rackmem.node_id[4:0], hdr.rackmem.requester[5:0], hdr.rackmem.seq_low[0:0] });
    }
    action row_of_move() {
        meta.s.row = move_row.get({ 2w2, hdr.rackmem.node_id[4:0], hdr.rackmem.requester[5:0] });
    }
    action seed() {
        meta.s.from = meta.s.from ^ meta.s.seed;
    }
    action divide() {
        meta.s.upper = meta.s.upper & meta.s.copyset;
        meta.s.member = meta.s.me & meta.s.copyset;
        meta.s.others = meta.s.copyset & ~meta.s.me;
    }
    action grow_old() {
        meta.s.age = meta.s.row_seq - hdr.rackmem.seq_low;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            hosts.apply();
        } else {
            to_control_plane();
        }
        if (hdr.rackmem.isValid()) {
            well_formed.apply(hdr, meta.s);
            epoch.apply(hdr, meta.s);
            known.apply(hdr, meta.s);
            operation.apply(hdr, meta.s);
            look_where();
#if LOCK_WAYS > 0
            lock_operation.apply(hdr, meta.s);
            lock_epoch.apply(hdr, meta.s);
            look_where_locks_are();
#endif
            bit<32> high = hdr.rackmem.tag[63:32];
            bit<32> low = hdr.rackmem.tag[31:0] | 1;
            bit<32> end = hdr.rackmem.seq_low + (SEQ_WINDOW - 1);
            hash_event();
            if (hdr.rackmem.kind == KIND_ADD_TO_SWITCH || hdr.rackmem.kind == KIND_REMOVE_FROM_SWITCH) {
                row_of_move();
            } else {
                row_of_score();
            }
            me.apply(hdr, meta.s);
            home.apply(hdr, meta.s);
            if (meta.s.ours == 1) {
                if (meta.s.good == 1 && meta.s.work == WORK_CONTROL) {
                    control_packets.apply();
                } else if (meta.s.good == 1 && meta.s.work == WORK_LOCK && meta.s.body == 0) {
#if LOCK_WAYS > 0
                    if (meta.s.l.served == 1) {
                        locks.apply(hdr, lock_at, high, low, meta.s, for_tm.mcast_grp_a, for_deparser.resubmit_type,
                                    for_deparser.drop_ctl);
                    } else {
                        unknown();
                    }
#else
                    to_control_plane();
#endif
#if WAYS > 0
                } else if (meta.s.good == 1 && meta.s.work != WORK_NONE && meta.s.body == 0 && meta.s.served == 1 && meta.s.known == 1) {
                    seed();
                    place.apply(meta.s);
                    row_seq.apply(hdr, end, meta.s);
                    grow_old();
                    order.apply(meta.s);

                    // Lock: way by way, each in the stage behind the one before it.
                    tag0.apply(at, high, low, meta.s.tag_op, here0);
                    if (here0 == 1) {
                        meta.s.found = 1;
                        entry0.apply(hdr, at, meta.s);
                    }
#if WAYS > 1
                    else {
                    tag1.apply(at, high, low, meta.s.tag_op, here1);
                    if (here1 == 1) {
                        meta.s.found = 1;
                        entry1.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 2
                    else {
                    tag2.apply(at, high, low, meta.s.tag_op, here2);
                    if (here2 == 1) {
                        meta.s.found = 1;
                        entry2.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 3
                    else {
                    tag3.apply(at, high, low, meta.s.tag_op, here3);
                    if (here3 == 1) {
                        meta.s.found = 1;
                        entry3.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 4
                    else {
                    tag4.apply(at, high, low, meta.s.tag_op, here4);
                    if (here4 == 1) {
                        meta.s.found = 1;
                        entry4.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 5
                    else {
                    tag5.apply(at, high, low, meta.s.tag_op, here5);
                    if (here5 == 1) {
                        meta.s.found = 1;
                        entry5.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 6
                    else {
                    tag6.apply(at, high, low, meta.s.tag_op, here6);
                    if (here6 == 1) {
                        meta.s.found = 1;
                        entry6.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 7
                    else {
                    tag7.apply(at, high, low, meta.s.tag_op, here7);
                    if (here7 == 1) {
                        meta.s.found = 1;
                        entry7.apply(hdr, at, meta.s);
                    }
#endif
#if WAYS > 1
                    }
#endif
#if WAYS > 2
                    }
#endif
#if WAYS > 3
                    }
#endif
#if WAYS > 4
                    }
#endif
#if WAYS > 5
                    }
#endif
#if WAYS > 6
                    }
#endif
#if WAYS > 7
                    }
#endif
                    // Check.
                    divide();
                    first.apply(meta.s);
                    check.apply(hdr, meta.s);
                    offer.apply(meta.s);
                    row_score.apply(meta.s);
                    row_status.apply(meta.s);
                    row_provider.apply(meta.s);

                    // Forward.
                    verdict.apply(hdr, meta.s);
                    forward.apply(hdr, meta.s);
                    deliver.apply(hdr, meta.s, for_tm.mcast_grp_a, for_deparser.resubmit_type, for_deparser.drop_ctl);
#else
                } else if (meta.s.good == 1 && meta.s.work != WORK_NONE && meta.s.body == 0) {
                    to_control_plane();
#endif
                } else {
                    unknown();
                }
            }
        } else if (meta.s.ours == 1) {
            unknown();
        }
        meta.bridge.setValid();
        meta.bridge.how = meta.s.leave.how;
        meta.bridge.provider = meta.s.leave.provider;
        meta.bridge.nodes = meta.s.leave.nodes;
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in ingress_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Resubmit(RESUBMIT) resubmit;
    apply {
        if (for_deparser.resubmit_type == RESUBMIT) {
            resubmit.emit<again_t>({ meta.s.step, meta.s.status, meta.s.provider, meta.s.copyset });
        }
        packet.emit(meta.bridge);
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out egress_t meta, out egress_intrinsic_metadata_t eg) {
    Carrier() carrier;
    state start {
        packet.extract(eg);
        packet.extract(meta.bridge);
        carrier.apply(packet, hdr);
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout egress_t meta, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    Copy() copy;
    apply {
        if (meta.bridge.how != AS_IT_CAME) {
            leave_t leave = { meta.bridge.how, meta.bridge.provider, meta.bridge.nodes };
            bit<32> wanted = 0;
            copy.apply(eg.egress_port, leave, hdr, wanted);
            if (wanted == 0) {
                for_deparser.drop_ctl = 1;
            }
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in egress_t meta) {
    Checksum() checksum;
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.identification,
                hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.from, hdr.ipv4.to });
        }
        packet.emit(hdr);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
