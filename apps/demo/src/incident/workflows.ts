import { setTimeout as sleep } from "node:timers/promises";
import { defineSchedule, defineWorkflow, TerminalError } from "konverge";
import { z } from "zod";

const Rollout = z.object({
  name: z.string(),
  fails: z.enum(["never", "quota", "image"]).default("never"),
  /** The undo of the first step fails. */
  keepsPool: z.boolean().default(false),
});
const Approval = z.object({ by: z.string() });

const smokeTest = defineWorkflow("smoke-test", { version: 1 }, (w, name: string) =>
  w.step("probe", () => `${name} answers`),
);

/** Creates a pool, tests it with a child, and publishes it after an approval. */
const rollout = defineWorkflow(
  "rollout",
  { version: 3, input: Rollout },
  async (w, { name, fails, keepsPool }) => {
    const pool = await w.step("create pool", () => ({ pool: name }), {
      undo: () => {
        if (keepsPool) throw new Error("pool has the finalizer shop.konverge.dev/protect");
      },
    });
    await w.step(
      "label nodes",
      ({ attempt }) => {
        if (attempt < 3) throw new Error("node is cordoned");
      },
      { retry: { attempts: 5, delay: "100ms" } },
    );
    await w.child("smoke test", smokeTest, name);
    const approval = await w.signal("approve", { schema: Approval, timeout: "24h" });
    await w.step("publish", () => {
      if (fails === "quota") throw new TerminalError("the quota of backends is 0");
      if (fails === "image") throw new TerminalError("image shop/web:4.7 does not exist");
    });
    return { ...pool, approvedBy: approval?.by ?? null };
  },
);

/** One long step per run, and two runs at a time; the others are queued. */
const copyData = defineWorkflow(
  "copy-data",
  { version: 1, concurrency: { runs: 2 } },
  async (w, shard: number) => {
    await w.step("copy", async ({ signal }) => {
      await sleep(600_000, undefined, { signal });
    });
    return shard;
  },
);

/** The release that causes the incident does not accept runs of version 1. */
export function billing(version: 1 | 2) {
  return defineWorkflow("billing", { version }, async (w, month: string) => {
    await w.step("collect", () => month);
    if (version === 2) await w.step("convert", () => month);
    await w.signal("close-month", { timeout: "30d" });
  });
}

const report = defineWorkflow("report", { version: 1 }, async (w, _input: object) => {
  for (const shard of [1, 2, 3]) await w.step(`shard ${shard}`, () => ({ rows: shard * 1_000 }));
});
const hourly = defineSchedule("report", { every: "1h", workflow: report, input: {} });

export const workflows = [rollout, smokeTest, copyData, report];
export const schedules = [hourly];
