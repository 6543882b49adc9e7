// Rows of operations and entries of lines' stamps, for v1model. A packet comes by each array once, in this order.

#ifndef RACKMEM_V1MODEL_QUORUM
#define RACKMEM_V1MODEL_QUORUM

#include "../quorum.p4"

// Rows `node:5 | slot:6 | parity:1`.
#define QUORUM_ROWS 4096
// A power of two.
#ifndef LINES
#define LINES 65536
#endif

// ABD-LIFE and ABD-OP: of which life and operation the row is.
control RowOperation(in headers_t hdr, inout state_t s) {
    register<bit<32>, bit<32>>(QUORUM_ROWS) life;
    register<bit<32>, bit<32>>(QUORUM_ROWS) number;
    register<bit<32>, bit<32>>(QUORUM_ROWS) what;

    apply {
        bit<32> of_life;
        life.read(of_life, s.q.row);
        if (s.q.count_op == COUNT_ENTER && hdr.rackmem.incarnation > of_life) {
            life.write(s.q.row, hdr.rackmem.incarnation);
        }
        bit<32> last;
        bit<32> was;
        bit<32> mine = hdr.own.config[29:0] ++ s.q.phase;
        number.read(last, s.q.row);
        what.read(was, s.q.row);
        bit<32> age = last - hdr.rackmem.seq_low;
        if (hdr.rackmem.incarnation == of_life && age == 0) {
            if (was == mine) {
                s.q.again = 1;
                s.q.ours = 1;
            } else if (s.q.count_op == COUNT_TAKE && was == hdr.own.config[29:0] ++ 2w0) {
                s.q.of_held = 1;
            }
        }
        if (s.q.count_op == COUNT_ENTER) {
            if (hdr.rackmem.incarnation < of_life) {
                s.q.late = 1;
            } else if (hdr.rackmem.incarnation == of_life) {
                if ((age != 0 && age < SEQ_WINDOW) || (age == 0 && s.q.phase < was[1:0])) {
                    s.q.late = 1;
                }
            }
            if (s.q.late == 0) {
                number.write(s.q.row, hdr.rackmem.seq_low);
                what.write(s.q.row, mine);
            }
        }
    }
}

// ABD-MAX-HI, ABD-MAX-LO, ABD-ANSWERED, ABD-AGREE: what a question has been told. A stamp is two words, compared one after
// the other.
control RowAnswers(in headers_t hdr, inout state_t s) {
    register<bit<32>, bit<32>>(QUORUM_ROWS) max_high;
    register<bit<32>, bit<32>>(QUORUM_ROWS) max_low;
    register<bit<8>, bit<32>>(QUORUM_ROWS) answered;
    register<bit<8>, bit<32>>(QUORUM_ROWS) agree;

    apply {
        if (s.q.count_op == COUNT_ENTER && s.q.late == 0) {
#if PLANT != 12
            max_high.write(s.q.row, 0);
            max_low.write(s.q.row, 0);
            answered.write(s.q.row, 0);
            agree.write(s.q.row, 0);
#endif
        } else if (s.q.counted == 1) {
            order_t high = SAME;
            max_high.read(s.q.max_high, s.q.row);
            if (hdr.own.stamp_high > s.q.max_high) {
                high = NEWER;
                s.q.max_high = hdr.own.stamp_high;
            } else if (hdr.own.stamp_high < s.q.max_high) {
                high = OLDER;
            }
            max_high.write(s.q.row, s.q.max_high);
            s.q.order = high;
            max_low.read(s.q.max_low, s.q.row);
            if (high == SAME) {
                if (hdr.own.stamp_low > s.q.max_low) {
                    s.q.order = NEWER;
                } else if (hdr.own.stamp_low < s.q.max_low) {
                    s.q.order = OLDER;
                }
            }
            if (s.q.order == NEWER) {
                s.q.max_low = hdr.own.stamp_low;
            }
            max_low.write(s.q.row, s.q.max_low);
            answered.read(s.q.before, s.q.row);
            s.q.answered = s.q.before | s.q.place;
            answered.write(s.q.row, s.q.answered);
            agree.read(s.q.agree, s.q.row);
            if (s.q.order == NEWER) {
                s.q.agree = s.q.place;
            } else if (s.q.order == SAME) {
                s.q.agree = s.q.agree | s.q.place;
            }
            agree.write(s.q.row, s.q.agree);
        }
    }
}

// ABD-LINE: which line has an entry, and which question learns its stamps. The low bit of a tag says that there is one. What is
// in an entry when the control plane forgets all lines is nothing any more.
control LineEntry(in headers_t hdr, in bit<32> at, inout state_t s) {
    register<bit<64>, bit<32>>(LINES) tag;
    register<bit<32>, bit<32>>(LINES) learner_row;
    register<bit<32>, bit<32>>(LINES) learner_number;
    // One while a question learns, and twice the questions that have passed since.
    register<bit<8>, bit<32>>(LINES) learning;

    apply {
        bit<64> wanted = hdr.rackmem.tag | 1;
        bit<64> there;
        bit<8> learns;
        tag.read(there, at);
        learning.read(learns, at);
        if (there == wanted) {
            s.q.known = 1;
            s.q.learning = learns[0:0];
        } else {
            s.q.fresh = 1;
        }
        if (s.q.line_op == LINE_LEARN) {
            if (s.q.fresh == 1 || learns == (STAMP_PATIENCE << 1) + 1) {
                tag.write(at, wanted);
                learner_row.write(at, s.q.row);
                learner_number.write(at, hdr.rackmem.seq_low);
                learning.write(at, 1);
            } else if (s.q.learning == 1) {
                learning.write(at, learns + 2);
            }
        } else if (s.q.line_op == LINE_COMPLETE && hdr.rackmem.kind == KIND_ABD_STAMP_ACK && s.q.learning == 1) {
            bit<32> by;
            bit<32> number;
            learner_row.read(by, at);
            learner_number.read(number, at);
            if (by == s.q.row && number == hdr.rackmem.seq_low) {
                learning.write(at, 0);
            }
        }
    }
}

