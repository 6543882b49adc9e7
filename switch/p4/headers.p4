// What a packet looks like to the switch: the carrier's headers, and rackmem's own, which is made from crates/wire.

#ifndef RACKMEM_HEADERS
#define RACKMEM_HEADERS

#include "../generated/wire.p4"

header ethernet_t {
    bit<48> to;
    bit<48> from;
    bit<16> ethertype;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> from;
    bit<32> to;
}

header udp_t {
    bit<16> from;
    bit<16> to;
    bit<16> length;
    bit<16> checksum;
}

// What a packet about replicated memory has of its own behind the header: a stamp, and the number of its group's config.
header own_t {
    bit<32> stamp_high;
    bit<32> stamp_low;
    bit<32> config;
    bit<32> rest;
}

// A line of 64 bytes behind that, in words as registers have them.
header line_t {
    bit<32> w0;
    bit<32> w1;
    bit<32> w2;
    bit<32> w3;
    bit<32> w4;
    bit<32> w5;
    bit<32> w6;
    bit<32> w7;
    bit<32> w8;
    bit<32> w9;
    bit<32> w10;
    bit<32> w11;
    bit<32> w12;
    bit<32> w13;
    bit<32> w14;
    bit<32> w15;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    rackmem_t  rackmem;
    own_t      own;
    line_t     line;
}

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;

// Lengths that the carrier's headers tell of a packet without a body; with one, they are longer by it.
const bit<16> IPV4_LEN = 20;
const bit<16> IPV4_WITHOUT_BODY = 76;
const bit<16> UDP_WITHOUT_BODY = 56;
// The same with what a packet has of its own, and with a line behind that.
const bit<16> UDP_WITH_OWN = 72;
const bit<16> UDP_WITH_LINE = 136;

// Anything in UDP that is long enough is read as a packet of rackmem's. What is not one is told from the destination
// and from its fields, by tables; it leaves as it came.
parser Carrier(packet_in packet, out headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        // No options, no fragments: an agent sends neither.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (4, 5, 0 &&& 1, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.length) {
            UDP_WITHOUT_BODY &&& 0xfff8: rackmem;
            0 &&& 0xffc0: accept;
            default: rackmem;
        }
    }
    state rackmem {
        packet.extract(hdr.rackmem);
#ifdef QUORUM
        // Below UDP_WITH_OWN there is no room for it.
        transition select(hdr.udp.length, hdr.rackmem.kind) {
            (UDP_WITHOUT_BODY &&& 0xfff8, _): accept;
            ((UDP_WITHOUT_BODY + 8) &&& 0xfff8, _): accept;
            (_, FIRST_WITH_OWN &&& 0xf0): own;
            default: accept;
        }
    }
    state own {
        packet.extract(hdr.own);
        transition select(hdr.udp.length) {
            UDP_WITH_LINE: line;
            default: accept;
        }
    }
    state line {
        packet.extract(hdr.line);
#endif
        transition accept;
    }
}

#endif
