// Objects read where they lie (crates/proto/src/sabre/rule.rs): a granule of an object is answered here, without waking anybody.
// What is not answered passes, unchanged, to the home's agent: other packets, an object that a writer is in or that moved
// meanwhile, that is gone, and reads of more than a granule. Items of bounded memory are `items.h`'s, lines of replicated memory
// are `lines.h`'s, by the same program.
#include "cache.h"
#include "given.h"
#include "items.h"
#include "lines.h"
#include "serve.h"
#include "tables.gen.h"

/// Bytes of a slab, of a header, and of the longest content that is answered (crates/proto/src/sabre/layout.rs).
#define SLAB 65536
#define GRANULE 1024
#define HEADER 16
/// Lines of a granule with what lies before it.
#define MOST_LINES ((HEADER + GRANULE + LINE - 1) / LINE)
/// In front of the slabs there is one like them, with what class each slab is of, from this word on.
#define CLASSES_AT (4096 / 8)
#define MOST_SLABS (SLAB / 8 - CLASSES_AT)
#define CONTRACT_OBJECT 2

_Static_assert(HEADER == OWN_LEN, "an object's header comes to lie where a packet has its own");

struct slab {
	__u64 words[SLAB / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slab);
} OBJECTS SEC(".maps");

/// What became of reads for the home.
enum did { DID_ANSWER, DID_LOCKED, DID_TORN, DID_GONE, DID_KNOWN, DID_LONG, DID_ELSEWHERE, DID_NO_ROOM, DIDS };

COUNTED(did, DIDS, COUNTERS, count, pass, XDP_PASS)

/// An object's place in its slab, and how long its content can be.
struct place {
	__u32 within;
	__u32 room;
};

/// The slab of an object, if one can begin there.
always struct slab *slab_of(const struct home *home, __u64 tag, struct place *place)
{
	__u64 offset = tag & ((1ull << OFFSET_BITS) - 1);
	__u32 zero = 0;
	const struct slab *front = bpf_map_lookup_elem(&OBJECTS, &zero);
	if (!front || offset < home->base)
		return NULL;
	offset -= home->base;
	__u64 nth = offset / SLAB;
	if (nth >= home->slabs || nth >= MOST_SLABS)
		return NULL;
	// The compiler knows that the mask changes nothing; the verifier wants it.
	__u64 word = CLASSES_AT + nth;
	asm volatile("" : "+r"(word));
	__u64 class = load(&front->words[word & (SLAB / 8 - 1)]);
	if (class >= OBJECT_CLASSES)
		return NULL;
	__u32 bytes = OBJECT_BYTES[class], at = offset % SLAB, key = 1 + nth;
	// A slab without a class has objects of no bytes.
	if (!bytes || at % bytes || at + bytes > SLAB)
		return NULL;
	place->within = at;
	place->room = bytes - HEADER;
	return bpf_map_lookup_elem(&OBJECTS, &key);
}

/// The reader has this version already: a packet without content.
always int known(struct xdp_md *ctx, const struct home *home)
{
	int more = FRAME_LEN - (int)(ctx->data_end - ctx->data);
	if (more < 0 && bpf_xdp_adjust_tail(ctx, more))
		return pass(DID_NO_ROOM);
	void *frame = (void *)(long)ctx->data;
	if (frame + FRAME_LEN > (void *)(long)ctx->data_end)
		return XDP_DROP;
	*(struct own *)(frame + OWN_AT) = (struct own){};
	count(DID_KNOWN);
	return turn(ctx, frame, home, KIND_OBJ_DATA, FLAG_BY_KERNEL | FLAG_BY_GRANULES, REASON_NOT_MODIFIED, OWN_LEN);
}

