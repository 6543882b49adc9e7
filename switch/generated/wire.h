// What is in a packet, for C: made from crates/wire and crates/proto by `cargo xtask golden`. Not written by hand.
//
// The including file has __u8 and the __be types (linux/types.h). All fields are big-endian; docs/wire.md draws them.
#ifndef RACKMEM_WIRE_H
#define RACKMEM_WIRE_H

#define WIRE_MAGIC 0x524d
#define WIRE_VERSION 2
#define WIRE_HEADER_LEN 48
#define MAX_NODES 32
#define MAX_HOMES 64
#define MAX_REQUESTERS 64
#define MAX_MOVES 64
#define MAX_BODY 32768
#define OWN_LEN 16
#define FIRST_WITH_OWN 0x50
#define SEQ_WINDOW (1u << 31)
#define SENDER_SWITCH 0xffff

struct wire_header {
	__be16 magic;
	__u8 version;
	__u8 kind;
	__be32 epoch;
	__be64 tag;
	__be64 seq;
	__be32 incarnation;
	__be32 copyset;
	__u8 node;
	__u8 slot;
	__be16 sender;
	__be32 offset;
	__u8 status;
	__u8 flags;
	__u8 reason;
	__u8 reserved;
	__be16 body_len;
	__be16 reply_port;
};
_Static_assert(sizeof(struct wire_header) == WIRE_HEADER_LEN, "the header's length");
_Static_assert(__builtin_offsetof(struct wire_header, magic) == 0, "where magic is");
_Static_assert(__builtin_offsetof(struct wire_header, version) == 2, "where version is");
_Static_assert(__builtin_offsetof(struct wire_header, kind) == 3, "where kind is");
_Static_assert(__builtin_offsetof(struct wire_header, epoch) == 4, "where epoch is");
_Static_assert(__builtin_offsetof(struct wire_header, tag) == 8, "where tag is");
_Static_assert(__builtin_offsetof(struct wire_header, seq) == 16, "where seq is");
_Static_assert(__builtin_offsetof(struct wire_header, incarnation) == 24, "where incarnation is");
_Static_assert(__builtin_offsetof(struct wire_header, copyset) == 28, "where copyset is");
_Static_assert(__builtin_offsetof(struct wire_header, node) == 32, "where node is");
_Static_assert(__builtin_offsetof(struct wire_header, slot) == 33, "where slot is");
_Static_assert(__builtin_offsetof(struct wire_header, sender) == 34, "where sender is");
_Static_assert(__builtin_offsetof(struct wire_header, offset) == 36, "where offset is");
_Static_assert(__builtin_offsetof(struct wire_header, status) == 40, "where status is");
_Static_assert(__builtin_offsetof(struct wire_header, flags) == 41, "where flags is");
_Static_assert(__builtin_offsetof(struct wire_header, reason) == 42, "where reason is");
_Static_assert(__builtin_offsetof(struct wire_header, reserved) == 43, "where reserved is");
_Static_assert(__builtin_offsetof(struct wire_header, body_len) == 44, "where body_len is");
_Static_assert(__builtin_offsetof(struct wire_header, reply_port) == 46, "where reply_port is");

