// Replicated memory: counts the answers of a group's members, and chooses stamps where it may
// (crates/proto/src/switch/quorum.rs and stamps.rs). Runs under the lock.
#ifndef RACKMEM_QUORUM_H
#define RACKMEM_QUORUM_H

#include "packet.h"

/// The phase of an operation that a kind belongs to; 0: it is none that is counted. Answers have odd kinds.
always __u8 phase_of(__u8 kind)
{
	switch (kind) {
	case KIND_ABD_STAMP:
	case KIND_ABD_STAMP_ACK:
	case KIND_ABD_READ:
	case KIND_ABD_READ_ACK:
		return 1;
	case KIND_ABD_WRITE:
	case KIND_ABD_WRITE_ACK:
	case KIND_ABD_WRITE_BACK:
	case KIND_ABD_WRITE_BACK_ACK:
		return 2;
	default:
		return 0;
	}
}

always bool answers(__u8 kind)
{
	return kind & 1;
}

/// What ABD-OP keeps: number, config and phase.
always __u64 operation_of(const struct packet *p)
{
	return (p->seq & 0xffffffff) << 32 | (__u64)(p->group_config & ((1u << 30) - 1)) << 2 | phase_of(p->kind);
}

/// Whether an entry is of the packet's line, in the configs that there are now.
always bool knows(const struct config *config, const struct stamp_line *line, const struct packet *p)
{
	return line->state != LINE_UNUSED && line->configs == config->configs && line->tag == p->tag;
}

always void raise(const struct config *config, struct stamp_line *line, const struct packet *p)
{
#if PLANT != 20
	if (knows(config, line, p) && p->stamp > line->max)
		line->max = p->stamp;
#endif
}

/// A question for stamps passes: the first copy of one that finds no entry learns. After many others, the next one learns
/// in the place of one that is never answered.
always void learn_stamp(const struct config *config, struct stamp_line *line, const struct packet *p)
{
	bool fresh = !knows(config, line, p);
	bool learning = !fresh && line->state == LINE_LEARNING;
	if (fresh || (learning && line->passed == STAMP_PATIENCE)) {
		line->tag = p->tag;
		line->configs = config->configs;
		line->learner_row = p->row;
		line->learner_seq = p->seq;
		line->passed = 0;
		line->state = LINE_LEARNING;
		if (fresh)
			line->max = 0;
	} else if (learning) {
		line->passed++;
	}
}

/// The stamp of a write that has come without one; that of its first copy, if this is not it. 0: none is known.
always __u64 choose(const struct config *config, struct stamp_line *line, struct quorum_row *row, bool again,
		    const struct packet *p)
{
	if (again)
		return row->chosen;
	row->chosen = 0;
#if PLANT == 21
	bool valid = knows(config, line, p);
#else
	bool valid = knows(config, line, p) && line->state == LINE_VALID;
#endif
	__u64 round = (line->max >> STAMP_WRITER_BITS) + 1;
	if (valid && p->incarnation <= 0xffff && round < 1ull << (64 - STAMP_WRITER_BITS)) {
		row->chosen = round << STAMP_WRITER_BITS | STAMP_CHOSEN | p->incarnation << 11 | (p->node & 31) << 6 |
			      (p->slot & 63);
		line->max = row->chosen;
	}
	return row->chosen;
}

/// To the members that it names, with its body; the provider's copy says so.
always void multiply(struct packet *p)
{
	__u32 provider = p->offset & 0xffff;
	p->did = DID_COUNTED;
	p->carries = p->body;
	p->to_agents = p->copyset;
	if (p->kind == KIND_ABD_READ && provider < MAX_NODES)
		p->provider = p->copyset & 1u << (provider & 31);
}

/// To who has asked: its thread, if that listens.
always void to_asker(struct packet *p, __u32 carries)
{
	p->did = DID_COUNTED;
	p->carries = carries;
	if (p->reply_port)
		p->to_requester = true;
	else
		p->to_agents = 1u << (p->node & 31);
}

