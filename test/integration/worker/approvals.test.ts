import { createClient, ProblemError, type Client } from "@konverge/client";
import {
  defineController,
  type ApprovalPlan,
  type ApprovalRule,
  type ReconcileContext,
} from "@konverge/engine";
import { ConfigMap, NetworkPolicy, Secret } from "@konverge/kube/kinds";
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

const isReplanned = async (client: Client, hash: string) =>
  (await client.approvals.get(blue)).hash !== hash;

async function makeBlue(): Promise<void> {
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
}

test("an approval covers each write of a subresource, not only the last", async () => {
  await makeBlue();
  let first = "approved";
  const path = `/apis/approvals.test.konverge.dev/v1/namespaces/${namespace}/widgets/blue/status`;
  const writePhase = (kube: ReconcileContext<Widget>["kube"], phase: string) =>
    kube.raw({
      method: "PATCH",
      path,
      contentType: "application/merge-patch+json",
      body: { status: { phase } },
    });
  const sent: string[] = [];
  await startWith(
    async ({ kube, plan }) => {
      await writePhase(kube, first);
      if (!plan) sent.push(first);
      await writePhase(kube, "last");
    },
    { when: ({ updates }) => updates > 0 },
  );
  const client = openClient();
  const { hash } = await awaited(client);
  first = "another";
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await until("the key is planned again", () => isReplanned(client, hash));
  expect(sent).toEqual([]);
  const { hash: next } = await client.approvals.get(blue);
  await client.approvals.approve(blue, { hash: next, ...action("ada") });
  await until("the plan is applied", async () => sent.length > 0);
  expect(sent).toEqual(["another"]);
});

test("an approval covers the values of Secrets", async () => {
  await makeBlue();
  let password = "approved";
  await startWith(
    async ({ kube }) => {
      const data = { password: Buffer.from(password).toString("base64") };
      await kube.apply(Secret, { metadata: { name: "approvals", namespace }, data });
    },
    { when: () => true },
  );
  const client = openClient();
  const { hash } = await awaited(client);
  password = "another";
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await until("the key is planned again", () => isReplanned(client, hash));
  const { items } = await workers.client.list(Secret, { namespace });
  expect(items.map(({ metadata }) => metadata.name)).not.toContain("approvals");
});

test("the rule of an approval receives all changes, externals and writes", async () => {
  await makeBlue();
  const seen: ApprovalPlan[] = [];
  await startWith(
    async ({ kube, external }) => {
      for (let number = 0; number < 105; number += 1) {
        await external(`call ${number}`, () => undefined);
      }
      for (let number = 0; number < 205; number += 1) {
        const data = { text: "x".repeat(2_000) };
        await kube.apply(ConfigMap, { metadata: { name: `many-${number}`, namespace }, data });
      }
    },
    {
      when: (plan) => {
        seen.push(plan);
        return plan.changes.some(({ name, patch }) => name === "many-204" && patch !== undefined);
      },
    },
  );
  const client = openClient();
  const { plan } = await awaited(client);
  expect(plan?.changes.length).toBeLessThan(205);
  expect(seen[0]).toMatchObject({ creates: 205 });
  expect(seen[0]?.changes).toHaveLength(205);
  expect(seen[0]?.externals).toHaveLength(105);
  expect(plan).toMatchObject({ moreNotes: expect.any(Number) });
});

test("an attempt may make more external calls than its plan lists", async () => {
  await makeBlue();
  const made: string[] = [];
  await startWith(
    async ({ external }) => {
      for (let number = 0; number < 105; number += 1) {
        await external(`call ${number}`, () => made.push(`call ${number}`));
      }
    },
    { when: () => true },
  );
  const client = openClient();
  const { hash } = await awaited(client);
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await until("nothing waits", async () => (await client.approvals.list()).items.length === 0);
  expect(made).toHaveLength(105);
  expect(new Set(made)).toHaveLength(105);
});

test("the hash of a plan does not depend on the kinds that a worker has looked up before", async () => {
  await makeBlue();
  const policy = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" };
  const metadata = { namespace, name: "blue" };
  await workers.client.create(NetworkPolicy, { metadata, spec: { podSelector: {} } });
  onTestFinished(async () => {
    await workers.client.delete(NetworkPolicy, metadata).catch(() => undefined);
  });
  const isThere = async () =>
    (await workers.client.list(NetworkPolicy, { namespace })).items.length > 0;
  await startWith(
    async ({ kube }) => {
      // Without its kind in the configuration, the worker asks the API server for its name in paths.
      if (await isThere()) await kube.delete({ ...policy, metadata });
    },
    { when: ({ deletes }) => deletes > 0 },
  );
  const client = openClient("approver");
  const { hash } = await awaited(client);
  const approved = await client.approvals.approve(blue, { hash, ...action("approver") });
  expect(approved.state).toBe("approved");
  await until("the policy is deleted", async () => !(await isThere()));
});

