// The switch program in the kernel: crates/proto/src/switch as an XDP program, and proved equal to it
// (docs/switch.md, tests/conformance).
//
// What is for the switch's address and port and belongs to the data plane is executed here and never reaches a socket;
// the rest goes on to the control plane, which listens on the same port. Which map holds what is in state.h.

#include "deliver.h"
#include "lcf.h"
#include "locks.h"
#include "moves.h"
#include "quorum.h"

/// Executes a packet: everything it reads and writes is between the two ends of the lock.
always void execute(struct config *config, struct set *set, __u64 *row, struct packet *p)
{
	bpf_spin_lock(&config->lock);
	if (config->frozen || p->epoch != config->epoch)
		p->did = DID_DROP;
	else if (is_request(p->kind))
		request(set, row, p);
	else if (p->kind == KIND_UNLOCK)
		unlock(set, row, p);
	else if (p->kind == KIND_ADD_TO_SWITCH)
		add(config, set, row, p);
	else
		remove(config, set, row, p);
	bpf_spin_unlock(&config->lock);
}

/// The same of a packet about a lock.
always void execute_lock(struct config *config, struct lock_set *set, struct packet *p)
{
	bpf_spin_lock(&config->lock);
	if (!config->serves_locks || p->epoch != config->lock_epoch)
		p->did = DID_LOCK_DROP;
	else
		serve_lock(config, set, p);
	bpf_spin_unlock(&config->lock);
}

/// The score or the move of who asks, or none if the rack has no such requester.
always __u64 *row_of(const struct config *config, const struct packet *p)
{
	__u32 node = p->node, slot = p->slot;
	if (node >= config->nodes)
		return NULL;
	if (is_move(p->kind)) {
		__u32 at = node * MAX_MOVES + slot;
		return slot < MAX_MOVES ? bpf_map_lookup_elem(&MOVES, &at) : NULL;
	}
	__u32 at = (node * config->requesters + slot) * 2 + (p->seq & 1);
	return slot < config->requesters ? bpf_map_lookup_elem(&SCOREBOARD, &at) : NULL;
}

always bool chance(__u32 part)
{
	return part && bpf_get_prandom_u32() < part;
}

/// Counts what has become of a packet, and lets leave what comes of it.
always int send_off(struct xdp_md *ctx, struct config *config, struct nodes *nodes, struct packet *p)
{
	count(p->did);
	if (!p->to_requester && !p->to_agents)
		return XDP_DROP;
	if (chance(config->lose_out)) {
		count(DID_LOSE);
		return XDP_DROP;
	}
	return deliver(ctx, config, nodes, p);
}

always int of_locks(struct xdp_md *ctx, struct config *config, struct nodes *nodes, struct packet *p)
{
	__u32 at = crc32(p->tag) & config->lock_sets_mask;
	struct lock_set *set = bpf_map_lookup_elem(&LOCKS, &at);
	if (!set || p->body || !is_owned(p) || !names_nodes(p)) {
		count(DID_LOCK_DROP);
		return XDP_DROP;
	}
	if (chance(config->lose_in)) {
		count(DID_LOSE);
		return XDP_DROP;
	}
	execute_lock(config, set, p);
	return send_off(ctx, config, nodes, p);
}

/// Counts a packet of replicated memory. False: it is not counted here.
always bool execute_quorum(struct config *config, struct quorum_row *row, struct stamp_line *line, struct packet *p)
{
	bpf_spin_lock(&config->lock);
	bool counted = serve_quorum(config, row, line, p);
	bpf_spin_unlock(&config->lock);
	return counted;
}

always int of_copies(struct xdp_md *ctx, struct config *config, struct nodes *nodes, struct packet *p)
{
	void *frame = frame_of(ctx, FRAME_LEN + OWN_LEN);
	p->row = ((p->node & 31) * MAX_REQUESTERS + (p->slot & 63)) * 2 + (p->seq & 1);
	__u32 row_at = p->row, line_at = crc32(p->tag) & config->stamps_mask;
	struct quorum_row *row = bpf_map_lookup_elem(&QUORUM, &row_at);
	struct stamp_line *line = bpf_map_lookup_elem(&STAMPS, &line_at);
	if (!frame || !row || !line || p->body > MAX_BODY)
		return XDP_DROP;
	p->stamp = bpf_be64_to_cpu(OWN(frame)->a);
	p->group_config = bpf_be64_to_cpu(OWN(frame)->b) >> 32;
	if (chance(config->lose_in)) {
		count(DID_LOSE);
		return XDP_DROP;
	}
	if (!execute_quorum(config, row, line, p)) {
		count(DID_CONTROL);
		return XDP_PASS;
	}
	OWN(frame)->a = bpf_cpu_to_be64(p->stamp);
	return send_off(ctx, config, nodes, p);
}

always int data_plane(struct xdp_md *ctx, struct config *config, struct nodes *nodes, struct packet *p)
{
	// The program's packets have no body.
	__u32 at = crc32(p->tag) & config->sets_mask;
	__u64 *row = row_of(config, p);
	struct set *set = bpf_map_lookup_elem(&SETS, &at);
	if (!row || !set || p->body || !is_owned(p) || (is_request(p->kind) && (p->flags & FLAG_GRANTED))) {
		count(DID_DROP);
		return XDP_DROP;
	}
	p->from = crc32((__u64)p->node << 48 | (__u64)p->slot << 32 | (__u32)p->seq) ^ config->seed;
	if (chance(config->lose_in)) {
		count(DID_LOSE);
		return XDP_DROP;
	}
	execute(config, set, row, p);
	return send_off(ctx, config, nodes, p);
}

SEC("xdp")
int rackmem(struct xdp_md *ctx)
{
	struct packet p = {};
	struct config *config = FIRST(CONFIG);
	struct nodes *nodes = FIRST(NODES);
	if (!config || !nodes)
		return XDP_PASS;
	switch (parse(ctx, config, &p)) {
	case NOT_OURS:
		return XDP_PASS;
	case MALFORMED:
		count(DID_MALFORMED);
		return XDP_DROP;
	default:
		break;
	}
	struct counters *counters = FIRST(COUNTERS);
	if (counters)
		counters->kinds[p.kind]++;
	learn(ctx, nodes, &p);
	if (is_lock(p.kind))
		return of_locks(ctx, config, nodes, &p);
	if (is_data_plane(p.kind))
		return data_plane(ctx, config, nodes, &p);
	if (phase_of(p.kind))
		return of_copies(ctx, config, nodes, &p);
	count(DID_CONTROL);
	return XDP_PASS;
}

/// Runs at every port for every copy of a multicast.
SEC("xdp/devmap")
int egress(struct xdp_md *ctx)
{
	struct nodes *nodes = FIRST(NODES);
	return nodes ? make_copy(ctx, nodes, ctx->egress_ifindex) : XDP_DROP;
}

/// The same where a test run can reach it.
SEC("xdp")
int egress_probe(struct xdp_md *ctx)
{
	struct nodes *nodes = FIRST(NODES);
	__u32 *ifindex = FIRST(PROBE);
	return nodes && ifindex ? make_copy(ctx, nodes, *ifindex) : XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
