// Ownership migration: ADD-TO-SWITCH and REMOVE-FROM-SWITCH (crates/proto/src/switch/moves.rs). Runs under the lock.
#ifndef RACKMEM_MOVES_H
#define RACKMEM_MOVES_H

#include "entry.h"

/// A move is `seq << 32 | outcome`, of which `seq` is the low half of its number.
#define MOVE_CLAIMED 1
#define MOVE_DONE 2
/// And the reason.
#define MOVE_REFUSED 16

enum claim { CLAIM_FIRST, CLAIM_DONE, CLAIM_REFUSED, CLAIM_IGNORE };

/// What is to be done about a move; if it was refused, `reason` is why.
always enum claim claim(const __u64 *row, __u32 seq, __u8 *reason)
{
	__u64 move = *row;
	__u32 outcome = move;
	switch (compare(seq, move >> 32)) {
	case OLDER:
		return CLAIM_IGNORE;
	case NEWER:
		return CLAIM_FIRST;
	default:
		if (outcome == MOVE_DONE)
			return CLAIM_DONE;
		if (outcome <= MOVE_CLAIMED)
			return CLAIM_IGNORE;
		*reason = outcome - MOVE_REFUSED;
		if (*reason > REASON_LAST)
			*reason = REASON_REFUSED;
		return CLAIM_REFUSED;
	}
}

always void note(__u64 *row, __u32 seq, __u8 reason)
{
	__u32 outcome = reason == REASON_NONE ? MOVE_DONE : MOVE_REFUSED + reason;
	*row = (__u64)seq << 32 | outcome;
}

/// The home agent that asked, and a copy for the shadow node.
always void answer(const struct config *config, struct packet *p, __u8 kind, __u8 reason)
{
	p->kind = kind;
	p->sender = SENDER_SWITCH;
	p->reason = reason;
	p->to_agents = 1u << (p->node & 31);
#if PLANT != 7
	if (config->shadow < MAX_NODES)
		p->to_agents |= 1u << config->shadow;
#endif
}

/// Takes an entry over if its set has room. Says how that went.
always __u8 take_over(const struct config *config, struct set *set, const struct packet *p)
{
	if (way_of(set, p->tag | 1) < WAYS)
		return REASON_FULL;
	__u32 free = WAYS;
#pragma unroll
	for (int way = WAYS - 1; way >= 0; way--)
		if ((__u32)way < config->ways && !set->tag[way])
			free = way;
	if (free >= WAYS)
		return REASON_FULL;
	set->tag[free] = p->tag | 1;
	set->lock[free] = 0;
	set->status[free] = p->status;
	set->copyset[free] = p->copyset;
	return REASON_NONE;
}

always void add(const struct config *config, struct set *set, __u64 *row, struct packet *p)
{
	__u8 reason = REASON_NONE;
	p->did = DID_REPEAT;
	switch (claim(row, p->seq, &reason)) {
	case CLAIM_IGNORE:
		return;
	case CLAIM_FIRST:
		reason = take_over(config, set, p);
		note(row, p->seq, reason);
		p->did = reason == REASON_NONE ? DID_ADD : DID_COLLIDE;
		break;
	default:
		break;
	}
	answer(config, p, KIND_ADD_ACK, reason);
}

/// The first step: nobody else gets the entry's lock from here on.
always __u8 retire(struct set *set, __u32 way, struct seen *seen)
{
	if (way >= WAYS)
		return REASON_MOVED;
	if (!acquire(&set->lock[way], false))
		return REASON_LOCKED;
	seen->status = set->status[way];
	seen->copyset = set->copyset[way];
	return REASON_NONE;
}

/// The second one. Says whether there was something to free.
always bool clear(struct set *set, __u32 way)
{
	if (way >= WAYS)
		return false;
	set->tag[way] = 0;
	set->lock[way] = 0;
	set->status[way] = STATUS_UNSHARED;
	set->copyset[way] = 0;
	return true;
}

always void remove(const struct config *config, struct set *set, __u64 *row, struct packet *p)
{
	bool frees = p->flags & FLAG_GRANTED;
	__u32 way = way_of(set, p->tag | 1);
	struct seen seen = {};
	__u8 reason = REASON_NONE;
	p->did = DID_REPEAT;
	switch (claim(row, p->seq, &reason)) {
	case CLAIM_IGNORE:
		return;
	case CLAIM_FIRST:
		if (!frees)
			reason = retire(set, way, &seen);
		else if (clear(set, way))
			p->did = DID_REMOVE;
#if PLANT != 8
		note(row, p->seq, reason);
#endif
		break;
	case CLAIM_DONE:
		if (!frees && way < WAYS) {
			seen.status = set->status[way];
			seen.copyset = set->copyset[way];
		}
		break;
	default:
		break;
	}
	p->status = seen.status;
	p->copyset = seen.copyset;
	answer(config, p, KIND_REMOVE_ACK, reason);
}

#endif
