// What is in a packet, for P4: made from crates/wire and crates/proto by `cargo xtask golden`. Not written by hand.
#ifndef RACKMEM_WIRE
#define RACKMEM_WIRE

const bit<16> MAGIC = 0x524d;
const bit<8> VERSION = 2;
const bit<32> HEADER_LEN = 48;
const bit<16> MAX_BODY = 32768;
const bit<16> OWN_LEN = 16;
const bit<8> FIRST_WITH_OWN = 0x50;
const bit<8> MAX_NODES = 32;
const bit<8> MAX_REQUESTERS = 64;
const bit<8> MAX_MOVES = 64;
const bit<32> SEQ_WINDOW = 0x80000000;
const bit<16> SWITCH_SENDER = 0xffff;

header rackmem_t {
    bit<16> magic;
    bit<8>  version;
    bit<8>  kind;
    bit<32> epoch;
    bit<64> tag;
    bit<32> seq_high;
    bit<32> seq_low;
    bit<32> incarnation;
    bit<32> copyset;
    bit<8>  node_id;
    bit<8>  requester;
    bit<16> sender;
    bit<32> offset;
    bit<8>  global_status;
    bit<8>  flags;
    bit<8>  reason;
    bit<8>  reserved;
    bit<16> body_len;
    bit<16> reply_port;
}

const bit<8> KIND_ALLOC = 0x01;
const bit<8> KIND_ALLOC_ACK = 0x02;
const bit<8> KIND_PING = 0x03;
const bit<8> KIND_PONG = 0x04;
const bit<8> KIND_INSPECT = 0x05;
const bit<8> KIND_INSPECTED = 0x06;
const bit<8> KIND_FREE = 0x07;
const bit<8> KIND_FREE_ACK = 0x08;
const bit<8> KIND_FAREWELL = 0x09;
const bit<8> KIND_READ_MISS = 0x10;
const bit<8> KIND_WRITE_MISS = 0x11;
const bit<8> KIND_WRITE_SHARED = 0x12;
const bit<8> KIND_EVICT_SHARED = 0x13;
const bit<8> KIND_EVICT_MODIFIED = 0x14;
const bit<8> KIND_LOCK_READ = 0x15;
const bit<8> KIND_LOCK_WRITE = 0x16;
const bit<8> KIND_OPERATE = 0x17;
const bit<8> KIND_ACK = 0x18;
const bit<8> KIND_UNLOCK = 0x19;
const bit<8> KIND_UNLOCK_ACK = 0x1a;
const bit<8> KIND_WRITE_BACK = 0x1b;
const bit<8> KIND_WRITE_BACK_ACK = 0x1c;
const bit<8> KIND_ADD_TO_SWITCH = 0x1d;
const bit<8> KIND_ADD_ACK = 0x1e;
const bit<8> KIND_REMOVE_FROM_SWITCH = 0x1f;
const bit<8> KIND_REMOVE_ACK = 0x20;
const bit<8> KIND_DEMOTE = 0x21;
const bit<8> KIND_HEAT_REPORT = 0x22;
const bit<8> KIND_READ_TAGS = 0x23;
const bit<8> KIND_TAGS = 0x24;
const bit<8> KIND_STORE = 0x25;
const bit<8> KIND_STORE_ACK = 0x26;
const bit<8> KIND_OPERATE_ACK = 0x27;
const bit<8> KIND_REBUILD = 0x28;
const bit<8> KIND_REBUILD_ACK = 0x29;
const bit<8> KIND_RESCUE = 0x2c;
const bit<8> KIND_RESCUE_ACK = 0x2d;
const bit<8> KIND_ACCEPT_LOSS = 0x2a;
const bit<8> KIND_ACCEPT_LOSS_ACK = 0x2b;
const bit<8> KIND_FETCH = 0x2e;
const bit<8> KIND_FETCH_ACK = 0x2f;
const bit<8> KIND_GATHER_ACK = 0x38;
const bit<8> KIND_ACQUIRE = 0x40;
const bit<8> KIND_WAIT = 0x41;
const bit<8> KIND_GRANT = 0x42;
const bit<8> KIND_INVALIDATE = 0x43;
const bit<8> KIND_INV_ACK = 0x44;
const bit<8> KIND_GIVE = 0x45;
const bit<8> KIND_QUEUE = 0x46;
const bit<8> KIND_RELEASE = 0x47;
const bit<8> KIND_RELEASE_ACK = 0x48;
const bit<8> KIND_PLACE = 0x49;
const bit<8> KIND_PLACE_ACK = 0x4a;
const bit<8> KIND_YIELD = 0x4b;
const bit<8> KIND_YIELD_ACK = 0x4c;
const bit<8> KIND_ABD_STAMP = 0x50;
const bit<8> KIND_ABD_STAMP_ACK = 0x51;
const bit<8> KIND_ABD_READ = 0x52;
const bit<8> KIND_ABD_READ_ACK = 0x53;
const bit<8> KIND_ABD_WRITE = 0x54;
const bit<8> KIND_ABD_WRITE_ACK = 0x55;
const bit<8> KIND_ABD_WRITE_BACK = 0x56;
const bit<8> KIND_ABD_WRITE_BACK_ACK = 0x57;
const bit<8> KIND_ABD_FETCH = 0x58;
const bit<8> KIND_ABD_ASK = 0x59;
const bit<8> KIND_ABD_TOLD = 0x5a;
const bit<8> KIND_ABD_FILL = 0x5b;
const bit<8> KIND_ABD_FILL_ACK = 0x5c;
const bit<8> KIND_ABD_CONFIG = 0x5d;
const bit<8> KIND_ABD_LINE_READ = 0x5e;
const bit<8> KIND_ABD_LINE_WRITE = 0x5f;
const bit<8> KIND_OBJ_READ = 0x60;
const bit<8> KIND_OBJ_DATA = 0x61;
const bit<8> KIND_OBJ_READ_LOCKED = 0x62;
const bit<8> KIND_OBJ_WRITE = 0x64;
const bit<8> KIND_OBJ_WRITE_ACK = 0x65;
const bit<8> KIND_OBJ_ALLOC = 0x66;
const bit<8> KIND_OBJ_ALLOC_ACK = 0x67;
const bit<8> KIND_OBJ_FREE = 0x68;
const bit<8> KIND_OBJ_FREE_ACK = 0x69;
const bit<8> KIND_TX_LOCK = 0x6c;
const bit<8> KIND_TX_LOCK_ACK = 0x6d;
const bit<8> KIND_TX_COMMIT = 0x6e;
const bit<8> KIND_TX_COMMIT_ACK = 0x6f;
const bit<8> KIND_BI_READ = 0x70;
const bit<8> KIND_BI_DATA = 0x71;
const bit<8> KIND_BI_WRITE = 0x72;
const bit<8> KIND_BI_WRITE_ACK = 0x73;
const bit<8> KIND_BI_NEWS = 0x74;
const bit<8> KIND_BI_ASK_NEWS = 0x75;
const bit<8> KIND_BI_RESERVE = 0x76;
const bit<8> KIND_BI_RESERVE_ACK = 0x77;
const bit<8> KIND_GUEST_ASK = 0xf0;
const bit<8> KIND_GUEST_TELL = 0xf1;

