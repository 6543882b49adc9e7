// What a packet carries through the stages beside its headers, and the small numbers that tables hand each other.

#ifndef RACKMEM_STATE
#define RACKMEM_STATE

#include "headers.p4"

// In a ternary key: these bits set, or these bits clear.
#define WITH(bits) bits &&& bits
#define WITHOUT(bits) 0 &&& bits

// Which way through the program a packet takes.
typedef bit<8> work_t;
const work_t WORK_NONE = 0;
const work_t WORK_REQUEST = 1;
const work_t WORK_UNLOCK = 2;
const work_t WORK_ADD = 3;
const work_t WORK_REMOVE = 4;
const work_t WORK_CONTROL = 5;
const work_t WORK_LOCK = 6;
const work_t WORK_QUORUM = 7;

// What a resubmitted packet has come back for. No packet comes back twice.
typedef bit<8> step_t;
const step_t STEP_FRESH = 0;   // it has not been here yet
const step_t STEP_UNDO = 16;   // and that pass's verdict: give back the lock that it took, then do what it decided
const step_t STEP_RELEASE = 2; // an unlock that has taken its authority from the score
const step_t STEP_TAKE = 3;    // ADD-TO-SWITCH: take the first free location
const step_t STEP_REFUSE = 4;  // ADD-TO-SWITCH: the tag is here already
const step_t STEP_RETIRE = 5;  // REMOVE-FROM-SWITCH, its first step: lock the entry for good
const step_t STEP_LOOK = 6;    // the same, when that has happened: tell the metadata once more
const step_t STEP_FREE = 7;    // REMOVE-FROM-SWITCH, its second step: free the location
const step_t STEP_COMMIT = 8;  // a lock's release that may be carried out

// What is done to TAG, to LOCK, to G-STATUS and COPYSET, and to the row of a score or of a move.
typedef bit<2> tag_op_t;
const tag_op_t TAG_NONE = 0;
const tag_op_t TAG_MATCH = 1;
const tag_op_t TAG_TAKE = 2; // if it is free
const tag_op_t TAG_GIVE = 3; // if it matches

typedef bit<3> lock_op_t;
const lock_op_t LOCK_NONE = 0;
const lock_op_t LOCK_ACQUIRE = 1;
const lock_op_t LOCK_RELEASE_SHARED = 2;
const lock_op_t LOCK_RELEASE_ALONE = 3;
const lock_op_t LOCK_CLEAR = 4;

typedef bit<3> meta_op_t;
const meta_op_t META_NONE = 0;
const meta_op_t META_READ = 1;
const meta_op_t META_WRITE = 2; // as the packet says
const meta_op_t META_JOIN = 3;  // the status as the packet says, the copyset united with what is there
const meta_op_t META_CLEAR = 4;

typedef bit<2> row_op_t;
const row_op_t ROW_NONE = 0;
const row_op_t ROW_ENTER = 1; // a newer sequence number takes the row
const row_op_t ROW_READ = 2;

// How a packet's sequence number stands to its row's.
typedef bit<2> order_t;
const order_t NEWER = 0;
const order_t SAME = 1;
const order_t OLDER = 2;

// A score: the low half of the sequence number, the flags, and of a granted request the status and the provider (node number + 1) that
// it was granted with. crates/proto keeps it as one word, seq << 32 | provider << 8 | status << 1 | flags.
typedef bit<8> score_t;
const score_t SCORE_NOTHING = 0;
const score_t SCORE_GRANTED = 1;
const score_t SCORE_ELSEWHERE = 8;
// What an unlock leaves of the flags.
#if PLANT == 2
const score_t SCORE_LEFT = 0xff;
#else
const score_t SCORE_LEFT = 0xfe;
#endif
// A move: the low half of the sequence number, and how it went.
const score_t MOVE_CLAIMED = 1;
const score_t MOVE_DONE = 2;
const score_t MOVE_REFUSED = 16; // and the reason

// The lock word: the top bit a writer, the others a count of readers, which may not run into it.
const bit<16> LOCK_WRITER = 0x8000;
const bit<16> LOCK_MAX_READERS = 0x7fff;

// What becomes of a packet.
typedef bit<8> verdict_t;
const verdict_t DROP = 0;
const verdict_t GRANTED = 1;
const verdict_t REFUSED = 2;
const verdict_t ELSEWHERE = 3;
const verdict_t UNLOCKED = 4;
const verdict_t ADDED = 5;   // the answer to ADD-TO-SWITCH, be it yes or no
const verdict_t REMOVED = 6; // the answer to REMOVE-FROM-SWITCH, likewise
const verdict_t RETIRED = 7; // the same, with the metadata of the entry, which its lock keeps as it is
const verdict_t RESUBMITTED = 8;

