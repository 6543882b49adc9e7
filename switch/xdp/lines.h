// Lines of replicated memory read where they lie once more (crates/proto/src/abd/mirror): a line's stamp, and the line, without
// waking the agent of the member that has this copy. What is not answered passes, unchanged, to the agent: groups that are not
// here or are in another config, a line that is being written or was meanwhile, or whose group's config has changed. No epoch is
// looked at: packets of these kinds are of any (`is_fenced_by_config` in crates/wire).
#pragma once
#include "serve.h"
#include "tables.gen.h"

#define MOST_MIRROR_LINES VALUE_LINES(MIRROR_MOST)
#define CONTRACT_REPLICATED 4

_Static_assert(MIRROR_GROUPS * LINE <= MIRROR_SLAB, "rows fit a slab");

struct mirror_slab {
	__u64 words[MIRROR_SLAB / 8];
};

/// Rows of groups, and slabs.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mirror_slab);
} LINES SEC(".maps");

/// What became of questions for lines and for their stamps.
enum line_did { LINE_ANSWERED, LINE_STAMP, LINE_LOCKED, LINE_TORN, LINE_ELSEWHERE, LINE_NO_ROOM, LINE_DIDS };

COUNTED(line_did, LINE_DIDS, LINE_COUNTERS, count_line, pass_line, XDP_PASS)

/// The row of the group that a tag names, if there can be one.
always const __u64 *mirror_row(__u64 tag)
{
	__u64 group = tag >> 48;
	__u32 zero = 0;
	const struct mirror_slab *front = bpf_map_lookup_elem(&LINES, &zero);
	if (!front || group >= MIRROR_GROUPS)
		return NULL;
	// The compiler knows that the mask changes nothing; the verifier wants it.
	__u32 at = group * LINE;
	asm volatile("" : "+r"(at));
	return (const void *)front + (at & (MIRROR_SLAB - LINE));
}

/// A line's stamp in the config that the packet is of, and behind it the line for whom asks the provider.
always int answer_line(struct xdp_md *ctx, const struct home *home, void *frame, __u8 kind)
{
	struct wire_header *wire = frame + CARRIER_LEN;
	struct own asked = *(struct own *)(frame + OWN_AT);
	__u64 tag = bpf_be64_to_cpu(wire->tag), offset = tag & ((1ull << OFFSET_BITS) - 1);
	__u64 config = bpf_be64_to_cpu(asked.b) >> 32;
	const __u64 *row = mirror_row(tag);
	if (!row || !config || (PLANT != 20 && load(row + MIRROR_NAME) != config))
		return pass_line(LINE_ELSEWHERE);
	in_order();
	__u64 bytes = load(row + MIRROR_LINE), all = load(row + MIRROR_BYTES);
	__u32 first = load(row + MIRROR_FIRST);
	// A row that is being made may say anything.
	if (!bytes || bytes > MIRROR_MOST || (PLANT != 21 && offset >= all) || (PLANT != 22 && offset % bytes))
		return pass_line(LINE_ELSEWHERE);
	__u32 line_bytes = VALUE_LINES((__u32)bytes) * LINE, each = MIRROR_SLAB / line_bytes;
	__u64 nth = offset / bytes;
	__u32 key = 1 + first + nth / each;
	__u32 within = nth % each * line_bytes;
	const struct mirror_slab *slab = bpf_map_lookup_elem(&LINES, &key);
	if (!slab)
		return pass_line(LINE_ELSEWHERE);
	asm volatile("" : "+r"(within));
	within &= MIRROR_SLAB - LINE;
	const __u64 *version_at = (const void *)slab + within;
	__u64 early = PLANT == 23 ? load(version_at + 1) : 0;
	if (PLANT == 23 || PLANT == 26)
		linger();
	__u64 version = load(version_at);
	in_order();
	if (PLANT != 24 && version & 1)
		return pass_line(LINE_LOCKED);
	__u64 stamp = PLANT == 23 ? early : load(version_at + 1);
	in_order();
	bool provides = wire->flags & FLAG_PROVIDER;
	__u32 sent = provides ? bytes : 0;
	__u32 lines = provides ? VALUE_LINES(sent) : 0;
	if (make_room(ctx, OWN_AT + lines * LINE))
		return pass_line(LINE_NO_ROOM);
	if (!copy_lines(ctx, slab, MIRROR_SLAB, within, lines, MOST_MIRROR_LINES))
		return XDP_DROP;
	in_order();
	frame = (void *)(long)ctx->data;
	if (frame + FRAME_LEN > (void *)(long)ctx->data_end)
		return XDP_DROP;
	struct own *own = frame + OWN_AT;
	bool whole = PLANT == 25 || load(version_at) == version;
	in_order();
	if (!whole || (PLANT != 20 && PLANT != 26 && load(row + MIRROR_NAME) != config)) {
		as_it_came(frame, asked);
		return pass_line(LINE_TORN);
	}
	own->a = bpf_cpu_to_be64(stamp);
	own->b = bpf_cpu_to_be64(config << 32);
	wire = frame + CARRIER_LEN;
	wire->offset = 0;
	count_line(provides ? LINE_ANSWERED : LINE_STAMP);
	return turn(ctx, frame, home, kind, (provides ? FLAG_DATA : 0) | FLAG_BY_KERNEL | FLAG_BY_GRANULES, REASON_NONE,
		    OWN_LEN + sent);
}
