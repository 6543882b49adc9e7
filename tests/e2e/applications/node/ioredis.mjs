// ioredis: values, pipelines, transactions, scripts, messages, lists that are waited for, streams.
import assert from "node:assert/strict";
import test from "node:test";
import Redis from "ioredis";

const urls = process.env.NODES.split(" ");
const clients = urls.map((url) => new Redis(url));
const [first, second, third] = clients;
test.beforeEach(() => first.flushall());
test.after(() => clients.forEach((client) => client.disconnect()));

test("values", async () => {
  assert.equal(await first.set("k", "v", "PX", 60000), "OK");
  assert.equal(await second.get("k"), "v");
  assert.deepEqual(await third.getBuffer("k"), Buffer.from("v"));
  await second.hset("h", { a: "1", b: "2" });
  assert.deepEqual(await third.hgetall("h"), { a: "1", b: "2" });
  await third.zadd("z", 2, "two", 1, "one");
  assert.deepEqual(await first.zrange("z", 0, -1, "WITHSCORES"), ["one", "1", "two", "2"]);
});

test("pipelines and transactions", async () => {
  const answers = await first.pipeline().set("a", 1).incr("a").lpush("a", 1).exec();
  assert.equal(answers[1][1], 2);
  assert.match(answers[2][0].message, /^WRONGTYPE/);
  assert.deepEqual(await second.multi().incr("a").get("a").exec(), [[null, 3], [null, "3"]]);
  await third.watch("a");
  await first.incr("a");
  assert.equal(await third.multi().set("a", 0).exec(), null);
});

test("scripts", async () => {
  for (const client of clients) {
    client.defineCommand("take", {
      numberOfKeys: 1,
      lua: "local n = tonumber(redis.call('get', KEYS[1]) or '0') \
            if n >= tonumber(ARGV[1]) then return {n, 'full'} end \
            return {redis.call('incr', KEYS[1]), 'ok'}",
    });
  }
  const answers = [];
  for (const client of [...clients, ...clients]) answers.push((await client.take("n", 4))[1]);
  assert.deepEqual(answers, ["ok", "ok", "ok", "ok", "full", "full"]);
});

test("messages", async () => {
  const subscriber = new Redis(urls[1]);
  const received = new Promise((resolve) => {
    const messages = [];
    const take = (...message) => messages.push(message) === 2 && resolve(messages);
    subscriber.on("message", take);
    subscriber.on("pmessage", take);
  });
  await subscriber.subscribe("news");
  await subscriber.psubscribe("new*");
  assert.equal(await third.publish("news", "hello"), 2);
  assert.deepEqual(await received, [["news", "hello"], ["new*", "news", "hello"]]);
  subscriber.disconnect();
});

test("lists that are waited for", async () => {
  const waiting = second.blpop("chores", 60);
  await first.rpush("chores", "wash");
  assert.deepEqual(await waiting, ["chores", "wash"]);
  assert.equal(await second.ping(), "PONG");
});

test("streams", async () => {
  await first.xgroup("CREATE", "s", "team", "$", "MKSTREAM");
  const waiting = second.xreadgroup("GROUP", "team", "ada", "BLOCK", 60000, "STREAMS", "s", ">");
  const id = await third.xadd("s", "*", "field", "value");
  assert.deepEqual(await waiting, [["s", [[id, ["field", "value"]]]]]);
  assert.equal(await first.xack("s", "team", id), 1);
});

test("scans", async () => {
  for (let number = 0; number < 200; number += 1) await first.set(`key:${number}`, number);
  let found = 0;
  for await (const keys of second.scanStream({ match: "key:*", count: 50 })) found += keys.length;
  assert.equal(found, 200);
});
