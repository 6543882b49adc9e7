// Objects read where they lie (crates/proto/src/sabre/rule.rs): the home's memory is a map that the home's process has mapped,
// and a read of an object is answered here, without waking anybody. What is not answered passes, unchanged, to the home's
// agent: other packets, an object that a writer is in or that moved meanwhile, that is gone, that the reader has already, or
// that is longer than a granule.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "../generated/wire.h"
#include "tables.gen.h"

#define always static __always_inline

/// Bytes of a slab, of a line, and of the longest content that is answered (crates/proto/src/sabre/layout.rs).
#define SLAB 65536
#define LINE 64
#define GRANULE 1024
#define HEADER 16
/// Lines of such an object, its header included.
#define MOST_LINES ((HEADER + GRANULE + LINE - 1) / LINE)
/// In front of the slabs there is one like them, with what class each slab is of, from this word on.
#define CLASSES_AT (4096 / 8)
#define MOST_SLABS (SLAB / 8 - CLASSES_AT)

#define OFFSET_BITS 45
#define CONTRACT_OBJECT 2

/// A packet with what its kind has of its own.
#define CARRIER_LEN 42
#define OWN_AT (CARRIER_LEN + WIRE_HEADER_LEN)
#define FRAME_LEN (OWN_AT + OWN_LEN)

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

/// Who is served, and where its objects begin. crates/xdp/src/objects.rs has the same fields.
struct home {
	/// Where the home's agent listens. Port zero: nothing is answered.
	__be32 ip;
	__be16 port;
	__u16 node;
	__u32 epoch;
	__u32 slabs;
	/// The offset of the first slab.
	__u64 base;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct home);
} HOME SEC(".maps");

/// What became of reads for the home.
enum did { DID_ANSWER, DID_LOCKED, DID_TORN, DID_GONE, DID_KNOWN, DID_LONG, DID_ELSEWHERE, DID_NO_ROOM, DIDS };

