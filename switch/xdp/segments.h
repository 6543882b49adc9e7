// A block that leaves in several packets, made of one that came: only a program behind the driver, in the network stack, can send
// several for one. It sees a packet as a socket buffer, which it makes as long as each of them and sends a clone of; the last
// one is what becomes of the packet itself.
#pragma once
#include "serve.h"
#include "tables.gen.h"
#include <linux/pkt_cls.h>

#define MOST_BLOCK_LINES (TWIN_BLOCK_MOST / LINE)
/// The next program, and then the network stack.
#define LEAVE TC_ACT_UNSPEC
#define UDP_SUM_AT (34 + offsetof(struct udphdr, check))

/// A block on its way, whole: nothing is sent before it is known to be of one version. The verifier wants room for a segment
/// behind each byte of it.
struct copy {
	/// Somebody is at it: on some kernels one of these programs interrupts another.
	__u64 taken;
	__u64 words[2 * TWIN_BLOCK_MOST / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copy);
} COPIES SEC(".maps");

/// A block on its way to somebody.
struct answer {
	struct __sk_buff *ctx;
	struct copy *copy;
	/// From whom.
	__be32 ip;
	__be16 port;
	__be16 sender;
	__u32 bytes;
	__u32 segment;
	/// To whom, and as what.
	__u64 mac;
	__be32 to;
	__be16 to_port;
	__u8 kind;
	__u8 flags;
	/// Whether the packet is one that is ready to be sent, whatever it is next.
	bool ready;
	/// Whether it is the last segment.
	bool whole;
	/// Whether it has left once, so that its sender is this host.
	bool ours;
};

/// Takes the processor's memory for a block. Whether it could.
always bool take_copy(struct answer *answer)
{
	__u32 zero = 0;
	answer->copy = bpf_map_lookup_elem(&COPIES, &zero);
	return answer->copy && !__sync_lock_test_and_set(&answer->copy->taken, 1);
}

/// Gives it back.
always void let_copy(const struct answer *answer)
{
	__sync_lock_test_and_set(&answer->copy->taken, 0);
}

/// There is no sum over the datagram, unless its request came with a sum that is left to the device by which it goes on: that
/// adds to what stands there, which has to be the sum over what IP says of it. The helper leaves that as it is just then, and
/// elsewhere turns it into none.
always void sum_of_device(struct __sk_buff *ctx, const struct answer *answer, __u32 payload)
{
	__u32 sum = (answer->ip & 0xffff) + (answer->ip >> 16) + (answer->to & 0xffff) + (answer->to >> 16) +
		    bpf_htons(IPPROTO_UDP) + bpf_htons(CARRIER_LEN - 34 + payload);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	__u16 pseudo = PLANT == 41 ? 0xffff : sum;
	bpf_skb_store_bytes(ctx, UDP_SUM_AT, &pseudo, 2, 0);
	bpf_l4_csum_replace(ctx, UDP_SUM_AT, (__u16)~pseudo, 0, 2);
}

/// Turns the packet into one segment of the block, after what it was before was sent. Zero: go on.
static long segment_of(__u32 nth, void *context)
{
	struct answer *answer = context;
	struct __sk_buff *ctx = answer->ctx;
	__u32 from = nth * answer->segment;
	if (from >= answer->bytes)
		return 1;
	__u32 left = answer->bytes - from, len = PLANT != 40 && left < answer->segment ? left : answer->segment;
	if (answer->ready)
		bpf_clone_redirect(ctx, ctx->ifindex, 0);
	if (bpf_skb_change_tail(ctx, OWN_AT + len, 0))
		return 1;
	answer->ready = true;
	struct ethhdr *eth = (void *)(long)ctx->data;
	void *frame = eth;
	if (frame + OWN_AT > (void *)(long)ctx->data_end)
		return 1;
	if (!answer->ours)
		__builtin_memcpy(eth->h_source, eth->h_dest, 6);
	answer->ours = true;
	__builtin_memcpy(eth->h_dest, &answer->mac, 6);
	struct wire_header *wire = frame + CARRIER_LEN;
	carry(frame, answer->ip, answer->port, answer->to, answer->to_port, WIRE_HEADER_LEN + len);
	wire->kind = answer->kind;
	wire->flags = answer->flags;
	wire->sender = answer->sender;
	wire->offset = PLANT == 37 ? 0 : bpf_htonl(from);
	wire->body_len = bpf_htons(len);
	// The compiler knows both; the verifier wants them.
	asm volatile("" : "+r"(from), "+r"(len));
	from &= TWIN_BLOCK_MOST - 1;
	if (!len || len > TWIN_BLOCK_MOST || bpf_skb_store_bytes(ctx, OWN_AT, (void *)answer->copy->words + from, len, 0))
		return 1;
	sum_of_device(ctx, answer, WIRE_HEADER_LEN + len);
	answer->whole = from + len >= answer->bytes;
	return 0;
}

/// Turns the packet into the last segment of the block, and sends those before it. Whether it could, the answer says.
always void send_copy(struct answer *answer)
{
	__u32 segments = (answer->bytes + answer->segment - 1) / answer->segment;
	answer->whole = false;
	bpf_loop(segments, segment_of, answer, 0);
}

/// What becomes of the packet.
always int send_last(const struct answer *answer)
{
	return bpf_redirect(answer->ctx->ifindex, 0);
}
