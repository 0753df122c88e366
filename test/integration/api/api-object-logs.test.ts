import { objectLogSchema } from "@konverge/contracts";
import { expect, test } from "vitest";
import { useApi } from "./api-harness.ts";
import { loggedRecord, logLine } from "../queue/logged-record.ts";
import { hold, keyOf, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const api = useApi();
const PATH = "/v1/objects/default/node-pool/demo/blue/logs";
const linesOf = async (path: string) => {
  const { items } = objectLogSchema.parse(await (await api.serve()(path)).json());
  return items.map(({ attempt, message }) => `${attempt} ${message}`);
};

test.each([1, 2])(
  "returns the lines of ended, lost and running attempts, oldest first (%d shards)",
  async (shards) => {
    const { queues } = api;
    await queues.redis.set(`${queues.prefix}:{default}/shards`, shards);
    const key = keyOf("blue");
    const never = hold();
    // Short, because this worker never ends its attempt. A busy machine may lose further ones, which log nothing.
    const shortly = queues.open({ shards, leaseMs: 1_000 });
    const dying = workOn(shortly, async ({ epoch, keepLog }) => {
      if (epoch === 1) {
        await keepLog(JSON.stringify([logLine("begin")]));
        await keepLog(JSON.stringify([logLine("begin"), logLine("copying")]));
        await keepLog(JSON.stringify([logLine("x".repeat(9_000))]));
      }
      await never.wait();
      return { kind: "done" };
    });
    await shortly.request(key, { kind: "http" });
    await until("the running attempt has stored its lines", async () => {
      return (await linesOf(PATH)).length === 2;
    });
    await dying.kill();
    const finding = workOn(shortly, () => ({ kind: "done" }));
    await until("an attempt has ended", async () => {
      return (await shortly.listAttempts(key)).some(({ outcome }) => outcome === "done");
    });
    expect(await linesOf(PATH), "those of a lost attempt").toEqual(["1 begin", "1 copying"]);
    await finding.stop();

    const queue = queues.open({ shards });
    const epochs: number[] = [];
    workOn(queue, async ({ epoch, keepLog }) => {
      epochs.push(epoch);
      await keepLog(JSON.stringify([logLine("stored")]));
      if (epochs.length > 1) await never.wait();
      return { outcome: { kind: "done" }, record: loggedRecord(epoch, ["stored", "ended"]) };
    });
    await queue.request(key, { kind: "http" });
    await until("its record is stored", async () => (await linesOf(PATH)).length === 4);
    await queue.request(key, { kind: "http" });
    await until("the next one runs", async () => (await linesOf(PATH)).length === 5);
    const [third = 0, last = 0] = epochs;
    const ended = [`${third} stored`, `${third} ended`];
    const all = ["1 begin", "1 copying", ...ended, `${last} stored`];
    expect(await linesOf(PATH)).toEqual(all);
    expect(await linesOf(`${PATH}?attempt=${third}`)).toEqual(ended);
    expect((await api.serve()(`${PATH}?attempt=99`)).status).toBe(404);
    expect((await api.serve()(`${PATH}?attempt=x`)).status).toBe(422);
    never.release();
  },
);
