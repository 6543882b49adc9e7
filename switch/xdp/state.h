// What the program keeps: maps, all written by the loader (crates/xdp) before a packet comes.
//
// The register arrays are those of crates/proto/src/switch, in the places where the Rust program has them. A packet is
// executed under one lock, CONFIG's, from its first register to its last: so it is as atomic as in Rust, and the control
// plane, which writes CONFIG under the same lock, knows when it has frozen the switch that no packet is half done.
#ifndef RACKMEM_STATE_H
#define RACKMEM_STATE_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "../generated/wire.h"

#define always static __always_inline

/// Ways that a set has room for. The switch may use fewer.
#define WAYS 8

/// Groups of replicated memory, and places for members of one (crates/proto/src/abd).
#define MAX_GROUPS 32
#define MAX_MEMBERS 8
/// A stamp's bits below its round; one of them says that a switch has chosen it.
#define STAMP_WRITER_BITS 28
#define STAMP_CHOSEN (1u << 27)
/// Questions for a line that pass while one of them learns, until another one does.
#define STAMP_PATIENCE 64

/// A group for whose members it counts. crates/xdp/src/quorum.rs has the same fields.
struct group {
	__u32 config;
	/// Places of the members that count, and how many of these are a quorum.
	__u8 counting;
	__u8 quorum;
	/// This life of the switch chooses stamps.
	__u8 chooses;
	/// Not zero: it counts.
	__u8 there;
	/// By place; NO_MEMBER.
	__u8 node[MAX_MEMBERS];
};

/// How the switch is set up. crates/xdp/src/layout.rs has the same fields.
struct config {
	struct bpf_spin_lock lock;
	__u32 epoch;
	__u32 seed;
	/// Sets less one; a power of two less one.
	__u32 sets_mask;
	__u32 ways;
	/// Not zero: executes nothing.
	__u32 frozen;
	/// A node, or NOBODY.
	__u32 shadow;
	__u32 nodes;
	__u32 requesters;
	/// The switch's address and port. Port zero: not for anybody.
	__be32 ip;
	__be16 port;
	/// Copies of a multicast may be made by the ports; otherwise the control plane sends them.
	__u16 can_multicast;
	/// What orders to the control plane carry, so that nobody else can give them.
	__u32 nonce;
	/// Faults, as parts of 2^32: packets lost as they come, lost as they leave, and given to the control plane to send.
	__u32 lose_in;
	__u32 lose_out;
	__u32 divert;
	/// The directory of locks: its epoch, which begins before the one of blocks ends; whether it is served; its size.
	__u32 lock_epoch;
	__u32 serves_locks;
	__u32 lock_sets_mask;
	__u32 lock_ways;
	/// Entries of STAMPS less one; a power of two less one.
	__u32 stamps_mask;
	/// Another number whenever some group's row changes: what was learned before says nothing any more.
	__u32 configs;
	__u32 unused;
	struct group group[MAX_GROUPS];
};

#define NOBODY 0xffffffff

/// One set of the entry table. A taken location's tag is odd, a free one's is zero.
struct set {
	__u64 tag[WAYS];
	__u32 copyset[WAYS];
	__u16 lock[WAYS];
	__u8 status[WAYS];
	__u8 unused[8];
};
_Static_assert(sizeof(struct set) == 128, "a set has two cache lines");

/// Ways that a set of locks has room for.
#define LOCK_WAYS 4

/// A lock's entry. A taken location's tag is odd, a free one's is zero.
struct lock_slot {
	__u64 tag;
	/// The number of the last thing that was done, and of the one that made the holder that.
	__u64 version;
	__u64 since;
	__u8 holder;
	/// Who has the data for whom the lock was granted last.
	__u8 keeper;
	/// Mode S; otherwise it is the holder's, or the next is.
	__u8 shared;
	__u8 reason;
	__u32 sharers;
};

struct lock_set {
	struct lock_slot way[LOCK_WAYS];
};
_Static_assert(sizeof(struct lock_set) == 128, "a set of locks has two cache lines");

/// A requester's operation on replicated memory: one row for each parity of its numbers.
struct quorum_row {
	/// Number, config and phase.
	__u64 operation;
	/// The highest stamp of those that have answered.
	__u64 max;
	/// The stamp that was chosen for it.
	__u64 chosen;
	/// The requester's incarnation.
	__u32 life;
	/// Who has answered, and who of them with the highest stamp, by places.
	__u8 answered;
	__u8 agree;
	__u8 unused[2];
};
_Static_assert(sizeof(struct quorum_row) == 32, "two rows a cache line");

