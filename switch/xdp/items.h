// Items of bounded memory read where they lie once more (crates/proto/src/bi/cached/shelf): an item, and the answer that nothing
// was modified, without waking anybody. What is not answered passes, unchanged, to the home's agent: regions that are not here,
// an item that is being written or was meanwhile, and questions to which there is news.
#pragma once
#include "serve.h"
#include "tables.gen.h"

#define SHELF_SLAB 65536
#define MOST_ITEM_LINES VALUE_LINES(SHELF_MAX_ITEM)
/// Behind what news have of their own: the region's shape.
#define SHAPE_LEN 8
#define CONTRACT_BOUNDED 3

_Static_assert(SHELF_ROWS * LINE == SHELF_SLAB, "rows are as long as a slab");

struct shelf_slab {
	__u64 words[SHELF_SLAB / 8];
};

/// Rows of regions, and slabs.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct shelf_slab);
} ITEMS SEC(".maps");

/// A region as its row says it.
struct region {
	const __u64 *row;
	/// What the row begins with as long as the region is there.
	__u64 name;
	__u32 bytes;
	__u32 items;
	__u32 first;
};

/// What became of reads of items and of questions for news.
enum item_did { ITEM_ANSWERED, ITEM_UNCHANGED, ITEM_LOCKED, ITEM_TORN, ITEM_NEWS, ITEM_ELSEWHERE, ITEM_NO_ROOM, ITEM_DIDS };

COUNTED(item_did, ITEM_DIDS, ITEM_COUNTERS, count_item, pass_item, XDP_PASS)

/// Whether the region that a tag names is here, and what it is.
always bool find_region(const struct home *home, __u64 tag, struct region *region)
{
	__u64 offset = tag & ((1ull << OFFSET_BITS) - 1);
	__u32 zero = 0;
	const struct shelf_slab *front = bpf_map_lookup_elem(&ITEMS, &zero);
	if (!front || offset < home->base || (offset - home->base) % SHELF_STEP)
		return false;
	__u64 number = (offset - home->base) / SHELF_STEP;
	// The compiler knows that the mask changes nothing; the verifier wants it.
	__u32 at = number % SHELF_ROWS * LINE;
	asm volatile("" : "+r"(at));
	region->row = (const void *)front + (at & (SHELF_SLAB - LINE));
	region->name = number + 1;
	if (PLANT != 12 && load(region->row + SHELF_NAME) != region->name)
		return false;
	in_order();
	__u64 shape = load(region->row + SHELF_SHAPE);
	region->bytes = shape;
	region->items = shape >> 32;
	region->first = load(region->row + SHELF_FIRST);
	return true;
}

/// Whether the region has been there all the time.
always bool is_still_there(const struct region *region)
{
	in_order();
	return PLANT == 12 || load(region->row + SHELF_NAME) == region->name;
}

/// An item, whole, with the number that its region has meanwhile.
always int answer_item(struct xdp_md *ctx, const struct home *home, void *frame)
{
	const struct wire_header *wire = frame + CARRIER_LEN;
	struct own asked = *(struct own *)(frame + OWN_AT);
	__u64 item = bpf_be64_to_cpu(asked.b);
	struct region region;
	if (!find_region(home, bpf_be64_to_cpu(wire->tag), &region) || (PLANT != 10 && item >= region.items))
		return pass_item(ITEM_ELSEWHERE);
	__u32 bytes = region.bytes;
	if (!bytes || bytes > SHELF_MAX_ITEM)
		return pass_item(ITEM_ELSEWHERE);
	__u32 item_bytes = VALUE_LINES(bytes) * LINE, each = SHELF_SLAB / item_bytes;
	__u32 key = 1 + region.first + (__u32)item / each;
	__u32 within = (__u32)item % each * item_bytes;
	const struct shelf_slab *slab = bpf_map_lookup_elem(&ITEMS, &key);
	if (!slab)
		return pass_item(ITEM_ELSEWHERE);
	asm volatile("" : "+r"(within));
	within &= SHELF_SLAB - LINE;
	const __u64 *version_at = (const void *)slab + within;
	__u64 writes = 0;
	if (PLANT == 11) {
		writes = load(region.row + SHELF_WRITES);
		linger();
	}
	__u64 version = load(version_at);
	in_order();
	if (PLANT != 8 && version & 1)
		return pass_item(ITEM_LOCKED);
	if (PLANT != 11)
		writes = load(region.row + SHELF_WRITES);
	in_order();
	// What nobody has written is zeros, which are not sent.
	__u32 sent = version ? bytes : 0;
	__u32 lines = VALUE_LINES(sent);
	if (make_room(ctx, OWN_AT + lines * LINE))
		return pass_item(ITEM_NO_ROOM);
	if (!copy_lines(ctx, slab, SHELF_SLAB, within, lines, MOST_ITEM_LINES))
		return XDP_DROP;
	in_order();
	frame = (void *)(long)ctx->data;
	if (frame + FRAME_LEN > (void *)(long)ctx->data_end)
		return XDP_DROP;
	struct own *own = frame + OWN_AT;
	if ((PLANT != 7 && load(version_at) != version) || !is_still_there(&region)) {
		as_it_came(frame, asked);
		return pass_item(ITEM_TORN);
	}
	own->a = bpf_cpu_to_be64(writes);
	own->b = bpf_cpu_to_be64(bytes);
	count_item(ITEM_ANSWERED);
	return turn(ctx, frame, home, KIND_BI_DATA, (sent ? FLAG_DATA : 0) | FLAG_BY_KERNEL | FLAG_BY_GRANULES, REASON_NONE,
		    OWN_LEN + sent);
}

/// That nothing was modified since: one word of the region says so.
always int answer_news(struct xdp_md *ctx, const struct home *home, void *frame)
{
	const struct wire_header *wire = frame + CARRIER_LEN;
	const struct own *asked = frame + OWN_AT;
	__u64 from = bpf_be64_to_cpu(asked->a);
	struct region region;
	if (!find_region(home, bpf_be64_to_cpu(wire->tag), &region))
		return pass_item(ITEM_ELSEWHERE);
	__u64 writes = load(region.row + SHELF_WRITES);
	if (!is_still_there(&region))
		return pass_item(ITEM_TORN);
	if (PLANT != 13 && writes != from)
		return pass_item(ITEM_NEWS);
	if (make_room(ctx, FRAME_LEN + SHAPE_LEN))
		return pass_item(ITEM_NO_ROOM);
	frame = (void *)(long)ctx->data;
	if (frame + FRAME_LEN + SHAPE_LEN > (void *)(long)ctx->data_end)
		return XDP_DROP;
	struct own *own = frame + OWN_AT;
	own->a = bpf_cpu_to_be64(writes);
	own->b = 0;
	*(__be32 *)(frame + FRAME_LEN) = bpf_htonl(region.bytes);
	*(__be32 *)(frame + FRAME_LEN + 4) = bpf_htonl(region.items);
	count_item(ITEM_UNCHANGED);
	return turn(ctx, frame, home, KIND_BI_NEWS, FLAG_DATA | FLAG_BY_KERNEL | FLAG_BY_GRANULES, REASON_NONE,
		    OWN_LEN + SHAPE_LEN);
}
