// Readers' misses for which a node's cache has the block (crates/proto/src/flowcc/in_kernel.rs, `give`): the block goes to the reader,
// and home as well if it was dirty here, whose entry says so from then on. Nobody at the node is woken. What is not answered
// passes, unchanged, to the agent.
//
// All that changes does so under the entry's lock bit, before a packet is sent: the copy in the processor's memory is of that
// moment. What is lost afterwards is lost as on any network. The requester asks again, and the agent, which finds the request
// executed and the copy clean, sends the same again.
#pragma once
#include "cache.h"
#include "segments.h"

/// What an order for a block comes to, in this order behind the desk's other counts: as with those, and there was no memory.
#define GIVEN_NO_ROOM 8

struct cache_slab {
	__u64 words[CACHE_SLAB / 8];
};

/// The blocks of the cache, entry by entry.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cache_slab);
} CACHED SEC(".maps");

/// Copies the block of an entry, which nobody changes meanwhile.
always bool copy_entry(const struct entry *entry, const struct answer *answer)
{
	__u64 first = ((__u64)entry->set * WAYS + entry->way) * answer->bytes;
	__u32 key = first / CACHE_SLAB, at = first % CACHE_SLAB;
	const struct cache_slab *slab = bpf_map_lookup_elem(&CACHED, &key);
	if (!slab)
		return false;
	asm volatile("" : "+r"(at));
	for (__u32 line = 0; line < MOST_BLOCK_LINES && line < answer->bytes / LINE; line++) {
		const __u64 *from = (const void *)slab + ((at + line * LINE) & (CACHE_SLAB - LINE));
#pragma unroll
		for (int word = 0; word < LINE / 8; word++)
			answer->copy->words[line * (LINE / 8) + word] = load(from + word);
	}
	return true;
}

/// Copies the block, notes that it was written here if the entry says that it may be, and enters the request, or changes nothing.
always enum cached lend(struct desk *desk, const struct wire_header *wire, const struct answer *answer)
{
	struct entry entry = {};
	enum cached did = lock_entry(desk, bpf_be64_to_cpu(wire->tag), &entry);
	if (!entry.locked)
		return did;
	__u64 word = entry.word;
	bool dirty = (word & ENTRY_STATUS) == ENTRY_MODIFIED;
	if (PLANT != 50 && did == CACHED_ANSWER && dirty && wire->status != STATUS_MODIFIED)
		did = CACHED_WRITTEN;
	else if (did == CACHED_ANSWER && !copy_entry(&entry, answer))
		did = CACHED_ABSENT;
	else if (PLANT != 51 && did == CACHED_ANSWER && !enters(desk, wire))
		did = CACHED_AGAIN;
	if (did == CACHED_ANSWER && dirty) {
		if (PLANT != 52)
			*(volatile __u32 *)&entry.control->written = 1;
		if (PLANT != 53)
			word = (word & ~ENTRY_STATUS) | ENTRY_SHARED;
		word += ENTRY_VERSION;
	}
	unlock_entry(&entry, word);
	return did;
}

/// What an order comes to while the epoch cannot end.
always enum cached lends(struct desk *desk, const struct wire_header *wire, const struct answer *answer, __u64 home)
{
	__u32 node = wire->node % MAX_NODES;
	if (!of_now(desk, wire))
		return CACHED_NOT_OF_NOW;
	if ((PLANT != 54 && (wire->flags & ~FLAG_IN_SWITCH) != (FLAG_GRANTED | FLAG_PROVIDER)) || wire->reason)
		return CACHED_ASKS;
	if (!wire->reply_port || !answer->mac || node == desk->words[DESK_NODE])
		return CACHED_NO_WAY;
	// The node's own home is reached by no interface, and who keeps a group's may be anybody.
	if (wire->status == STATUS_MODIFIED &&
	    (home >= MAX_NODES || (PLANT != 55 && home == desk->words[DESK_NODE]) || !load(&desk->words[DESK_MACS + home % MAX_NODES])))
		return CACHED_NO_WAY;
	return lend(desk, wire, answer);
}

/// Sends the block to the reader, and home.
always int send_given(const struct desk *desk, struct answer *answer, __u64 home, bool dirty)
{
	home %= MAX_NODES;
	send_copy(answer);
	if (answer->whole && PLANT != 56 && dirty) {
		// Second: the application waits for the data, only its unlock waits for home.
		answer->mac = load(&desk->words[DESK_MACS + home]);
		answer->to = desk->words[DESK_ADDRESSES + home];
		answer->to_port = desk->words[DESK_PORTS + home];
		answer->kind = KIND_WRITE_BACK;
		answer->flags &= PLANT == 57 ? 0xff : ~FLAG_GRANTED;
		send_copy(answer);
	}
	return answer->whole ? send_last(answer) : TC_ACT_SHOT;
}

always int give(struct __sk_buff *ctx, struct desk *desk, const struct wire_header *wire)
{
	__u64 home = bpf_be64_to_cpu(wire->tag) >> 48, agent = desk->words[DESK_AGENT];
	__u32 node = wire->node % MAX_NODES;
	bool dirty = wire->status == STATUS_MODIFIED;
	struct answer answer = {
		.ctx = ctx,
		.ip = (__u32)agent,
		.port = (__u16)(agent >> 32),
		.sender = bpf_htons(desk->words[DESK_NODE]),
		.bytes = desk->words[DESK_BLOCK],
		.segment = desk->words[DESK_SEGMENT],
		.mac = load(&desk->words[DESK_MACS + node]),
		.to = desk->words[DESK_ADDRESSES + node],
		.to_port = wire->reply_port,
		.kind = KIND_ACK,
		.flags = wire->flags | FLAG_DATA,
	};
	if (answer.bytes < LINE || answer.bytes > TWIN_BLOCK_MOST || !answer.segment || answer.segment > answer.bytes)
		return LEAVE;
	__u32 did = GIVEN_NO_ROOM;
	bool taken = take_copy(&answer);
	if (taken) {
		// Who ends the epoch takes it away first, and then waits until nobody is inside.
		__sync_fetch_and_add(&desk->words[DESK_INSIDE], 1);
		did = lends(desk, wire, &answer, home);
		__sync_fetch_and_sub(&desk->words[DESK_INSIDE], 1);
	}
	__sync_fetch_and_add(&desk->words[DESK_GIVEN + (did & 15)], 1);
	int verdict = LEAVE;
	if (taken && did == CACHED_ANSWER)
		verdict = send_given(desk, &answer, home, dirty);
	if (taken)
		let_copy(&answer);
	return verdict;
}

SEC("classifier")
int given(struct __sk_buff *ctx)
{
	__u32 zero = 0;
	struct desk *desk = bpf_map_lookup_elem(&DESK, &zero);
	if (!desk || !desk->words[DESK_EPOCH] || !desk->words[DESK_BLOCK] || ctx->len < OWN_AT)
		return LEAVE;
	// A driver may have left a packet in pages of its own.
	if (ctx->data_end - ctx->data < OWN_AT && bpf_skb_pull_data(ctx, OWN_AT))
		return LEAVE;
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct wire_header *wire = bare_packet(frame, end);
	// Where nodes are reached the program before this one has heard.
	if (!wire || frame + OWN_AT > end || wire->kind != KIND_READ_MISS || !for_cache(desk, frame + 14, frame + 34, wire))
		return LEAVE;
	return give(ctx, desk, wire);
}
