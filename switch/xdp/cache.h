// Orders to a node's cache agent that need no byte of a block (crates/proto/src/flowcc/in_kernel.rs): a clean copy is invalidated
// by the entry's own control word, which the node's threads take for the same, and its requester gets the acknowledgement.
// Nobody at the node is woken. What is not answered passes, unchanged, to the agent.
#pragma once
#include "serve.h"
#include "tables.gen.h"

/// A control word (crates/rackmem/src/bytes/cache.rs).
#define ENTRY_LOCKED 1ull
#define ENTRY_STATUS 6ull
#define ENTRY_SHARED 2ull
#define ENTRY_MODIFIED 4ull
#define ENTRY_VERSION 8ull
#define WAYS 8

struct desk {
	__u64 words[DESK_WORDS];
};

struct tags {
	__u64 way[WAYS];
};

struct control {
	__u64 word;
	__u64 tag;
	__u32 used;
	__u32 written;
	__u64 unused[5];
};

struct controls {
	struct control way[WAYS];
};

_Static_assert(sizeof(struct control) == LINE, "an entry's control has a line of its own");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct desk);
} DESK SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tags);
} TAGS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct controls);
} CONTROLS SEC(".maps");

/// What became of an order: in this order in the desk's counts.
enum cached { CACHED_ANSWER, CACHED_NOT_OF_NOW, CACHED_ASKS, CACHED_NO_WAY, CACHED_ABSENT, CACHED_LOCKED, CACHED_WRITTEN, CACHED_AGAIN };

/// The entry that has a packet's block, with its lock bit taken.
struct entry {
	struct tags *tags;
	struct control *control;
	/// Its word without that bit.
	__u64 word;
	__u32 set;
	__u32 way;
	/// Whether it is taken.
	bool locked;
};

/// Takes the lock bit of the entry that has a block, if one has.
always enum cached lock_entry(const struct desk *desk, __u64 tag, struct entry *entry)
{
	__u64 mixed = (tag >> 8) * 0x9e3779b97f4a7c15ull;
	entry->set = (mixed >> 24) & desk->words[DESK_SET_MASK];
	struct controls *controls = bpf_map_lookup_elem(&CONTROLS, &entry->set);
	entry->tags = bpf_map_lookup_elem(&TAGS, &entry->set);
	if (!entry->tags || !controls)
		return CACHED_ABSENT;
	__u32 way = WAYS;
#pragma unroll
	for (__u32 nth = 0; nth < WAYS; nth++)
		if (load(&entry->tags->way[nth]) == (tag | 1))
			way = nth;
	if (way >= WAYS)
		return CACHED_ABSENT;
	entry->way = way & (WAYS - 1);
	entry->control = &controls->way[way & (WAYS - 1)];
	entry->word = load(&entry->control->word);
	if (PLANT != 11 && entry->word & ENTRY_LOCKED)
		return CACHED_LOCKED;
	if (!(entry->word & ENTRY_STATUS))
		return CACHED_ABSENT;
	if (__sync_val_compare_and_swap(&entry->control->word, entry->word, entry->word | ENTRY_LOCKED) != entry->word)
		return CACHED_LOCKED;
	entry->locked = true;
	return load(&entry->control->tag) == (tag | 1) ? CACHED_ANSWER : CACHED_ABSENT;
}

/// Gives the lock bit back, with the entry's word as this says.
always void unlock_entry(const struct entry *entry, __u64 word)
{
	__sync_lock_test_and_set(&entry->control->word, word);
}

/// Enters a request in the agent's table of what was executed, if it is new.
always bool enters(struct desk *desk, const struct wire_header *wire)
{
	__u64 seq = bpf_be64_to_cpu(wire->seq);
	__u32 row = 2 * (wire->node % MAX_NODES * MAX_REQUESTERS + wire->slot % MAX_REQUESTERS) + (seq & 1);
	// The compiler knows that the mask changes nothing; the verifier wants it.
	asm volatile("" : "+r"(row));
	__u64 *executed = &desk->words[DESK_ROWS + (row & (2 * MAX_NODES * MAX_REQUESTERS - 1))];
	__u64 before = load(executed);
	return seq > before && __sync_val_compare_and_swap(executed, before, seq) == before;
}

