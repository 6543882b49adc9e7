// A packet as the program works on it: its header's fields, and what is to be done with it.
#ifndef RACKMEM_PACKET_H
#define RACKMEM_PACKET_H

#include <stdbool.h>
#include "hash.h"

/// A header in the processor's byte order, as far as the program reads it, and as it changes it.
struct packet {
	__u64 tag;
	__u64 seq;
	__u32 epoch;
	__u32 offset;
	__u32 copyset;
	__u16 node;
	__u16 slot;
	__u16 sender;
	__u8 kind;
	__u8 status;
	__u8 flags;
	__u8 reason;
	/// Bytes that follow the header.
	__u32 body;
	/// Of replicated memory: what a packet has of its own, the requester's incarnation, whether its thread listens, and
	/// the operation's row.
	__u64 stamp;
	__u32 group_config;
	__u32 incarnation;
	__u16 reply_port;
	__u16 row;

	/// Bytes that follow the header when it leaves.
	__u32 carries;

	/// Agents that get it, as bits.
	__u32 to_agents;
	/// Which of them provides the data, if one does: a bit of `to_agents`.
	__u32 provider;
	/// Its requester gets it.
	bool to_requester;
	enum did did;
	/// The hash of its event: from which member on one is looked for.
	__u32 from;
};

always bool is_request(__u8 kind)
{
#define ROW(a_kind)                                                                                                   \
	case a_kind:
	switch (kind) {
		REQUESTS(ROW)
		return true;
	default:
		return false;
	}
}

/// Whether it takes the lock as a reader.
always bool locks_shared(__u8 kind)
{
	switch (kind) {
		SHARED_REQUESTS(ROW)
		return true;
	default:
		return false;
	}
}

always bool is_data_plane(__u8 kind)
{
	switch (kind) {
		DATA_PLANE_KINDS(ROW)
		return true;
	default:
		return false;
	}
}

/// Whether it is for the directory of locks.
always bool is_lock(__u8 kind)
{
	switch (kind) {
		LOCK_KINDS(ROW)
		return true;
	default:
		return false;
	}
}
#undef ROW

/// Whether the block is of a node's own memory. What is of a group's home has no entry here.
always bool is_owned(const struct packet *p)
{
#if PLANT == 25
	return true;
#else
	return p->tag >> 48 < MAX_NODES;
#endif
}

always bool is_move(__u8 kind)
{
	return kind == KIND_ADD_TO_SWITCH || kind == KIND_REMOVE_FROM_SWITCH;
}

always void to_requester(struct packet *p, __u8 kind)
{
	p->kind = kind;
	p->sender = SENDER_SWITCH;
	p->to_requester = true;
}

always void to_home(struct packet *p)
{
	p->to_agents = 1u << (p->tag >> 48 & 31);
}

/// Order of two sequence numbers in time, of which a row has the low half (crates/proto/src/switch/numbers.rs): a number is
/// older only if it is less than a window behind.
enum age { OLDER, SAME, NEWER };

always enum age compare(__u32 seq, __u32 with)
{
	__u32 behind = with - seq;
	if (behind == 0)
		return SAME;
	return behind < SEQ_WINDOW ? OLDER : NEWER;
}

#endif
