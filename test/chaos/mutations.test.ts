import { isKonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { until } from "../support/until.ts";
import { startEmbeddedPlane, startRealPlane } from "./fleet-plane.ts";
import { startMutationFleet, type MutationFleet } from "./mutation-fleet.ts";
import { CLIENTS, expectedSums, idOf } from "./mutation-load.ts";
import { canRestart } from "./outage-plane.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const isReal = process.env["KUBEBUILDER_ASSETS"] !== undefined && canRestart;
const PER_CLIENT = isLongRun ? 200 : 20;
const DISASTERS = isLongRun ? 40 : 7;
const WORKERS = 2;
const READ_AT_ONCE = 500;

type Disaster = (fleet: MutationFleet, random: () => number) => Promise<void>;

const pick = (random: () => number, most: number) => Math.floor(random() * most);
const network =
  (how: "cut" | "hold"): Disaster =>
  async (fleet, random) => {
    const { net } = fleet.workerAt(pick(random, WORKERS));
    net[how]();
    await pause(200 + random() * fleet.leaseMs * 2);
    net.heal();
  };
const DISASTERS_OF: Readonly<Record<string, Disaster>> = {
  killWorker: (fleet, random) => fleet.replaceWorker(pick(random, WORKERS)),
  killClients: (fleet, random) => fleet.replaceClients(pick(random, fleet.clients)),
  async killRedis(fleet, random) {
    await fleet.killRedis();
    await pause(random() * 500);
    await fleet.restartRedis();
  },
  /** Writes are made, but their responses are lost. */
  async loseAnswers(fleet, random) {
    fleet.workerAt(pick(random, WORKERS)).net.tear(1 + pick(random, 4));
  },
  /** Longer than its lease: another worker has its objects when it continues. */
  async stop(fleet, random) {
    const { child } = fleet.workerAt(pick(random, WORKERS));
    child.signal("SIGSTOP");
    await pause(fleet.leaseMs * 2);
    child.signal("SIGCONT");
  },
  cutNetwork: network("cut"),
  holdNetwork: network("hold"),
};

test(`P10: ${PER_CLIENT * CLIENTS} increments by ${CLIENTS} clients are made once, on ${isReal ? "kube-apiserver" : "the embedded API server"} (KONVERGE_TEST_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  await using plane = await (isReal ? startRealPlane() : startEmbeddedPlane(seed));
  await using fleet = await startMutationFleet(plane, {
    workers: WORKERS,
    perClient: PER_CLIENT,
    batch: 4,
    // So that the load lasts as long as the disasters.
    pauseMs: isLongRun ? 600 : 400,
  });
  const names = Object.keys(DISASTERS_OF);
  for (let count = 0; count < DISASTERS; count += 1) {
    await pause(random() * 400);
    // Each once, then at random.
    const name = names[count] ?? names[pick(random, names.length)] ?? "";
    await DISASTERS_OF[name]?.(fleet, random);
  }
  await fleet.submitted();
  const open = new Set(
    Array.from({ length: CLIENTS * PER_CLIENT }, (_, n) =>
      idOf(n % CLIENTS, Math.floor(n / CLIENTS)),
    ),
  );
  const ends = new Map<string, number>();
  await until("all mutations end", async () => {
    for (const views of await readAll(fleet, [...open])) {
      if (views?.endedAtMs === undefined) continue;
      open.delete(views.id);
      ends.set(views.state, (ends.get(views.state) ?? 0) + 1);
    }
    return open.size === 0;
  });
  expect(Object.fromEntries(ends)).toEqual({ applied: CLIENTS * PER_CLIENT });
  expect(await fleet.sums()).toEqual(expectedSums(PER_CLIENT));
});

async function readAll({ mutations }: MutationFleet, ids: readonly string[]) {
  const parts = Array.from({ length: Math.ceil(ids.length / READ_AT_ONCE) }, (_, part) =>
    ids.slice(part * READ_AT_ONCE, (part + 1) * READ_AT_ONCE),
  );
  const views = [];
  for (const part of parts) {
    const found = await mutations.get(part).catch((error: unknown) => {
      if (isKonvergeError(error) && error.code === "redis_unavailable") return [];
      throw error;
    });
    views.push(...found);
  }
  return views;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