const bit<8> FLAG_PROVIDER = 0x01;
const bit<8> FLAG_IN_SWITCH = 0x02;
const bit<8> FLAG_GRANTED = 0x04;
const bit<8> FLAG_DATA = 0x08;
const bit<8> FLAG_KEEP = 0x10;
const bit<8> FLAG_READER = 0x20;
const bit<8> FLAG_GATHER = 0x40;
const bit<8> FLAGS_KNOWN = 0x7f;

const bit<8> STATUS_UNSHARED = 0;
const bit<8> STATUS_SHARED = 1;
const bit<8> STATUS_MODIFIED = 2;

const bit<8> REASON_NONE = 0;
const bit<8> REASON_LOCKED = 1;
const bit<8> REASON_INVALID = 2;
const bit<8> REASON_MOVED = 3;
const bit<8> REASON_NO_MEMORY = 4;
const bit<8> REASON_FULL = 5;
const bit<8> REASON_REFUSED = 6;
const bit<8> REASON_LOST = 7;
const bit<8> REASON_FENCED = 8;
const bit<8> REASON_OWNER_DIED = 9;
const bit<8> REASON_TORN = 10;
const bit<8> REASON_GONE = 11;
const bit<8> REASON_NOT_MODIFIED = 12;

// The paper's Table 2 as entries of a table with the keys kind (exact), status and whether the node holds a copy
// (ternary): zero is no. The default is `invalid`.
#define CHECK_ENTRIES \
    (KIND_READ_MISS, _, 0): valid(); \
    (KIND_WRITE_MISS, _, 0): valid(); \
    (KIND_WRITE_SHARED, _, 0): invalid(); \
    (KIND_WRITE_SHARED, STATUS_SHARED, _): valid(); \
    (KIND_EVICT_SHARED, _, 0): invalid(); \
    (KIND_EVICT_SHARED, STATUS_SHARED, _): valid(); \
    (KIND_EVICT_MODIFIED, _, 0): invalid(); \
    (KIND_EVICT_MODIFIED, STATUS_MODIFIED, _): valid(); \
    (KIND_LOCK_READ, _, _): valid(); \
    (KIND_LOCK_WRITE, _, _): valid();

