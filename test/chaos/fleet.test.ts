import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { drawDisasters, strike } from "./disasters.ts";
import { startFleet } from "./fleet.ts";
import { findViolations } from "./fleet-invariants.ts";
import { readJournals } from "./fleet-journal.ts";
import { createLoad } from "./fleet-load.ts";
import { startEmbeddedPlane, startRealPlane, type FleetPlane } from "./fleet-plane.ts";
import { canRestart } from "./outage-plane.ts";
import { removeRogueJobs } from "./rogue-queue.ts";
import { contend, settle } from "./settle.ts";
import { isLongRun, partsOfRun, seed as firstSeed } from "../support/test-run.ts";

const hasServer = process.env["KUBEBUILDER_ASSETS"] !== undefined;
const WORKERS = 3;
/** Rounds of all disasters. The short run has one round with half of them, selected by the seed. */
const ROUNDS = isLongRun ? 4 : 1;
const SHORT = 6;
/** The final check that writers of one object queue in its lane, without faults. */
const CALM_ROUNDS = 3;

/** A short run has one of them. */
const PLANES = [
  { name: "the embedded API server", isReal: false },
  { name: "kube-apiserver", isReal: true },
];

test.for(partsOfRun(PLANES, 2))(
  `P1, P2, P3, P8: a fleet keeps its guarantees through disasters, on $name (KONVERGE_TEST_SEED=${firstSeed})`,
  async ({ isReal }, { skip }) => {
    if (isReal && !hasServer) skip("no real API server: `npm run envtest -- --build` builds one");
    if (isReal && !canRestart) skip("the command of a process is readable only on Linux");
    await using plane = await (isReal ? startRealPlane() : startEmbeddedPlane(firstSeed));
    for (let round = 0; round < ROUNDS; round++)
      expect(await suffer(plane, firstSeed + round)).toEqual([]);
  },
);

/** Returns the problems found. */
async function suffer(plane: FleetPlane, seed: number): Promise<string[]> {
  const random = seededRandom(seed);
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  await using fleet = await startFleet({ plane, namespace: `fleet-${seed}` });
  await Promise.all(Array.from({ length: WORKERS }, () => fleet.startWorker()));
  const load = createLoad(fleet, random);
  load.start();
  for (const disasters of drawDisasters(random, isLongRun ? undefined : SHORT)) {
    const said = disasters.join(" while ");
    console.log(`${said} (${load.acknowledged.length} requests, ${load.refused} refused)`);
    await strike(disasters, fleet, random);
  }
  await load.stop();
  await load.requestWhileRunning();
  await removeRogueJobs(fleet);
  const missing = await settle(fleet, load);
  const runs = readJournals(fleet.journals).filter(({ kind }) => kind === "begin").length;
  console.log(`${load.acknowledged.length} requests, ${load.refused} refused, ${runs} runs`);
  const contention = missing.length === 0 ? await contend(fleet, load, CALM_ROUNDS) : [];
  return [...missing, ...contention, ...(await findViolations(fleet, load))];
}
