import { mkdirSync, writeFileSync } from "node:fs";
import { obtainRedis } from "@konverge/apiserver";
import { DOCUMENTED, runArm, type ArmResult, type Fault } from "../chaos/outage-experiment.ts";
import { prepareKeys } from "../chaos/outage-load.ts";
import { canRestart, startOutagePlane } from "../chaos/outage-plane.ts";
import type { BenchOptions, Figure } from "./measure.ts";
import { drawOutages, type OutageRun } from "./outage-picture.ts";

const FAULT_MS = 20_000;
const PICTURE = "docs/images/outage.svg";
const FAULTS: readonly { readonly fault: Fault; readonly title: string }[] = [
  { fault: "etcd", title: "etcd is paused" },
  { fault: "throttle", title: "every call returns 429" },
  ...(canRestart ? [{ fault: "restart", title: "the API server is down" } as const] : []),
];

/** Counts the calls during three faults of a real API server, with jittered retries and with the guard, and draws the picture of the docs. */
export async function benchOutage({ log }: BenchOptions): Promise<Figure[]> {
  const redis = await obtainRedis({ log });
  const figures: Figure[] = [];
  const runs: OutageRun[] = [];
  try {
    await using plane = await startOutagePlane();
    await prepareKeys(plane.admin, plane.namespace, DOCUMENTED.keys);
    for (const { fault, title } of FAULTS) {
      const options = { plane, redisUrl: redis.url, fault, faultMs: FAULT_MS, shape: DOCUMENTED };
      log(`outage: ${title}, jittered retries alone`);
      const jitter = await runArm({ ...options, arm: "jitter" });
      log(`outage: ${title}, the guard`);
      const guard = await runArm({ ...options, arm: "guard" });
      runs.push({ title, jitter, guard });
      figures.push(...figuresOf(title, { jitter, guard }));
    }
  } finally {
    await redis.stop();
  }
  mkdirSync("docs/images", { recursive: true });
  writeFileSync(PICTURE, drawOutages(runs));
  log(`outage: the curves are in ${PICTURE}`);
  return figures;
}

function figuresOf(
  title: string,
  { jitter, guard }: { readonly jitter: ArmResult; readonly guard: ArmResult },
): Figure[] {
  const common = { suite: "outage", case: title, peerName: "jittered retries alone" };
  const ratio = guard.sentDuring / jitter.sentDuring;
  // The backlog at the full rate: two calls for every key.
  const allowedMs = 15_000 + (2 * DOCUMENTED.keys * 1_000) / DOCUMENTED.ratePerSecond;
  return [
    {
      ...common,
      metric: "calls sent during the fault",
      unit: "calls",
      ours: guard.sentDuring,
      peer: jitter.sentDuring,
      ratio: Math.round(ratio * 1_000) / 1_000,
      goal: 0.05,
      ok: ratio <= 0.05,
    },
    {
      ...common,
      metric: "from the fault's end to full speed and every key served",
      unit: "ms",
      ours: Math.round(guard.recoveredMs),
      peer: Math.round(jitter.recoveredMs),
      ratio: null,
      goal: allowedMs,
      ok: guard.recoveredMs <= allowedMs && guard.lost === 0,
    },
  ];
}
