import { openWorkflows, type Workflows } from "@konverge/workflow";
import { until } from "../support/until.ts";
import { LEASE_MS, openCounterStage, testTeeth, type CounterStage } from "./teeth/counter-stage.ts";
import { makeCounting, type Disturbance } from "./teeth/counting.ts";
import { VERB_PATCHES, type VerbPatchName } from "./teeth/verb-patches.ts";

/** Removes each protection of the verbs in a test build: only then may a counter be wrong. */

const WORKER = new URL("teeth/verb-worker.ts", import.meta.url);
/** Only starts runs; not a worker. */
const counting = makeCounting(undefined, async () => undefined);

interface Stage extends CounterStage<Disturbance> {
  readonly workflows: Workflows;
  readonly ended: (id: string) => Promise<void>;
}
/** Returns the expected counter. */
type Scenario = (stage: Stage) => Promise<number>;

/** The first worker is stopped until the second has ended the run; then it continues. */
const zombie =
  (disturbance: Disturbance): Scenario =>
  async ({ workflows, startWorker, reported, ended }) => {
    const child = await startWorker(disturbance);
    await workflows.start(counting, 2, { id: "r" });
    await reported("halting");
    await startWorker();
    await ended("r");
    child.signal("SIGCONT");
    await reported("over");
    return 2;
  };
const die: Scenario = async ({ workflows, startWorker, ended }) => {
  const child = await startWorker("die after write");
  await workflows.start(counting, 2, { id: "r" });
  await child.exited;
  await startWorker();
  await ended("r");
  return 2;
};
/** Another run changes the object between the death of a worker and the second try of its step. */
const meet: Scenario = async ({ workflows, startWorker, ended, report }) => {
  const child = await startWorker("die after write");
  await workflows.start(counting, 2, { id: "r" });
  await child.exited;
  await workflows.start(counting, 1, { id: "other" });
  await startWorker("wait in body");
  await ended("other");
  await report("released");
  await ended("r");
  return 3;
};
const SCENARIOS: Readonly<Record<VerbPatchName, Scenario>> = {
  epoch: zombie("halt in body"),
  guard: zombie("halt in change"),
  mark: die,
  settled: meet,
};
const NAMES = Object.keys(VERB_PATCHES) as VerbPatchName[];

testTeeth(NAMES, async (name, patch) => {
  await using cleanup = new AsyncDisposableStack();
  const stage = await openCounterStage<Disturbance>(cleanup, WORKER, patch);
  const { redis, prefix } = stage;
  const workflows = openWorkflows({ redis, prefix, leaseMs: LEASE_MS });
  cleanup.defer(() => workflows.close());
  const wanted = await SCENARIOS[name]({
    ...stage,
    workflows,
    async ended(id) {
      const isOver = async () =>
        (await workflows.get({ workflow: "counting", id }))?.endedAtMs !== undefined;
      await until(`${id} ends`, isOver);
    },
  });
  return { got: await stage.counter(), wanted };
});
