// connect-redis, and under it node-redis: a session is made at one node and read at another.
import assert from "node:assert/strict";
import test from "node:test";
import { RedisStore } from "connect-redis";
import session from "express-session";
import { createClient } from "redis";

const urls = process.env.NODES.split(" ");
const clients = await Promise.all(urls.map((url) => createClient({ url }).connect()));
const stores = clients.map((client) => new RedisStore({ client, prefix: "sess:", ttl: 60 }));
test.after(() => clients.forEach((client) => client.destroy()));
const call = (store, name, ...words) =>
  new Promise((resolve, reject) =>
    store[name](...words, (error, answer) => (error ? reject(error) : resolve(answer))),
  );

test("sessions", async () => {
  await clients[0].flushAll();
  assert.ok(stores[0] instanceof session.Store);
  const cookie = { originalMaxAge: 60000 };
  await call(stores[0], "set", "one", { cookie, basket: ["apples"] });
  assert.deepEqual((await call(stores[1], "get", "one")).basket, ["apples"]);
  await call(stores[2], "touch", "one", { cookie });
  await call(stores[1], "set", "two", { cookie });
  assert.equal(await call(stores[2], "length"), 2);
  assert.deepEqual((await call(stores[0], "ids")).sort(), ["one", "two"]);
  await call(stores[0], "destroy", "one");
  assert.equal((await call(stores[1], "get", "one")) ?? null, null);
  await call(stores[2], "clear");
  assert.equal(await call(stores[0], "length"), 0);
});

test("what node-redis adds", async () => {
  const [first, second, third] = clients;
  assert.deepEqual(await first.multi().set("n", "1").incr("n").exec(), ["OK", 2]);
  await second.hSet("h", { a: "1" });
  assert.deepEqual({ ...(await third.hGetAll("h")) }, { a: "1" });
  const subscriber = await createClient({ url: urls[1] }).connect();
  const heard = new Promise((resolve) => subscriber.subscribe("news", resolve));
  while ((await third.publish("news", "hello")) === 0);
  assert.equal(await heard, "hello");
  subscriber.destroy();
});
