import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { Secret } from "@konverge/kube/kinds";
import { testWorkflow } from "@konverge/workflow/testing";
import {
  all,
  defineWorkflow,
  field,
  gone,
  ready,
  type ClusterAccess,
  type ObjectRef,
  type WaitCondition,
} from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { runExecution } from "../../../libs/workflow/src/execution/run-execution.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { installWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import { until } from "../../support/until.ts";
import { noChildren } from "../../support/no-children.ts";

const GROUP = "wait-rules.test.konverge.dev";
const NAMESPACE = "default";
const LEASE_AT = { namespace: NAMESPACE, name: GROUP, identity: "test" };
const harness = useWorkflows();

interface Place {
  readonly client: KubeClient;
  readonly widgets: ResourceType<Widget>;
  close(): Promise<void>;
}
/** One embedded server per cluster, which is enough for rules about where calls are sent. */
async function openPlace(): Promise<Place> {
  const [embedded] = testServers();
  if (embedded === undefined) throw new Error("there is always the embedded server");
  const opened = await embedded.open();
  const { client } = opened;
  return { client, widgets: await installWidgets(client, GROUP), close: () => opened.close() };
}

const places: Record<string, Place> = {};
const place = (name = "home"): Place => {
  const found = places[name];
  if (found === undefined) throw new Error(`no cluster ${name}`);
  return found;
};
const clusters: ClusterAccess = { home: "home", client: async (name) => place(name).client };
let name = "";
let serial = 0;
beforeAll(async () => {
  for (const at of ["home", "away"]) places[at] = await openPlace();
});
afterAll(async () => {
  for (const opened of Object.values(places)) await opened.close();
});
beforeEach(() => {
  serial += 1;
  name = `w-${serial}`;
});

const refOf = ({ apiVersion, kind, metadata }: ApiObject, cluster?: string): ObjectRef => {
  const { uid = "", resourceVersion = "", generation } = metadata;
  return {
    ...defined({ cluster }),
    apiVersion,
    kind,
    namespace: NAMESPACE,
    name: metadata.name,
    uid,
    ...defined({ generation }),
    resourceVersion,
  };
};
const create = async (at?: string, called = name): Promise<ObjectRef> => {
  const { client, widgets } = place(at);
  const metadata = { namespace: NAMESPACE, name: called };
  return refOf(await client.create(widgets, { metadata, spec: {} }), at);
};
const makeReady = async (at?: string, called = name) => {
  const { client, widgets } = place(at);
  const status = { observedGeneration: 1, conditions: [{ type: "Ready", status: "True" }] };
  const patch = { type: "merge", body: { status } } as const;
  const target = { namespace: NAMESPACE, name: called };
  await client.patch(widgets, target, patch, { subresource: "status", unguarded: true });
};
const waiting = (make: (ref: ObjectRef) => WaitCondition) =>
  defineWorkflow("waiting", { version: 1 }, async (w, ref: ObjectRef) => {
    await w.waitFor("it", make(ref));
    return "over";
  });
/** After this only a watch can wake the run. */
const neverRecheck = async (id: string) => {
  const { rechecks } = runNames(harness.prefix, "home", "waiting");
  expect(await harness.redis.zadd(rechecks, "XX", "CH", Date.now() + 3_600_000, id)).toBe(1);
};

test("the first list of a watch ends earlier waits, also for objects that are not in it", async () => {
  const ref = await create();
  const workflow = waiting((target) => gone(target));
  const runs = harness.openRuns({ cluster: "home" });
  runs.work({ workflows: [workflow], workerId: "test", clusters });
  const { id } = await runs.start(workflow, ref);
  await inStatus(runs, workflow, id, "waiting");
  await neverRecheck(id);
  const { client, widgets } = place();
  await client.delete(widgets, { namespace: NAMESPACE, name });
  runs.watch({ clusters, ...LEASE_AT });
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done" });
});

test("reads and watches objects of other clusters there", async () => {
  const here = await create();
  const there = await create("away");
  const workflow = waiting((target) => all(ready(target), ready({ ...there })));
  const runs = harness.openRuns({ cluster: "home" });
  runs.work({ workflows: [workflow], workerId: "test", clusters });
  runs.watch({ clusters, ...LEASE_AT });
  const { id } = await runs.start(workflow, here);
  const waitingRun = await inStatus(runs, workflow, id, "waiting");
  expect(waitingRun.waits?.[0]?.message).toContain(
    `Widget ${NAMESPACE}/${name} of cluster away: has`,
  );
  await neverRecheck(id);
  expect((await runs.waitedKinds()).map(({ cluster, waits }) => [cluster, waits])).toEqual(
    expect.arrayContaining([
      ["home", 1],
      ["away", 1],
    ]),
  );
  await makeReady();
  await makeReady("away");
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done" });
});