// ABD-STAMP: the highest stamp of a line, and so the next one for a write that came without.
control LineStamp(in headers_t hdr, in bit<32> at, inout state_t s) {
    register<bit<32>, bit<32>>(LINES) stamp_high;
    register<bit<32>, bit<32>>(LINES) stamp_low;

    apply {
        bit<32> high;
        bit<32> low;
        stamp_high.read(high, at);
        stamp_low.read(low, at);
        bit<64> max = high ++ low;
        if (s.q.line_op == LINE_LEARN) {
            if (s.q.fresh == 1) {
                max = 0;
            }
        } else if (s.q.line_op == LINE_RAISE || s.q.line_op == LINE_COMPLETE) {
#if PLANT != 10
            if (s.q.known == 1 && s.q.stamp > max) {
                max = s.q.stamp;
            }
#endif
        } else if (s.q.line_op == LINE_CHOOSE && s.q.again == 0) {
#if PLANT == 11
            s.q.learning = 0;
#endif
            // A stamp has sixteen bits for the writer's life, and rounds end.
            bit<36> round = max[63:28] + 1;
            if (s.q.known == 1 && s.q.learning == 0 && hdr.rackmem.incarnation <= 0xffff && round != 0) {
                s.q.next = round ++ 1w1 ++ hdr.rackmem.incarnation[15:0] ++ hdr.rackmem.node_id[4:0] ++ hdr.rackmem.requester[5:0];
                max = s.q.next;
            }
        }
        stamp_high.write(at, max[63:32]);
        stamp_low.write(at, max[31:0]);
    }
}

// ABD-CHOSEN: what was chosen for a row's operation.
control RowChosen(inout state_t s) {
    register<bit<32>, bit<32>>(QUORUM_ROWS) chosen_high;
    register<bit<32>, bit<32>>(QUORUM_ROWS) chosen_low;

    apply {
        if (s.q.chosen_op != CHOSEN_NONE) {
            bit<32> high;
            bit<32> low;
            chosen_high.read(high, s.q.row);
            chosen_low.read(low, s.q.row);
            s.q.chosen = high ++ low;
            if (s.q.chosen_op == CHOSEN_CLEAR) {
                s.q.chosen = 0;
            } else if (s.q.chosen_op == CHOSEN_NEXT) {
                if (s.q.chosen == 0) {
                    s.q.chosen = s.q.next;
                }
            } else if (s.q.chosen_op == CHOSEN_ENTER) {
                // A copy gets the stamp of the first one.
                if (s.q.again == 0) {
                    s.q.chosen = s.q.next;
                }
                s.q.stamp = s.q.chosen;
                if (s.q.chosen == 0) {
                    s.q.verdict = QUORUM_MISS;
                }
            }
            chosen_high.write(s.q.row, s.q.chosen[63:32]);
            chosen_low.write(s.q.row, s.q.chosen[31:0]);
        }
    }
}

// ABD-STORED: who has what the second round stores. Those that answer to another stamp do not count.
control RowStored(in headers_t hdr, inout state_t s) {
    register<bit<8>, bit<32>>(QUORUM_ROWS) stored;

    apply {
        if (s.q.count_op == COUNT_ENTER) {
            if (s.q.late == 0) {
                stored.write(s.q.row, 0);
            }
        } else if (s.q.counted == 0 && s.q.phase == 2) {
#if PLANT == 16
            if (s.q.chosen != 0) {
#else
            if (s.q.chosen != 0 && s.q.chosen == s.q.stamp) {
#endif
                s.q.ours = 1;
                stored.read(s.q.before, s.q.row);
                s.q.answered = s.q.before | s.q.place;
                stored.write(s.q.row, s.q.answered);
            }
        }
    }
}

// ABD-HELD: one word of a row's line.
control HeldWord(in state_t s, inout bit<32> of_line) {
    register<bit<32>, bit<32>>(QUORUM_ROWS) word;

    apply {
        if (s.q.held_op == HELD_PUT) {
            word.write(s.q.row, of_line);
        } else {
            word.read(of_line, s.q.row);
        }
    }
}

// The line that a row holds: put there as the packet has it, zeros for a read that begins; or brought into the packet.
control HeldLine(inout headers_t hdr, inout state_t s) {
#define WORDS(OF) OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) OF(8) OF(9) OF(10) OF(11) OF(12) OF(13) OF(14) OF(15)
#define INSTANCE(n) HeldWord() word##n;
#define EMPTY(n) hdr.line.w##n = 0;
#define APPLY(n) word##n.apply(s, hdr.line.w##n);
    WORDS(INSTANCE)
    apply {
        if (s.q.held_op != HELD_NONE) {
            hdr.line.setValid();
            if (hdr.rackmem.kind == KIND_ABD_LINE_READ) {
                WORDS(EMPTY)
            }
            WORDS(APPLY)
        }
    }
#undef APPLY
#undef EMPTY
#undef INSTANCE
#undef WORDS
}

#endif
