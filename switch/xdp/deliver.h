// Where a packet leaves: to one host by its port, to several by a broadcast whose copies the ports make their own or drop,
// and by the control plane where neither can be.
#ifndef RACKMEM_DELIVER_H
#define RACKMEM_DELIVER_H

#include "carrier.h"

/// What a multicast carries from the program to the ports in its frame's destination address, which they write anew.
struct multicast {
	__be32 nodes;
	/// The provider's number, or NO_PROVIDER.
	__u8 provider;
	__u8 zero;
} __attribute__((packed, aligned(2)));

#define NO_PROVIDER 0xff

/// Longer bodies drivers do not copy in a broadcast, and do not say so.
#define LONGEST_COPIED 2900

/// An order to the control plane: send the packet before it to these. It stands in the packet's body.
struct order {
	__be32 nonce;
	/// Agents, as bits; none: the requester.
	__be32 nodes;
	/// One of them, as a bit.
	__be32 provider;
};

/// A packet of replicated memory as it leaves says itself to whom: the control plane sends it like one that is not counted.
always int order_as_it_is(struct xdp_md *ctx, const struct config *config, const struct packet *p)
{
	if (!resize(ctx, FRAME_LEN + p->carries))
		return XDP_DROP;
	void *frame = frame_of(ctx, FRAME_LEN);
	if (!frame)
		return XDP_DROP;
	__be32 sender = IP(frame)->saddr;
	write_frame(frame, config, p, p->carries);
	IP(frame)->saddr = sender;
	sum(IP(frame));
	count(DID_ORDER);
	return XDP_PASS;
}

always int order(struct xdp_md *ctx, const struct config *config, const struct packet *p)
{
	if (p->carries)
		return order_as_it_is(ctx, config, p);
	if (!resize(ctx, FRAME_LEN + sizeof(struct order)))
		return XDP_DROP;
	void *frame = frame_of(ctx, FRAME_LEN + sizeof(struct order));
	if (!frame)
		return XDP_DROP;
	// A datagram from the switch to itself would be taken for a forgery: it stays its sender's.
	__be32 sender = IP(frame)->saddr;
	write_frame(frame, config, p, sizeof(struct order));
	IP(frame)->saddr = sender;
	sum(IP(frame));
	struct order *order = frame + FRAME_LEN;
	order->nonce = bpf_htonl(config->nonce);
	order->nodes = bpf_htonl(p->to_agents);
	order->provider = bpf_htonl(p->provider);
#if PLANT == 18
	order->provider = 0;
#endif
	count(DID_ORDER);
	return XDP_PASS;
}

always int unicast(struct xdp_md *ctx, const struct config *config, const struct packet *p, const struct node *node)
{
	if (!resize(ctx, FRAME_LEN + p->carries))
		return XDP_DROP;
	void *frame = frame_of(ctx, FRAME_LEN);
	if (!frame)
		return XDP_DROP;
	__be16 port = p->to_requester ? WIRE(frame)->reply_port : node->port;
	write_frame(frame, config, p, p->carries);
	__builtin_memcpy(ETH(frame)->h_source, ETH(frame)->h_dest, 6);
	address(frame, node, port);
	if (p->provider)
		WIRE(frame)->flags |= FLAG_PROVIDER;
	// Also back to where it came from: XDP_TX would do, but the other end of a veth cable gets such a frame only if it
	// has an XDP program itself.
	return bpf_redirect(node->ifindex, 0);
}

/// Whether every receiver is behind a port of its own: then the ports can make the copies.
always bool one_a_port(const struct nodes *nodes, __u32 to)
{
	__u64 ports = 0;
	for (int i = 0; i < MAX_NODES && to; i++, to &= to - 1) {
		__u32 ifindex = nodes->at[lowest(to) & 31].ifindex;
		__u64 port = 1ull << (ifindex & 63);
#if PLANT == 15
		ports = 0;
#endif
		if (!ifindex || (ports & port))
			return false;
		ports |= port;
	}
	return true;
}

always int multicast(struct xdp_md *ctx, const struct config *config, const struct packet *p)
{
	if (!resize(ctx, FRAME_LEN + p->carries))
		return XDP_DROP;
	void *frame = frame_of(ctx, FRAME_LEN);
	if (!frame)
		return XDP_DROP;
	write_frame(frame, config, p, p->carries);
	__builtin_memcpy(ETH(frame)->h_source, ETH(frame)->h_dest, 6);
	struct multicast *to = (void *)ETH(frame)->h_dest;
	to->nodes = bpf_htonl(p->to_agents);
	to->provider = p->provider ? lowest(p->provider) : NO_PROVIDER;
#if PLANT == 16
	to->provider &= 15;
#endif
	to->zero = 0;
	// No address: a copy that no port has made its own goes nowhere.
	IP(frame)->daddr = 0;
	return bpf_redirect_map(&PORTS, 0, BPF_F_BROADCAST);
}

always int deliver(struct xdp_md *ctx, const struct config *config, const struct nodes *nodes, const struct packet *p)
{
	if (config->divert && bpf_get_prandom_u32() < config->divert)
		return order(ctx, config, p);
	__u32 to = p->to_agents;
	if (p->to_requester || !(to & (to - 1))) {
		const struct node *node = &nodes->at[(p->to_requester ? p->node : lowest(to)) & 31];
		return node->ifindex ? unicast(ctx, config, p, node) : order(ctx, config, p);
	}
	if (config->can_multicast && p->carries <= LONGEST_COPIED && one_a_port(nodes, to))
		return multicast(ctx, config, p);
	return order(ctx, config, p);
}

/// A copy of a multicast at a port: makes it the one of the receiver that is behind it, or drops it.
always int make_copy(struct xdp_md *ctx, const struct nodes *nodes, __u32 ifindex)
{
	void *frame = frame_of(ctx, FRAME_LEN);
	if (!frame)
		return XDP_DROP;
	const struct multicast *multicast = (void *)ETH(frame)->h_dest;
	__u32 to = bpf_ntohl(multicast->nodes);
	int provider = multicast->provider;
#if PLANT == 17
	to &= 0x7fffffff;
#endif
#if PLANT == 19
	to = 0xffffffff;
#endif
	for (int i = 0; i < MAX_NODES && to; i++, to &= to - 1) {
		int number = lowest(to);
		const struct node *node = &nodes->at[number & 31];
		if (node->ifindex != ifindex)
			continue;
		address(frame, node, node->port);
#if PLANT == 9
		provider++;
#endif
		if (number == provider)
			WIRE(frame)->flags |= FLAG_PROVIDER;
		return XDP_PASS;
	}
	return XDP_DROP;
}

#endif
