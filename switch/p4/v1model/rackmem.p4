// The switch program for v1model, the architecture of BMv2's simple_switch.
//
//   p4c-bm2-ss --arch v1model -DWAYS=8 -o rackmem.json switch/p4/v1model/rackmem.p4

#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

#define AGAIN @field_list(1)
#define QUORUM
#include "../headers.p4"
#include "../state.p4"
#include "../admit.p4"
#include "../check.p4"
#include "../provider.p4"
#include "../decide.p4"
#include "../deliver.p4"
#include "../locks.p4"
#include "registers.p4"
#include "quorum.p4"

#ifndef WAYS
#define WAYS 8
#endif
#ifndef LOCK_WAYS
#define LOCK_WAYS 4
#endif

// The control plane's port.
const bit<9> CPU_PORT = 64;

struct metadata_t {
    state_t s;
}

parser RackmemParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Carrier() carrier;
    state start {
        carrier.apply(packet, hdr);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RackmemIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    WellFormed() well_formed;
    Epoch() epoch;
    Known() known;
    Operation() operation;
    Me() me;
    Home() home;
    Place() place;
    RowSeq() row_seq;
    Way() way0;
#if WAYS > 1
    Way() way1;
#endif
#if WAYS > 2
    Way() way2;
#endif
#if WAYS > 3
    Way() way3;
#endif
#if WAYS > 4
    Way() way4;
#endif
#if WAYS > 5
    Way() way5;
#endif
#if WAYS > 6
    Way() way6;
#endif
#if WAYS > 7
    Way() way7;
#endif
    First() first;
    Check() check;
    Order() order;
    Offer() offer;
    RowScore() row_score;
    RowRoute() row_route;
    Verdict() verdict;
    Forward() forward;
    Deliver() deliver;
    LockOperation() lock_operation;
    LockEpoch() lock_epoch;
    LockWay() lock_way0;
#if LOCK_WAYS > 1
    LockWay() lock_way1;
#endif
#if LOCK_WAYS > 2
    LockWay() lock_way2;
#endif
#if LOCK_WAYS > 3
    LockWay() lock_way3;
#endif
    LockOrder() lock_order;
    LockVerdict() lock_verdict;
    Keeper() keeper;
    Holder() holder;
    LockAnswer() lock_answer;
    QuorumAdmit() quorum_admit;
    RowOperation() row_operation;
    QuorumCounted() quorum_counted;
    RowAnswers() row_answers;
    Members() members_before;
    Members() members_now;
    Members() members_agree;
    QuorumVerdict() quorum_verdict;
    LineEntry() line_entry;
    LineStamp() line_stamp;
    RowChosen() row_chosen;
    RowStored() row_stored;
    Members() members_stored;
    Members() members_store;
    HeldLine() held_line;
    HeldVerdict() held_verdict;
    QuorumDeliver() quorum_deliver;

    action to_switch() {
        meta.s.ours = 1;
    }
    action to_port(bit<9> port, bit<48> mac) {
        hdr.ethernet.to = mac;
        standard.egress_spec = port;
    }
    action unknown() {
        mark_to_drop(standard);
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

    apply {
        bit<32> frame = (bit<32>) hdr.ipv4.total_len + 14;
        if (hdr.ipv4.isValid()) {
            hosts.apply();
        } else {
            standard.egress_spec = CPU_PORT;
        }
        if (meta.s.ours == 1) {
            mark_to_drop(standard);
            well_formed.apply(hdr, meta.s);
            epoch.apply(hdr, meta.s);
            known.apply(hdr, meta.s);
            operation.apply(hdr, meta.s);
            lock_operation.apply(hdr, meta.s);
            lock_epoch.apply(hdr, meta.s);
            quorum_admit.apply(hdr, meta.s);
            me.apply(hdr, meta.s);
            home.apply(hdr, meta.s);
            if (!hdr.rackmem.isValid() || standard.parser_error != error.NoError || standard.packet_length < frame) {
                meta.s.good = 0;
            }
        }
        if (meta.s.good == 1 && meta.s.work == WORK_CONTROL) {
            if (meta.s.body == 0 || (meta.s.ip_rest == IPV4_LEN && meta.s.udp_rest == UDP_WITHOUT_BODY)) {
                standard.egress_spec = CPU_PORT;
            }
        } else if (meta.s.good == 1 && meta.s.work == WORK_QUORUM) {
            if (meta.s.ip_rest == IPV4_LEN && meta.s.udp_rest == UDP_WITHOUT_BODY) {
                meta.s.q.row = 20w0 ++ hdr.rackmem.node_id[4:0] ++ hdr.rackmem.requester[5:0] ++ hdr.rackmem.seq_low[0:0];
                if (meta.s.q.count_op != COUNT_NONE) {
                    row_operation.apply(hdr, meta.s);
                }
                quorum_counted.apply(hdr, meta.s);
                row_answers.apply(hdr, meta.s);
                members_before.apply(meta.s.q.counting, meta.s.q.before, meta.s.q.had);
                members_now.apply(meta.s.q.counting, meta.s.q.answered, meta.s.q.have);
                members_agree.apply(meta.s.q.counting, meta.s.q.agree, meta.s.q.concur);
                quorum_verdict.apply(hdr, meta.s);
                if (meta.s.q.line_op != LINE_NONE) {
                    bit<32> line;
                    hash(line, HashAlgorithm.crc32, 32w0, { hdr.rackmem.tag }, 64w1 << 32);
                    line = line & (LINES - 1);
                    line_entry.apply(hdr, line, meta.s);
                    line_stamp.apply(hdr, line, meta.s);
                }
                row_chosen.apply(meta.s);
                if (meta.s.q.held == 1 || meta.s.q.of_held == 1) {
                    row_stored.apply(hdr, meta.s);
                    members_stored.apply(meta.s.q.counting, meta.s.q.before, meta.s.q.had);
                    members_store.apply(meta.s.q.counting, meta.s.q.answered, meta.s.q.have);
                    held_line.apply(hdr, meta.s);
                    held_verdict.apply(hdr, meta.s);
                }
                quorum_deliver.apply(hdr, meta.s, standard.mcast_grp);
            }
        } else if (meta.s.good == 1 && meta.s.work == WORK_LOCK) {
            if (meta.s.body == 0 && meta.s.l.served == 1 && meta.s.l.ask != ASK_NONE) {
                bit<32> at;
                hash(at, HashAlgorithm.crc32, 32w0, { hdr.rackmem.tag }, 64w1 << 32);
                at = at & meta.s.l.sets_mask;
                if (meta.s.l.ask == ASK_LOOK) {
                    meta.s.l.mine = MODE_HOLDS | (bit<32>) hdr.rackmem.sender;
                } else if ((meta.s.l.ask == ASK_COMMIT && hdr.rackmem.global_status != STATUS_MODIFIED)
                        || (meta.s.l.ask == ASK_PLACE && hdr.rackmem.global_status == STATUS_SHARED)) {
                    meta.s.l.mine = MODE_SHARES | (bit<32>) hdr.rackmem.node_id;
                } else {
                    meta.s.l.mine = MODE_HOLDS | (bit<32>) hdr.rackmem.node_id;
                }
                lock_way0.apply(hdr, at, meta.s);
#if LOCK_WAYS > 1
                lock_way1.apply(hdr, at, meta.s);
#endif
#if LOCK_WAYS > 2
                lock_way2.apply(hdr, at, meta.s);
#endif
#if LOCK_WAYS > 3
                lock_way3.apply(hdr, at, meta.s);
#endif
                if (meta.s.l.who == meta.s.l.mine) {
                    meta.s.l.holds = 1;
                }
                lock_order.apply(hdr, meta.s);
                lock_verdict.apply(meta.s);
                keeper.apply(meta.s);
                holder.apply(meta.s);
                meta.s.l.beside = meta.s.me | meta.s.l.keeper;
                meta.s.l.everyone = meta.s.l.beside | meta.s.l.sharers;
                bit<3> again = 0;
                bit<3> dropped = 0;
                lock_answer.apply(hdr, meta.s, standard.mcast_grp, again, dropped);
                if (again == 1) {
                    resubmit_preserving_field_list(1);
                }
            }
        } else if (meta.s.good == 1 && meta.s.work != WORK_NONE && meta.s.body == 0 && meta.s.served == 1 && meta.s.known == 1) {
            // Where to look.
            bit<32> at;
            hash(at, HashAlgorithm.crc32, 32w0, { hdr.rackmem.tag }, 64w1 << 32);
            at = at & meta.s.sets_mask;
            if (meta.s.work == WORK_REQUEST || meta.s.work == WORK_UNLOCK) {
                meta.s.row = 1w0 ++ hdr.rackmem.node_id[4:0] ++ hdr.rackmem.requester[5:0] ++ hdr.rackmem.seq_low[0:0];
            } else {
                meta.s.row = 2w2 ++ hdr.rackmem.node_id[4:0] ++ hdr.rackmem.requester[5:0];
            }
            bit<32> event;
            hash(event, HashAlgorithm.crc32, 32w0, { 8w0, hdr.rackmem.node_id, 8w0, hdr.rackmem.requester, hdr.rackmem.seq_low }, 64w1 << 32);
            meta.s.from = event[4:0] ^ meta.s.seed;
            place.apply(meta.s);

            // Lock.
            row_seq.apply(hdr, meta.s);
            way0.apply(hdr, at, meta.s);
#if WAYS > 1
            way1.apply(hdr, at, meta.s);
#endif
#if WAYS > 2
            way2.apply(hdr, at, meta.s);
#endif
#if WAYS > 3
            way3.apply(hdr, at, meta.s);
#endif
#if WAYS > 4
            way4.apply(hdr, at, meta.s);
#endif
#if WAYS > 5
            way5.apply(hdr, at, meta.s);
#endif
#if WAYS > 6
            way6.apply(hdr, at, meta.s);
#endif
#if WAYS > 7
            way7.apply(hdr, at, meta.s);
#endif
            // Check.
            meta.s.upper = meta.s.upper & meta.s.copyset;
            meta.s.member = meta.s.me & meta.s.copyset;
            meta.s.others = meta.s.copyset & ~meta.s.me;
            first.apply(meta.s);
            check.apply(hdr, meta.s);
            order.apply(meta.s);
            offer.apply(meta.s);
            row_score.apply(meta.s);
            row_route.apply(meta.s);

            // Forward.
            verdict.apply(hdr, meta.s);
            forward.apply(hdr, meta.s);
            bit<3> again = 0;
            bit<3> dropped = 0;
            deliver.apply(hdr, meta.s, standard.mcast_grp, again, dropped);
            if (again == 1) {
                resubmit_preserving_field_list(1);
            }
        }
    }
}

control RackmemEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Copy() copy;
    apply {
        if (meta.s.leave.how != AS_IT_CAME) {
            bit<32> wanted;
            copy.apply(standard.egress_port, meta.s.leave, hdr, wanted);
            if (wanted == 0) {
                mark_to_drop(standard);
            } else if (meta.s.leave.frame != 0) {
                truncate(meta.s.leave.frame);
            }
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.from, hdr.ipv4.to },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RackmemDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.rackmem);
        packet.emit(hdr.own);
        packet.emit(hdr.line);
    }
}

V1Switch(RackmemParser(), Verify(), RackmemIngress(), RackmemEgress(), Compute(), RackmemDeparser()) main;
