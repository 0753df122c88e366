import { createClient, ProblemError, type Client } from "@konverge/client";
import { defineController, type ApprovalRule, type ReconcileContext } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig } from "@konverge/worker";
import { expect, onTestFinished, test } from "vitest";
import type { Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { openApi } from "./open-api.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("approvals.test.konverge.dev");
const namespace = "default";
const blue = { cluster: "default", controller: "widgets", namespace, name: "blue" };

function openClient(user?: string): Client {
  const { fetch } = openApi(workers.queues, user);
  return createClient({ server: "http://localhost:7070", fetch });
}

type Handle = (context: ReconcileContext<Widget>) => Promise<unknown>;

/** Starts a worker whose controller needs approvals. */
async function startWith(reconcile: Handle, approval: ApprovalRule): Promise<void> {
  const controller = defineController({
    name: "widgets",
    for: workers.Widgets,
    owns: [ConfigMap],
    reconcile,
    approval,
  } as Parameters<typeof defineController<Widget>>[0]);
  await workers.start([controller]);
}

async function makeMap(name: string): Promise<void> {
  await workers.client.create(ConfigMap, { metadata: { namespace, name } });
  onTestFinished(async () => {
    await workers.client.delete(ConfigMap, { namespace, name }).catch(() => undefined);
  });
}

const names = async () =>
  (await workers.client.list(ConfigMap, { namespace })).items.map(({ metadata }) => metadata.name);

async function awaited(client: Client, state = "awaiting") {
  await until(`the plan is ${state}`, async () => {
    const { items } = await client.approvals.list();
    return items.some((item) => item.name === "blue" && item.state === state);
  });
  return await client.approvals.get(blue);
}

const codeOf = (error: unknown) => (error instanceof ProblemError ? error.code : String(error));
const action = (by: string) => ({ by, reason: "checked" });

/** Deletes the map that the spec names. */
const deletesMap: Handle = async ({ object, kube }) => {
  const { doomed } = object.spec as { doomed?: string };
  const map = (await kube.list(ConfigMap)).find(({ metadata }) => metadata.name === doomed);
  if (map !== undefined) await kube.delete(map);
  await kube.mutateStatus(object, (draft) => {
    draft["status"] = { phase: "Clean", at: new Date().toISOString() };
  });
};

test("a deletion waits until two users have approved exactly this plan", async () => {
  await makeMap("doomed");
  await workers.client.create(workers.Widgets, {
    metadata: { namespace, name: "blue" },
    spec: { doomed: "doomed" },
  });
  await startWith(deletesMap, { when: ({ deletes }) => deletes > 0, by: 2 });
  const client = openClient();
  const waiting = await awaited(client);
  expect(waiting).toMatchObject({
    summary: { deleted: 1, changed: 1 },
    approvals: [],
    by: 2,
    role: "operator",
    plan: {
      changes: [
        { action: "deleted", name: "doomed" },
        { action: "changed", name: "blue" },
      ],
    },
  });
  expect((await client.objects.get(blue)).attempts[0]).toMatchObject({
    outcome: "awaitApproval",
    writes: [],
  });
  const { hash } = waiting;
  const stale = client.approvals.approve(blue, { hash: "0".repeat(64), ...action("ada") });
  expect(codeOf(await stale.catch((error: unknown) => error))).toBe("approval_stale");
  expect(
    await client.approvals.approve(blue, { hash: hash.slice(0, 12), ...action("ada") }),
  ).toMatchObject({ state: "awaiting" });
  // The same user counts once.
  expect(await client.approvals.approve(blue, { hash, ...action("ada") })).toMatchObject({
    state: "awaiting",
  });
  expect(await names()).toContain("doomed");
  expect(await client.approvals.approve(blue, { hash, ...action("bob") })).toMatchObject({
    state: "approved",
  });
  await until("the map is deleted", async () => !(await names()).includes("doomed"));
  await until("nothing waits", async () => (await client.approvals.list()).items.length === 0);
  await until("the status is written", async () => {
    const { status } = (await workers.client.get(workers.Widgets, { namespace, name: "blue" })) as {
      status?: { phase?: string };
    };
    return status?.phase === "Clean";
  });
  const { items: audit } = await client.audit.list().page();
  const decisions = audit.filter(({ action: of }) => of === "approval.approve");
  // Equal entries of one second are combined, so one of them can follow those of others.
  expect(decisions.every(({ filter }) => filter === hash)).toBe(true);
  expect(new Set(decisions.map(({ by }) => by))).toEqual(new Set(["ada", "bob"]));
});

test("a new event about a changed object drops the approvals of its plan", async () => {
  await makeMap("doomed");
  const target = { namespace, name: "blue" };
  const spec = { doomed: "doomed" };
  await workers.client.create(workers.Widgets, { metadata: target, spec });
  await startWith(deletesMap, { when: ({ deletes }) => deletes > 0, by: 2 });
  const client = openClient();
  const { hash } = await awaited(client);
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await workers.client.mutate(workers.Widgets, target, (draft) => {
    draft.spec = { ...spec, size: 2 };
  });
  const isNew = async () => (await client.approvals.get(blue)).hash !== hash;
  await until("the key is planned again", isNew);
  const renewed = await client.approvals.get(blue);
  expect(renewed).toMatchObject({ state: "awaiting", approvals: [], replaced: 1 });
  const late = client.approvals.approve(blue, { hash, ...action("bob") });
  expect(codeOf(await late.catch((error: unknown) => error))).toBe("approval_stale");
  expect(await names()).toContain("doomed");
});

test("an approved plan whose object has changed without an event is planned again", async () => {
  await makeMap("doomed");
  const target = { namespace, name: "blue" };
  const spec = { doomed: "doomed" };
  await workers.client.create(workers.Widgets, { metadata: target, spec });
  await startWith(deletesMap, { when: ({ deletes }) => deletes > 0 });
  const client = openClient();
  const { hash } = await awaited(client);
  // By default, labels of the object request no attempt.
  await workers.client.mutate(workers.Widgets, target, (draft) => {
    draft.metadata.labels = { changed: "yes" };
  });
  await client.approvals.approve(blue, { hash, ...action("ada") });
  const isNew = async () => (await client.approvals.get(blue)).hash !== hash;
  await until("the key is planned again", isNew);
  const renewed = await client.approvals.get(blue);
  expect(renewed).toMatchObject({ state: "awaiting", approvals: [], replaced: 1 });
  expect(await names()).toContain("doomed");
});

test("users who requested the attempt cannot approve it, and a rejected plan is not applied", async () => {
  await makeMap("doomed");
  await workers.client.create(workers.Widgets, {
    metadata: { namespace, name: "blue" },
    spec: { doomed: "doomed" },
  });
  await startWith(deletesMap, { when: ({ deletes }) => deletes > 0 });
  const client = openClient();
  const { hash } = await awaited(client);
  // The name of the caller of this API.
  await client.objects.reconcile(blue);
  await until("the requester is noted", async () =>
    (await client.approvals.get(blue)).requesters.includes("test"),
  );
  expect((await client.approvals.get(blue)).hash).toBe(hash);
  const own = client.approvals.approve(blue, { hash, ...action("test") });
  expect(codeOf(await own.catch((error: unknown) => error))).toBe("forbidden");
  await client.approvals.reject(blue, { hash, ...action("bob") });
  const late = client.approvals.approve(blue, { hash, ...action("eve") });
  expect(codeOf(await late.catch((error: unknown) => error))).toBe("approval_stale");
  // A user who requests the object asks for another decision.
  await client.objects.reconcile(blue);
  await awaited(client);
  await client.approvals.approve(blue, { hash, ...action("eve") });
  await until("the map is deleted", async () => !(await names()).includes("doomed"));
});

/** Deletes the map, unless the attempt is to fail. */
function failing(state: { isFailing: boolean }): Handle {
  return async (context) => {
    if (state.isFailing) throw new Error("failed on purpose");
    return await deletesMap(context);
  };
}

async function makeDoomed(): Promise<void> {
  await makeMap("doomed");
  await workers.client.create(workers.Widgets, {
    metadata: { namespace, name: "blue" },
    spec: { doomed: "doomed" },
  });
}

async function approvalError(client: Client, by: string): Promise<string> {
  const { hash } = await client.approvals.get(blue);
  const given = client.approvals.approve(blue, { hash, ...action(by) });
  return codeOf(await given.catch((error: unknown) => error));
}

test("a user whose request failed at first cannot approve the plan of the retry", async () => {
  await makeDoomed();
  const state = { isFailing: true };
  await startWith(failing(state), { when: ({ deletes }) => deletes > 0 });
  const client = openClient();
  await until("the first attempt has failed", async () => {
    const found = await client.objects.get(blue).catch(() => undefined);
    return found?.attempts[0]?.outcome === "retry";
  });
  await client.objects.reconcile(blue);
  await until("the requested attempt has failed", async () =>
    (await client.objects.get(blue)).attempts.some(
      ({ outcome, triggers }) => outcome === "retry" && triggers.some(({ by }) => by === "test"),
    ),
  );
  state.isFailing = false;
  await awaited(client);
  expect(await approvalError(client, "test")).toBe("forbidden");
  expect(await names()).toContain("doomed");
});

test("a user who requested the plan before the current one cannot approve it", async () => {
  await makeDoomed();
  await startWith(deletesMap, { when: ({ deletes }) => deletes > 0 });
  const client = openClient();
  const { hash } = await awaited(client);
  await client.objects.reconcile(blue);
  await until("the requester is noted", async () =>
    (await client.approvals.get(blue)).requesters.includes("test"),
  );
  await workers.client.mutate(workers.Widgets, { namespace, name: "blue" }, (draft) => {
    draft.spec = { ...draft.spec, size: 2 };
  });
  await until("the key is planned again", async () => {
    return (await client.approvals.get(blue)).hash !== hash;
  });
  expect(await approvalError(client, "test")).toBe("forbidden");
  // Once a plan is applied, its requesters may approve the next one.
  const { hash: next } = await client.approvals.get(blue);
  await client.approvals.approve(blue, { hash: next, ...action("eve") });
  await until("the map is deleted", async () => !(await names()).includes("doomed"));
  await until("nothing waits", async () => (await client.approvals.list()).items.length === 0);
  await makeMap("second");
  await workers.client.mutate(workers.Widgets, { namespace, name: "blue" }, (draft) => {
    draft.spec = { doomed: "second" };
  });
  await awaited(client);
  expect(await approvalError(client, "test")).not.toBe("forbidden");
});

test("no user of many joined requests can approve the plan", async () => {
  await makeDoomed();
  const gate = Promise.withResolvers<void>();
  let isFirst = true;
  await startWith(
    async (context) => {
      if (isFirst) {
        isFirst = false;
        await gate.promise;
        throw new Error("failed on purpose");
      }
      return await deletesMap(context);
    },
    { when: ({ deletes }) => deletes > 0 },
  );
  await until("the first attempt runs", async () => !isFirst);
  const users = Array.from({ length: 23 }, (_, number) => `user-${number}`);
  for (const user of users) await openClient(user).objects.reconcile(blue);
  gate.resolve();
  const client = openClient();
  await awaited(client);
  expect(await approvalError(client, "user-0")).toBe("forbidden");
  expect(await approvalError(client, "user-22")).toBe("forbidden");
});

test("a plan without deletions is applied at once, and a write that was not planned is rejected", async () => {
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
  let extra = true;
  await startWith(
    async ({ kube, plan }) => {
      await kube.apply(ConfigMap, { metadata: { name: "planned", namespace }, data: { a: "1" } });
      if (!plan && extra) {
        extra = false;
        await kube
          .create(ConfigMap, { metadata: { name: "unplanned", namespace } })
          .catch(() => undefined);
        await kube.create(ConfigMap, { metadata: { name: "later", namespace } });
      }
    },
    { when: ({ deletes }) => deletes > 0 },
  );
  onTestFinished(() => workers.client.delete(ConfigMap, { namespace, name: "planned" }));
  const client = openClient();
  await until(
    "an attempt follows its plan",
    async () => (await client.objects.get(blue)).attempts[0]?.outcome === "done",
  );
  const { attempts } = await client.objects.get(blue);
  expect(attempts.map(({ outcome, error }) => [outcome, error?.code])).toEqual([
    ["done", undefined],
    ["retry", "approval_stale"],
  ]);
  expect(await names()).toContain("planned");
  expect(await names()).not.toContain("unplanned");
  expect(await names()).not.toContain("later");
});

test("an approval survives the worker, and is applied although no request was sent", async () => {
  await makeMap("doomed");
  await workers.client.create(workers.Widgets, {
    metadata: { namespace, name: "blue" },
    spec: { doomed: "doomed" },
  });
  const controller = defineController({
    name: "widgets",
    for: workers.Widgets,
    reconcile: deletesMap,
    approval: { when: ({ deletes }) => deletes > 0 },
  } as Parameters<typeof defineController<Widget>>[0]);
  const settings = { prefix: workers.queues.prefix, leaseDuration: "3s" } as const;
  const config = defineConfig({ controllers: [controller], settings });
  const first = await workers.start([], { config });
  const client = openClient();
  const { hash, key } = await awaited(client);
  await first.kill();
  // As a process that dies between the approval and the request.
  const hashKey = `${workers.queues.prefix}:{default}/approvals`;
  const stored = JSON.parse((await workers.queues.redis.hget(hashKey, key)) ?? "") as object;
  const at = new Date().toISOString();
  await workers.queues.redis.hset(
    hashKey,
    key,
    JSON.stringify({ ...stored, state: "approved", approvals: [{ by: "ada", at }] }),
  );
  await workers.queues.redis.sadd(`${workers.queues.prefix}:{default}/approvals-due`, key);
  expect((await client.approvals.get(blue)).hash).toBe(hash);
  await workers.start([], { config });
  await until("the map is deleted", async () => !(await names()).includes("doomed"));
  await until("nothing waits", async () => (await client.approvals.list()).items.length === 0);
});
