import { randomUUID } from "node:crypto";
import { defineWorkflow, openWorkflows, type Workflow } from "@konverge/workflow";
import { Redis } from "ioredis";
import { runNames } from "../../libs/workflow/src/store/run-names.ts";
import { servePeer } from "./peer-scenarios.ts";

const url = process.env["PEER_URL"] ?? "";
const prefix = process.env["PEER_PREFIX"] ?? `bench-${randomUUID()}`;
const LOOK_EVERY_MS = 2;

await servePeer(async (bodies) => {
  const five: Workflow<undefined, number> = defineWorkflow("five", { version: 1 }, async (w) => {
    let sum = 0;
    for (let n = 0; n < 5; n++) sum += await w.step(`step-${n}`, () => bodies.five(n));
    return sum;
  });
  const approval: Workflow<undefined, void> = defineWorkflow(
    "approval",
    { version: 1 },
    async (w) => {
      await w.step("prepare", () => bodies.prepared(w.runId));
      await w.signal("approve");
      await w.step("continue", () => bodies.approved(w.runId));
    },
  );
  const stall: Workflow<undefined, void> = defineWorkflow("stall", { version: 1 }, async (w) => {
    await w.step("stall", () => bodies.stall(w.runId));
  });
  const workflows = openWorkflows({ redis: { url }, prefix, onError: console.error });
  const worker = workflows.work({ workflows: [five, approval, stall], concurrency: 50 });
  const redis = new Redis(url);
  const ends = [five, approval].map(({ name }) => watchEnds(redis, prefix, name));
  const [fiveEnded, approvalEnded] = ends;
  return {
    startFive: async (id) => {
      await workflows.start(five, undefined, { id });
      return async () => await fiveEnded?.of(id);
    },
    startApproval: async (id) => {
      await workflows.start(approval, undefined, { id });
      return async () => await approvalEnded?.of(id);
    },
    approve: (id) => workflows.signal({ workflow: approval.name, id }, "approve"),
    startStall: async (id) => void (await workflows.start(stall, undefined, { id })),
    close: async () => {
      for (const { stop } of ends) stop();
      await worker.stop();
      await workflows.close();
      redis.disconnect();
    },
  };
});

/** Reads the ends of runs as they are recorded, for all runs with one command. */
function watchEnds(redis: Redis, keyPrefix: string, workflow: string) {
  const { ended } = runNames(keyPrefix, "default", workflow);
  const known = new Set<string>();
  const waiting = new Map<string, () => void>();
  let isStopped = false;
  // The clock of an end may repeat, so the newest time is read again.
  let newestMs = 0;
  const look = async (): Promise<void> => {
    while (!isStopped) {
      const idle = waiting.size === 0;
      const found = idle
        ? []
        : await redis.zrange(ended, newestMs, "+inf", "BYSCORE", "WITHSCORES");
      for (let at = 0; at < found.length; at += 2) {
        const id = found[at] ?? "";
        newestMs = Number(found[at + 1]);
        known.add(id);
        waiting.get(id)?.();
        waiting.delete(id);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  };
  void look();
  return {
    async of(id: string): Promise<void> {
      if (known.has(id)) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(id, resolve);
      await promise;
    },
    stop: () => {
      isStopped = true;
    },
  };
}
