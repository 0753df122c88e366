import { sleepMs } from "@konverge/core";
import { githubSignature, inbound, poll, stream, type EventSource } from "@konverge/engine";
import type { WorkQueue } from "@konverge/queue";
import { beforeEach, describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useSources } from "./sources-harness.ts";

const queues = useQueues();
const harness = useSources(queues);
const place = (source: string) => ({ controller: "sourced", source });
const named = (name: string) => ({ namespace: "n", name });

/** A queue whose requests Redis accepts only after `release`. */
function slow(queue: WorkQueue) {
  const released = Promise.withResolvers<void>();
  let asked = 0;
  const slowQueue = new Proxy(queue, {
    get(target, name) {
      if (name === "accepted") {
        return async (signal: AbortSignal) => {
          asked += 1;
          await Promise.race([released.promise, sleepMs(Infinity, signal)]);
          await target.accepted(signal);
        };
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  return { queue: slowQueue, release: released.resolve, asked: () => asked };
}

/** A claim would fence the leader. */
const cursorOf = (source: string) =>
  queues.redis.hget(`${queues.prefix}:{default}/source/sourced/${source}`, "cursor");

/** A source, and whether what it has read counts as requested. */
interface Case {
  readonly source: EventSource;
  readonly isStored: () => Promise<boolean>;
}
const CASES: Readonly<Record<string, Case>> = {
  "the versions of a poll": {
    source: poll({ name: "list", every: 100, list: () => ["a"], key: named }),
    isStored: async () => (await harness.store.versions(place("list"))).size > 0,
  },
  "the cursor of a poll": {
    source: poll({
      name: "feed",
      every: 100,
      list: ({ cursor }) => ({ items: cursor === undefined ? ["a"] : [], cursor: "1" }),
      key: named,
    }),
    isStored: async () => (await cursorOf("feed")) !== null,
  },
  "the cursor of a stream": {
    source: stream("events", async function* (cursor, signal) {
      if (cursor === undefined) yield { key: named("a"), cursor: "1" };
      await sleepMs(Infinity, signal);
    }),
    isStored: async () => (await cursorOf("events")) !== null,
  },
  "a delivery": {
    source: inbound("hook", { verify: githubSignature(), map: () => named("a") }),
    isStored: async () => (await harness.store.take("hook", 1)).waiting === 0,
  },
};

describe.each(Object.entries(CASES))("%s", (_, { source, isStored }) => {
  beforeEach(async () => {
    if (source.kind !== "inbound") return;
    const text = JSON.stringify({ form: "text", body: "x", event: {}, headers: {} });
    await harness.store.accept("hook", { text, marks: [], windowMs: 1_000 });
  });

  test("counts as requested only after Redis has accepted the request", async () => {
    const { queue, release, asked } = slow(harness.queue);
    const first = harness.lead([source], { queue });
    await until("the object was submitted", () => asked() > 0);
    expect(await isStored()).toBe(false);
    // As if the leader had died: the next one must read it again.
    await first.stop();
    expect(await isStored()).toBe(false);
    release();
    harness.lead([source]);
    await until("it is stored", isStored);
    expect((await harness.requests())["a"]).toBeGreaterThanOrEqual(1);
  });
});

test("a Redis that lost its data is read again: a poll requests all its objects", async () => {
  const source = poll({ name: "list", every: 100, list: () => ["a", "b"], key: named });
  harness.lead([source], { checkMs: 100 });
  await until("they are requested", async () => Object.keys(await harness.requests()).length === 2);
  const { redis, prefix } = queues;
  for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(...(keys as string[]));
  }
  await until("they are requested again", async () => {
    const requests = await harness.requests();
    return requests["a"] !== undefined && requests["b"] !== undefined;
  });
  const versions = await until("their versions are stored", async () => {
    const stored = await harness.store.versions(place("list"));
    return stored.size === 2 && stored;
  });
  expect([...versions.keys()].toSorted()).toEqual(["n/a", "n/b"]);
});
