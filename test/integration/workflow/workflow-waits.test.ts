import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defined, type ResourceType } from "@konverge/core";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { Job, Lease } from "@konverge/kube/kinds";
import {
  all,
  any,
  complete,
  condition,
  defineWorkflow,
  field,
  gone,
  ready,
  StepFailedError,
  type AnyWorkflow,
  type ClusterAccess,
  type ObjectRef,
  type WaitCondition,
  type WaitForOptions,
  type Workflow,
} from "@konverge/workflow";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const GROUP = "waits.test.konverge.dev";
const NAMESPACE = "default";
const LEASE_AT = { namespace: NAMESPACE, name: "waits.test.konverge.dev" };
const harness = useWorkflows();

/** The result of a wait, or its failure. */
interface Came {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
}

describe.each(testServers())("waits for objects of the $name", (server) => {
  let client: KubeClient;
  let close: () => Promise<void>;
  let widgets: ResourceType<Widget>;
  let serial = 0;
  let name = "";
  let clusters: ClusterAccess;
  beforeAll(async () => {
    const opened = await server.open();
    ({ client } = opened);
    close = () => opened.close();
    widgets = await installWidgets(client, GROUP);
    clusters = { home: "default", client: async () => client };
  });
  afterAll(async () => {
    await client.delete(Lease, LEASE_AT).catch(ignoreNotFound);
    await removeWidgets(client, GROUP);
    await close();
  });
  beforeEach(() => {
    serial += 1;
    name = `w-${process.pid}-${serial}`;
  });

  const place = () => ({ namespace: NAMESPACE, name });
  const refOf = ({ apiVersion, kind, metadata }: Widget): ObjectRef => {
    const { uid = "", resourceVersion = "", generation = 1 } = metadata;
    return { apiVersion, kind, ...place(), uid, generation, resourceVersion };
  };
  const create = async (finalizers: string[] = []): Promise<ObjectRef> => {
    const metadata = { ...place(), finalizers };
    return refOf(await client.create(widgets, { metadata, spec: { size: 1 } }));
  };
  const patch = async (body: Partial<Pick<Widget, "spec" | "status">>, subresource?: "status") =>
    await client.patch(
      widgets,
      place(),
      { type: "merge", body },
      { unguarded: true, ...defined({ subresource }) },
    );
  const report = async (
    observedGeneration: number,
    status: "True" | "False" = "True",
    type = "Ready",
  ) => {
    const conditions = [{ type, status, reason: "Tested", message: `says ${status}` }];
    await patch({ status: { observedGeneration, conditions } }, "status");
  };
  const waiting = (
    make: (ref: ObjectRef) => WaitCondition,
    options?: WaitForOptions,
  ): Workflow<ObjectRef> =>
    defineWorkflow("waiting", { version: 1 }, async (w, ref: ObjectRef) => {
      try {
        return { value: (await w.waitFor("it", make(ref), options)) as null };
      } catch (error) {
        if (!(error instanceof StepFailedError)) throw error;
        return { code: error.failure.code, message: error.failure.message };
      }
    });
  const begin = async (
    workflow: Workflow<ObjectRef>,
    ref: ObjectRef,
    { isWatched = true } = {},
  ) => {
    const runs = harness.openRuns();
    runs.work({ workflows: [workflow], workerId: "test", clusters });
    if (isWatched) runs.watch({ clusters, ...LEASE_AT, identity: "test" });
    const { id } = await runs.start(workflow, ref);
    return { runs, id };
  };
  type Begun = Awaited<ReturnType<typeof begin>>;
  const says = async (workflow: AnyWorkflow, { runs, id }: Begun, words: string) => {
    const waitingRun = await inStatus(runs, workflow, id, "waiting");
    expect(waitingRun.waits?.[0]?.message).toContain(`Widget ${NAMESPACE}/${name}: ${words}`);
    return waitingRun;
  };
  const comesTo = async (workflow: AnyWorkflow, { runs, id }: Begun): Promise<Came> => {
    const run = await ended(runs, workflow, id);
    expect(run.status).toBe("done");
    return run.result as Came;
  };
  /** Checks that the index of waits is empty. */
  const expectNoWaits = async (workflow: AnyWorkflow) => {
    const { waitKinds, waitRoot, rechecks } = runNames(harness.prefix, "default", workflow.name);
    expect(await harness.redis.exists(waitKinds, rechecks)).toBe(0);
    expect(await harness.redis.keys(`${waitRoot}*`)).toEqual([]);
  };

  test("ready: a run waits, reports the unmet condition, and resumes when it is met", async () => {
    const ref = await create();
    const workflow = waiting((target) => ready(target));
    const begun = await begin(workflow, ref);
    await says(workflow, begun, "has no Ready condition");
    await report(1);
    const { value } = await comesTo(workflow, begun);
    expect(value).toMatchObject({ ...ref, resourceVersion: expect.any(String) as string });
    // P12: only the ref.
    expect(Object.keys(value as ObjectRef).toSorted()).toEqual(Object.keys(ref).toSorted());
    await expectNoWaits(workflow);
  });

  test("ready: the wait ends while a body of another branch is at work", async () => {
    const ref = await create();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let begunBodies = 0;
    let reactions = 0;
    const workflow = defineWorkflow("beside", { version: 1 }, async (w, target: ObjectRef) => {
      const copy = w.step("copy", async () => {
        begunBodies += 1;
        await released;
      });
      await w.waitFor("it", ready(target));
      await w.step("react", async () => void (reactions += 1));
      await copy;
    });
    const begun = await begin(workflow, ref);
    await until("the body runs", () => begunBodies > 0);
    await report(1);
    await until("the branch continues", () => reactions > 0);
    release();
    expect(await ended(begun.runs, workflow, begun.id)).toMatchObject({ status: "done" });
    await expectNoWaits(workflow);
  });

  test.each([
    {
      what: "deleted",
      change: () => client.delete(widgets, place()),
      code: "object_deleted",
      message: "was deleted",
    },
    {
      what: "being deleted",
      finalizers: ["test.konverge.dev/hold"],
      change: () => client.delete(widgets, place()),
      code: "object_deleted",
      message: "is being deleted",
    },
    {
      what: "replaced",
      change: async () => {
        await client.delete(widgets, place());
        await create();
        await report(1);
      },
      code: "object_replaced",
      message: "deleted and recreated",
    },
    {
      what: "stalled",
      change: () => report(1, "True", "Stalled"),
      options: { failFast: 0 },
      code: "object_failed",
      message: "failed: says True",
    },
    {
      what: "changed, with onNewSpec fail",
      change: () => patch({ spec: { size: 2 } }),
      options: { onNewSpec: "fail" as const },
      code: "superseded",
      message: "to generation 2",
    },
  ])("ready: an object that is $what fails the wait with $code", async (row) => {
    const ref = await create(row.finalizers);
    const workflow = waiting((target) => ready(target), row.options);
    const begun = await begin(workflow, ref);
    await says(workflow, begun, "has no Ready condition");
    await row.change();
    const came = await comesTo(workflow, begun);
    expect(came).toMatchObject({ code: row.code });
    expect(came.message).toContain(row.message);
    await expectNoWaits(workflow);
    if (row.finalizers !== undefined) {
      const body = { metadata: { finalizers: null } };
      await client.patch(widgets, place(), { type: "merge", body }, { unguarded: true });
    }
  });

  test("ready: waits for a new spec, and ignores the status of the old one", async () => {
    const ref = await create();
    await report(1);
    await patch({ spec: { size: 2 } });
    const workflow = waiting((target) => ready(target));
    const begun = await begin(workflow, ref);
    await says(workflow, begun, "its controller has observed generation 1 of 2");
    await report(2);
    expect((await comesTo(workflow, begun)).value).toMatchObject({ generation: 2 });
  });

  test("ready: ignores a failure that recovers in time", async () => {
    const ref = await create();
    await report(1, "True", "Stalled");
    const workflow = waiting((target) => ready(target));
    const begun = await begin(workflow, ref);
    const waitingRun = await says(workflow, begun, "failed: says True");
    expect(waitingRun.waitingUntilMs).toBeGreaterThan(Date.now() + 20_000);
    await report(1);
    expect((await comesTo(workflow, begun)).code).toBeUndefined();
  });

  test("ready: a lasting failure ends the wait, across executions", async () => {
    const ref = await create();
    await report(1, "True", "Stalled");
    const workflow = waiting((target) => ready(target), { failFast: 50 });
    const begun = await begin(workflow, ref);
    expect(await comesTo(workflow, begun)).toMatchObject({ code: "object_failed" });
  });

  test("the timeout fails the wait with the unmet condition", async () => {
    const ref = await create();
    await report(1, "False");
    const workflow = waiting((target) => ready(target), { timeout: 50 });
    const begun = await begin(workflow, ref);
    const came = await comesTo(workflow, begun);
    expect(came.code).toBe("wait_timeout");
    expect(came.message).toBe(`not within 0.05 s: Widget ${NAMESPACE}/${name}: says False`);
    await expectNoWaits(workflow);
  });

  test("a run rechecks its objects without a watch", async () => {
    const ref = await create();
    const workflow = waiting((target) => ready(target));
    const begun = await begin(workflow, ref, { isWatched: false });
    await says(workflow, begun, "has no Ready condition");
    await report(1);
    const { rechecks } = runNames(harness.prefix, "default", workflow.name);
    const dueMs = Number(await harness.redis.zscore(rechecks, begun.id));
    expect(dueMs).toBeGreaterThan(Date.now() + 20_000);
    await harness.redis.zadd(rechecks, "XX", 1, begun.id);
    expect((await comesTo(workflow, begun)).value).toMatchObject({ uid: ref.uid });
  });

  test("a cancelled run leaves the index of waits", async () => {
    const ref = await create();
    const workflow = waiting((target) => ready(target));
    const begun = await begin(workflow, ref);
    await says(workflow, begun, "has no Ready condition");
    await begun.runs.cancel({ workflow: workflow.name, id: begun.id });
    expect(await ended(begun.runs, workflow, begun.id)).toMatchObject({ status: "cancelled" });
    await expectNoWaits(workflow);
  });

  test("field, condition, any: waits for an object that does not exist yet", async () => {
    const workflow = waiting(({ apiVersion, kind }) => {
      const target = { apiVersion, kind, ...place() };
      const isBig = field<Widget>(target, ({ spec }) => (spec?.["size"] as number) > 1);
      return all(isBig, any(condition(target, "Odd"), condition(target, "Ready")));
    });
    const ref = { ...refOf({ apiVersion: `${GROUP}/v1`, kind: "Widget", metadata: place() }) };
    const begun = await begin(workflow, ref);
    await says(workflow, begun, "does not exist");
    const { uid } = await create();
    await patch({ spec: { size: 2 } });
    await report(2);
    const { value } = await comesTo(workflow, begun);
    expect(value).toMatchObject([{ uid }, { index: 1, value: { uid } }]);
  });

  test("gone: waits for finalizers, and ignores a new object with the name", async () => {
    const ref = await create(["test.konverge.dev/hold"]);
    await client.delete(widgets, place());
    // A deletion raises the generation, but is not a new spec.
    const workflow = waiting((target) => gone(target), { onNewSpec: "fail" });
    const begun = await begin(workflow, ref);
    await says(workflow, begun, "is being deleted, with finalizers test.konverge.dev/hold");
    const body = { metadata: { finalizers: null } };
    await client.patch(widgets, place(), { type: "merge", body }, { unguarded: true });
    await create();
    expect((await comesTo(workflow, begun)).value).toEqual(ref);
  });

  test("complete: waits for the completion of a Job, not its start", async () => {
    const pod = { restartPolicy: "Never", containers: [{ name: "main", image: "busybox" }] };
    const spec = { template: { spec: pod } };
    const job = await client.create<Widget>(Job, { metadata: place(), spec });
    const setStatus = async (status: NonNullable<Widget["status"]>) => {
      const how = { subresource: "status", unguarded: true };
      await client.patch(Job, place(), { type: "merge", body: { status } }, how);
    };
    const startTime = "2026-01-01T00:00:00Z";
    await setStatus({ startTime, active: 1 });
    const workflow = waiting((target) => complete(target));
    const begun = await begin(workflow, refOf(job));
    const waitingRun = await inStatus(begun.runs, workflow, begun.id, "waiting");
    expect(waitingRun.waits?.[0]?.message).toBe(
      `Job ${NAMESPACE}/${name}: 0 Pods succeeded, 1 active`,
    );
    const conditions = ["SuccessCriteriaMet", "Complete"].map((type) => ({
      type,
      status: "True",
      lastTransitionTime: startTime,
    }));
    const completionTime = "2026-01-01T00:01:00Z";
    await setStatus({ startTime, completionTime, succeeded: 1, active: 0, conditions });
    expect((await comesTo(workflow, begun)).value).toMatchObject({ kind: "Job", name });
    await client.delete(Job, place());
  });

  test("reports unreadable objects, but does not fail the wait", async () => {
    const ref = { ...(await create()), apiVersion: `${GROUP}/v9` };
    const workflow = waiting((target) => ready(target));
    const begun = await begin(workflow, ref);
    const waitingRun = await says(
      workflow,
      begun,
      "cannot be read: the cluster does not serve Widget",
    );
    expect(waitingRun.waitingUntilMs).toBeGreaterThan(Date.now());
  });
});

test.each<{ readonly what: () => WaitCondition; readonly words: string }>([
  { what: () => ready(null as never), words: "ready(...) got null as its object" },
  { what: () => gone({ apiVersion: "v1", kind: "Pod" } as never), words: "an object without name" },
  { what: () => all(), words: "all(...) has no condition" },
  { what: () => any("x" as never), words: "any got string as a condition" },
])("an invalid condition blocks the run: $words", async ({ what, words }) => {
  const workflow = defineWorkflow("odd", { version: 1 }, async (w) => {
    await w.waitFor("it", what());
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  const run = await inStatus(runs, workflow, id, "blocked");
  expect(run.blockedError).toMatchObject({ code: "invalid_workflow" });
  expect(run.blockedReason).toContain(words);
});
