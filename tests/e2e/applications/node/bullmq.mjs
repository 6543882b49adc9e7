// BullMQ: queue, worker and events at different nodes.
import assert from "node:assert/strict";
import test from "node:test";
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import Redis from "ioredis";

const urls = process.env.NODES.split(" ");
const at = (node) => ({ url: urls[node], maxRetriesPerRequest: null });
const admin = new Redis(urls[0]);
await admin.flushall();
const queue = new Queue("chores", { connection: at(0) });
const events = new QueueEvents("chores", { connection: at(2) });
await events.waitUntilReady();
const tries = [];
const work = async (job) => {
  if (job.name === "add") return job.data.left + job.data.right;
  if (job.name === "flaky") {
    tries.push(job.attemptsMade);
    if (tries.length < 3) throw new Error("again");
    return "at last";
  }
  if (job.name === "sum") {
    const parts = Object.values(await job.getChildrenValues());
    return parts.reduce((sum, part) => sum + part, 0);
  }
  throw new Error("no such luck");
};
const workers = [1, 2].map((node) => new Worker("chores", work, { connection: at(node) }));
workers.push(new Worker("errands", work, { connection: at(0) }));
const flows = new FlowProducer({ connection: at(1) });
test.after(async () => {
  for (const worker of workers) await worker.close();
  await flows.close();
  await events.close();
  await queue.close();
  admin.disconnect();
});

test("jobs", async () => {
  const jobs = await queue.addBulk(
    Array.from({ length: 20 }, (_, n) => ({ name: "add", data: { left: n, right: 1 } })),
  );
  const sums = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 60000)));
  assert.deepEqual(sums, Array.from({ length: 20 }, (_, n) => n + 1));
});

test("failures and repeats", async () => {
  const broken = await queue.add("broken", {});
  await assert.rejects(broken.waitUntilFinished(events, 60000), /no such luck/);
  const flaky = await queue.add("flaky", {}, { attempts: 3, backoff: { type: "fixed", delay: 10 } });
  assert.equal(await flaky.waitUntilFinished(events, 60000), "at last");
  assert.equal((await queue.getJobCounts("failed")).failed, 1);
});

test("jobs that wait, and that have a rank", async () => {
  const later = await queue.add("add", { left: 1, right: 2 }, { delay: 300 });
  assert.equal((await queue.getDelayed()).length, 1);
  assert.equal(await later.waitUntilFinished(events, 60000), 3);
  const ranked = await queue.add("add", { left: 2, right: 2 }, { priority: 5 });
  assert.equal(await ranked.waitUntilFinished(events, 60000), 4);
});

// Scripts in MULTI, which write and then touch keys that they do not name.
test("flows", async () => {
  const add = (queueName, left) => ({ name: "add", queueName, data: { left, right: 1 } });
  const tree = (n) => ({
    name: "sum",
    queueName: "chores",
    data: {},
    children: [
      add("chores", n),
      add("errands", n),
      { name: "sum", queueName: "errands", data: {}, children: [add("chores", n), add("errands", n)] },
    ],
  });
  const one = await flows.add(tree(10));
  assert.equal(one.children.length, 3);
  const many = await flows.addBulk(Array.from({ length: 10 }, (_, n) => tree(n)));
  assert.equal(await one.job.waitUntilFinished(events, 60000), 44);
  const sums = await Promise.all(many.map((flow) => flow.job.waitUntilFinished(events, 60000)));
  assert.deepEqual(sums, Array.from({ length: 10 }, (_, n) => 4 * n + 4));
});
