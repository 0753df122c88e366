import { defined } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startFleet, type Fleet } from "./fleet.ts";
import { findViolations } from "./fleet-invariants.ts";
import { createLoad, type FleetLoad } from "./fleet-load.ts";
import { startEmbeddedPlane, type FleetPlane } from "./fleet-plane.ts";
import { settle, settleFirstRuns } from "./settle.ts";
import { PATCHES, type PatchName } from "./teeth/patches.ts";
import { SCENARIOS } from "./teeth/scenarios.ts";
import { partsOfRun } from "../support/test-run.ts";

/** Proves that the chaos suite can fail: its checks must find each protection that a test build lacks. */

/** Half of the protections in a short run. */
const NAMES = partsOfRun(Object.keys(PATCHES) as PatchName[], 2);
const WORKERS = 3;
/** Long enough to find a running handler and disturb it. */
const PLAIN_MS = [1_200, 1_200] as const;

let plane: FleetPlane | undefined;
beforeAll(async () => {
  plane = await startEmbeddedPlane(1);
});
afterAll(async () => plane?.[Symbol.asyncDispose]());

async function startCalmFleet(
  namespace: string,
  patch?: PatchName,
): Promise<{ readonly fleet: Fleet; readonly load: FleetLoad }> {
  if (plane === undefined) throw new Error("the API server is not started yet");
  const fleet = await startFleet({
    plane,
    namespace,
    plainMs: PLAIN_MS,
    failing: 0,
    ...defined({ patch }),
  });
  await Promise.all(Array.from({ length: WORKERS }, () => fleet.startWorker()));
  const load = createLoad(fleet, () => 0);
  expect(await settleFirstRuns(fleet, load)).toEqual([]);
  return { fleet, load };
}

test("finds nothing with every protection", async () => {
  const { fleet, load } = await startCalmFleet("teeth");
  await using _ = fleet;
  for (const name of NAMES) {
    const contention = await SCENARIOS[name].run(fleet, load);
    const missing = await settle(fleet, load);
    expect([...contention, ...missing, ...(await findViolations(fleet, load))], name).toEqual([]);
  }
});

test.each(NAMES)("finds a missing %s", async (name) => {
  const { fleet, load } = await startCalmFleet(`teeth-${name}`, name);
  await using _ = fleet;
  const { run, violation } = SCENARIOS[name];
  const found = [...(await run(fleet, load)), ...(await findViolations(fleet, load))];
  expect(found).toContainEqual(expect.stringMatching(violation));
});
