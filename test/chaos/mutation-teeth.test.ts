import { fileURLToPath } from "node:url";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { openMutations } from "@konverge/mutations";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Child } from "../support/child.ts";
import { until } from "../support/until.ts";
import { MUTATION_PATCHES, type MutationPatchName } from "./teeth/mutation-patches.ts";
import type { MutationDisturbance, MutationToothConfig } from "./teeth/mutation-worker.ts";

/** Removes each protection of mutations in a test build: only then may a counter be wrong. */

const WORKER = fileURLToPath(new URL("teeth/mutation-worker.ts", import.meta.url));
const PATCHER = new URL("teeth/load-patched.ts", import.meta.url).href;
const LEASE_MS = 1_000;
const DEADLINE_MS = 30_000;
const url = process.env["REDIS_URL"] ?? "";
const OBJECT = { namespace: "default", name: "counter" };

interface Stage {
  /** Increments the counter. */
  readonly submit: (id: string) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
  readonly startWorker: (disturbance?: MutationDisturbance) => Promise<Child>;
  readonly reported: (event: string) => Promise<void>;
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

/** The actual and the expected counter. */
async function play(scenario: Scenario, patch?: MutationPatchName) {
  await using cleanup = new AsyncDisposableStack();
  const server = await createApiServer({});
  cleanup.defer(() => server.close());
  const admin = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "admin",
  });
  cleanup.defer(() => admin.close());
  await admin.create(ConfigMap, { metadata: OBJECT, data: { n: "0" } });
  const redis = new Redis(url);
  const prefix = `test-mutation-tooth-${process.pid}-${Date.now()}`;
  cleanup.defer(async () => {
    const keys = await redis.keys(`${prefix}:*`);
    if (keys.length > 0) await redis.unlink(...keys);
    await redis.quit();
  });
  const place = { redis: { url }, prefix, cluster: "default" };
  const mutations = openMutations({ ...place, leaseMs: LEASE_MS });
  cleanup.defer(() => mutations.close());
  let serial = 0;
  const startWorker: Stage["startWorker"] = async (disturbance) => {
    const workerId = `w${(serial += 1)}`;
    const kubeconfig = server.kubeconfig;
    const config: MutationToothConfig = {
      url,
      prefix,
      kubeconfig,
      workerId,
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
  const object = { group: "", version: "v1", kind: "ConfigMap", resource: "configmaps", ...OBJECT };
  const changes = [{ kind: "increment", path: "/data/n", by: 1 }] as const;
  const wanted = await scenario({
    startWorker,
    submit: async (id) => void (await mutations.submit([{ id, object, changes }])),
    ended: async (id) => void (await mutations.settled(id, AbortSignal.timeout(DEADLINE_MS))),
    async reported(event) {
      const isThere = async () => (await redis.lrange(`${prefix}:events`, 0, -1)).includes(event);
      await until(event, isThere, DEADLINE_MS);
    },
  });
  const { data } = await admin.get(ConfigMap, OBJECT);
  return { got: Number(data?.["n"]), wanted };
}

test.each(NAMES)(
  "P10: counts correctly in the scenario of %s with every protection",
  async (name) => {
    const { got, wanted } = await play(SCENARIOS[name]);
    expect(got).toBe(wanted);
  },
);

test.each(NAMES)("counts incorrectly without the protection %s", async (name) => {
  const { got, wanted } = await play(SCENARIOS[name], name);
  expect(got).not.toBe(wanted);
});