enum kind {
	KIND_ALLOC = 0x01,
	KIND_ALLOC_ACK = 0x02,
	KIND_PING = 0x03,
	KIND_PONG = 0x04,
	KIND_INSPECT = 0x05,
	KIND_INSPECTED = 0x06,
	KIND_FREE = 0x07,
	KIND_FREE_ACK = 0x08,
	KIND_FAREWELL = 0x09,
	KIND_READ_MISS = 0x10,
	KIND_WRITE_MISS = 0x11,
	KIND_WRITE_SHARED = 0x12,
	KIND_EVICT_SHARED = 0x13,
	KIND_EVICT_MODIFIED = 0x14,
	KIND_LOCK_READ = 0x15,
	KIND_LOCK_WRITE = 0x16,
	KIND_OPERATE = 0x17,
	KIND_ACK = 0x18,
	KIND_UNLOCK = 0x19,
	KIND_UNLOCK_ACK = 0x1a,
	KIND_WRITE_BACK = 0x1b,
	KIND_WRITE_BACK_ACK = 0x1c,
	KIND_ADD_TO_SWITCH = 0x1d,
	KIND_ADD_ACK = 0x1e,
	KIND_REMOVE_FROM_SWITCH = 0x1f,
	KIND_REMOVE_ACK = 0x20,
	KIND_DEMOTE = 0x21,
	KIND_HEAT_REPORT = 0x22,
	KIND_READ_TAGS = 0x23,
	KIND_TAGS = 0x24,
	KIND_STORE = 0x25,
	KIND_STORE_ACK = 0x26,
	KIND_OPERATE_ACK = 0x27,
	KIND_REBUILD = 0x28,
	KIND_REBUILD_ACK = 0x29,
	KIND_RESCUE = 0x2c,
	KIND_RESCUE_ACK = 0x2d,
	KIND_ACCEPT_LOSS = 0x2a,
	KIND_ACCEPT_LOSS_ACK = 0x2b,
	KIND_FETCH = 0x2e,
	KIND_FETCH_ACK = 0x2f,
	KIND_GATHER_ACK = 0x38,
	KIND_ACQUIRE = 0x40,
	KIND_WAIT = 0x41,
	KIND_GRANT = 0x42,
	KIND_INVALIDATE = 0x43,
	KIND_INV_ACK = 0x44,
	KIND_GIVE = 0x45,
	KIND_QUEUE = 0x46,
	KIND_RELEASE = 0x47,
	KIND_RELEASE_ACK = 0x48,
	KIND_PLACE = 0x49,
	KIND_PLACE_ACK = 0x4a,
	KIND_YIELD = 0x4b,
	KIND_YIELD_ACK = 0x4c,
	KIND_ABD_STAMP = 0x50,
	KIND_ABD_STAMP_ACK = 0x51,
	KIND_ABD_READ = 0x52,
	KIND_ABD_READ_ACK = 0x53,
	KIND_ABD_WRITE = 0x54,
	KIND_ABD_WRITE_ACK = 0x55,
	KIND_ABD_WRITE_BACK = 0x56,
	KIND_ABD_WRITE_BACK_ACK = 0x57,
	KIND_ABD_FETCH = 0x58,
	KIND_ABD_ASK = 0x59,
	KIND_ABD_TOLD = 0x5a,
	KIND_ABD_FILL = 0x5b,
	KIND_ABD_FILL_ACK = 0x5c,
	KIND_ABD_CONFIG = 0x5d,
	KIND_ABD_LINE_READ = 0x5e,
	KIND_ABD_LINE_WRITE = 0x5f,
	KIND_OBJ_READ = 0x60,
	KIND_OBJ_DATA = 0x61,
	KIND_OBJ_READ_LOCKED = 0x62,
	KIND_OBJ_WRITE = 0x64,
	KIND_OBJ_WRITE_ACK = 0x65,
	KIND_OBJ_ALLOC = 0x66,
	KIND_OBJ_ALLOC_ACK = 0x67,
	KIND_OBJ_FREE = 0x68,
	KIND_OBJ_FREE_ACK = 0x69,
	KIND_TX_LOCK = 0x6c,
	KIND_TX_LOCK_ACK = 0x6d,
	KIND_TX_COMMIT = 0x6e,
	KIND_TX_COMMIT_ACK = 0x6f,
	KIND_BI_READ = 0x70,
	KIND_BI_DATA = 0x71,
	KIND_BI_WRITE = 0x72,
	KIND_BI_WRITE_ACK = 0x73,
	KIND_BI_NEWS = 0x74,
	KIND_BI_ASK_NEWS = 0x75,
	KIND_BI_RESERVE = 0x76,
	KIND_BI_RESERVE_ACK = 0x77,
	KIND_GUEST_ASK = 0xf0,
	KIND_GUEST_TELL = 0xf1,
};

// A bit for every kind there is, in four words of 64.
#define KNOWN_KINDS_WORDS { 0x100ffffffff03feull, 0xfff3f7ffff1fffull, 0x0ull, 0x3000000000000ull }

enum flag {
	FLAG_PROVIDER = 0x01,
	FLAG_IN_SWITCH = 0x02,
	FLAG_GRANTED = 0x04,
	FLAG_DATA = 0x08,
	FLAG_KEEP = 0x10,
	FLAG_READER = 0x20,
	FLAG_GATHER = 0x40,
	FLAGS_KNOWN = 0x7f,
};

enum status {
	STATUS_UNSHARED = 0,
	STATUS_SHARED = 1,
	STATUS_MODIFIED = 2,
};

