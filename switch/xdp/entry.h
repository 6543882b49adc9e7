// Lock, check and forward: the paper's tables, and what a pass over an entry does.
#ifndef RACKMEM_ENTRY_H
#define RACKMEM_ENTRY_H

#include "packet.h"

/// Where the tag is in its set; WAYS if it is not.
always __u32 way_of(const struct set *set, __u64 stored)
{
	__u32 at = WAYS;
#pragma unroll
	for (int way = WAYS - 1; way >= 0; way--)
		if (set->tag[way] == stored)
			at = way;
	return at;
}

#define WRITER 0x8000

/// Takes the lock if nobody conflicts (crates/proto/src/flowcc/lock.rs).
always bool acquire(__u16 *lock, bool shared)
{
	__u16 held = *lock;
	if (shared ? held >= WRITER - 1 : held != 0)
		return false;
	*lock = shared ? held + 1 : WRITER;
	return true;
}

/// Gives it back, if there is something to give back.
always void release(__u16 *lock, bool shared)
{
	__u16 held = *lock;
	if (shared && held != 0 && held < WRITER)
		*lock = held - 1;
	else if (!shared && held == WRITER)
		*lock = 0;
}

/// Whether the request is valid under the entry's metadata (Table 2).
always bool check(__u8 kind, __u32 node, __u8 status, __u32 copyset)
{
	bool holds = copyset >> (node & 31) & 1;
	switch (kind) {
#define ABSENT(a_kind)                                                                                                \
	case a_kind:                                                                                                  \
		return !holds;
#if PLANT == 1
#define HOLDS(a_kind, a_status)                                                                                       \
	case a_kind:                                                                                                  \
		return holds;
#else
#define HOLDS(a_kind, a_status)                                                                                       \
	case a_kind:                                                                                                  \
		return holds && status == a_status;
#endif
#define ALWAYS(a_kind)                                                                                                \
	case a_kind:                                                                                                  \
		return true;
		CHECK_TABLE(ABSENT, HOLDS, ALWAYS)
	default:
		return false;
	}
}

/// Where the forward table sends a granted request (Table 3).
enum forward { TO_NOBODY, TO_HOME, TO_PROVIDER, TO_ALL_WITH_PROVIDER, TO_OTHERS, TO_REQUESTER };

always enum forward forward(__u8 kind, __u8 status)
{
	switch (kind << 2 | status) {
#define ROW(a_kind, a_status, where)                                                                                  \
	case a_kind << 2 | a_status:                                                                                  \
		return TO_##where;
		FORWARD_TABLE(ROW)
#undef ROW
	default:
		return TO_NOBODY;
	}
}

/// The member of a copyset that provides: the first one from a place on that only the event decides; -1 of an empty one.
always int provider_of(__u32 copyset, __u32 from)
{
	__u32 upper = copyset & (0xffffffffu << (from & 31));
#if PLANT == 2
	upper = copyset;
#endif
	__u32 members = upper ? upper : copyset;
	return members ? lowest(members) : -1;
}

/// What a pass over an entry has seen.
struct seen {
	bool found;
	bool acquired;
	__u8 status;
	__u32 copyset;
};

/// Takes the lock of an entry, if it is here, and looks at it.
always struct seen lock_entry(struct set *set, __u32 way, bool shared)
{
	struct seen seen = {};
	if (way >= WAYS)
		return seen;
	seen.found = true;
	seen.acquired = acquire(&set->lock[way], shared);
	seen.status = set->status[way];
	seen.copyset = set->copyset[way];
	return seen;
}

/// Installs what an unlock brings. Read unlocks race with each other: union, never overwrite.
always void install(struct set *set, __u32 way, const struct packet *p, bool shared)
{
	set->status[way & (WAYS - 1)] = p->status;
#if PLANT == 3
	shared = false;
#endif
	__u32 before = shared ? set->copyset[way & (WAYS - 1)] : 0;
	set->copyset[way & (WAYS - 1)] = before | p->copyset;
}

#endif
