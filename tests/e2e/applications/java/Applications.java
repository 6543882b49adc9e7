import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XReadGroupParams;

/** Jedis, as programs in Java use it, against the nodes of a rack. */
class Applications {
    static JedisPooled first, second, third;

    public static void main(String[] none) throws Exception {
        String[] urls = System.getenv("NODES").split(" ");
        first = new JedisPooled(urls[0]);
        second = new JedisPooled(urls[1]);
        third = new JedisPooled(urls[2]);
        first.flushAll();
        values();
        pipelinesAndTransactions();
        scripts();
        messages();
        blockingPops();
        streams();
        System.out.println("all is well");
        System.exit(0);
    }

    static void same(Object found, Object wanted) {
        if (!Objects.equals(found, wanted)) {
            throw new AssertionError(found + " instead of " + wanted);
        }
    }

    static void values() {
        same(first.set("k", "v", SetParams.setParams().nx().ex(60)), "OK");
        same(second.set("k", "w", SetParams.setParams().nx()), null);
        same(third.get("k"), "v");
        first.hset("h", Map.of("a", "1", "b", "2"));
        same(second.hgetAll("h"), Map.of("a", "1", "b", "2"));
        second.zadd("z", Map.of("one", 1.0, "two", 2.0));
        same(third.zrange("z", 0, -1), List.of("one", "two"));
        third.sadd("s", "x", "y");
        same(first.sismember("s", "x"), true);
    }

    static void pipelinesAndTransactions() {
        try (Pipeline pipeline = first.pipelined()) {
            Response<Long> last = null;
            for (int turn = 0; turn < 100; turn++) {
                last = pipeline.incr("n");
            }
            pipeline.sync();
            same(last.get(), 100L);
        }
        try (var transaction = second.transaction(false)) {
            transaction.watch("n");
            third.incr("n");
            transaction.multi();
            transaction.set("n", "0");
            same(transaction.exec(), null);
        }
        try (var transaction = third.multi()) {
            transaction.incr("n");
            transaction.get("n");
            same(transaction.exec(), List.of(102L, "102"));
        }
    }

    static void scripts() {
        String digest = first.scriptLoad("return {KEYS[1], redis.call('incr', KEYS[1])}", "m");
        same(second.evalsha(digest, List.of("m"), List.of()), List.of("m", 1L));
        same(third.eval("return redis.call('get', KEYS[1])", List.of("m"), List.of()), "1");
    }

    static void messages() throws Exception {
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
        JedisPubSub subscriber = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                heard.add("subscribed");
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.add(message);
            }
        };
        Thread thread = new Thread(() -> second.subscribe(subscriber, "news"));
        thread.start();
        same(heard.poll(60, TimeUnit.SECONDS), "subscribed");
        same(third.publish("news", "hello"), 1L);
        same(heard.poll(60, TimeUnit.SECONDS), "hello");
        subscriber.unsubscribe();
        thread.join();
    }

    static void blockingPops() throws Exception {
        var popped = CompletableFuture.supplyAsync(() -> second.blpop(60, "chores"));
        first.rpush("chores", "wash");
        same(popped.get(), List.of("chores", "wash"));
    }

    static void streams() throws Exception {
        first.xgroupCreate("stream", "team", StreamEntryID.XGROUP_LAST_ENTRY, true);
        var read = CompletableFuture.supplyAsync(() -> second.xreadGroup("team", "ada",
                XReadGroupParams.xReadGroupParams().block(60_000),
                Map.of("stream", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY)));
        StreamEntryID id = third.xadd("stream", StreamEntryID.NEW_ENTRY, Map.of("k", "v"));
        same(read.get().get(0).getValue().get(0).getFields(), Map.of("k", "v"));
        same(first.xack("stream", "team", id), 1L);
    }
}
