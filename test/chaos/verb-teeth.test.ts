import { fileURLToPath } from "node:url";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createApiServer } from "@konverge/apiserver";
import { openWorkflows, type Workflows } from "@konverge/workflow";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { COUNTER, makeCounting, type Counter, type Disturbance } from "./teeth/counting.ts";
import { VERB_PATCHES, type VerbPatchName } from "./teeth/verb-patches.ts";
import type { ToothConfig } from "./teeth/verb-worker.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";

/** Removes each protection of the verbs in a test build: only then may a counter be wrong. */

const WORKER = fileURLToPath(new URL("teeth/verb-worker.ts", import.meta.url));
const PATCHER = new URL("teeth/load-patched.ts", import.meta.url).href;
const LEASE_MS = 1_000;
const DEADLINE_MS = 30_000;
const url = process.env["REDIS_URL"] ?? "";
/** Only starts runs; not a worker. */
const counting = makeCounting(undefined, async () => undefined);

interface Stage {
  readonly workflows: Workflows;
  readonly startWorker: (disturbance?: Disturbance) => Promise<Child>;
  readonly ended: (id: string) => Promise<void>;
  readonly reported: (event: string) => Promise<void>;
  readonly report: (event: string) => Promise<unknown>;
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

/** The actual and the expected counter. */
async function play(scenario: Scenario, patch?: VerbPatchName) {
  await using cleanup = new AsyncDisposableStack();
  const server = await createApiServer({});
  cleanup.defer(() => server.close());
  const admin = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "admin",
  });
  cleanup.defer(() => admin.close());
  const { namespace, name } = COUNTER;
  await admin.create(ConfigMap, { metadata: { namespace, name }, data: { n: "0" } });
  const redis = new Redis(url);
  const prefix = `test-tooth-${process.pid}-${Date.now()}`;
  cleanup.defer(async () => {
    const keys = await redis.keys(`${prefix}:*`);
    if (keys.length > 0) await redis.unlink(...keys);
    await redis.quit();
  });
  const workflows = openWorkflows({ redis: { url }, prefix, leaseMs: LEASE_MS });
  cleanup.defer(() => workflows.close());
  let serial = 0;
  const startWorker: Stage["startWorker"] = async (disturbance) => {
    const config: ToothConfig = {
      url,
      prefix,
      kubeconfig: server.kubeconfig,
      workerId: `w${(serial += 1)}`,
      leaseMs: LEASE_MS,
      disturbance,
    };
    const patcher = patch === undefined ? [] : ["--import", PATCHER];
    const child = new Child([...patcher, WORKER, JSON.stringify(config)], {
      env: patch === undefined ? {} : { FLEET_PATCH: patch },
    });
    cleanup.use(child);
    expect((await child.ready).trim()).toBe(`up ${patch ?? ""}`.trim());
    return child;
  };
  const wanted = await scenario({
    workflows,
    startWorker,
    async ended(id) {
      const isOver = async () =>
        (await workflows.get({ workflow: "counting", id }))?.endedAtMs !== undefined;
      await until(`${id} ends`, isOver, DEADLINE_MS);
    },
    report: (event) => redis.rpush(`${prefix}:events`, event),
    async reported(event) {
      const isThere = async () => (await redis.lrange(`${prefix}:events`, 0, -1)).includes(event);
      await until(event, isThere, DEADLINE_MS);
    },
  });
  const { data }: Counter = await admin.get(ConfigMap, { namespace, name });
  return { got: Number(data?.["n"]), wanted };
}

test.each(NAMES)(
  "P10: counts correctly in the scenario of %s with every protection",
  async (name) => {
    const { got, wanted } = await play(SCENARIOS[name]);
    expect(got).toBe(wanted);
  },
);

test.each(NAMES)("counts incorrectly without %s", async (name) => {
  const { got, wanted } = await play(SCENARIOS[name], name);
  expect(got).not.toBe(wanted);
});
