import { defined } from "@konverge/core";
import { openMutations } from "@konverge/mutations";
import { defineConfig } from "@konverge/worker";
import { afterEach, expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { useWorkers } from "./worker-harness.ts";
import { until } from "../../support/until.ts";
import { withoutHome } from "../../support/without-home.ts";

const workers = useWorkers("mutations.test.konverge.dev");
let cleanup = new AsyncDisposableStack();
// Before the hook of the workers, which kills them.
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});

const start = async (role?: "watch" | "work", shards = 1) => {
  const { prefix } = workers.queues;
  const config = defineConfig({
    mutations: { kinds: [{ type: ConfigMap, paths: ["/data"] }] },
    settings: { prefix },
    clusters: { default: { shards } },
  });
  return await workers.start([], { config, ...defined({ role }) });
};

function open(shards = 1) {
  const { prefix, target } = workers.queues;
  const mutations = openMutations({ redis: target, prefix, cluster: "default", shards });
  cleanup.defer(() => mutations.close());
  return mutations;
}

const increment = (name: string) => ({
  id: crypto.randomUUID(),
  object: {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    resource: "configmaps",
    namespace: "default",
    name,
  },
  changes: [{ kind: "increment", path: "/data/n", by: 1 }] as const,
  createIfMissing: true as const,
});

test("a worker without controllers applies mutations in the shards of its cluster, and stops", async () => {
  const worker = await start(undefined, 3);
  const mutations = open(3);
  const given = Array.from({ length: 30 }, (_, at) => increment(`worker-mutations-${at % 10}`));
  await mutations.submit(given);
  const signal = AbortSignal.timeout(60_000);
  const ends = await Promise.all(given.map(({ id }) => mutations.settled(id, signal)));
  expect(new Set(ends.map(({ state }) => state))).toEqual(new Set(["applied"]));
  const { items } = await workers.client.list(ConfigMap, { namespace: "default" });
  const found = items.filter(({ metadata }) => metadata.name.startsWith("worker-mutations-"));
  expect(found.map(({ data }) => data)).toEqual(Array.from({ length: 10 }, () => ({ n: "3" })));
  expect(found[0]?.metadata.managedFields?.map(({ manager }) => manager)).toEqual([
    "konverge/mutations",
  ]);
  const wanted = [
    "mutations_accepted_total 30",
    'mutations_ended_total{outcome="applied"} 30',
    'mutations_ended_total{outcome="rejected"} 0',
    "mutations_waiting 0",
    "mutation_duration_seconds_count 30",
    "mutation_batch_size_sum 30",
    "mutation_conflicts_total 0",
    "mutation_failed_attempts_total 0",
  ].map((line) => `konverge_${line}`);
  let lines: string[] = [];
  await until("all is counted", async () => {
    lines = withoutHome(await worker.metrics()).split("\n");
    return wanted.every((line) => lines.includes(line));
  }).catch(() => expect(lines).toEqual(expect.arrayContaining(wanted)));
  await worker.stop({ graceMs: 1_000 });
  expect(worker.lines.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});

test("announces the open kinds; a worker that only watches announces none and applies none", async () => {
  const mutations = open();
  await start("watch");
  const given = increment("worker-mutations-waits");
  await mutations.submit([given]);
  expect(await mutations.openKinds()).toEqual([]);
  await start("work");
  await until("the kinds are announced", async () => (await mutations.openKinds()).length === 1);
  expect((await mutations.openKinds())[0]).toMatchObject({ kind: "ConfigMap", paths: ["/data"] });
  const end = await mutations.settled(given.id, AbortSignal.timeout(60_000));
  expect(end.state).toBe("applied");
});
