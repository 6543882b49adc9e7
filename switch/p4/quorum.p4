// Replicated memory: which packets are counted, and what becomes of them (crates/proto/src/switch/quorum.rs, stamps.rs, held.rs).
// The registers are each target's own.

#ifndef RACKMEM_QUORUM
#define RACKMEM_QUORUM

#include "deliver.p4"

// Questions for a line that pass while one of them learns its stamps, until another one does.
const bit<8> STAMP_PATIENCE = 64;
// Who answers a question that the switch has asked sends the line with it, in one packet.
const bit<8> FLAG_HELD = FLAG_GATHER;

// What a packet is of an operation, for which group, and from which of its members. What is of another group than the control
// plane counts for, or of another config, stays the control plane's.
control QuorumAdmit(in headers_t hdr, inout state_t s) {
    action asks(bit<2> phase) {
        s.q.taken = 1;
        s.q.phase = phase;
    }
    action asks_for_all() {
        s.q.taken = 1;
        s.q.held = 1;
    }
    action answers(bit<2> phase) {
        s.q.taken = 1;
        s.q.phase = phase;
        s.q.answers = 1;
    }
    table phases {
        key = { hdr.rackmem.kind: exact; }
        actions = { asks; asks_for_all; answers; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            KIND_ABD_STAMP: asks(1);
            KIND_ABD_STAMP_ACK: answers(1);
            KIND_ABD_READ: asks(1);
            KIND_ABD_READ_ACK: answers(1);
            KIND_ABD_WRITE: asks(2);
            KIND_ABD_WRITE_ACK: answers(2);
            KIND_ABD_WRITE_BACK: asks(2);
            KIND_ABD_WRITE_BACK_ACK: answers(2);
            // Before the others, since a write whose fate is known is stored by its requester, under the same number.
            KIND_ABD_LINE_READ: asks_for_all();
            KIND_ABD_LINE_WRITE: asks_for_all();
        }
    }
    action count(bit<8> quorum, bit<8> counting, bit<1> chooses, bit<1> holds, bit<32> counting_nodes, bit<32> all_nodes) {
        s.work = WORK_QUORUM;
        s.q.quorum = quorum;
#if PLANT == 14
        s.q.counting = 0xff;
#else
        s.q.counting = counting;
#endif
        s.q.chooses = chooses;
        s.q.holds = holds;
        s.q.counting_nodes = counting_nodes;
        s.q.all_nodes = all_nodes;
    }
    table counted_groups {
        key = {
            hdr.rackmem.tag[63:48]: exact @name("group");
            hdr.own.config: exact;
        }
        actions = { count; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 32;
    }
    action member(bit<8> place) {
        s.q.place = place;
    }
    table members {
        key = {
            hdr.rackmem.tag[63:48]: exact @name("group");
            hdr.rackmem.sender: exact;
        }
        actions = { member; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 256;
    }
    apply {
        phases.apply();
        if (s.q.taken == 1 && hdr.own.isValid()) {
            counted_groups.apply();
            members.apply();
        }
        // Who sends segments of a line answers once more without; these pass as they are. Who is no member counts nothing.
        if ((hdr.rackmem.flags & FLAG_DATA) != 0 && s.q.holds == 0) {
            s.q.segment = s.q.answers;
        }
        if (s.q.answers == 1) {
            if (s.q.segment == 0 && s.q.place != 0) {
                s.q.count_op = COUNT_TAKE;
            }
        } else if (s.q.held == 0) {
            s.q.count_op = COUNT_ENTER;
        } else if (s.q.chooses == 1 && s.q.holds == 1) {
            // Another life of the switch may have carried it out. So it is not told that this one cannot.
            if (hdr.rackmem.kind == KIND_ABD_LINE_READ || hdr.line.isValid()) {
                s.q.count_op = COUNT_ENTER;
            }
        }
    }
}

// Whether an answer is counted: one of a question's own row that is no segment, or of a row whose rounds the switch carries out
// one of the first round, with a line if it is a read's.
control QuorumCounted(in headers_t hdr, inout state_t s) {
    apply {
        if (s.q.of_held == 1) {
            if (hdr.rackmem.kind == KIND_ABD_STAMP_ACK) {
                s.q.counted = 1;
            } else if (hdr.rackmem.kind == KIND_ABD_READ_ACK && (hdr.rackmem.flags & FLAG_DATA) != 0 && hdr.line.isValid()) {
                s.q.counted = 1;
            }
        } else if (s.q.count_op == COUNT_TAKE) {
            if ((hdr.rackmem.flags & FLAG_DATA) != 0) {
                s.q.segment = 1;
            } else {
                s.q.counted = s.q.ours;
            }
        }
    }
}

// How many of some members count.
control Members(in bit<8> counting, in bit<8> of, out bit<8> count) {
    apply {
        bit<8> set = of & counting;
        count = (7w0 ++ set[0:0]) + (7w0 ++ set[1:1]) + (7w0 ++ set[2:2]) + (7w0 ++ set[3:3])
              + (7w0 ++ set[4:4]) + (7w0 ++ set[5:5]) + (7w0 ++ set[6:6]) + (7w0 ++ set[7:7]);
    }
}

// What becomes of a packet by what its row says, and what it says about its line's stamps. What the switch carries out is
// decided when what was chosen is known, by `HeldVerdict`.
control QuorumVerdict(inout headers_t hdr, inout state_t s) {
    action multiply(line_op_t line) {
        s.q.verdict = QUORUM_MULTIPLY;
        s.q.line_op = line;
    }
    action choose() {
        multiply(LINE_CHOOSE);
        s.q.chosen_op = CHOSEN_ENTER;
    }
    action raise() {
        s.q.line_op = LINE_RAISE;
    }
    action segment() {
        s.q.verdict = QUORUM_ANSWER;
        s.q.line_op = LINE_RAISE;
    }
    action complete() {
        s.q.verdict = QUORUM_TOLD;
        s.q.line_op = LINE_COMPLETE;
        s.q.stamp = s.q.max_high ++ s.q.max_low;
    }
    apply {
        s.q.stamp = hdr.own.stamp_high ++ hdr.own.stamp_low;
        // Late answers are not passed on, until all are asked again.
        if (s.q.counted == 1 && s.q.had < s.q.quorum && s.q.have >= s.q.quorum) {
            s.q.completes = 1;
        }
        if (s.q.count_op == COUNT_ENTER) {
            if (s.q.late == 1) {
                s.q.verdict = QUORUM_DROP;
            } else if (s.q.held == 1) {
                // A copy of a write gets the stamp of the first one. A copy of a read begins anew.
                if (s.q.again == 1 && hdr.rackmem.kind == KIND_ABD_LINE_WRITE) {
                    s.q.chosen_op = CHOSEN_READ;
                } else {
                    s.q.chosen_op = CHOSEN_CLEAR;
                }
                s.q.held_op = HELD_PUT;
            } else if (hdr.rackmem.kind == KIND_ABD_WRITE && s.q.stamp == 0) {
                // Another life of the switch may have chosen for it. So it is not told that it has none.
                if (s.q.chooses == 1) {
                    choose();
                }
            } else if (s.q.phase == 2) {
                multiply(LINE_RAISE);
#if PLANT == 13
            } else if (hdr.rackmem.kind == KIND_ABD_STAMP) {
#else
            } else if (hdr.rackmem.kind == KIND_ABD_STAMP && s.q.again == 0) {
#endif
                // Answers to the first copy of a question may be older than an entry that a later copy makes.
                multiply(LINE_LEARN);
            } else {
                multiply(LINE_NONE);
            }
        } else if (s.q.of_held == 1) {
            if (s.q.counted == 1) {
                raise();
                s.q.chosen_op = CHOSEN_READ;
                s.q.held_op = HELD_READ;
                if (s.q.completes == 1) {
                    s.q.chosen_op = CHOSEN_NEXT;
                    if (hdr.rackmem.kind == KIND_ABD_STAMP_ACK) {
                        bit<36> round = s.q.max_high ++ s.q.max_low[31:28];
                        round = round + 1;
                        if (hdr.rackmem.incarnation <= 0xffff && round != 0) {
                            s.q.next = round ++ 1w1 ++ hdr.rackmem.incarnation[15:0] ++ hdr.rackmem.node_id[4:0] ++ hdr.rackmem.requester[5:0];
                        }
                    } else if (s.q.concur < s.q.quorum) {
                        s.q.next = s.q.max_high ++ s.q.max_low;
                    }
                }
                if (hdr.rackmem.kind == KIND_ABD_READ_ACK && s.q.had < s.q.quorum && s.q.order == NEWER) {
#if PLANT == 15
                    if (s.q.before == 0) {
                        s.q.held_op = HELD_PUT;
                    }
#else
                    s.q.held_op = HELD_PUT;
#endif
                }
            } else if (s.q.phase == 2) {
                raise();
                s.q.chosen_op = CHOSEN_READ;
                s.q.held_op = HELD_READ;
            }
        } else if (s.q.segment == 1) {
            segment();
        } else if (s.q.completes == 1) {
            complete();
        } else if (s.q.count_op == COUNT_TAKE) {
            raise();
        }
    }
}

// What becomes of a packet of an operation whose rounds the switch carries out: the next round, the answer, or nothing.
control HeldVerdict(inout headers_t hdr, inout state_t s) {
    action ask(bit<8> kind, bit<8> flags) {
        s.q.verdict = QUORUM_ROUND;
        s.q.stamp = 0;
        hdr.rackmem.kind = kind;
        hdr.rackmem.sender = 8w0 ++ hdr.rackmem.node_id;
        hdr.rackmem.copyset = s.q.counting_nodes;
        hdr.rackmem.offset = 0;
        hdr.rackmem.flags = flags;
    }
    action store(bit<8> kind) {
        s.q.verdict = QUORUM_ROUND;
        s.q.carries = 1;
        s.q.stamp = s.q.chosen;
        hdr.rackmem.kind = kind;
        hdr.rackmem.sender = 8w0 ++ hdr.rackmem.node_id;
        hdr.rackmem.copyset = s.q.all_nodes;
        hdr.rackmem.offset = 0;
        hdr.rackmem.flags = FLAG_DATA;
    }
    action told(bit<64> stamp) {
        s.q.verdict = QUORUM_TOLD;
        s.q.stamp = stamp;
    }
    action read(bit<64> stamp) {
        told(stamp);
        s.q.carries = 1;
        hdr.rackmem.kind = KIND_ABD_READ_ACK;
    }
    apply {
        if (s.q.count_op == COUNT_ENTER && s.q.late == 0) {
            if (hdr.rackmem.kind == KIND_ABD_LINE_READ) {
                ask(KIND_ABD_READ, FLAG_PROVIDER | FLAG_HELD);
            } else if (s.q.chosen == 0) {
                ask(KIND_ABD_STAMP, 0);
            } else {
                store(KIND_ABD_WRITE);
            }
        } else if (s.q.completes == 1) {
            if (hdr.rackmem.kind == KIND_ABD_STAMP_ACK) {
                if (s.q.chosen == 0) {
                    s.q.verdict = QUORUM_MISS;
                } else {
                    store(KIND_ABD_WRITE);
                }
            } else if (s.q.chosen == 0) {
                read(s.q.max_high ++ s.q.max_low);
            } else {
                store(KIND_ABD_WRITE_BACK);
            }
        } else if (s.q.counted == 0 && s.q.ours == 1 && s.q.had < s.q.quorum && s.q.have >= s.q.quorum) {
            // Those that have stored it agree.
            s.q.agree = s.q.answered;
            if (hdr.rackmem.kind == KIND_ABD_WRITE_BACK_ACK) {
                read(s.q.chosen);
                hdr.rackmem.flags = FLAG_DATA;
            } else {
                told(s.q.chosen);
            }
        }
    }
}

// To the members that a request names, the provider's copy marked; or to who has asked, whose thread listens or whose agents do.
// What a packet is answered with is as long as it is.
control QuorumDeliver(inout headers_t hdr, inout state_t s, inout bit<16> group) {
    action to_members() {
        group = EVERYBODY;
        s.leave.how = TO_AGENTS;
        s.leave.nodes = hdr.rackmem.copyset;
    }
    action to_asker(how_t how) {
        group = s.my_group;
        s.leave.how = how;
        s.leave.nodes = ALL_NODES;
    }
    action miss() {
        hdr.rackmem.kind = KIND_ABD_WRITE_ACK;
        hdr.rackmem.sender = SWITCH_SENDER;
        hdr.rackmem.copyset = 0;
        hdr.rackmem.flags = 0;
        hdr.rackmem.offset = 0;
    }
    action told() {
        hdr.rackmem.sender = SWITCH_SENDER;
        hdr.rackmem.copyset = 16w0 ++ s.q.agree ++ s.q.answered;
    }
    action cut() {
        hdr.line.setInvalid();
        hdr.ipv4.total_len = UDP_WITH_OWN + IPV4_LEN;
        hdr.udp.length = UDP_WITH_OWN;
        hdr.rackmem.body_len = OWN_LEN;
        s.leave.frame = 106;
    }
    action with_line() {
        hdr.ipv4.total_len = UDP_WITH_LINE + IPV4_LEN;
        hdr.udp.length = UDP_WITH_LINE;
        hdr.rackmem.body_len = OWN_LEN + 64;
        s.leave.frame = 170;
    }
    apply {
        hdr.own.stamp_high = s.q.stamp[63:32];
        hdr.own.stamp_low = s.q.stamp[31:0];
        if (s.q.verdict == QUORUM_MISS) {
            miss();
            cut();
        } else if (s.q.verdict == QUORUM_TOLD || s.q.verdict == QUORUM_ROUND) {
            if (s.q.verdict == QUORUM_TOLD) {
                told();
            }
            if (s.q.carries == 1) {
                with_line();
            } else {
                cut();
            }
        }
        if (s.q.verdict == QUORUM_MULTIPLY) {
            to_members();
            if (hdr.rackmem.kind == KIND_ABD_READ) {
                s.leave.provider = hdr.rackmem.offset[15:0] + 1;
            }
        } else if (s.q.verdict == QUORUM_ROUND) {
            to_members();
        } else if (s.q.verdict != QUORUM_DROP) {
            if (hdr.rackmem.reply_port != 0) {
                to_asker(TO_REQUESTER);
            } else {
                to_asker(TO_AGENTS);
            }
        }
    }
}

#endif