// Where a granted request goes (Table 3).
typedef bit<4> forward_t;
const forward_t NOWHERE = 0;
const forward_t HOME = 1;
const forward_t PROVIDER = 2;
const forward_t ALL_WITH_PROVIDER = 3;
const forward_t OTHERS = 4;
const forward_t REQUESTER = 5;

// What is asked of a lock's entry.
typedef bit<8> lock_ask_t;
const lock_ask_t ASK_NONE = 0;
const lock_ask_t ASK_NOTHING = 1; // Acquire of no right: it is passed on, or nothing
const lock_ask_t ASK_READ = 2;
const lock_ask_t ASK_WRITE = 3;
const lock_ask_t ASK_LOOK = 4;    // Release, its first pass
const lock_ask_t ASK_COMMIT = 5;  // and its second one
const lock_ask_t ASK_PLACE = 6;

// Mode and queue holder of a lock: one of these, and the node's number in the lowest five bits. Zero: nobody has placed the lock.
const bit<32> MODE_HOLDS = 0x20;
const bit<32> MODE_SHARES = 0x40;

// How a release's number stands to the entry's: the last, of an earlier tenure, or neither.
typedef bit<2> lock_order_t;
const lock_order_t NUMBER_LAST = 0;
const lock_order_t NUMBER_OVER = 1;
const lock_order_t NUMBER_OTHER = 2;

// What becomes of a packet about a lock.
typedef bit<8> lock_verdict_t;
const lock_verdict_t LOCK_DROP = 0;
const lock_verdict_t LOCK_ELSEWHERE = 1;
const lock_verdict_t LOCK_SHARE = 2;
const lock_verdict_t LOCK_MAKE_WAY = 3;
const lock_verdict_t LOCK_WAIT = 4;
const lock_verdict_t LOCK_OVER = 5;
const lock_verdict_t LOCK_DENY = 6;
const lock_verdict_t LOCK_COMMIT = 7;
const lock_verdict_t LOCK_PASS = 8;
const lock_verdict_t LOCK_PLACED = 9;
const lock_verdict_t LOCK_FULL = 10;

// What a packet about replicated memory asks of its operation's row, and of the entry of its line's stamps.
typedef bit<2> count_op_t;
const count_op_t COUNT_NONE = 0;
const count_op_t COUNT_ENTER = 1; // a question or a write: the row is its own from here on
const count_op_t COUNT_TAKE = 2;  // a member's answer

typedef bit<3> line_op_t;
const line_op_t LINE_NONE = 0;
const line_op_t LINE_LEARN = 1;
const line_op_t LINE_RAISE = 2;
const line_op_t LINE_COMPLETE = 3; // a quorum has answered
const line_op_t LINE_CHOOSE = 4;

// What is done to what was chosen for a row.
typedef bit<3> chosen_op_t;
const chosen_op_t CHOSEN_NONE = 0;
const chosen_op_t CHOSEN_ENTER = 1; // the stamp that its line has given: of the first copy of a request
const chosen_op_t CHOSEN_CLEAR = 2;
const chosen_op_t CHOSEN_READ = 3;
const chosen_op_t CHOSEN_NEXT = 4;  // the second round's stamp, if there is none yet

// What is done to the line that a row holds.
typedef bit<2> held_op_t;
const held_op_t HELD_NONE = 0;
const held_op_t HELD_PUT = 1;
const held_op_t HELD_READ = 2;

// What becomes of it.
typedef bit<3> quorum_verdict_t;
const quorum_verdict_t QUORUM_DROP = 0;
const quorum_verdict_t QUORUM_MULTIPLY = 1;
const quorum_verdict_t QUORUM_ANSWER = 2; // to who has asked, as it is
const quorum_verdict_t QUORUM_MISS = 3;   // likewise: no stamp was chosen, nor will be
const quorum_verdict_t QUORUM_TOLD = 4;   // likewise, with what a quorum has said
const quorum_verdict_t QUORUM_ROUND = 5;  // a round that the switch carries out

// How a packet leaves, for the egress.
typedef bit<8> how_t;
const how_t AS_IT_CAME = 0;
const how_t TO_AGENTS = 1;
const how_t TO_REQUESTER = 2;
struct leave_t {
    how_t   how;
    bit<16> provider; // whose copy says so: node number + 1
    bit<32> nodes;    // only to these
    bit<32> frame;    // not longer than this; zero: as long as it is
}
const bit<32> ALL_NODES = 0xffffffff;

// What goes with a packet when it is resubmitted is marked: 64 bits, no more.
#ifndef AGAIN
#define AGAIN
#endif