test("does not lose a change right after a check, because the run is registered before", async () => {
  const ref = await create();
  const workflow = waiting((target) => ready(target));
  const runs = harness.openRuns({ cluster: "home" });
  const { client } = place();
  let behindLook: (() => Promise<void>) | undefined;
  const slow: KubeClient = {
    ...client,
    scoped: () => slow,
    async get(type, target) {
      const object = await client.get(type, target);
      const change = behindLook;
      behindLook = undefined;
      await change?.();
      return object;
    },
  };
  const access: ClusterAccess = { home: "home", client: async () => slow };
  runs.work({ workflows: [workflow], workerId: "test", clusters: access });
  runs.watch({ clusters, ...LEASE_AT });
  const first = await runs.start(workflow, ref, { id: "first" });
  await inStatus(runs, workflow, first.id, "waiting");
  await neverRecheck("first");
  behindLook = async () => {
    await neverRecheck("second");
    await makeReady();
    // The watch has woken all runs that it found.
    await ended(runs, workflow, first.id);
  };
  const second = await runs.start(workflow, ref, { id: "second" });
  expect(await ended(runs, workflow, second.id)).toMatchObject({ status: "done" });
});

test("reports a kind that is not served once across retries", async () => {
  const workflow = waiting(() => gone({ apiVersion: `${GROUP}/v9`, kind: "Widget", name }));
  let tries = 0;
  const counted: ClusterAccess = {
    home: "home",
    async client(at) {
      tries += 1;
      return place(at).client;
    },
  };
  const runs = harness.openRuns({ cluster: "home" });
  runs.work({ workflows: [workflow], workerId: "test", clusters });
  runs.watch({ clusters: counted, ...LEASE_AT });
  await runs.start(workflow, {} as never, { id: "r" });
  const run = await inStatus(runs, workflow, "r", "waiting");
  expect(run.waits?.[0]?.message).toContain("the cluster does not serve Widget");
  // One for the election, and one for each try of the watch.
  await until("the watch is retried", async () => (tries > 3 ? true : undefined));
  const shown = harness.errors.filter(({ message }) => message.includes("does not serve"));
  expect(shown).toHaveLength(1);
});

class Died extends Error {}
const CALLS = ["watch", "note", "commit", "leave"] as const;

test("a crash at any call of the store changes no result and leaves nothing in the index", async () => {
  const play = async (point?: { readonly at: number; readonly when: "before" | "after" }) => {
    const called = `${name}-${(serial += 1)}`;
    const prefix = `${harness.prefix}:${called}`;
    const store = createRedisRunStore({
      call: (run) => run(harness.redis),
      prefix,
      cluster: "home",
      retentionMs: 60_000,
    });
    const calls: string[] = [];
    const wrapped = Object.fromEntries(
      CALLS.map((call) => [
        call,
        async (...args: unknown[]) => {
          const at = calls.push(call) - 1;
          if (point?.at === at && point.when === "before") throw new Died();
          const answer = await (store[call] as (...all: unknown[]) => Promise<unknown>)(...args);
          if (point?.at === at && point.when === "after") throw new Died();
          return answer;
        },
      ]),
    ) as Pick<RunStore, (typeof CALLS)[number]>;
    const ref = await create("home", called);
    const workflow = defineWorkflow("waiting", { version: 1 }, async (w, target: ObjectRef) => {
      const { uid } = await w.waitFor("it", ready(target), { timeout: "1m" });
      return uid;
    });
    const at = { workflow: "waiting", id: "r" };
    await store.start({ ...at, version: 1, input: ref });
    for (let lease = 1; lease < 20; lease += 1) {
      const claimed = await store.claim(at, { lease, owner: String(lease) });
      if (claimed.kind !== "held") break;
      const end = await runExecution({
        store: { ...store, ...wrapped },
        workflow,
        held: claimed,
        stopped: new AbortController().signal,
        startChild: noChildren,
        clock: () => performance.now(),
        random: () => 1,
        clusters,
      }).catch((error: unknown) => ({ kind: "error", error }) as const);
      if (end.kind === "error" && !(end.error instanceof Died)) throw end.error;
      // From now on a change finds the registered run.
      const { waitKinds, waitRoot } = runNames(prefix, "home", "waiting");
      if (end.kind === "waiting") {
        const [kind = ""] = await harness.redis.smembers(waitKinds);
        expect(await harness.redis.zrange(waitRoot + kind, "0", "-1")).toEqual([
          `${NAMESPACE}/${called}/waiting/r`,
        ]);
        await makeReady("home", called);
      }
    }
    const names = runNames(prefix, "home", "waiting");
    const left = await harness.redis.keys(`${names.waitRoot}*`);
    left.push(...(await harness.redis.keys(names.waitKinds)));
    left.push(...(await harness.redis.keys(names.rechecks)));
    return { calls, left, run: await store.get(at), uid: ref.uid };
  };
  const whole = await play();
  expect(whole.calls).toEqual(["watch", "note", "leave", "commit", "leave"]);
  const points = whole.calls.flatMap((call, at) =>
    (["before", "after"] as const).map((when) => ({ at, when, call })),
  );
  for (const point of points) {
    const { run, left, uid } = await play(point);
    expect(run, `${point.when} ${point.call}`).toMatchObject({ status: "done", result: uid });
    expect(left, `${point.when} ${point.call}`).toEqual([]);
  }
});

