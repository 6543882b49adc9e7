// Reads answered where memory lies: what all contracts have in common. A map is the memory of a home, which the home's process
// has mapped; a read is one packet, which is turned into its answer, so a reader asks for so much as one packet carries, and its
// packet is as long as the answer. What a contract has of its own is where its values lie and when they are whole.
#pragma once
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "../generated/wire.h"

#define always static __always_inline

/// A difference that tests plant, by its number.
#ifndef PLANT
#define PLANT 0
#endif

/// What a planted difference that lets a writer in for a nanosecond does there, so that one beside gets in on every machine.
always void linger(void)
{
	for (int turn = 0; turn < 3000; turn++)
		asm volatile("" ::: "memory");
}

#define LINE 64
#define OFFSET_BITS 45
#define CONTRACT_COHERENT 0

/// A packet with what its kind has of its own.
#define CARRIER_LEN 42
#define OWN_AT (CARRIER_LEN + WIRE_HEADER_LEN)
#define FRAME_LEN (OWN_AT + OWN_LEN)

/// In answers, these bits say something else than in requests (crates/wire/src/header.rs).
#define FLAG_BY_KERNEL FLAG_IN_SWITCH
#define FLAG_BY_GRANULES FLAG_GRANTED

/// Who is served, and where its memory begins. crates/xdp/src/objects.rs has the same fields.
struct home {
	/// Where the home's agent listens. Port zero: nothing is answered.
	__be32 ip;
	__be16 port;
	__u16 node;
	__u32 epoch;
	__u32 slabs;
	/// The offset at which its addresses begin: that of the first slab of objects.
	__u64 base;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct home);
} HOME SEC(".maps");

