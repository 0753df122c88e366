import { createClient, type Client } from "@konverge/client";
import type { Explanation } from "@konverge/contracts";
import { defineController, type ReconcileContext } from "@konverge/engine";
import { defineConfig } from "@konverge/worker";
import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import type { Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { withoutHome } from "../../support/without-home.ts";
import { openApi } from "./open-api.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("explain.test.konverge.dev");
const namespace = "default";
const BLUE = { cluster: "default", controller: "widgets", namespace, name: "blue" };
const ACTION = { by: "ada", reason: "migration" };

const widgets = (reconcile: (context: ReconcileContext<Widget>) => Promise<unknown>) =>
  defineController({ name: "widgets", for: workers.Widgets, reconcile } as Parameters<
    typeof defineController<Widget>
  >[0]);

const open = () => {
  const { fetch, guards } = openApi(workers.queues);
  return { client: createClient({ server: "http://localhost:7070", fetch }), guards };
};
const create = () =>
  workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });

/** Explains the object until the first cause has this code: workers report what they lead every 5 s. */
async function explained(client: Client, code: string | undefined): Promise<Explanation> {
  return await until(`the first cause is ${code}`, async () => {
    const found = await client.objects.explain(BLUE);
    return found.causes[0]?.code === code && found;
  });
}

test("explains an object that is fine, then one with a broken handler", async () => {
  let isBroken = false;
  await workers.start([
    widgets(async () => {
      if (isBroken) throw new Error("quota exceeded");
    }),
  ]);
  await create();
  const { client } = open();
  await until("the attempt has ended", async () => {
    return (await client.objects.attempts(BLUE)).items.length > 0;
  });
  expect(await explained(client, undefined)).toMatchObject({ verdict: "ok", phase: "idle" });
  isBroken = true;
  await client.objects.reconcile(BLUE);
  const { verdict, summary, causes } = await explained(client, "attempt_failed");
  expect(verdict).toBe("blocked");
  expect(summary).toMatch(/^Attempt \d+ failed with .*quota exceeded\.$/);
  const { items } = await client.objects.attempts(BLUE);
  const ids = items.map(({ id }) => id);
  const evidence = causes[0]?.evidence.filter(({ kind }) => kind === "attempt") ?? [];
  expect(evidence.length).toBeGreaterThan(0);
  for (const { name } of evidence) expect(ids).toContain(name);
  isBroken = false;
  await client.objects.reconcile(BLUE);
  const times = await until("the time of the failures is counted", async () => {
    const { convergence } = await client.controllers.activity({ controller: "widgets" });
    return convergence?.causes.some(({ cause }) => cause === "retry") && convergence;
  });
  const shares = times.causes.reduce((sum, { share }) => sum + share, 0);
  expect(shares).toBeCloseTo(1);
  expect(times.causes.map(({ ms }) => ms)).toEqual(
    times.causes.map(({ ms }) => ms).toSorted((one, other) => other - one),
  );
});

