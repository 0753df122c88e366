import { openMutations } from "@konverge/mutations";
import { LEASE_MS, openCounterStage, testTeeth, type CounterStage } from "./teeth/counter-stage.ts";
import { COUNTER } from "./teeth/counting.ts";
import { MUTATION_PATCHES, type MutationPatchName } from "./teeth/mutation-patches.ts";
import type { MutationDisturbance } from "./teeth/mutation-worker.ts";

/** Removes each protection of mutations in a test build: only then may a counter be wrong. */

const WORKER = new URL("teeth/mutation-worker.ts", import.meta.url);

interface Stage extends CounterStage<MutationDisturbance> {
  /** Increments the counter. */
  readonly submit: (id: string) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
}
/** Returns the number of submitted increments. */
type Scenario = (stage: Stage) => Promise<number>;

/** The first worker dies after its write; the second takes over. */
const die: Scenario = async ({ startWorker, submit, ended }) => {
  const child = await startWorker("die after write");
  await submit("one");
  await child.exited;
  await startWorker();
  await ended("one");
  return 1;
};
/** The first worker is stopped until the second has ended two mutations; then it continues, and applies the next one. */
const zombie =
  (disturbance: MutationDisturbance): Scenario =>
  async ({ startWorker, reported, submit, ended }) => {
    const child = await startWorker(disturbance);
    await submit("one");
    await reported("halting");
    const successor = await startWorker();
    await submit("two");
    await ended("two");
    await successor.kill();
    child.signal("SIGCONT");
    await reported("continued");
    // Its write has been made or rejected.
    if (disturbance === "halt before write") return 2;
    await submit("three");
    await ended("three");
    return 3;
  };
const SCENARIOS: Readonly<Record<MutationPatchName, Scenario>> = {
  mutationMark: die,
  mutationJournal: die,
  mutationHolder: zombie("halt after read"),
  mutationGuard: zombie("halt before write"),
};
const NAMES = Object.keys(MUTATION_PATCHES) as MutationPatchName[];

testTeeth(NAMES, async (name, patch) => {
  await using cleanup = new AsyncDisposableStack();
  const stage = await openCounterStage<MutationDisturbance>(cleanup, WORKER, patch);
  const { redis, prefix } = stage;
  const mutations = openMutations({
    redis,
    prefix,
    cluster: "default",
    leaseMs: LEASE_MS,
  });
  cleanup.defer(() => mutations.close());
  const { kind, namespace, name: object } = COUNTER;
  const counter = { group: "", version: "v1", kind, resource: "configmaps", namespace };
  const changes = [{ kind: "increment", path: "/data/n", by: 1 }] as const;
  const wanted = await SCENARIOS[name]({
    ...stage,
    submit: async (id) =>
      void (await mutations.submit([{ id, object: { ...counter, name: object }, changes }])),
    ended: async (id) => void (await mutations.settled(id, AbortSignal.timeout(90_000))),
  });
  return { got: await stage.counter(), wanted };
});