// What a packet about a lock carries.
struct lock_t {
    lock_ask_t ask;
    bit<1>     served;
    bit<32>    sets_mask;
    // What the packet brings: who asks or releases, as `who` is if that is the holder, or what `who` is to become; what is
    // done to the number, or what it is held against; the new number.
    bit<32>    mine;
    bit<32>    operand;
    bit<32>    number_high;
    bit<32>    number;
    // What the entry has. `who` is how it was. The number is how it is, and where a release asks for it how it was.
    bit<1>     here;
    bit<32>    who;
    bit<1>     holds;
    bit<32>    high;
    bit<32>    low;
    bit<32>    since_high;
    bit<32>    since_low;
    bit<32>    sharers;
    // Who has the data, and what is wrong with it; for a lock that is placed or passed on what the packet says.
    bit<16>    kept;
    bit<8>     why;
    // How a release's number stands to it.
    bit<32>    apart_high;
    bit<32>    apart_low;
    bit<32>    after_high;
    bit<32>    before_high;
    bit<32>    before_low;
    lock_order_t order;
    lock_verdict_t verdict;
    // The keeper, it and the requester, and these and the sharers, as bits.
    bit<32>    keeper;
    bit<16>    provider;
    // The multicast group of the holder.
    bit<16>    holder_group;
    bit<32>    beside;
    bit<32>    everyone;
}

// What a packet about replicated memory carries.
struct quorum_t {
    // What it is of an operation: a question or write, or one whose rounds the switch carries out, or a member's answer.
    bit<1>     taken;
    bit<2>     phase;
    bit<1>     held;
    bit<1>     answers;
    bit<1>     segment;
    // What the control plane says of its group.
    bit<8>     quorum;
    bit<8>     counting;
    bit<1>     chooses;
    bit<1>     holds;
    bit<32>    counting_nodes;
    bit<32>    all_nodes;
    // The member that answers, as a bit of the row's.
    bit<8>     place;
    count_op_t count_op;
    bit<32>    row;
    // Of a question: the row is of a later one; it was of this one before. Of an answer: it is of its question, or of an
    // operation whose rounds the switch carries out, and whether it is to be counted.
    bit<1>     late;
    bit<1>     again;
    bit<1>     ours;
    bit<1>     of_held;
    bit<1>     counted;
    // How its stamp stands to the highest before.
    order_t    order;
    // The highest stamp.
    bit<32>    max_high;
    bit<32>    max_low;
    // Who had answered before, who has now, which of these have said the highest stamp, and how many of each count.
    bit<8>     before;
    bit<8>     answered;
    bit<8>     agree;
    bit<8>     had;
    bit<8>     have;
    bit<8>     concur;
    bit<1>     completes;
    line_op_t  line_op;
    bit<1>     known;
    bit<1>     fresh;
    bit<1>     learning;
    bit<64>    stamp;
    chosen_op_t chosen_op;
    bit<64>    next;
    bit<64>    chosen;
    held_op_t  held_op;
    quorum_verdict_t verdict;
    // It leaves with the line that the row holds.
    bit<1>     carries;
}

struct state_t {
    // What a resubmitted packet has come back for, and what its first pass has decided.
    AGAIN step_t    step;
    AGAIN bit<8>    status;
    AGAIN bit<16>   provider;
    AGAIN bit<32>   copyset;

    // Whether it is fit for the program.
    bit<1>     ours;
    bit<1>     good;
    bit<1>     body;
    bit<1>     served;
    bit<1>     known;
    bit<16>    ip_rest;
    bit<16>    udp_rest;
    // What the control plane says for its epoch. `shadow` is a bit of a copyset, or zero.
    bit<5>     seed;
    bit<32>    shadow;
    bit<32>    sets_mask;
    // What to do.
    work_t     work;
    tag_op_t   tag_op;
    lock_op_t  lock_op;
    bit<16>    lock_limit;
    bit<16>    lock_amount;
    meta_op_t  meta_op;
    row_op_t   row_op;
    // Whether a way has the entry, and whether the lock was free.
    bit<1>     found;
    bit<1>     acquired;
    // Who would provide the data, were it granted now: node number + 1, zero for nobody.
    bit<5>     from;
    bit<32>    upper;
    bit<16>    choice;
    // The requester's node as a bit of a copyset, and what that makes of the entry's.
    bit<32>    me;
    bit<32>    member;
    bit<32>    others;
    bit<1>     valid;
    // The row.
    bit<13>    row;
    bit<32>    row_seq;
    bit<32>    age;
    order_t    order;
    score_t    score;
    bit<1>     undo;
    bit<8>     reason;
    verdict_t  verdict;
    // Where to, or through the program once more.
    bit<16>    my_group;
    bit<16>    home_group;
    forward_t  forward;
    leave_t    leave;
    lock_t     l;
    quorum_t   q;
}

#endif
