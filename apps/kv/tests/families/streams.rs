//! Streams.

use super::check;

#[test]
fn entries_are_added_read_and_deleted() {
    check(
        r#"
        > XADD s 1-1 f v
        < "1-1"
        > XADD s 1-1 f v
        < -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XADD s 1-* f v2
        < "1-2"
        > XADD s 0-0 f v
        < -ERR The ID specified in XADD must be greater than 0-0
        > XADD s x f v
        < -ERR Invalid stream ID specified as stream command argument
        > XADD s 2-1 f
        < -ERR wrong number of arguments for 'xadd' command
        > XADD s 5 a 1 b 2
        < "5-0"
        > XADD none NOMKSTREAM 1-1 f v
        < nil
        > XLEN s
        < :3
        > XLEN none
        < :0
        > TYPE s
        < +stream
        > OBJECT ENCODING s
        < "stream"
        > XRANGE s - +
        < [["1-1" ["f" "v"]] ["1-2" ["f" "v2"]] ["5-0" ["a" "1" "b" "2"]]]
        > XRANGE s (1-1 5
        < [["1-2" ["f" "v2"]] ["5-0" ["a" "1" "b" "2"]]]
        > XRANGE s - + COUNT 1
        < [["1-1" ["f" "v"]]]
        > XRANGE s 2 1
        < []
        > XREVRANGE s + - COUNT 2
        < [["5-0" ["a" "1" "b" "2"]] ["1-2" ["f" "v2"]]]
        > XREVRANGE s + (1-1
        < [["5-0" ["a" "1" "b" "2"]] ["1-2" ["f" "v2"]]]
        > XRANGE s x +
        < -ERR Invalid stream ID specified as stream command argument
        > XREAD STREAMS s 1-1
        < [["s" [["1-2" ["f" "v2"]] ["5-0" ["a" "1" "b" "2"]]]]]
        > XREAD COUNT 1 STREAMS s none 0 0
        < [["s" [["1-1" ["f" "v"]]]]]
        > XREAD STREAMS s $
        < nil
        > XREAD STREAMS s
        < -ERR wrong number of arguments for 'xread' command
        > XREAD STREAMS s 1 2
        < -ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.
        > XDEL s 1-2 9-9
        < :1
        > XLEN s
        < :2
        > XINFO STREAM s
        < ["length" :2 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "5-0" "max-deleted-entry-id" "1-2" "entries-added" :3 "recorded-first-entry-id" "1-1" "groups" :0 "first-entry" ["1-1" ["f" "v"]] "last-entry" ["5-0" ["a" "1" "b" "2"]]]
        > XADD s MAXLEN 2 6-0 f v
        < "6-0"
        > XADD s MAXLEN = 2 7-0 f v
        < "7-0"
        > XADD s MINID 7 8-0 f v
        < "8-0"
        > XRANGE s - +
        < [["7-0" ["f" "v"]] ["8-0" ["f" "v"]]]
        > XTRIM s MAXLEN 1
        < :1
        > XTRIM s MAXLEN -1
        < -ERR The MAXLEN argument must be >= 0.
        > XTRIM s MAXLEN 1 LIMIT 5
        < -ERR syntax error, LIMIT cannot be used without the special ~ option
        > XTRIM s LENGTH 1
        < -ERR syntax error
        > XSETID s 9-0
        < +OK
        > XSETID s 1-0
        < -ERR The ID specified in XSETID is smaller than the target stream top item
        > XSETID none 1-0
        < -ERR no such key
        > XADD s 9-0 f v
        < -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XADD s 18446744073709551615-18446744073709551615 f v
        < "18446744073709551615-18446744073709551615"
        > XADD s * f v
        < -ERR The stream has exhausted the last possible ID, unable to add more items
        > DEL s
        < :1
        > XADD t 1-1 f v
        < "1-1"
        > XDEL t 1-1
        < :1
        > EXISTS t
        < :1
        > XLEN t
        < :0
        > XADD t 1-1 f v
        < -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XREAD STREAMS t 0
        < nil
        > GET t
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET k v
        < +OK
        > XADD k * f v
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > XLEN k
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn groups_share_entries_among_consumers() {
    check(
        r#"
        > XGROUP CREATE s g 0
        < -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        > XGROUP CREATE s g 0 MKSTREAM
        < +OK
        > XGROUP CREATE s g 0
        < -BUSYGROUP Consumer Group name already exists
        > XADD s 1-0 a 1
        < "1-0"
        > XADD s 2-0 a 2
        < "2-0"
        > XADD s 3-0 a 3
        < "3-0"
        > XREADGROUP GROUP g c1 COUNT 2 STREAMS s >
        < [["s" [["1-0" ["a" "1"]] ["2-0" ["a" "2"]]]]]
        > XREADGROUP GROUP g c2 STREAMS s >
        < [["s" [["3-0" ["a" "3"]]]]]
        > XREADGROUP GROUP g c2 STREAMS s >
        < nil
        > XREADGROUP GROUP g c1 STREAMS s 0
        < [["s" [["1-0" ["a" "1"]] ["2-0" ["a" "2"]]]]]
        > XREADGROUP GROUP g c1 STREAMS s 1-0
        < [["s" [["2-0" ["a" "2"]]]]]
        > XREADGROUP GROUP g c3 STREAMS s 0
        < [["s" []]]
        > XREADGROUP GROUP none c STREAMS s >
        < -NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option
        > XREADGROUP STREAMS s >
        < -ERR wrong number of arguments for 'xreadgroup' command
        > XREADGROUP GROUP g c STREAMS s $
        < -ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.
        > XREAD STREAMS s >
        < -ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.
        > XPENDING s g
        < [:3 "1-0" "3-0" [["c1" "2"] ["c2" "1"]]]
        > XPENDING s g - + 10 c2
        < [["3-0" "c2" :0 :1]]
        > XPENDING s none
        < -NOGROUP No such key 's' or consumer group 'none'
        > XACK s g 1-0 9-9
        < :1
        > XACK s g 1-0
        < :0
        > XACK none g 1-0
        < :0
        > XPENDING s g
        < [:2 "2-0" "3-0" [["c1" "1"] ["c2" "1"]]]
        > XDEL s 2-0
        < :1
        > XREADGROUP GROUP g c1 STREAMS s 0
        < [["s" [["2-0" nil]]]]
        > XCLAIM s g c2 0 2-0
        < []
        > XCLAIM s g c1 0 3-0
        < [["3-0" ["a" "3"]]]
        > XCLAIM s g c1 0 3-0 JUSTID
        < ["3-0"]
        > XCLAIM s g c2 100000 3-0
        < []
        > XCLAIM s g c2 0 1-0
        < []
        > XCLAIM s g c2 0 1-0 FORCE JUSTID
        < ["1-0"]
        > XCLAIM s g c2 0 1-0 NONSENSE
        < -ERR Unrecognized XCLAIM option 'NONSENSE'
        > XCLAIM s g c2 0 x
        < -ERR Unrecognized XCLAIM option 'x'
        > XAUTOCLAIM s g c3 0 0 COUNT 1
        < ["3-0" [["1-0" ["a" "1"]]] []]
        > XAUTOCLAIM s g c3 0 3-0 JUSTID
        < ["0-0" ["3-0"] []]
        > XAUTOCLAIM s g c3 0 0 COUNT 0
        < -ERR COUNT must be > 0
        > XPENDING s g
        < [:2 "1-0" "3-0" [["c3" "2"]]]
        > XGROUP CREATECONSUMER s g c9
        < :1
        > XGROUP CREATECONSUMER s g c9
        < :0
        > XGROUP DELCONSUMER s g c3
        < :2
        > XGROUP DELCONSUMER s g c3
        < :0
        > XGROUP DELCONSUMER s none c
        < -NOGROUP No such consumer group 'none' for key name 's'
        > XGROUP SETID s g 2-0
        < +OK
        > XGROUP SETID s g +
        < +OK
        > XREADGROUP GROUP g passing COUNT 1 STREAMS s >
        < nil
        > XGROUP DELCONSUMER s g passing
        < :0
        > XGROUP SETID s g -
        < +OK
        > XGROUP CREATE s other -
        < -ERR Invalid stream ID specified as stream command argument
        > XGROUP SETID s g 2-0
        < +OK
        > XAUTOCLAIM s g c3 0 0 COUNT 9223372036854775807
        < -ERR COUNT must be > 0
        > XGROUP SETID s none 0
        < -NOGROUP No such consumer group 'none' for key name 's'
        > XREADGROUP GROUP g c1 NOACK STREAMS s >
        < [["s" [["3-0" ["a" "3"]]]]]
        > XPENDING s g
        < [:0 nil nil nil]
        > XGROUP CREATE s h $
        < +OK
        > XINFO GROUPS s
        < [["name" "g" "consumers" :3 "pending" :0 "last-delivered-id" "3-0" "entries-read" :3 "lag" :0] ["name" "h" "consumers" :0 "pending" :0 "last-delivered-id" "3-0" "entries-read" nil "lag" :0]]
        > XINFO GROUPS none
        < -ERR no such key
        > XINFO CONSUMERS s none
        < -NOGROUP No such consumer group 'none' for key name 's'
        > XGROUP DESTROY s g
        < :1
        > XGROUP DESTROY s g
        < :0
        > XGROUP DESTROY none g
        < -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        > XGROUP NONSENSE s
        < -ERR unknown subcommand 'NONSENSE'. Try XGROUP HELP.
        > XINFO STREAM s FULL
        < ["length" :2 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "3-0" "max-deleted-entry-id" "2-0" "entries-added" :3 "recorded-first-entry-id" "1-0" "entries" [["1-0" ["a" "1"]] ["3-0" ["a" "3"]]] "groups" [["name" "h" "last-delivered-id" "3-0" "entries-read" nil "lag" :0 "pel-count" :0 "pending" [] "consumers" []]]]
        "#,
    );
}
