import { DEFAULT_GUARD_LIMITS } from "@konverge/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prepareKeys } from "./outage-load.ts";
import {
  runArm,
  slotsOf,
  type ArmResult,
  type Fault,
  type LoadShape,
} from "./outage-experiment.ts";
import { canRestart, startOutagePlane, type OutagePlane } from "./outage-plane.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const hasServer = process.env["KUBEBUILDER_ASSETS"] !== undefined;
const redisUrl = process.env["REDIS_URL"] ?? "";
/** A load that a busy machine can serve beside other tests. The documented one needs a quiet machine (`npm run bench`). */
const SHAPE: LoadShape = { keys: 400, concurrency: 8, ratePerSecond: 200, burst: 400 };
/** The maximum number of tokens in one lease. */
const LEASE = 64;
/** How long a token may be used after its time. */
const TOKEN_TTL_S = DEFAULT_GUARD_LIMITS.tokenTtlMs / 1_000;
/** Long: the documented length. Short: the first second has the same cost, so it weighs more. */
const FAULT_MS = isLongRun ? 20_000 : 8_000;
const SHARE = isLongRun ? 0.05 : 0.15;
/** The calls in flight when the fault begins cannot be saved: they are at most half of the share, also on a slow machine. */
const LEAST_SENT = (2 * slotsOf(SHAPE)) / SHARE;

let plane: OutagePlane | undefined;
beforeAll(async () => {
  if (!hasServer) return;
  plane = await startOutagePlane();
  await prepareKeys(plane.admin, plane.namespace, SHAPE.keys);
});
afterAll(async () => plane?.[Symbol.asyncDispose]());

const FAULTS: readonly { readonly fault: Fault; readonly name: string }[] = [
  { fault: "etcd", name: "etcd is paused" },
  { fault: "throttle", name: "the priority level returns 429" },
  { fault: "restart", name: "the API server is killed and restarted" },
];

/** Each fault takes a minute or two, so a short run has one of them. */
const chosen = FAULTS[seed % FAULTS.length];

describe(`P5, P6: an outage of a real API server loses no work and causes no burst of calls (KONVERGE_TEST_SEED=${seed})`, () => {
  test.for(FAULTS)("$name", async ({ fault }, { skip }) => {
    if (!isLongRun && fault !== chosen?.fault) {
      skip(`this seed has the fault "${chosen?.name}"; npm run test:long has all`);
      return;
    }
    if (plane === undefined) {
      skip("no real API server: `npm run envtest -- --build` builds one");
      return;
    }
    if (fault === "restart" && !canRestart)
      skip("the command of a process is readable only on Linux");
    const options = { plane, redisUrl, fault, faultMs: FAULT_MS, shape: SHAPE };
    const jitter = await runArm({ ...options, leastSent: LEAST_SENT, arm: "jitter" });
    const faultMs = jitter.faultToMs - jitter.faultFromMs;
    const guard = await runArm({ ...options, faultMs, arm: "guard" });
    console.log(describeArms(fault, jitter, guard));
    const { ratePerSecond } = SHAPE;
    expect(guard.lost, "keys that were lost").toBe(0);
    expect(guard.sentDuring).toBeLessThanOrEqual(SHARE * jitter.sentDuring);
    // No burst on recovery: the bucket is empty, so no second exceeds the rate by more than one lease, except for the
    // tokens of the time before, which are valid for 100 ms.
    expect(guard.peakAfter).toBeLessThanOrEqual(
      ratePerSecond + LEASE + ratePerSecond * TOKEN_TTL_S,
    );
  });
});

function describeArms(fault: Fault, jitter: ArmResult, guard: ArmResult): string {
  return [jitter, guard]
    .map(
      ({ arm, sentDuring, deferred, recoveredMs, peakAfter, perSecond, events }) =>
        `${fault} ${arm}: ${moves(events)} sent ${sentDuring} during the fault, deferred ${deferred}, recovered after ${Math.round(recoveredMs)} ms, peak after ${peakAfter}/s; ${perSecond.join(" ")}`,
    )
    .join("\n");
}

function moves(events: ArmResult["events"]): string {
  return events
    .filter((event) => event.kind === "transition")
    .map(({ transition }) => `${transition.to}(${transition.reason})`)
    .join(" ");
}
