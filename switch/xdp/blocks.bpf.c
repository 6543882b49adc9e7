// Blocks that the switch has granted and whose home has them, read where they lie once more (crates/proto/src/flowcc/twin): the
// acknowledgement with the block goes to the requester, and the home's agent is not woken. What is not answered passes to the
// agent: blocks that are not here, that are being written or were meanwhile, packets of another epoch or life of a node, and
// requesters that this host has not heard of.
//
// A block is several packets on most networks, and only a program behind the driver, in the network stack, can send several for
// one. It sees a request as a socket buffer, which it makes as long as each of them: no sender leaves room.
#include "segments.h"
#include "serve.h"
#include "tables.gen.h"

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

COUNTED(block_did, BLOCK_DIDS, BLOCK_COUNTERS, count_block, pass_block, LEAVE)

/// Whether it is a request for a block that its owner has granted, as strictly as `decode` in crates/wire, and that home alone
/// has. Such a request has no body.
always bool wants_block(const struct wire_header *wire)
{
	__u64 tag = bpf_be64_to_cpu(wire->tag);
	return (wire->kind == KIND_READ_MISS || wire->kind == KIND_WRITE_MISS) && wire->node < MAX_NODES &&
	       wire->slot < MAX_REQUESTERS && (PLANT == 30 || wire->flags == (FLAG_GRANTED | FLAG_IN_SWITCH)) &&
	       !wire->reserved && (PLANT == 31 || wire->status == STATUS_UNSHARED) && !wire->reason &&
	       tag >> 48 < MAX_HOMES && (tag >> OFFSET_BITS & 7) == CONTRACT_COHERENT;
}

/// A block's place: in which slab, where, and its version when it had the block's name.
struct twin {
	const struct twin_slab *slab;
	__u32 at;
	__u32 bytes;
	__u32 segment;
	__u64 version;
};

/// The place of a block, if it has one.
always bool find_twin(const struct twin_slab *front, __u64 tag, struct twin *twin)
{
	__u64 bytes = front->words[TWIN_BLOCK], sets = front->words[TWIN_SETS], segment = front->words[TWIN_SEGMENT];
	if (tag >> 48 != front->words[TWIN_NODE] || !sets || bytes < LINE || bytes > TWIN_BLOCK_MOST || !segment ||
	    segment > bytes)
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
	twin->segment = segment;
	return found;
}

/// Copies a block. Whether its place was the same all the time.
always bool copied(const struct twin *twin, struct copy *copy)
{
	__u32 at = twin->at;
	asm volatile("" : "+r"(at));
	at &= TWIN_SLAB - LINE;
	for (__u32 line = 0; line < MOST_BLOCK_LINES && line < twin->bytes / LINE; line++) {
		const __u64 *from = (const void *)twin->slab + ((at + LINE + line * LINE) & (TWIN_SLAB - LINE));
#pragma unroll
		for (int word = 0; word < LINE / 8; word++)
			copy->words[line * (LINE / 8) + word] = load(from + word);
	}
	in_order();
	const __u64 *place = (const void *)twin->slab + at;
	return PLANT == 36 || load(place + TWIN_VERSION) == twin->version;
}

/// Sends a block, in segments as the home's agent cuts them.
always int send_block(struct answer *answer)
{
	send_copy(answer);
	// What was not made is lost, as on any network: the requester asks again, and the agent, which knows nothing of what was
	// sent, is not asked to complete it.
	if (!answer->whole)
		return answer->ready ? TC_ACT_SHOT : pass_block(BLOCK_NO_ROOM);
	count_block(BLOCK_ANSWERED);
	return send_last(answer);
}

/// A block, whole, as home has it in the epoch that the packet is of.
always int answer_block(struct __sk_buff *ctx, const struct home *home, const struct twin_slab *front,
			const struct wire_header *wire)
{
	__u32 node = wire->node % MAX_NODES;
	struct twin twin;
	if (!find_twin(front, bpf_be64_to_cpu(wire->tag), &twin))
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
	struct answer answer = {
		.ctx = ctx,
		.ip = home->ip,
		.port = home->port,
		.sender = bpf_htons(home->node),
		.bytes = twin.bytes,
		.segment = twin.segment,
		.mac = mac,
		.to = front->words[TWIN_ADDRESSES + node],
		.to_port = wire->reply_port,
		.kind = KIND_ACK,
		.flags = wire->flags | FLAG_DATA,
	};
	if (!take_copy(&answer))
		return pass_block(BLOCK_NO_ROOM);
	bool whole = copied(&twin, answer.copy);
	if (PLANT == 38)
		copied(&twin, answer.copy);
	int verdict = whole || PLANT == 39 ? send_block(&answer) : pass_block(BLOCK_TORN);
	if (PLANT == 39 && !whole)
		verdict = LEAVE;
	let_copy(&answer);
	return verdict;
}

SEC("classifier")
int blocks(struct __sk_buff *ctx)
{
	__u32 zero = 0;
	struct twin_slab *front = bpf_map_lookup_elem(&BLOCKS, &zero);
	const struct home *home = bpf_map_lookup_elem(&HOME, &zero);
	if (!front || !home || !front->words[TWIN_EPOCH] || ctx->len < OWN_AT)
		return LEAVE;
	// A driver may have left a packet in pages of its own.
	if (ctx->data_end - ctx->data < OWN_AT && bpf_skb_pull_data(ctx, OWN_AT))
		return LEAVE;
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct wire_header *wire = bare_packet(frame, end);
	if (!wire || frame + OWN_AT > end)
		return LEAVE;
	// Wherever it goes, it says where its sender is reached.
	learn(&front->words[TWIN_ADDRESSES], &front->words[TWIN_MACS], frame, frame + 14, wire);
	if (!frame_for(frame, end, home, OWN_AT) || !wants_block(wire))
		return LEAVE;
	return answer_block(ctx, home, front, wire);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
