import {
  conditions,
  defineController,
  defineResource,
  type Controller,
  type ReconcileContext,
} from "@konverge/engine";
import { ConfigMap, Deployment, Secret } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { z } from "zod";
import { setCondition } from "../../../apps/cli/src/index.ts";
import { startTestCluster, type TestCluster } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

const Pool = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Pool",
  spec: z.object({ replicas: z.int().optional() }),
  status: z.object({ replicas: z.int(), machines: z.int(), phase: z.string(), conditions }),
});
const Machine = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Machine",
  spec: z.object({}),
});
const template = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "app", image: "app:1" }] },
};
const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "default" },
  spec: { replicas: 1, selector: { matchLabels: { app: "web" } }, template },
};

/** Runs a block as a handler, at first and again by a user request, and returns the cluster with the pool. */
async function play(
  name: string,
  variables: (context: ReconcileContext) => object | Promise<object>,
  options: {
    readonly returns?: string;
    readonly prepare?: (k: TestCluster) => Promise<unknown>;
  } = {},
) {
  const names = ["kube", "pool", "name", "data", "machines", "child", "wanted", "backup", "change"];
  const run = await functionOf(
    blockOf(name),
    [...names, "requeueAfter", "awaitChange", "ConfigMap", "Machine", "Deployment", "setCondition"],
    options.returns,
  );
  const pools = defineController({
    name: "pools",
    for: Pool,
    owns: [ConfigMap, Machine],
    watches: [{ type: Deployment, map: () => [] }],
    reconcile: async (context) => {
      const { object: pool, kube, requeueAfter, awaitChange } = context;
      const kinds = { ConfigMap, Machine, Deployment, setCondition };
      const more = await variables(context);
      return (await run({ pool, kube, requeueAfter, awaitChange, ...kinds, ...more })) as undefined;
    },
  });
  const k = await startTestCluster({ controllers: [pools], resources: [Machine] });
  await options.prepare?.(k);
  const applied = await k.apply(Pool, { metadata: { name: "web" }, spec: {} });
  const pool = await k.reconciled(applied);
  return { k, pool };
}
const outcomesOf = async ({ k, pool }: Awaited<ReturnType<typeof play>>) =>
  (await k.attempts(pool)).map(({ outcome }) => outcome);

test("docs/hints.md: looking first creates the child once", async () => {
  const played = await play("docs/hints.md ts 1", () => ({ data: { a: "1" } }));
  await using k = played.k;
  await k.apply(Pool, { metadata: { name: "web" }, spec: { replicas: 2 } });
  const again = await k.until("another attempt", async () => {
    const outcomes = await outcomesOf(played);
    return outcomes.length > 1 && outcomes;
  });
  expect(new Set(again)).toEqual(new Set(["done"]));
  expect(k.calls({ verb: "create", type: ConfigMap })).toHaveLength(1);
});

test("docs/hints.md: a change by mutate is stored", async () => {
  const { k, pool } = await play("docs/hints.md ts 2", () => ({}));
  await using _ = k;
  const { metadata } = await k.client.get(Pool, pool.metadata);
  expect(metadata.labels).toEqual({ ready: "true" });
});

test("docs/hints.md: a controller names the permissions of its calls", async () => {
  const block = blockOf("docs/hints.md ts 10");
  const run = await functionOf<Controller>(
    { ...block, text: `const defined = ${block.text}` },
    ["defineController", "WebApp", "Secret", "reconcile"],
    "defined",
  );
  const pools = await run({ defineController, WebApp: Pool, Secret, reconcile: () => undefined });
  expect(pools.permissions).toEqual([{ type: Secret, verbs: ["list"] }]);
});

test("docs/hints.md: a missing object is no failure", async () => {
  const played = await play("docs/hints.md ts 3", () => ({ name: "none" }));
  await using _ = played.k;
  expect(await outcomesOf(played)).toEqual(["done"]);
});

test("docs/hints.md: a default that is not written back starts no loop", async () => {
  const played = await play("docs/hints.md ts 4", () => ({}));
  await using k = played.k;
  const pool = await k.client.get(Pool, played.pool.metadata);
  expect(pool).toMatchObject({ spec: {}, status: { replicas: 1 } });
  expect(pool.spec).not.toHaveProperty("replicas");
});

test("docs/hints.md: an equal status is written once", async () => {
  const played = await play("docs/hints.md ts 5", () => ({ machines: [1, 2] }));
  await using k = played.k;
  expect(played.pool.status).toMatchObject({ machines: 2 });
  k.clearCalls();
  await k.apply(Pool, { metadata: { name: "web" }, spec: { replicas: 5 } });
  await k.until("another attempt", async () => (await outcomesOf(played)).length > 1);
  expect(k.calls({ verb: "patch", type: Pool })).toHaveLength(0);
});

test("docs/hints.md: a change of own fields keeps those of others", async () => {
  const child = async ({ kube }: ReconcileContext) => ({
    child: await kube.get(Deployment, { name: "web", namespace: "default" }),
    wanted: 3,
  });
  const prepare = (k: TestCluster) => k.client.create(Deployment, deployment);
  const { k } = await play("docs/hints.md ts 6", child, { prepare });
  await using _ = k;
  const changed = await k.client.get(Deployment, { name: "web", namespace: "default" });
  expect(changed.spec).toMatchObject({ replicas: 3, template });
});

test("docs/hints.md: an apply without replicas leaves them to their owner", async () => {
  const wanted = { ...deployment, spec: { ...deployment.spec, replicas: 9 } };
  const prepare = (k: TestCluster) => k.client.create(Deployment, deployment);
  const played = await play("docs/hints.md ts 7", () => ({ wanted }), { prepare });
  await using k = played.k;
  const applied = await k.client.get(Deployment, { name: "web", namespace: "default" });
  expect(applied.spec).toMatchObject({ replicas: 1 });
  const { managedFields = [] } = applied.metadata;
  expect(managedFields.map(({ manager }) => manager)).toContain("konverge/pools");
});

test.each([
  ["Pending", "requeueAfter"],
  ["Done", "awaitChange"],
])("docs/hints.md: waits for the phase %s by %s", async (phase, outcome) => {
  const played = await play("docs/hints.md ts 8", () => ({ backup: { status: { phase } } }));
  await using _ = played.k;
  expect(await outcomesOf(played)).toEqual([outcome]);
});

test("docs/hints.md: a conflict ends the attempt or is retried, and the change is made", async () => {
  const change = (draft: { metadata: { annotations?: object } }) => {
    draft.metadata.annotations = { seen: "yes" };
  };
  const prepare = async (k: TestCluster) => {
    k.inject({
      verbs: ["patch"],
      resources: ["pools"],
      count: 1,
      effect: { kind: "answer", code: 409 },
    });
  };
  const { k, pool } = await play("docs/hints.md ts 9", () => ({ change }), { prepare });
  await using _ = k;
  expect((await k.client.get(Pool, pool.metadata)).metadata.annotations).toEqual({ seen: "yes" });
});