test("reports how changes met the objective, and a pause that made one late", async () => {
  const { Widgets } = workers;
  const slo = { threshold: 1, objective: 0.9 } as const;
  const reconcile = async () => undefined;
  const worker = await workers.start([
    defineController<Widget>({ name: "widgets", for: Widgets, slo, reconcile }),
  ]);
  const { client } = open();
  const scope = { controller: "widgets", ...ACTION };
  await client.queues.pause(scope);
  await create();
  const metric = async (line: string) =>
    withoutHome(await worker.metrics()).includes(`\nkonverge_${line}\n`);
  await until("the key is parked", () =>
    metric('workqueue_paused{name="widgets",controller="widgets"} 1'),
  );
  await client.queues.resume(scope);
  const found = await until("the change is counted", async () => {
    const activity = await client.controllers.activity({ controller: "widgets" });
    return activity.slo !== undefined && activity.slo.bad > 0 && activity.slo;
  });
  expect(found).toMatchObject({ thresholdMs: 1, objective: 0.9, good: 0 });
  expect(found.budgetUsed).toBeCloseTo(10);
  expect(found.causes.find(({ cause }) => cause === "pause")?.ms).toBeGreaterThan(0);
  expect(found.causes.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  expect(found.summary).toContain("met the objective of 90 % within 0.001 s");
  expect(await metric(`slo_events_total{controller="widgets",result="bad"} ${found.bad}`)).toBe(
    true,
  );
});

test("explains a paused controller, then stopped calls of the API server", async () => {
  await workers.start([widgets(async () => undefined)]);
  await create();
  const { client, guards } = open();
  await explained(client, undefined);
  await client.queues.pause({ controller: "widgets", ...ACTION });
  await client.objects.reconcile(BLUE);
  const paused = await explained(client, "paused");
  expect(paused.summary).toBe("Controller widgets is paused by ada: migration.");
  expect(paused.causes[0]?.action).toContain("konverge queue resume widgets`");
  await client.queues.resume({ controller: "widgets", ...ACTION });
  await guards.isolate("default", ACTION);
  await client.objects.reconcile(BLUE);
  const isolated = await explained(client, "api_server_isolated");
  expect(isolated.causes[0]).toMatchObject({
    level: "error",
    page: "/guards",
    evidence: [{ kind: "guard", name: "default" }],
  });
  expect(isolated.causes.map(({ code }) => code)).not.toContain("calls_wait");
});

test("explains a request that no worker runs", async () => {
  const worker = await workers.start([widgets(async () => undefined)]);
  await create();
  const { client } = open();
  await explained(client, undefined);
  await worker.stop();
  await client.objects.reconcile(BLUE);
  const { causes, unread, phase } = await explained(client, "no_workers");
  expect(phase).toBe("waiting");
  expect(causes.map(({ code }) => code)).toEqual(["no_workers"]);
  expect(unread).toBe('no worker runs controller "widgets"');
});

test("explains a competing manager", async () => {
  await workers.start([
    widgets(async ({ object, kube }) => {
      await kube.mutate(object, (draft) => {
        draft.spec = { ...draft.spec, size: 3 };
      });
    }),
  ]);
  await create();
  const { client } = open();
  const found = await until("the manager is named", async () => {
    await workers.client.mutate(workers.Widgets, { namespace, name: "blue" }, (draft) => {
      if (draft.spec?.["size"] === 3) draft.spec = { ...draft.spec, size: 5 };
    });
    const explanation = await client.objects.explain(BLUE);
    const [first] = explanation.causes;
    return (first?.code === "contention" || first?.code === "loop") && explanation;
  });
  expect(found.verdict).toBe("blocked");
  expect(found.causes[0]?.message).toContain("konverge-test");
  expect(found.causes[0]?.evidence).toContainEqual(
    expect.objectContaining({ kind: "manager", name: "konverge-test" }),
  );
});

test("explains a workflow that the object waits for", async () => {
  const rollout = defineWorkflow("rollout", { version: 1 }, async (w) => {
    await w.signal("approve");
  });
  const controller = widgets(async ({ startRun }) => {
    await startRun(rollout, null, { onEnd: "reconcile" });
  });
  const { prefix } = workers.queues;
  await workers.start([], {
    config: defineConfig({
      controllers: [controller],
      workflows: [rollout],
      settings: { leaseDuration: "3s", prefix },
    }),
  });
  await create();
  const { client } = open();
  const { items } = await until("the run waits", async () => {
    const runs = await client.runs.list({ workflow: "rollout", status: "waiting" }).page();
    return runs.items.length > 0 && runs;
  });
  const { verdict, causes } = await explained(client, "run_open");
  expect(verdict).toBe("waiting");
  expect(causes[0]?.message).toContain("waiting in step approve (signal)");
  expect(causes[0]?.evidence).toMatchObject([{ kind: "run", name: items[0]?.id }]);
});