enum line_state { LINE_UNUSED, LINE_LEARNING, LINE_VALID };

/// A line of replicated memory whose highest stamp is known, or will be.
struct stamp_line {
	__u64 tag;
	__u64 max;
	__u32 configs;
	/// The question that learns.
	__u32 learner_seq;
	__u16 learner_row;
	__u8 passed;
	__u8 state;
	__u8 unused[4];
};
_Static_assert(sizeof(struct stamp_line) == 32, "two lines a cache line");

/// Where a node is: its address is told by the loader, the rest is learned from its packets.
struct node {
	__be32 ip;
	/// Of its agents.
	__be16 port;
	__u8 mac[6];
	/// The port of the switch; zero while unknown.
	__u32 ifindex;
};

struct nodes {
	struct node at[MAX_NODES];
};

/// What a packet has come to. crates/xdp/src/counters.rs has the same order.
enum did {
	DID_GRANT,
	DID_LOCKED,
	DID_INVALID,
	DID_TO_HOME,
	DID_UNLOCK,
	DID_ADD,
	DID_COLLIDE,
	DID_REMOVE,
	DID_DROP,
	/// An answer to a move that had been carried out, or no answer: nothing that anybody counts.
	DID_REPEAT,
	/// Not well formed.
	DID_MALFORMED,
	/// For the control plane.
	DID_CONTROL,
	/// Sent by the control plane, since the ports could not.
	DID_ORDER,
	/// Lost on purpose.
	DID_LOSE,
	/// For locks: a request carried out or queued, a release refused, a request for the home, a lock placed, and nothing.
	DID_LOCK_SERVE,
	DID_LOCK_DENY,
	DID_LOCK_TO_HOME,
	DID_LOCK_PLACE,
	DID_LOCK_DROP,
	/// Of replicated memory: passed on, multiplied or answered; and dropped or only counted.
	DID_COUNTED,
	DID_UNCOUNTED,
	DID_COUNT,
};

struct counters {
	__u64 did[DID_COUNT];
	/// Well-formed packets by kind.
	__u64 kinds[256];
};

#define MAP(name, of_type, of_value, entries)                                                                         \
	struct {                                                                                                      \
		__uint(type, of_type);                                                                                \
		__uint(max_entries, entries);                                                                         \
		__type(key, __u32);                                                                                   \
		__type(value, of_value);                                                                              \
	} name SEC(".maps")

MAP(CONFIG, BPF_MAP_TYPE_ARRAY, struct config, 1);
MAP(NODES, BPF_MAP_TYPE_ARRAY, struct nodes, 1);
MAP(COUNTERS, BPF_MAP_TYPE_PERCPU_ARRAY, struct counters, 1);
/// The loader makes these as long as the rack needs.
MAP(LOCKS, BPF_MAP_TYPE_ARRAY, struct lock_set, 4096);
MAP(SETS, BPF_MAP_TYPE_ARRAY, struct set, 32768);
MAP(SCOREBOARD, BPF_MAP_TYPE_ARRAY, __u64, MAX_NODES * MAX_REQUESTERS * 2);
MAP(QUORUM, BPF_MAP_TYPE_ARRAY, struct quorum_row, MAX_NODES * MAX_REQUESTERS * 2);
MAP(STAMPS, BPF_MAP_TYPE_ARRAY, struct stamp_line, 65536);
MAP(MOVES, BPF_MAP_TYPE_ARRAY, __u64, MAX_NODES * MAX_MOVES);

/// The ports that carry multicasts, each with the program `egress`.
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MAX_NODES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} PORTS SEC(".maps");

/// For tests of `egress`, which no test run can reach where it is: the port that it shall take itself for.
MAP(PROBE, BPF_MAP_TYPE_ARRAY, __u32, 1);

#define FIRST(map)                                                                                                    \
	({                                                                                                            \
		__u32 zero = 0;                                                                                       \
		bpf_map_lookup_elem(&map, &zero);                                                                     \
	})

always void count(enum did did)
{
	struct counters *counters = FIRST(COUNTERS);
	if (counters)
		counters->did[did]++;
}

#endif
