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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    rackmem_t  rackmem;
}

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;

// Lengths that the carrier's headers tell of a packet without a body; with one, they are longer by it.
const bit<16> IPV4_LEN = 20;
const bit<16> IPV4_WITHOUT_BODY = 76;
const bit<16> UDP_WITHOUT_BODY = 56;

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
        transition accept;
    }
}

#endif