describe("P12: contents of a Secret are not reported", () => {
  const CANARY = "canary-7f3a";
  test.each([
    {
      how: "a predicate that throws its contents",
      predicate: (secret: ApiObject) => {
        throw new Error(JSON.stringify(secret));
      },
    },
    { how: "a predicate that returns false", predicate: () => false },
  ])("$how", async ({ predicate }) => {
    const { client } = place();
    const metadata = { namespace: NAMESPACE, name, annotations: { note: CANARY } };
    const secret = await client.create(Secret, { metadata, stringData: { key: CANARY } });
    const workflow = defineWorkflow("waiting", { version: 1 }, async (w, ref: ObjectRef) => {
      await w.waitFor("first", ready(ref));
      await w.waitFor("second", field(ref, predicate), { timeout: "1h" });
    });
    const t = testWorkflow(workflow, refOf(secret), { kube: client });
    const waitingRun = await t.settle();
    expect(waitingRun.waits?.[0]?.message).toBe(
      `Secret ${NAMESPACE}/${name}: does not meet the condition`,
    );
    const failed = await t.advance("1h");
    expect(failed.error?.message).toContain("not within 3600 s: Secret");
    const visible = JSON.stringify([waitingRun, failed, [...(await t.steps())]]);
    expect(visible).toContain(name);
    expect(visible).not.toContain(CANARY);
    expect(visible).not.toContain(Buffer.from(CANARY).toString("base64"));
  });
});

describe("testWorkflow", () => {
  test("waits for objects of the given kube, by the clock of the test", async () => {
    const ref = await create();
    const workflow = defineWorkflow("waiting", { version: 1 }, async (w, target: ObjectRef) => {
      await w.waitFor("ready", ready(target), { timeout: "10m" });
      await w.waitFor("gone", gone(target), { timeout: "10m" });
    });
    const { client, widgets } = place();
    const t = testWorkflow(workflow, ref, { kube: client, replayEveryStep: true });
    expect(await t.settle()).toMatchObject({ status: "waiting", waits: [{ step: "ready" }] });
    await makeReady();
    expect(await t.settle()).toMatchObject({ status: "waiting", waits: [{ step: "gone" }] });
    expect(await t.advance("10m")).toMatchObject({ status: "failed" });
    expect((await t.steps()).get("gone")?.error?.code).toBe("wait_timeout");
    await t.replay();
    await client.delete(widgets, { namespace: NAMESPACE, name });
  });

  test("a failure of 30 s on the test's clock ends a wait for ready", async () => {
    const ref = await create();
    const { client, widgets } = place();
    const status = { conditions: [{ type: "Stalled", status: "True", message: "no quota" }] };
    const patch = { type: "merge", body: { status } } as const;
    const how = { subresource: "status", unguarded: true };
    await client.patch(widgets, { namespace: NAMESPACE, name }, patch, how);
    const t = testWorkflow(
      waiting((target) => ready(target)),
      ref,
      { kube: client },
    );
    expect(await t.advance("29s")).toMatchObject({ status: "waiting" });
    expect(await t.advance("1s")).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("failed: no quota") as string },
    });
  });

  test("rejects a wait without a kube, with a suggested fix", async () => {
    const workflow = waiting(() => gone({ apiVersion: "v1", kind: "Pod", name: "a" }));
    const run = await testWorkflow(workflow, {} as never).settle();
    expect(run).toMatchObject({ status: "blocked", blockedError: { code: "invalid_workflow" } });
    expect(run.blockedReason).toContain("in testWorkflow as kube");
  });
});
