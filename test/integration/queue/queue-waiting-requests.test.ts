import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { hold, keyOf, useQueues, workOn } from "./queue-harness.ts";

const harness = useQueues();
const http = { kind: "http" } as const;

test.each([{ shards: 1 }, { shards: 4 }])(
  "shows each request during an attempt, with $shards shards",
  async ({ shards }) => {
    const queue = harness.open({ shards });
    const held = hold();
    const worker = workOn(queue, async () => {
      await held.wait();
      return { kind: "done" };
    });
    const keys = ["a", "b", "c", "d", "e", "never"].map(keyOf);
    expect(await queue.waitingRequests(keys)).toEqual([0, 0, 0, 0, 0, 0]);
    for (const key of keys.slice(0, 5)) await queue.request(key, http);
    await until("all run", () => worker.started.length === 5);
    expect(await queue.waitingRequests(keys)).toEqual([0, 0, 0, 0, 0, 0]);
    const [, b = keyOf("b"), , d = keyOf("d")] = keys;
    const first = await queue.request(b, http);
    expect(await queue.waitingRequests(keys)).toEqual([0, first.number, 0, 0, 0, 0]);
    const second = await queue.request(b, http);
    const other = await queue.request(d, http);
    expect(second.number).toBe(first.number + 1);
    expect(await queue.waitingRequests([d, b])).toEqual([other.number, second.number]);
    held.release();
    await until("all have ended", async () =>
      (await queue.waitingRequests(keys)).every((number) => number === 0),
    );
  },
);