// The paper's Table 3 as entries of a table with the keys kind and status
// (exact). A pair that is not here goes nowhere.
#define FORWARD_ENTRIES \
    (KIND_READ_MISS, STATUS_UNSHARED): to(HOME); \
    (KIND_WRITE_MISS, STATUS_UNSHARED): to(HOME); \
    (KIND_READ_MISS, STATUS_MODIFIED): to(PROVIDER); \
    (KIND_WRITE_MISS, STATUS_MODIFIED): to(PROVIDER); \
    (KIND_READ_MISS, STATUS_SHARED): to(PROVIDER); \
    (KIND_WRITE_MISS, STATUS_SHARED): to(ALL_WITH_PROVIDER); \
    (KIND_WRITE_SHARED, STATUS_SHARED): to(OTHERS); \
    (KIND_EVICT_SHARED, STATUS_SHARED): to(REQUESTER); \
    (KIND_EVICT_MODIFIED, STATUS_MODIFIED): to(REQUESTER); \
    (KIND_LOCK_READ, STATUS_UNSHARED): to(REQUESTER); \
    (KIND_LOCK_READ, STATUS_SHARED): to(REQUESTER); \
    (KIND_LOCK_READ, STATUS_MODIFIED): to(REQUESTER); \
    (KIND_LOCK_WRITE, STATUS_UNSHARED): to(REQUESTER); \
    (KIND_LOCK_WRITE, STATUS_SHARED): to(REQUESTER); \
    (KIND_LOCK_WRITE, STATUS_MODIFIED): to(REQUESTER);

// Kinds that are for the control plane, as entries of the table of `admit.p4`.
#define CONTROL_PLANE_ENTRIES \
    (STEP_FRESH, KIND_ALLOC, _): control_plane(); \
    (STEP_FRESH, KIND_ALLOC_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_PING, _): control_plane(); \
    (STEP_FRESH, KIND_PONG, _): control_plane(); \
    (STEP_FRESH, KIND_INSPECT, _): control_plane(); \
    (STEP_FRESH, KIND_INSPECTED, _): control_plane(); \
    (STEP_FRESH, KIND_FREE, _): control_plane(); \
    (STEP_FRESH, KIND_FREE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_FAREWELL, _): control_plane(); \
    (STEP_FRESH, KIND_OPERATE, _): control_plane(); \
    (STEP_FRESH, KIND_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_UNLOCK_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_WRITE_BACK, _): control_plane(); \
    (STEP_FRESH, KIND_WRITE_BACK_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ADD_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_REMOVE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_DEMOTE, _): control_plane(); \
    (STEP_FRESH, KIND_HEAT_REPORT, _): control_plane(); \
    (STEP_FRESH, KIND_READ_TAGS, _): control_plane(); \
    (STEP_FRESH, KIND_TAGS, _): control_plane(); \
    (STEP_FRESH, KIND_STORE, _): control_plane(); \
    (STEP_FRESH, KIND_STORE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_OPERATE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_REBUILD, _): control_plane(); \
    (STEP_FRESH, KIND_REBUILD_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_RESCUE, _): control_plane(); \
    (STEP_FRESH, KIND_RESCUE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ACCEPT_LOSS, _): control_plane(); \
    (STEP_FRESH, KIND_ACCEPT_LOSS_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_FETCH, _): control_plane(); \
    (STEP_FRESH, KIND_FETCH_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_GATHER_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_WAIT, _): control_plane(); \
    (STEP_FRESH, KIND_GRANT, _): control_plane(); \
    (STEP_FRESH, KIND_INVALIDATE, _): control_plane(); \
    (STEP_FRESH, KIND_INV_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_GIVE, _): control_plane(); \
    (STEP_FRESH, KIND_QUEUE, _): control_plane(); \
    (STEP_FRESH, KIND_RELEASE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_PLACE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_YIELD, _): control_plane(); \
    (STEP_FRESH, KIND_YIELD_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_STAMP, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_STAMP_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_READ, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_READ_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_WRITE, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_WRITE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_WRITE_BACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_WRITE_BACK_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_FETCH, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_ASK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_TOLD, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_FILL, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_FILL_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_CONFIG, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_LINE_READ, _): control_plane(); \
    (STEP_FRESH, KIND_ABD_LINE_WRITE, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_READ, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_DATA, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_READ_LOCKED, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_WRITE, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_WRITE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_ALLOC, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_ALLOC_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_FREE, _): control_plane(); \
    (STEP_FRESH, KIND_OBJ_FREE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_TX_LOCK, _): control_plane(); \
    (STEP_FRESH, KIND_TX_LOCK_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_TX_COMMIT, _): control_plane(); \
    (STEP_FRESH, KIND_TX_COMMIT_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_BI_READ, _): control_plane(); \
    (STEP_FRESH, KIND_BI_DATA, _): control_plane(); \
    (STEP_FRESH, KIND_BI_WRITE, _): control_plane(); \
    (STEP_FRESH, KIND_BI_WRITE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_BI_NEWS, _): control_plane(); \
    (STEP_FRESH, KIND_BI_ASK_NEWS, _): control_plane(); \
    (STEP_FRESH, KIND_BI_RESERVE, _): control_plane(); \
    (STEP_FRESH, KIND_BI_RESERVE_ACK, _): control_plane(); \
    (STEP_FRESH, KIND_GUEST_ASK, _): control_plane(); \
    (STEP_FRESH, KIND_GUEST_TELL, _): control_plane();

#endif