/// Counters of what became of packets, in a map of this name, and how one is counted, also as left to the agent by this verdict.
#define COUNTED(did_kind, KINDS, MAP, count_it, pass_it, PASSED)                                                                \
	struct did_kind##_counters {                                                                                            \
		__u64 did[KINDS];                                                                                               \
	};                                                                                                                      \
	struct {                                                                                                                \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                                                        \
		__uint(max_entries, 1);                                                                                         \
		__type(key, __u32);                                                                                             \
		__type(value, struct did_kind##_counters);                                                                      \
	} MAP SEC(".maps");                                                                                                     \
	always void count_it(enum did_kind did)                                                                                 \
	{                                                                                                                       \
		__u32 zero = 0;                                                                                                 \
		struct did_kind##_counters *counters = bpf_map_lookup_elem(&MAP, &zero);                                        \
		if (counters)                                                                                                   \
			counters->did[did]++;                                                                                   \
	}                                                                                                                       \
	always int pass_it(enum did_kind did)                                                                                   \
	{                                                                                                                       \
		count_it(did);                                                                                                  \
		return PASSED;                                                                                                  \
	}

struct own {
	__be64 a;
	__be64 b;
} __attribute__((packed, aligned(2)));

/// Stays between what is before and behind it: this processor neither swaps loads.
always void in_order(void)
{
	asm volatile("" ::: "memory");
}

always __u64 load(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

/// The frame, if it is a datagram for the home, and so long at least.
always void *frame_for(void *frame, void *end, const struct home *home, __u32 len)
{
	if (frame + len > end)
		return NULL;
	const struct ethhdr *eth = frame;
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	bool ours = eth->h_proto == bpf_htons(ETH_P_IP) && *(__u8 *)ip == 0x45 && ip->protocol == IPPROTO_UDP &&
		    !(ip->frag_off & bpf_htons(0x3fff)) && ip->daddr == home->ip && udp->dest == home->port;
	return ours && home->port ? frame : NULL;
}

/// A well-formed packet of the rack without a body, in one datagram.
always struct wire_header *bare_packet(void *frame, void *end)
{
	if (frame + OWN_AT > end)
		return NULL;
	const struct ethhdr *eth = frame;
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	struct wire_header *wire = frame + CARRIER_LEN;
	bool whole = eth->h_proto == bpf_htons(ETH_P_IP) && *(__u8 *)ip == 0x45 && ip->protocol == IPPROTO_UDP &&
		     !(ip->frag_off & bpf_htons(0x3fff)) && ip->tot_len == bpf_htons(OWN_AT - 14) &&
		     udp->len == bpf_htons(OWN_AT - 34);
	return whole && wire->magic == bpf_htons(WIRE_MAGIC) && wire->version == WIRE_VERSION && !wire->body_len ? wire : NULL;
}

/// Where packets of a node come from is where it is reached. Its address is the rack's file's.
always void learn(const __u64 *addresses, __u64 *macs, const struct ethhdr *eth, const struct iphdr *ip,
		  const struct wire_header *wire)
{
	__u32 sender = bpf_ntohs(wire->sender);
	if (sender >= MAX_NODES || addresses[sender] != ip->saddr)
		return;
	__u64 mac = 0;
	__builtin_memcpy(&mac, eth->h_source, 6);
	__u64 *known = &macs[sender & (MAX_NODES - 1)];
	if (load(known) != mac)
		*(volatile __u64 *)known = mac;
}

/// Whether it is a request of this kind about memory of this contract, with no flags but these, as strictly as `decode` in
/// crates/wire. Behind what its kind has of its own there may be room for the answer.
always bool is_request(struct xdp_md *ctx, void *frame, __u8 kind, __u8 contract, __u8 flags)
{
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	const struct wire_header *wire = frame + CARRIER_LEN;
	__u64 tag = bpf_be64_to_cpu(wire->tag);
	__u32 body = bpf_ntohs(wire->body_len);
	return wire->magic == bpf_htons(WIRE_MAGIC) && wire->version == WIRE_VERSION && wire->kind == kind &&
	       body >= OWN_LEN && body <= MAX_BODY && OWN_AT + body <= (__u64)(ctx->data_end - ctx->data) &&
	       ip->tot_len == bpf_htons(OWN_AT - 14 + body) && udp->len == bpf_htons(OWN_AT - 34 + body) &&
	       wire->node < MAX_NODES && wire->slot < MAX_REQUESTERS && !(wire->flags & ~flags) &&
	       !wire->reserved && !wire->status && !wire->reason && wire->reply_port && (tag >> OFFSET_BITS & 7) == contract;
}

/// Whether it asks this of the home in its epoch.
always bool asks(struct xdp_md *ctx, void *frame, const struct home *home, __u8 kind, __u8 contract)
{
	const struct wire_header *wire = frame + CARRIER_LEN;
	return is_request(ctx, frame, kind, contract, 0) && (PLANT == 4 || wire->epoch == bpf_htonl(home->epoch)) &&
	       bpf_be64_to_cpu(wire->tag) >> 48 == home->node;
}

/// Makes the frame of a request as long as that of its answer, if it is shorter: a sender that left room has its own answered
/// with any driver.
always int make_room(struct xdp_md *ctx, __u32 bytes)
{
	int more = (int)bytes - (int)(ctx->data_end - ctx->data);
	return more > 0 ? bpf_xdp_adjust_tail(ctx, more) : 0;
}

/// Lines of a value of so many bytes with what lies before it.
#define VALUE_LINES(bytes) ((OWN_LEN + (bytes) + LINE - 1) / LINE)

/// Copies lines of a value, which begins with a line of its slab and lies in it, to what a packet has of its own and behind it.
/// Of the frame's room so many lines have been made sure.
always bool copy_lines(struct xdp_md *ctx, const void *slab, __u32 slab_bytes, __u32 at, __u32 lines, const __u32 most)
{
	void *to = (void *)(long)ctx->data + OWN_AT;
	void *end = (void *)(long)ctx->data_end;
	for (__u32 line = 0; line < most && line < lines; line++, to += LINE) {
		const __u64 *from = slab + ((at + line * LINE) & (slab_bytes - LINE));
		if (to + LINE > end)
			return false;
#pragma unroll
		for (int word = 0; word < LINE / 8; word++)
			((__u64 *)to)[word] = load(from + word);
	}
	return true;
}

/// There is no sum over the packet any more: what lies in the room behind it has changed.
always void unsummed(void *frame)
{
	((struct udphdr *)(frame + 34))->check = 0;
}

/// A packet over which an answer was copied is the agent's after all, as it came. Behind it there is room, which only a sum would
/// read.
always void as_it_came(void *frame, struct own asked)
{
	*(struct own *)(frame + OWN_AT) = asked;
	unsummed(frame);
}

/// From this agent to that socket, with so long a payload: all that lies around it but MACs.
always void carry(void *frame, __be32 from, __be16 from_port, __be32 to, __be16 to_port, __u32 payload)
{
	struct iphdr *ip = frame + 14;
	struct udphdr *udp = frame + 34;
	*(__be16 *)ip = bpf_htons(0x4500);
	ip->tot_len = bpf_htons(CARRIER_LEN - 14 + payload);
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->daddr = to;
	ip->saddr = from;
	ip->check = 0;
	const __u16 *words = (const __u16 *)ip;
	__u32 sum = 0;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = ~sum;
	udp->source = from_port;
	udp->dest = to_port;
	udp->len = bpf_htons(CARRIER_LEN - 34 + payload);
	udp->check = 0;
}

/// Back to the thread that asked.
always int turn(struct xdp_md *ctx, void *frame, const struct home *home, __u8 kind, __u8 flags, __u8 reason, __u32 body)
{
	struct ethhdr *eth = frame;
	const struct iphdr *ip = frame + 14;
	struct wire_header *wire = frame + CARRIER_LEN;
	__u8 mac[6];
	__builtin_memcpy(mac, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	__builtin_memcpy(eth->h_source, mac, 6);
	carry(frame, home->ip, home->port, ip->saddr, wire->reply_port, WIRE_HEADER_LEN + body);
	wire->kind = kind;
	wire->flags = flags;
	wire->reason = reason;
	wire->sender = bpf_htons(home->node);
	wire->body_len = bpf_htons(body);
	// XDP_TX would do, but the other end of a veth cable gets such a frame only if it has an XDP program itself.
	return bpf_redirect(ctx->ingress_ifindex, 0);
}
