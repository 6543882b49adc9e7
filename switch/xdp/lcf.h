// Requests and unlocks: the lock-check-forward pipeline (crates/proto/src/switch/program.rs). Runs under the lock, so it
// calls no helper.
#ifndef RACKMEM_LCF_H
#define RACKMEM_LCF_H

#include "score.h"

/// Table 3 carried out (crates/proto/src/flowcc/forward.rs). Says whether there is a row.
always bool send_granted(struct packet *p, struct route route)
{
	enum forward to = forward(p->kind, route.status);
	if (to == TO_NOBODY || (to == TO_PROVIDER && route.provider < 0))
		return false;
	p->status = route.status;
	p->flags |= FLAG_GRANTED;
	p->sender = SENDER_SWITCH;
	__u32 provider = route.provider < 0 ? 0 : 1u << (route.provider & 31);
	switch (to) {
	case TO_HOME:
		to_home(p);
		break;
	case TO_PROVIDER:
		p->to_agents = provider;
		p->provider = provider;
		break;
	case TO_ALL_WITH_PROVIDER:
		p->to_agents = p->copyset;
		// Of another block's copyset, if its number has come with another block before.
		p->provider = provider & p->copyset;
		break;
	case TO_OTHERS:
		p->to_agents = p->copyset & ~(1u << (p->node & 31));
		if (!p->to_agents)
			to_requester(p, KIND_ACK);
		break;
	default:
		to_requester(p, KIND_ACK);
	}
	return true;
}

always void request(struct set *set, __u64 *row, struct packet *p)
{
	bool shared = locks_shared(p->kind);
	__u32 way = way_of(set, p->tag | 1);
	struct seen seen = lock_entry(set, way, shared);
	bool valid = check(p->kind, p->node, seen.status, seen.copyset);
	struct route route = { .status = seen.status, .provider = provider_of(seen.copyset, p->from) };
	// The scoreboard takes note of requests for other owners too: whoever decides about the first copy of a request
	// decides about all, wherever the entry has moved meanwhile.
	enum verdict verdict = seen.found ? enter(row, p->seq, seen.acquired, valid, &route) : pass_on(row, p->seq);
#if PLANT != 6
	if (seen.acquired && verdict != FIRST)
		release(&set->lock[way & (WAYS - 1)], shared);
#endif
	switch (verdict) {
	case FIRST:
	case GRANTED:
		p->copyset = seen.copyset;
		p->flags |= FLAG_IN_SWITCH;
		p->did = send_granted(p, route) ? DID_GRANT : DID_DROP;
		break;
	case ELSEWHERE:
		p->did = DID_TO_HOME;
		to_home(p);
		break;
	case REFUSED:
		p->reason = seen.acquired ? REASON_INVALID : REASON_LOCKED;
		p->did = seen.acquired ? DID_INVALID : DID_LOCKED;
		to_requester(p, KIND_ACK);
		break;
	default:
		p->did = DID_DROP;
	}
}

always void unlock(struct set *set, __u64 *row, struct packet *p)
{
	if (!(p->flags & FLAG_IN_SWITCH)) {
		p->did = DID_DROP;
		return;
	}
	p->did = DID_REPEAT;
	if (leave(row, p->seq)) {
		bool shared = p->flags & FLAG_READER;
		__u32 way = way_of(set, p->tag | 1);
		if (way < WAYS) {
			release(&set->lock[way], shared);
			if (!(p->flags & FLAG_KEEP))
				install(set, way, p, shared);
		}
		p->did = DID_UNLOCK;
	}
	to_requester(p, KIND_UNLOCK_ACK);
}

#endif