/// The answer to a write without a stamp for which none was chosen, nor will be.
always void miss(struct packet *p)
{
	p->kind = KIND_ABD_WRITE_ACK;
	p->sender = SENDER_SWITCH;
	p->copyset = 0;
	p->flags = 0;
	p->offset = 0;
	to_asker(p, OWN_LEN);
}

always void ask_members(const struct config *config, const struct group *group, struct quorum_row *row,
			struct stamp_line *line, struct packet *p)
{
	__u64 operation = operation_of(p);
	bool same_life = row->life == p->incarnation, newer_life = row->life < p->incarnation;
	enum age age = compare(p->seq, row->operation >> 32);
	bool late = !newer_life && (!same_life || age == OLDER || (age == SAME && (operation & 3) < (row->operation & 3)));
	bool again = same_life && row->operation == operation;
	if (newer_life)
		row->life = p->incarnation;
	p->did = DID_UNCOUNTED;
	if (late)
		return;
	row->operation = operation;
#if PLANT != 22
	row->max = 0;
	row->answered = 0;
	row->agree = 0;
#endif
	if (p->kind == KIND_ABD_WRITE && !p->stamp) {
		// Another life may have chosen for it. So it is not told that it has none.
		if (!group->chooses)
			return;
		p->stamp = choose(config, line, row, again, p);
		if (!p->stamp) {
			miss(p);
			return;
		}
	} else if (phase_of(p->kind) == 2) {
		raise(config, line, p);
#if PLANT == 23
	} else if (p->kind == KIND_ABD_STAMP) {
#else
	} else if (p->kind == KIND_ABD_STAMP && !again) {
#endif
		learn_stamp(config, line, p);
	}
	multiply(p);
}

always int place_of(const struct group *group, __u16 node)
{
	int place = -1;
#pragma unroll
	for (int at = MAX_MEMBERS - 1; at >= 0; at--)
		if (group->node[at] == node)
			place = at;
	return place;
}

/// Whether these members are a quorum. At most eight bits: no unit for counting them is needed.
always bool reached(const struct group *group, __u32 members)
{
	__u32 count = 0;
#if PLANT != 24
	members &= group->counting;
#endif
#pragma unroll
	for (int at = 0; at < MAX_MEMBERS; at++)
		count += members >> at & 1;
	return count >= group->quorum;
}

always void take_answer(const struct config *config, const struct group *group, struct quorum_row *row,
			struct stamp_line *line, struct packet *p)
{
	// Who sends segments answers once more without.
	if (p->flags & FLAG_DATA) {
		raise(config, line, p);
		to_asker(p, p->body);
		return;
	}
	int place = place_of(group, p->sender);
	p->did = DID_UNCOUNTED;
	if (place < 0)
		return;
	if (row->operation != operation_of(p) || row->life != p->incarnation) {
		raise(config, line, p);
		return;
	}
	__u32 bit = 1u << (place & 7);
	__u32 before = row->answered;
	row->answered |= bit;
	if (p->stamp > row->max) {
		row->max = p->stamp;
		row->agree = bit;
	} else if (p->stamp == row->max) {
		row->agree |= bit;
	}
	// Late ones are not passed on, until all are asked again.
	if (reached(group, before) || !reached(group, row->answered)) {
		raise(config, line, p);
		return;
	}
	bool question = p->kind == KIND_ABD_STAMP_ACK;
	p->stamp = row->max;
	p->sender = SENDER_SWITCH;
	p->copyset = row->answered | (__u32)row->agree << 8;
	raise(config, line, p);
	if (question && knows(config, line, p) && line->state == LINE_LEARNING && line->learner_row == p->row &&
	    line->learner_seq == (__u32)p->seq)
		line->state = LINE_VALID;
	to_asker(p, OWN_LEN);
}

/// Says whether the group's packets of this config are counted here; otherwise they are the control plane's.
always bool serve_quorum(const struct config *config, struct quorum_row *row, struct stamp_line *line, struct packet *p)
{
	const struct group *group = &config->group[p->tag >> 48 & 31];
	if (!is_owned(p) || !group->there || group->config != p->group_config)
		return false;
	if (answers(p->kind))
		take_answer(config, group, row, line, p);
	else
		ask_members(config, group, row, line, p);
	return true;
}

#endif