/// Takes the entry's lock bit, empties it and enters the request, or changes nothing.
always enum cached take_away(struct desk *desk, const struct wire_header *wire)
{
	struct entry entry = {};
	enum cached did = lock_entry(desk, bpf_be64_to_cpu(wire->tag), &entry);
	if (!entry.locked)
		return did;
	__u64 word = entry.word;
	if (PLANT != 12 && did == CACHED_ANSWER && (word & ENTRY_STATUS) != ENTRY_SHARED)
		did = CACHED_WRITTEN;
	else if (PLANT != 13 && did == CACHED_ANSWER && !enters(desk, wire))
		did = CACHED_AGAIN;
	if (did != CACHED_ANSWER) {
		unlock_entry(&entry, word);
		return did;
	}
	// What was noted of the copy goes with it, as with the agent.
	if (PLANT != 18)
		*(volatile __u32 *)&entry.control->written = 0;
	*(volatile __u64 *)&entry.control->tag = 0;
	*(volatile __u64 *)&entry.tags->way[entry.way & (WAYS - 1)] = 0;
	if (PLANT == 14)
		word |= ENTRY_SHARED;
	else
		word &= ~ENTRY_STATUS;
	unlock_entry(&entry, word + ENTRY_VERSION);
	return CACHED_ANSWER;
}

/// Whether a packet is of the epoch that the node serves in, and of a life of its requester's node in it.
always bool of_now(const struct desk *desk, const struct wire_header *wire)
{
	__u64 epoch = load(&desk->words[DESK_EPOCH]);
	__u32 node = wire->node % MAX_NODES;
	return epoch && (PLANT == 15 || epoch == bpf_ntohl(wire->epoch)) &&
	       (PLANT == 16 || desk->words[DESK_INCARNATIONS + node] == bpf_ntohl(wire->incarnation));
}

/// Whether a packet is for the node's cache agent: granted by an owner that knows of copies, and well-formed as strictly as `decode`
/// in crates/wire.
always bool for_cache(const struct desk *desk, const struct iphdr *ip, const struct udphdr *udp, const struct wire_header *wire)
{
	__u64 tag = bpf_be64_to_cpu(wire->tag), agent = 0;
	__builtin_memcpy(&agent, &ip->daddr, 4);
	__builtin_memcpy((void *)&agent + 4, &udp->dest, 2);
	return agent == desk->words[DESK_AGENT] && wire->flags & FLAG_GRANTED && !(wire->flags & ~FLAGS_KNOWN) &&
	       wire->status != STATUS_UNSHARED && wire->status <= STATUS_MODIFIED && !wire->reserved && wire->node < MAX_NODES &&
	       wire->slot < MAX_REQUESTERS && tag >> 48 < MAX_HOMES && (tag >> OFFSET_BITS & 7) == CONTRACT_COHERENT;
}

/// What an order comes to while the epoch cannot end.
always enum cached served(struct desk *desk, const struct wire_header *wire)
{
	__u32 node = wire->node % MAX_NODES;
	if (!of_now(desk, wire))
		return CACHED_NOT_OF_NOW;
	// Who counts invalidations of the switch's entries is the node.
	if ((PLANT != 17 && wire->flags != FLAG_GRANTED) || wire->status != STATUS_SHARED || wire->reason)
		return CACHED_ASKS;
	if (!wire->reply_port || !load(&desk->words[DESK_MACS + node]))
		return CACHED_NO_WAY;
	return take_away(desk, wire);
}

/// The verdict on a packet, or less than nothing: it is for somebody else.
always int cached(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct desk *desk = bpf_map_lookup_elem(&DESK, &zero);
	if (!desk || !desk->words[DESK_EPOCH])
		return -1;
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct wire_header *wire = bare_packet(frame, end);
	if (!wire || frame + OWN_AT > end)
		return -1;
	struct ethhdr *eth = frame;
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	learn(&desk->words[DESK_ADDRESSES], &desk->words[DESK_MACS], eth, ip, wire);
	if ((wire->kind != KIND_WRITE_MISS && wire->kind != KIND_WRITE_SHARED) || !for_cache(desk, ip, udp, wire))
		return -1;
	// Who ends the epoch takes it away first, and then waits until nobody is inside.
	__sync_fetch_and_add(&desk->words[DESK_INSIDE], 1);
	enum cached did = served(desk, wire);
	__sync_fetch_and_sub(&desk->words[DESK_INSIDE], 1);
	__sync_fetch_and_add(&desk->words[DESK_COUNTS + (did & 7)], 1);
	if (did != CACHED_ANSWER)
		return XDP_PASS;
	__u32 node = wire->node % MAX_NODES;
	__u64 mac = desk->words[DESK_MACS + node];
	__builtin_memcpy(eth->h_source, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, &mac, 6);
	carry(frame, ip->daddr, udp->dest, desk->words[DESK_ADDRESSES + node], wire->reply_port, WIRE_HEADER_LEN);
	wire->kind = KIND_ACK;
	wire->sender = bpf_htons(desk->words[DESK_NODE]);
	// See `turn`.
	return bpf_redirect(ctx->ingress_ifindex, 0);
}
