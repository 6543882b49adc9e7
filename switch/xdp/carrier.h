// What carries a packet: Ethernet, IPv4 and UDP. Finds it in a frame, and makes a frame of what it has become.
#ifndef RACKMEM_CARRIER_H
#define RACKMEM_CARRIER_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include "packet.h"

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct wire_header wire;
} __attribute__((packed, aligned(2)));

/// A frame whose packet has no body.
#define FRAME_LEN (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr) + sizeof(struct wire_header))
_Static_assert(FRAME_LEN == 90 && sizeof(struct frame) == 90, "the headers follow one another");

#define IP_DONT_FRAGMENT bpf_htons(0x4000)

/// The frame, if it is at least so long.
always void *frame_of(struct xdp_md *ctx, __u32 len)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	return data + len <= end ? data : NULL;
}

#define ETH(frame) ((struct ethhdr *)(frame))
#define IP(frame) ((struct iphdr *)((frame) + 14))
#define UDP(frame) ((struct udphdr *)((frame) + 34))
#define WIRE(frame) ((struct wire_header *)((frame) + 42))
#define OWN(frame) ((struct own *)((frame) + FRAME_LEN))

/// What packets of replicated memory have of their own: a stamp, and the config in the upper half of `b`.
struct own {
	__be64 a;
	__be64 b;
} __attribute__((packed, aligned(2)));

enum parsed {
	/// Not a datagram for the switch.
	NOT_OURS,
	MALFORMED,
	/// Well formed, and its fields are read.
	OURS,
};

const __u64 KNOWN_KINDS[4] = KNOWN_KINDS_WORDS;

/// As strict as `decode` in crates/wire: every field is in range, or it is no packet.
always bool well_formed(const struct wire_header *wire, __u32 body)
{
	__u8 kind = wire->kind;
	return wire->magic == bpf_htons(WIRE_MAGIC) && wire->version == WIRE_VERSION &&
	       bpf_ntohs(wire->body_len) == body && body <= MAX_BODY && wire->node < MAX_NODES &&
	       wire->slot < MAX_REQUESTERS && bpf_be64_to_cpu(wire->tag) >> 48 < MAX_HOMES &&
	       (kind < FIRST_WITH_OWN || body >= OWN_LEN) &&
	       (wire->flags & ~FLAGS_KNOWN) == 0 && wire->reserved == 0 && wire->status <= STATUS_MODIFIED &&
	       wire->reason <= REASON_LAST && (KNOWN_KINDS[kind >> 6] >> (kind & 63) & 1);
}

always void read_fields(const struct wire_header *wire, struct packet *p)
{
	p->tag = bpf_be64_to_cpu(wire->tag);
	p->epoch = bpf_ntohl(wire->epoch);
	p->seq = bpf_be64_to_cpu(wire->seq);
	p->offset = bpf_ntohl(wire->offset);
	p->copyset = bpf_ntohl(wire->copyset);
	p->node = wire->node;
	p->slot = wire->slot;
	p->sender = bpf_ntohs(wire->sender);
	p->kind = wire->kind;
	p->status = wire->status;
	p->flags = wire->flags;
	p->reason = wire->reason;
	p->incarnation = bpf_ntohl(wire->incarnation);
	p->reply_port = wire->reply_port;
}

always enum parsed parse(struct xdp_md *ctx, const struct config *config, struct packet *p)
{
	void *frame = frame_of(ctx, 42);
	if (!frame || ETH(frame)->h_proto != bpf_htons(ETH_P_IP))
		return NOT_OURS;
	const struct iphdr *ip = IP(frame);
	const struct udphdr *udp = UDP(frame);
	// No options. A fragment is the kernel's to put together; nothing that is ours needs to be cut.
	if (*(__u8 *)ip != 0x45 || ip->protocol != IPPROTO_UDP || (ip->frag_off & ~IP_DONT_FRAGMENT) ||
	    ip->daddr != config->ip || udp->dest != config->port || !config->port)
		return NOT_OURS;
	__u32 ip_len = bpf_ntohs(ip->tot_len);
	__u32 held = ctx->data_end - ctx->data;
	frame = frame_of(ctx, FRAME_LEN);
	if (!frame || ip_len < FRAME_LEN - 14 || held - 14 < ip_len || bpf_ntohs(udp->len) != ip_len - 20)
		return MALFORMED;
	const struct wire_header *wire = WIRE(frame);
	p->body = ip_len - (FRAME_LEN - 14);
	if (!well_formed(wire, p->body))
		return MALFORMED;
	read_fields(wire, p);
	return OURS;
}

always bool same_mac(const __u8 *a, const __u8 *b)
{
	const __u16 *x = (const void *)a, *y = (const void *)b;
	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

/// Remembers behind which port a node is. Its packets say so, if they come from its address.
always void learn(struct xdp_md *ctx, struct nodes *nodes, const struct packet *p)
{
	void *frame = frame_of(ctx, FRAME_LEN);
	struct node *node = &nodes->at[p->node & 31];
	if (!frame || p->sender != p->node || IP(frame)->saddr != node->ip)
		return;
	const __u8 *mac = ETH(frame)->h_source;
	if (node->ifindex == ctx->ingress_ifindex && same_mac(node->mac, mac))
		return;
	// Whoever reads meanwhile finds a port and an old address for a moment, and the packet is lost.
	node->ifindex = 0;
	__builtin_memcpy(node->mac, mac, 6);
	node->ifindex = ctx->ingress_ifindex;
}

/// Makes the frame so long. The pointers into it are void after that.
always bool resize(struct xdp_md *ctx, __u32 len)
{
	int held = ctx->data_end - ctx->data;
	int more = (int)len - held;
	return more == 0 || bpf_xdp_adjust_tail(ctx, more) == 0;
}

/// The Internet checksum of an IP header without options.
always void sum(struct iphdr *ip)
{
	const __u16 *words = (const __u16 *)ip;
	__u32 sum = 0;
	ip->check = 0;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = ~sum;
}

/// Writes what the program has changed, and the headers around it but for the receiver's addresses.
always void write_frame(void *frame, const struct config *config, const struct packet *p, __u32 body)
{
	struct wire_header *wire = WIRE(frame);
	struct iphdr *ip = IP(frame);
	struct udphdr *udp = UDP(frame);
	wire->kind = p->kind;
	wire->seq = bpf_cpu_to_be64(p->seq);
	wire->offset = bpf_htonl(p->offset);
	wire->copyset = bpf_htonl(p->copyset);
	wire->status = p->status;
	wire->flags = p->flags;
	wire->reason = p->reason;
	wire->sender = bpf_htons(p->sender);
	wire->body_len = bpf_htons(body);
	*(__be16 *)ip = bpf_htons(0x4500);
	ip->tot_len = bpf_htons(FRAME_LEN - 14 + body);
	ip->id = 0;
	ip->frag_off = IP_DONT_FRAGMENT;
	ip->ttl = 64;
	udp->len = bpf_htons(FRAME_LEN - 34 + body);
	// A switch cannot afford a sum over the packet, and UDP allows to do without.
	udp->check = 0;
	ip->saddr = config->ip;
	udp->source = config->port;
}

/// Puts the addresses of one receiver into a frame.
always void address(void *frame, const struct node *node, __be16 port)
{
	__builtin_memcpy(ETH(frame)->h_dest, node->mac, 6);
	IP(frame)->daddr = node->ip;
	UDP(frame)->dest = port;
	sum(IP(frame));
}

#endif
