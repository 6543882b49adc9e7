// From a verdict to packets (crates/proto/src/flowcc/forward.rs), and what happens to each copy on its way out.

#ifndef RACKMEM_DELIVER
#define RACKMEM_DELIVER

#include "state.p4"

// Where a packet goes is a multicast group: the one of a node (its number and one), or the one of all nodes, of which the
// egress drops the copies that nobody wants.
const bit<16> EVERYBODY = 64;

// What leaves by no group is resubmitted or dropped.
control Deliver(inout headers_t hdr, inout state_t s, inout bit<16> group, inout bit<3> again, inout bit<3> dropped) {
    action to_one_agent() {
        s.leave.how = TO_AGENTS;
        s.leave.nodes = ALL_NODES;
    }
    action to_agents(bit<32> nodes) {
        group = EVERYBODY;
        s.leave.how = TO_AGENTS;
        s.leave.nodes = nodes;
    }
    action to_requester(bit<8> kind) {
        hdr.rackmem.kind = kind;
        hdr.rackmem.sender = SWITCH_SENDER;
        group = s.my_group;
        s.leave.how = TO_REQUESTER;
        s.leave.nodes = ALL_NODES;
    }
    action fill() {
        hdr.rackmem.flags = hdr.rackmem.flags | (FLAG_IN_SWITCH | FLAG_GRANTED);
        hdr.rackmem.global_status = s.status;
        hdr.rackmem.copyset = s.copyset;
        hdr.rackmem.sender = SWITCH_SENDER;
    }
    action home() {
        fill();
        group = s.home_group;
        to_one_agent();
    }
    action provider() {
        fill();
        group = s.provider;
        to_one_agent();
        s.leave.provider = s.provider;
    }
    action all_with_provider() {
        fill();
        to_agents(s.copyset);
        s.leave.provider = s.provider;
    }
    action others() {
        fill();
        to_agents(s.others);
    }
    action acknowledge() {
        fill();
        to_requester(KIND_ACK);
    }
    action refuse() {
        hdr.rackmem.reason = s.reason;
        to_requester(KIND_ACK);
    }
    action pass_on() {
        group = s.home_group;
        to_one_agent();
    }
    action unlocked() {
        to_requester(KIND_UNLOCK_ACK);
    }
    // An answer to a move goes to the home agent that asked, and a copy to the shadow node.
    action added() {
        hdr.rackmem.kind = KIND_ADD_ACK;
        hdr.rackmem.reason = s.reason;
        hdr.rackmem.sender = SWITCH_SENDER;
        to_agents(s.me | s.shadow);
    }
    action removed() {
        hdr.rackmem.kind = KIND_REMOVE_ACK;
        hdr.rackmem.reason = s.reason;
        hdr.rackmem.global_status = STATUS_UNSHARED;
        hdr.rackmem.copyset = 0;
        hdr.rackmem.sender = SWITCH_SENDER;
        to_agents(s.me | s.shadow);
    }
    action retired() {
        hdr.rackmem.kind = KIND_REMOVE_ACK;
        hdr.rackmem.reason = s.reason;
        hdr.rackmem.global_status = s.status;
        hdr.rackmem.copyset = s.copyset;
        hdr.rackmem.sender = SWITCH_SENDER;
        to_agents(s.me | s.shadow);
    }
    action undo(step_t step) {
        s.step = step;
        again = 1;
    }
    action once_more() {
        again = 1;
    }
    action drop() {
        dropped = 1;
    }
    table deliver {
        key = {
            s.undo: ternary;
            s.verdict: ternary;
            s.forward: ternary;
            s.others: ternary;
            s.provider: ternary;
        }
        actions = {
            home; provider; all_with_provider; others; acknowledge; refuse; pass_on; unlocked; added; removed; retired; undo; once_more;
            drop;
        }
        const default_action = drop;
        const entries = {
#if PLANT != 3
            (1, GRANTED, _, _, _): undo(STEP_UNDO + GRANTED);
            (1, REFUSED, _, _, _): undo(STEP_UNDO + REFUSED);
            (1, ELSEWHERE, _, _, _): undo(STEP_UNDO + ELSEWHERE);
            (1, _, _, _, _): undo(STEP_UNDO);
#endif
            (0, RESUBMITTED, _, _, _): once_more();
            (0, GRANTED, HOME, _, _): home();
            (0, GRANTED, PROVIDER, _, 0): drop();
            (0, GRANTED, PROVIDER, _, _): provider();
            (0, GRANTED, ALL_WITH_PROVIDER, _, _): all_with_provider();
            // The only member of the copyset needs nobody's leave.
            (0, GRANTED, OTHERS, 0, _): acknowledge();
            (0, GRANTED, OTHERS, _, _): others();
            (0, GRANTED, REQUESTER, _, _): acknowledge();
            (0, REFUSED, _, _, _): refuse();
            (0, ELSEWHERE, _, _, _): pass_on();
            (0, UNLOCKED, _, _, _): unlocked();
            (0, ADDED, _, _, _): added();
            (0, REMOVED, _, _, _): removed();
            (0, RETIRED, _, _, _): retired();
        }
    }
    apply {
        deliver.apply();
    }
}

// One copy on its way out of a port: its addresses, and whether it is the provider's. The switch's own addresses are
// those that the packet came to.
control Copy(in bit<9> port, in leave_t leave, inout headers_t hdr, out bit<32> wanted) {
    bit<16> number_and_one = 0;
    bit<16> agent = 0;

    action node(bit<32> bit_of_node, bit<16> number_and_1, bit<48> mac, bit<32> address, bit<16> agent_port) {
        wanted = bit_of_node;
        number_and_one = number_and_1;
        hdr.ethernet.from = hdr.ethernet.to;
        hdr.ethernet.to = mac;
        hdr.ipv4.from = hdr.ipv4.to;
        hdr.ipv4.to = address;
        agent = agent_port;
    }
    action nobody() {
        wanted = 0;
    }
    table nodes {
        key = { port: exact @name("port"); }
        actions = { node; nobody; }
        const default_action = nobody;
        size = 64;
    }
    apply {
        nodes.apply();
        hdr.udp.from = hdr.udp.to;
        hdr.udp.checksum = 0;
        if (leave.how == TO_REQUESTER) {
            hdr.udp.to = hdr.rackmem.reply_port;
        } else {
            hdr.udp.to = agent;
            if (leave.provider == number_and_one) {
                hdr.rackmem.flags = hdr.rackmem.flags | FLAG_PROVIDER;
            }
        }
        wanted = wanted & leave.nodes;
    }
}

#endif