struct counters {
	__u64 did[DIDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} COUNTERS SEC(".maps");

struct own {
	__be64 a;
	__be64 b;
} __attribute__((packed, aligned(2)));

/// The agent gets it.
always int pass(enum did did)
{
	__u32 zero = 0;
	struct counters *counters = bpf_map_lookup_elem(&COUNTERS, &zero);
	if (counters)
		counters->did[did]++;
	return XDP_PASS;
}

/// Stays between what is before and behind it: this processor neither swaps loads.
always void in_order(void)
{
	asm volatile("" ::: "memory");
}

always __u64 load(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

/// The frame, if it is a datagram for the home.
always void *frame_for(struct xdp_md *ctx, const struct home *home)
{
	void *frame = (void *)(long)ctx->data;
	if (frame + FRAME_LEN > (void *)(long)ctx->data_end)
		return NULL;
	const struct ethhdr *eth = frame;
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	bool ours = eth->h_proto == bpf_htons(ETH_P_IP) && *(__u8 *)ip == 0x45 && ip->protocol == IPPROTO_UDP &&
		    !(ip->frag_off & bpf_htons(0x3fff)) && ip->daddr == home->ip && udp->dest == home->port;
	return ours && home->port ? frame : NULL;
}

/// Whether it asks for an object, as strictly as `decode` in crates/wire, of the home in its epoch.
always bool asks(void *frame, const struct home *home)
{
	const struct iphdr *ip = frame + 14;
	const struct udphdr *udp = frame + 34;
	const struct wire_header *wire = frame + CARRIER_LEN;
	__u64 tag = bpf_be64_to_cpu(wire->tag);
	return wire->magic == bpf_htons(WIRE_MAGIC) && wire->version == WIRE_VERSION && wire->kind == KIND_OBJ_READ &&
	       ip->tot_len == bpf_htons(FRAME_LEN - 14) && udp->len == bpf_htons(FRAME_LEN - 34) &&
	       wire->body_len == bpf_htons(OWN_LEN) && wire->node < MAX_NODES && wire->slot < MAX_REQUESTERS &&
	       !wire->flags && !wire->reserved && !wire->status && !wire->reason && !wire->offset && wire->reply_port &&
	       wire->epoch == bpf_htonl(home->epoch) && tag >> 48 == home->node &&
	       (tag >> OFFSET_BITS & 7) == CONTRACT_OBJECT;
}

/// The place of an object in its slab, if one can begin there.
always struct slab *slab_of(const struct home *home, __u64 tag, __u32 *within)
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
	*within = at;
	return bpf_map_lookup_elem(&OBJECTS, &key);
}

/// Back to the thread that asked.
always void turn(void *frame, const struct home *home, __u32 body)
{
	struct ethhdr *eth = frame;
	struct iphdr *ip = frame + 14;
	struct udphdr *udp = frame + 34;
	struct wire_header *wire = frame + CARRIER_LEN;
	__u8 mac[6];
	__builtin_memcpy(mac, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	__builtin_memcpy(eth->h_source, mac, 6);
	*(__be16 *)ip = bpf_htons(0x4500);
	ip->tot_len = bpf_htons(OWN_AT - 14 + body);
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->daddr = ip->saddr;
	ip->saddr = home->ip;
	ip->check = 0;
	const __u16 *words = (const __u16 *)ip;
	__u32 sum = 0;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = ~sum;
	udp->source = home->port;
	udp->dest = wire->reply_port;
	udp->len = bpf_htons(OWN_AT - 34 + body);
	udp->check = 0;
	wire->kind = KIND_OBJ_DATA;
	wire->flags = FLAG_DATA;
	wire->sender = bpf_htons(home->node);
	wire->body_len = bpf_htons(body);
}

SEC("xdp")
int objects(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct home *home = bpf_map_lookup_elem(&HOME, &zero);
	void *frame = home ? frame_for(ctx, home) : NULL;
	if (!frame || !asks(frame, home))
		return XDP_PASS;
	struct own asked = *(struct own *)(frame + OWN_AT);
	__u32 within = 0;
	struct slab *slab = slab_of(home, bpf_be64_to_cpu(((struct wire_header *)(frame + CARRIER_LEN))->tag), &within);
	if (!slab)
		return pass(DID_ELSEWHERE);
	// Likewise: objects begin with a line.
	asm volatile("" : "+r"(within));
	within &= SLAB - LINE;
	const __u64 *version_at = (const __u64 *)((void *)slab + within);
	__u64 version = load(version_at);
	in_order();
	__u64 meta = load(version_at + 1);
	__u32 len = meta & 0xffff;
#if PLANT != 2
	if (!(meta >> 16 & 1) || meta >> 32 != bpf_be64_to_cpu(asked.b) >> 32)
		return pass(DID_GONE);
#endif
#if PLANT != 3
	if (version & 1)
		return pass(DID_LOCKED);
#endif
	if (version == bpf_be64_to_cpu(asked.a))
		return pass(DID_KNOWN);
	if (len > GRANULE)
		return pass(DID_LONG);
	__u32 lines = (HEADER + len + LINE - 1) / LINE;
	int more = (int)(OWN_AT + lines * LINE) - (int)(ctx->data_end - ctx->data);
	if (more > 0 && bpf_xdp_adjust_tail(ctx, more))
		return pass(DID_NO_ROOM);
	frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	if (frame + FRAME_LEN > end)
		return XDP_DROP;
	// Its header, as long as what the packet has of its own, comes to lie there, and its bytes behind.
	for (__u32 line = 0; line < MOST_LINES && line < lines; line++) {
		const __u64 *from = (const __u64 *)((void *)slab + ((within + line * LINE) & (SLAB - LINE)));
		void *to = frame + OWN_AT + line * LINE;
		if (to + LINE > end)
			return XDP_DROP;
#pragma unroll
		for (int word = 0; word < LINE / 8; word++)
			((__u64 *)to)[word] = load(from + word);
	}
	in_order();
	struct own *own = frame + OWN_AT;
#if PLANT != 1
	if (load(version_at) != version) {
		// The agent gets what has come; what is behind that is no part of the datagram.
		*own = asked;
		return pass(DID_TORN);
	}
#endif
	own->a = bpf_cpu_to_be64(version);
	own->b = bpf_cpu_to_be64((meta >> 32) << 32 | len);
	turn(frame, home, OWN_LEN + len);
	pass(DID_ANSWER);
	// XDP_TX would do, but the other end of a veth cable gets such a frame only if it has an XDP program itself.
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