test("a deletion of a collection is not plannable with an approval", async () => {
  await makeBlue();
  await makeMap("doomed");
  await startWith(
    async ({ kube }) => {
      await kube.deleteCollection(ConfigMap, { namespace, all: true });
    },
    { when: ({ deletes }) => deletes > 0 },
  );
  const client = openClient();
  await until("the attempt is rejected", async () => {
    const found = await client.objects.get(blue).catch(() => undefined);
    return found?.attempts[0]?.outcome === "rejected";
  });
  const { attempts } = await client.objects.get(blue);
  expect(attempts[0]?.error).toMatchObject({
    code: "not_plannable",
    message: expect.stringContaining("list the objects and delete each one"),
  });
  expect(await names()).toContain("doomed");
});

test("an object that changes between the plan and its write is not overwritten", async () => {
  await makeBlue();
  await makeMap("target");
  const target = { namespace, name: "target" };
  let interfere = true;
  await startWith(
    async ({ kube, plan }) => {
      if (!plan && interfere) {
        interfere = false;
        await workers.client.mutate(ConfigMap, target, (draft) => {
          draft.data = { by: "another client" };
        });
      }
      await kube.apply(ConfigMap, { metadata: target, data: { by: "the plan" } }, { force: true });
    },
    { when: () => true },
  );
  const client = openClient();
  const { hash } = await awaited(client);
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await until("the key is planned again", () => isReplanned(client, hash));
  const { data } = await workers.client.get(ConfigMap, target);
  expect(data).toEqual({ by: "another client" });
});

test("an approved attempt reads an object that another client has changed after a controller", async () => {
  await makeBlue();
  await makeMap("target");
  const target = { namespace, name: "target" };
  await startWith(
    async ({ object, kube }) => {
      await kube.mutate({ type: ConfigMap, ...target }, (draft) => {
        draft.data = { ...draft.data, size: String(object.spec?.["size"] ?? 0) };
      });
    },
    { when: () => true },
  );
  const client = openClient();
  const sizeOf = async () => (await workers.client.get(ConfigMap, target)).data?.["size"];
  const first = await awaited(client);
  await client.approvals.approve(blue, { hash: first.hash, ...action("ada") });
  await until("the plan is applied", async () => (await sizeOf()) === "0");
  await workers.client.mutate(ConfigMap, target, (draft) => {
    draft.data = { ...draft.data, by: "another client" };
  });
  await workers.client.mutate(workers.Widgets, { namespace, name: "blue" }, (draft) => {
    draft.spec = { size: 1 };
  });
  const next = await awaited(client);
  await client.approvals.approve(blue, { hash: next.hash, ...action("ada") });
  await until("the plan is applied", async () => (await sizeOf()) === "1");
  const { attempts } = await client.objects.get(blue);
  expect(attempts.map(({ error }) => error?.code)).not.toContain("approval_stale");
});

test("an object that another client creates after its planned deletion is not overwritten", async () => {
  await makeBlue();
  await makeMap("target");
  const target = { namespace, name: "target" };
  const changed = { by: "another client" };
  let interfere = true;
  await startWith(
    async ({ kube, plan }) => {
      await kube.delete({ type: ConfigMap, ...target });
      if (!plan && interfere) {
        interfere = false;
        await workers.client.create(ConfigMap, { metadata: target, data: changed });
      }
      await kube.apply(ConfigMap, { metadata: target, data: { by: "the plan" } }, { force: true });
    },
    { when: () => true },
  );
  const client = openClient();
  const { hash } = await awaited(client);
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await until("the key is planned again", () => isReplanned(client, hash));
  expect((await workers.client.get(ConfigMap, target)).data).toEqual(changed);
});

test("an object that is created between the plan and its creation is not overwritten", async () => {
  await makeBlue();
  const target = { namespace, name: "late" };
  let interfere = true;
  await startWith(
    async ({ kube, plan }) => {
      if (!plan && interfere) {
        interfere = false;
        await makeMap("late");
      }
      await kube.apply(ConfigMap, { metadata: target, data: { by: "the plan" } }, { force: true });
    },
    { when: () => true },
  );
  const client = openClient();
  const { hash } = await awaited(client);
  await client.approvals.approve(blue, { hash, ...action("ada") });
  await until("the key is planned again", () => isReplanned(client, hash));
  expect((await workers.client.get(ConfigMap, target)).data).toBeUndefined();
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
  await until("an attempt follows its plan", async () => {
    const found = await client.objects.get(blue).catch((error: unknown) => {
      // The leader may not have requested the object yet.
      if (codeOf(error) === "not_found") return undefined;
      throw error;
    });
    return found?.attempts[0]?.outcome === "done";
  });
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
