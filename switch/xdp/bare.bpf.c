// What a packet costs without a switch program: the floor that benches measure beside the real one.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/// Whom to answer, and where `forward` sends: the address that datagrams must be for, and one end.
struct bare {
	__be32 ip;
	__be16 port;
	__be16 to_port;
	__be32 to_ip;
	__u32 to_ifindex;
	__u8 to_mac[6];
	/// Lines that `copy` puts into a packet.
	__u16 lines;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bare);
} BARE SEC(".maps");

#define LINE 64
/// Of a granule and what lies before it (objects.bpf.c).
#define MOST_LINES 17

struct source {
	__u64 words[65536 / 8];
};

/// What `copy` copies.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct source);
} SOURCE SEC(".maps");

/// The frame, if it is a datagram for us.
static __always_inline void *ours(struct xdp_md *ctx, const struct bare *bare)
{
	void *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	if (frame + 42 > end)
		return NULL;
	const struct ethhdr *eth = frame;
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	bool for_us = eth->h_proto == bpf_htons(ETH_P_IP) && *(__u8 *)ip == 0x45 && ip->protocol == IPPROTO_UDP &&
		      ip->daddr == bare->ip && udp->dest == bare->port;
	return for_us ? frame : NULL;
}

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/// Back to the sender.
static __always_inline int back(struct xdp_md *ctx, void *frame)
{
	struct ethhdr *eth = frame;
	struct iphdr *ip = frame + 14;
	struct udphdr *udp = frame + 34;
	__u8 mac[6];
	__builtin_memcpy(mac, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	__builtin_memcpy(eth->h_source, mac, 6);
	__be32 from = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = from;
	__be16 port = udp->source;
	udp->source = udp->dest;
	udp->dest = port;
	udp->check = 0;
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

SEC("xdp")
int echo(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct bare *bare = bpf_map_lookup_elem(&BARE, &zero);
	void *frame = bare ? ours(ctx, bare) : NULL;
	return frame ? back(ctx, frame) : XDP_PASS;
}

/// Back to the sender with bytes of the source at its end.
SEC("xdp")
int copy(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct bare *bare = bpf_map_lookup_elem(&BARE, &zero);
	struct source *source = bpf_map_lookup_elem(&SOURCE, &zero);
	void *frame = bare ? ours(ctx, bare) : NULL;
	if (!frame || !source)
		return XDP_PASS;
	__u32 lines = bare->lines;
	void *to = frame + 90, *end = (void *)(long)ctx->data_end;
	for (__u32 line = 0; line < MOST_LINES && line < lines && to + LINE <= end; line++, to += LINE)
#pragma unroll
		for (int word = 0; word < LINE / 8; word++)
			((__u64 *)to)[word] = *(volatile __u64 *)&source->words[line * LINE / 8 + word];
	return back(ctx, frame);
}

/// To one other host.
SEC("xdp")
int forward(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct bare *bare = bpf_map_lookup_elem(&BARE, &zero);
	void *frame = bare ? ours(ctx, bare) : NULL;
	if (!frame)
		return XDP_PASS;
	struct ethhdr *eth = frame;
	struct iphdr *ip = frame + 14;
	struct udphdr *udp = frame + 34;
	__builtin_memcpy(eth->h_source, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, bare->to_mac, 6);
	// The sum of the header changes by what its destination changes.
	__u32 sum = (__u16)~ip->check + (__u16)~ip->daddr + (__u16)~(ip->daddr >> 16) + (__u16)bare->to_ip +
		    (bare->to_ip >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = ~sum;
	ip->daddr = bare->to_ip;
	udp->dest = bare->to_port;
	udp->check = 0;
	return bpf_redirect(bare->to_ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
