// Blocks that the switch has granted and whose home has them, read where they lie once more (crates/proto/src/flowcc/twin): the
// acknowledgement with the block goes to the requester, and the home's agent is not woken. What is not answered passes to the
// agent: blocks that are not here, that are being written or were meanwhile, packets of another epoch or life of a node, and
// requesters that this host has not heard of.
#pragma once
#include "cache.h"
#include "serve.h"
#include "tables.gen.h"

#define MOST_BLOCK_LINES (TWIN_BLOCK_MOST / LINE)

struct twin_slab {
	__u64 words[TWIN_SLAB / 8];
};

/// What all blocks have in common, and slabs.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct twin_slab);
} BLOCKS SEC(".maps");

/// What became of requests for blocks.
enum block_did {
	BLOCK_ANSWERED,
	BLOCK_ELSEWHERE,
	BLOCK_LOCKED,
	BLOCK_NOT_OF_NOW,
	BLOCK_NO_WAY,
	BLOCK_TORN,
	BLOCK_NO_ROOM,
	BLOCK_DIDS
};

COUNTED(block_did, BLOCK_DIDS, BLOCK_COUNTERS, count_block, pass_block)

/// Learns where nodes are reached from a packet without a body, whoever it is for.
always void hear_for_blocks(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct twin_slab *front = bpf_map_lookup_elem(&BLOCKS, &zero);
	if (!front || !front->words[TWIN_EPOCH])
		return;
	struct wire_header *wire = bare_packet(ctx);
	void *frame = (void *)(long)ctx->data;
	if (wire && frame + OWN_AT <= (void *)(long)ctx->data_end)
		learn(&front->words[TWIN_ADDRESSES], &front->words[TWIN_MACS], frame, frame + 14, wire);
}

/// Whether it is a request for a block that its owner has granted, as strictly as `decode` in crates/wire, and that home alone
/// has.
always bool wants_block(struct xdp_md *ctx, void *frame)
{
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	const struct wire_header *wire = frame + CARRIER_LEN;
	__u64 tag = bpf_be64_to_cpu(wire->tag);
	__u32 body = bpf_ntohs(wire->body_len);
	return wire->magic == bpf_htons(WIRE_MAGIC) && wire->version == WIRE_VERSION &&
	       (wire->kind == KIND_READ_MISS || wire->kind == KIND_WRITE_MISS) && body <= MAX_BODY &&
	       OWN_AT + body <= (__u64)(ctx->data_end - ctx->data) && ip->tot_len == bpf_htons(OWN_AT - 14 + body) &&
	       udp->len == bpf_htons(OWN_AT - 34 + body) && wire->node < MAX_NODES && wire->slot < MAX_REQUESTERS &&
	       (PLANT == 30 || wire->flags == (FLAG_GRANTED | FLAG_IN_SWITCH)) && !wire->reserved &&
	       (PLANT == 31 || wire->status == STATUS_UNSHARED) && !wire->reason && tag >> 48 < MAX_HOMES &&
	       (tag >> OFFSET_BITS & 7) == CONTRACT_COHERENT;
}

/// A block's place: in which slab, where, and its version when it had the block's name.
struct twin {
	const struct twin_slab *slab;
	__u32 at;
	__u32 bytes;
	__u64 version;
};

/// The place of a block, if it has one.
always bool find_twin(const struct twin_slab *front, __u64 tag, struct twin *twin)
{
	__u64 bytes = front->words[TWIN_BLOCK], sets = front->words[TWIN_SETS];
	if (tag >> 48 != front->words[TWIN_NODE] || !sets || bytes < LINE || bytes > TWIN_BLOCK_MOST)
		return false;
	__u32 stride = LINE + (__u32)bytes, each = TWIN_SLAB / stride / TWIN_WAYS;
	__u32 set = (__u32)((tag >> 8) * TWIN_SPREAD >> 32) % (__u32)sets;
	__u32 key = 1 + set / each, first = set % each * TWIN_WAYS * stride;
	twin->slab = bpf_map_lookup_elem(&BLOCKS, &key);
	if (!twin->slab)
		return false;
	bool found = false;
#pragma unroll
	for (__u32 way = 0; way < TWIN_WAYS; way++) {
		// The compiler knows that the mask changes nothing; the verifier wants it.
		__u32 at = first + way * stride;
		asm volatile("" : "+r"(at));
		at &= TWIN_SLAB - LINE;
		const __u64 *place = (const void *)twin->slab + at;
		__u64 version = load(place + TWIN_VERSION);
		in_order();
		if (!found && load(place + TWIN_NAME) == (tag | 1)) {
			found = true;
			twin->at = at;
			twin->version = version;
		}
	}
	in_order();
	twin->bytes = bytes;
	return found;
}

/// A block, whole, as home has it in the epoch that the packet is of.
always int answer_block(struct xdp_md *ctx, const struct home *home, void *frame)
{
	struct wire_header *wire = frame + CARRIER_LEN;
	__u32 zero = 0, node = wire->node % MAX_NODES;
	const struct twin_slab *front = bpf_map_lookup_elem(&BLOCKS, &zero);
	struct twin twin;
	if (!front || !find_twin(front, bpf_be64_to_cpu(wire->tag), &twin))
		return pass_block(BLOCK_ELSEWHERE);
	if (PLANT != 32 && twin.version & 1)
		return pass_block(BLOCK_LOCKED);
	__u64 epoch = load(&front->words[TWIN_EPOCH]);
	if (!epoch || (PLANT != 33 && epoch != bpf_ntohl(wire->epoch)) ||
	    (PLANT != 34 && front->words[TWIN_INCARNATIONS + node] != bpf_ntohl(wire->incarnation)))
		return pass_block(BLOCK_NOT_OF_NOW);
	__u64 mac = load(&front->words[TWIN_MACS + node]);
	if (!wire->reply_port || !mac || (PLANT != 35 && wire->node == home->node))
		return pass_block(BLOCK_NO_WAY);
	in_order();
	if (make_room(ctx, OWN_AT + twin.bytes))
		return pass_block(BLOCK_NO_ROOM);
	__u32 at = twin.at;
	asm volatile("" : "+r"(at));
	at &= TWIN_SLAB - LINE;
	if (!copy_lines(ctx, twin.slab, TWIN_SLAB, at + LINE, twin.bytes / LINE, MOST_BLOCK_LINES))
		return XDP_DROP;
	in_order();
	frame = (void *)(long)ctx->data;
	if (frame + OWN_AT > (void *)(long)ctx->data_end)
		return XDP_DROP;
	const __u64 *place = (const void *)twin.slab + at;
	if (PLANT != 36 && load(place + TWIN_VERSION) != twin.version) {
		// Behind such a request there is room, which only a sum would read.
		unsummed(frame);
		return pass_block(BLOCK_TORN);
	}
	struct ethhdr *eth = frame;
	wire = frame + CARRIER_LEN;
	__builtin_memcpy(eth->h_source, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, &mac, 6);
	carry(frame, home->ip, home->port, front->words[TWIN_ADDRESSES + node], wire->reply_port, WIRE_HEADER_LEN + twin.bytes);
	wire->kind = KIND_ACK;
	wire->flags |= FLAG_DATA;
	wire->sender = bpf_htons(home->node);
	wire->offset = 0;
	wire->body_len = bpf_htons(twin.bytes);
	count_block(BLOCK_ANSWERED);
	// See `turn`.
	return bpf_redirect(ctx->ingress_ifindex, 0);
}
