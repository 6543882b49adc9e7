// GCP's directory of locks: crates/proto/src/gcp/entry.rs and crates/proto/src/switch/locks.rs. Runs under the lock.
#ifndef RACKMEM_LOCKS_H
#define RACKMEM_LOCKS_H

#include "packet.h"

/// An answer with a number of the directory's: a lock's version is in the place of a sequence number.
always void numbered(struct packet *p, __u8 kind, __u64 number)
{
	p->kind = kind;
	p->sender = SENDER_SWITCH;
	p->seq = number;
	p->did = DID_LOCK_SERVE;
}

/// To all whom it concerns, and to the keeper of the data, who gives it.
always void tell(const struct lock_slot *entry, struct packet *p, __u8 kind, __u64 number, __u32 nodes)
{
	__u32 keeper = 1u << (entry->keeper & 31);
	numbered(p, kind, number);
	p->copyset = entry->sharers;
	p->reason = entry->reason;
	p->status = entry->shared ? STATUS_SHARED : STATUS_MODIFIED;
	p->to_agents = nodes | keeper;
#if PLANT != 10
	p->provider = keeper;
#endif
}

always bool holds(const struct lock_slot *entry, __u32 node)
{
	return !entry->shared && entry->holder == node;
}

always void acquire_lock(struct lock_slot *entry, struct packet *p)
{
	__u32 beside = 1u << (p->node & 31);
	if (p->status == STATUS_UNSHARED) {
		p->did = DID_LOCK_DROP;
		return;
	}
	if (holds(entry, p->node)) {
		// What is told again is told with the number that it had.
#if PLANT == 11
		tell(entry, p, KIND_INVALIDATE, entry->version, entry->sharers | beside);
#else
		tell(entry, p, KIND_INVALIDATE, entry->since, entry->sharers | beside);
#endif
		return;
	}
	entry->version++;
	if (!entry->shared) {
		numbered(p, KIND_WAIT, entry->version);
		p->to_agents = 1u << (entry->holder & 31);
	} else if (p->status == STATUS_SHARED) {
		entry->sharers |= beside;
		tell(entry, p, KIND_GRANT, entry->version, beside);
	} else {
		entry->shared = 0;
		entry->holder = p->node;
		entry->since = entry->version;
		tell(entry, p, KIND_INVALIDATE, entry->version, entry->sharers | beside);
	}
}

/// Why a release is not carried out. The answer names the release that it is about.
always void not_released(const struct lock_slot *entry, struct packet *p, __u8 reason)
{
	__u32 sender = p->sender;
	p->offset = p->seq;
	numbered(p, KIND_RELEASE_ACK, entry->version);
	p->reason = reason;
	p->to_agents = 1u << (sender & 31);
	if (reason != REASON_NONE)
		p->did = DID_LOCK_DENY;
}

always void release_lock(struct lock_slot *entry, struct packet *p)
{
	__u64 version = p->seq;
#if PLANT == 12
	version = (entry->version & 0xffffffff00000000ull) | (__u32)p->seq;
#endif
	if (!holds(entry, p->sender) || version < entry->since) {
		not_released(entry, p, REASON_NONE);
	} else if (version != entry->version) {
		not_released(entry, p, REASON_MOVED);
	} else {
		entry->shared = p->status != STATUS_MODIFIED;
		entry->holder = p->node;
		entry->keeper = p->sender;
		entry->reason = p->reason;
#if PLANT == 13
		entry->sharers |= p->copyset;
#else
		entry->sharers = p->copyset;
#endif
		entry->version++;
		entry->since = entry->version;
		tell(entry, p, KIND_GRANT, entry->version, entry->sharers | 1u << (p->node & 31));
	}
}

/// Where a lock is in its set, or, if it shall come here, where it may; LOCK_WAYS if it is nowhere.
always __u32 lock_way(const struct config *config, const struct lock_set *set, __u64 stored, bool or_free)
{
	__u32 at = LOCK_WAYS;
#pragma unroll
	for (int way = LOCK_WAYS - 1; way >= 0; way--) {
		__u64 tag = set->way[way].tag;
		if ((__u32)way < config->lock_ways && (tag == stored || (or_free && !tag)))
			at = way;
	}
	return at;
}

/// A home asks the switch to serve a lock. Entries never leave within an epoch, so a free location is behind all others.
always void place_lock(struct lock_set *set, __u32 way, struct packet *p)
{
	p->did = DID_LOCK_PLACE;
	__u8 said = p->reason;
	p->kind = KIND_PLACE_ACK;
	p->sender = SENDER_SWITCH;
	p->reason = way < LOCK_WAYS ? REASON_NONE : REASON_FULL;
	to_home(p);
	if (way >= LOCK_WAYS)
		return;
	struct lock_slot *entry = &set->way[way & (LOCK_WAYS - 1)];
#if PLANT != 14
	if (entry->tag)
		return;
#endif
	entry->tag = p->tag | 1;
	entry->version = p->seq;
	entry->since = entry->version;
	entry->holder = p->node;
	entry->keeper = p->offset;
	entry->shared = p->status == STATUS_SHARED;
	entry->reason = said;
	entry->sharers = p->copyset;
}

/// Whether everybody whom it names is a node: who releases is answered, and whoever keeps the data is sent to.
always bool names_nodes(const struct packet *p)
{
	if (p->kind == KIND_RELEASE)
		return p->sender < MAX_NODES;
	return p->kind != KIND_PLACE || p->offset < MAX_NODES;
}

always void serve_lock(const struct config *config, struct lock_set *set, struct packet *p)
{
	bool places = p->kind == KIND_PLACE;
	__u32 way = lock_way(config, set, p->tag | 1, places);
	if (places) {
		place_lock(set, way, p);
	} else if (way >= LOCK_WAYS) {
		p->did = DID_LOCK_TO_HOME;
		to_home(p);
	} else if (p->kind == KIND_ACQUIRE) {
		acquire_lock(&set->way[way], p);
	} else {
		release_lock(&set->way[way], p);
	}
}

#endif