/// A granule of an object.
always int answer_object(struct xdp_md *ctx, const struct home *home, void *frame)
{
	const struct wire_header *wire = frame + CARRIER_LEN;
	struct own asked = *(struct own *)(frame + OWN_AT);
	__u32 from = bpf_ntohl(wire->offset), wanted = bpf_be64_to_cpu(asked.b);
	struct place place;
	struct slab *slab = slab_of(home, bpf_be64_to_cpu(wire->tag), &place);
	if (!slab)
		return pass(DID_ELSEWHERE);
	// As above: objects begin with a line.
	__u32 within = place.within;
	asm volatile("" : "+r"(within));
	within &= SLAB - LINE;
	const __u64 *version_at = (const __u64 *)((void *)slab + within);
	__u64 version = load(version_at);
	in_order();
	__u64 meta = load(version_at + 1);
	__u32 len = meta & 0xffff;
	bool is_it = meta >> 16 & 1 && meta >> 32 == bpf_be64_to_cpu(asked.b) >> 32;
	if (PLANT != 2 && !is_it)
		return pass(DID_GONE);
	if (PLANT != 3 && version & 1)
		return pass(DID_LOCKED);
	if (version == bpf_be64_to_cpu(asked.a))
		return known(ctx, home);
	// A reader that asks for more has an older length, and one that asks for nothing wants all from there on.
	if ((PLANT != 6 && len > place.room) || (PLANT != 5 && from % GRANULE) || from > len)
		return pass(DID_LONG);
	__u32 bytes = len - from;
	if (wanted && wanted <= GRANULE && bytes > GRANULE)
		bytes = GRANULE;
	if (bytes > GRANULE)
		return pass(DID_LONG);
	__u32 lines = (HEADER + bytes + LINE - 1) / LINE;
	if (make_room(ctx, OWN_AT + lines * LINE))
		return pass(DID_NO_ROOM);
	// What lies before the granule, as long as what the packet has of its own, comes to lie there.
	if (!copy_lines(ctx, slab, SLAB, within + (from & (SLAB - GRANULE)), lines, MOST_LINES))
		return XDP_DROP;
	in_order();
	frame = (void *)(long)ctx->data;
	if (frame + FRAME_LEN > (void *)(long)ctx->data_end)
		return XDP_DROP;
	struct own *own = frame + OWN_AT;
	if (PLANT != 1 && load(version_at) != version) {
		as_it_came(frame, asked);
		return pass(DID_TORN);
	}
	own->a = bpf_cpu_to_be64(version);
	own->b = bpf_cpu_to_be64((meta >> 32) << 32 | len);
	count(DID_ANSWER);
	return turn(ctx, frame, home, KIND_OBJ_DATA, FLAG_DATA | FLAG_BY_KERNEL | FLAG_BY_GRANULES, REASON_NONE,
		    OWN_LEN + bytes);
}

SEC("xdp")
int objects(struct xdp_md *ctx)
{
	// One program an interface.
	int verdict = cached(ctx);
	if (verdict >= 0)
		return verdict;
	__u32 zero = 0;
	const struct home *home = bpf_map_lookup_elem(&HOME, &zero);
	void *end = (void *)(long)ctx->data_end;
	void *frame = home ? frame_for((void *)(long)ctx->data, end, home, FRAME_LEN) : NULL;
	if (!frame)
		return XDP_PASS;
	if (asks(ctx, frame, home, KIND_OBJ_READ, CONTRACT_OBJECT))
		return answer_object(ctx, home, frame);
	if (asks(ctx, frame, home, KIND_BI_READ, CONTRACT_BOUNDED))
		return answer_item(ctx, home, frame);
	if (asks(ctx, frame, home, KIND_BI_ASK_NEWS, CONTRACT_BOUNDED))
		return answer_news(ctx, home, frame);
	if (is_request(ctx, frame, KIND_ABD_READ, CONTRACT_REPLICATED, FLAG_PROVIDER))
		return answer_line(ctx, home, frame, KIND_ABD_READ_ACK);
	if (is_request(ctx, frame, KIND_ABD_STAMP, CONTRACT_REPLICATED, 0))
		return answer_line(ctx, home, frame, KIND_ABD_STAMP_ACK);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