enum reason {
	REASON_NONE = 0,
	REASON_LOCKED = 1,
	REASON_INVALID = 2,
	REASON_MOVED = 3,
	REASON_NO_MEMORY = 4,
	REASON_FULL = 5,
	REASON_REFUSED = 6,
	REASON_LOST = 7,
	REASON_FENCED = 8,
	REASON_OWNER_DIED = 9,
	REASON_TORN = 10,
	REASON_GONE = 11,
	REASON_NOT_MODIFIED = 12,
	REASON_LAST = 12,
};

// Lists: ROW is a macro of the including file.
#define REQUESTS(ROW) \
	ROW(KIND_READ_MISS) \
	ROW(KIND_WRITE_MISS) \
	ROW(KIND_WRITE_SHARED) \
	ROW(KIND_EVICT_SHARED) \
	ROW(KIND_EVICT_MODIFIED) \
	ROW(KIND_LOCK_READ) \
	ROW(KIND_LOCK_WRITE)
#define SHARED_REQUESTS(ROW) \
	ROW(KIND_READ_MISS) \
	ROW(KIND_LOCK_READ)
#define DATA_PLANE_KINDS(ROW) \
	ROW(KIND_READ_MISS) \
	ROW(KIND_WRITE_MISS) \
	ROW(KIND_WRITE_SHARED) \
	ROW(KIND_EVICT_SHARED) \
	ROW(KIND_EVICT_MODIFIED) \
	ROW(KIND_LOCK_READ) \
	ROW(KIND_LOCK_WRITE) \
	ROW(KIND_UNLOCK) \
	ROW(KIND_ADD_TO_SWITCH) \
	ROW(KIND_REMOVE_FROM_SWITCH) \
	ROW(KIND_ACQUIRE) \
	ROW(KIND_RELEASE) \
	ROW(KIND_PLACE)
#define LOCK_KINDS(ROW) \
	ROW(KIND_ACQUIRE) \
	ROW(KIND_RELEASE) \
	ROW(KIND_PLACE)

// The paper's Table 2: ABSENT(kind), HOLDS(kind, status) and ALWAYS(kind).
#define CHECK_TABLE(ABSENT, HOLDS, ALWAYS) \
	ABSENT(KIND_READ_MISS) \
	ABSENT(KIND_WRITE_MISS) \
	HOLDS(KIND_WRITE_SHARED, STATUS_SHARED) \
	HOLDS(KIND_EVICT_SHARED, STATUS_SHARED) \
	HOLDS(KIND_EVICT_MODIFIED, STATUS_MODIFIED) \
	ALWAYS(KIND_LOCK_READ) \
	ALWAYS(KIND_LOCK_WRITE)

// The paper's Table 3: ROW(kind, status, where to). A pair that is not here goes nowhere.
#define FORWARD_TABLE(ROW) \
	ROW(KIND_READ_MISS, STATUS_UNSHARED, HOME) \
	ROW(KIND_WRITE_MISS, STATUS_UNSHARED, HOME) \
	ROW(KIND_READ_MISS, STATUS_MODIFIED, PROVIDER) \
	ROW(KIND_WRITE_MISS, STATUS_MODIFIED, PROVIDER) \
	ROW(KIND_READ_MISS, STATUS_SHARED, PROVIDER) \
	ROW(KIND_WRITE_MISS, STATUS_SHARED, ALL_WITH_PROVIDER) \
	ROW(KIND_WRITE_SHARED, STATUS_SHARED, OTHERS) \
	ROW(KIND_EVICT_SHARED, STATUS_SHARED, REQUESTER) \
	ROW(KIND_EVICT_MODIFIED, STATUS_MODIFIED, REQUESTER) \
	ROW(KIND_LOCK_READ, STATUS_UNSHARED, REQUESTER) \
	ROW(KIND_LOCK_READ, STATUS_SHARED, REQUESTER) \
	ROW(KIND_LOCK_READ, STATUS_MODIFIED, REQUESTER) \
	ROW(KIND_LOCK_WRITE, STATUS_UNSHARED, REQUESTER) \
	ROW(KIND_LOCK_WRITE, STATUS_SHARED, REQUESTER) \
	ROW(KIND_LOCK_WRITE, STATUS_MODIFIED, REQUESTER)

#endif
