import { KonvergeError, TerminalError, type ApiObject, type BackoffPolicy } from "@konverge/core";
import { isServed } from "@konverge/kube";
import { defineWorkflow, type ObjectRef, type StepContext } from "@konverge/workflow";
import { testWorkflow } from "konverge/testing";
import { describe, expect, test } from "vitest";
import {
  ConfigMap,
  Job,
  Pod,
  PodDisruptionBudget,
  Secret as SecretType,
} from "@konverge/kube/kinds";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useVerbs, type ConfigMapObject } from "./verbs-harness.ts";

const queues = useQueues();

/** Runs a workflow of one step once, and returns its end. */
function oneStep(body: (k: StepContext) => Promise<unknown>, attempts = 2) {
  return defineWorkflow("one", { version: 1 }, async (w) => {
    await w.step("act", async (k) => void (await body(k)), { retry: { attempts } });
  });
}

describe.each(testServers())("rules of the verbs on the $name", (server) => {
  const verbs = useVerbs(server, queues);
  const { increment, intent, make, marks, read, target } = verbs;
  const play = async (body: (k: StepContext) => Promise<unknown>, attempts = 2) => {
    const workflow = oneStep(body, attempts);
    await verbs.runs.start(workflow, "r");
    await verbs.runs.finish(workflow, "r");
    return (await verbs.runs.store.steps({ workflow: "one", id: "r" })).get("act");
  };

  test.each([
    {
      what: "an unknown field",
      act: (k: StepContext) => k.apply({ ...intent({}), spec: { replicas: 1 } }),
      says: { message: expect.stringContaining("spec") },
      // The server returns 500, which may have any cause.
      attempts: 2,
    },
    {
      what: "an invalid value",
      act: (k: StepContext) =>
        k.mutate<ConfigMapObject>(target(), (draft) => void (draft.data = { "no key": "x" })),
      says: { code: "kube_api", message: expect.stringContaining("no key") },
      attempts: 1,
    },
    {
      what: "a kind that is not served",
      act: (k: StepContext) => k.delete({ ...target(), kind: "Nonsense" }),
      says: { code: "not_found", message: expect.stringContaining("Nonsense") },
      attempts: 1,
    },
    {
      what: "a missing object",
      act: (k: StepContext) => k.mutate({ ...target(), name: "absent" }, () => undefined),
      says: { code: "kube_api", message: expect.stringContaining("absent") },
      attempts: 2,
    },
    {
      what: "a list by an owner without a uid",
      act: (k: StepContext) =>
        k.list(ConfigMap, { ownedBy: { ...target(), metadata: { name: "absent" } } }),
      says: { code: "invalid_request", message: expect.stringContaining("has no metadata.uid") },
      attempts: 1,
    },
    {
      what: "an object of another uid",
      act: (k: StepContext) => k.apply(intent({}), { uid: "another" }),
      says: { code: "object_replaced", message: expect.stringContaining("default/verbs-") },
      attempts: 1,
    },
    {
      what: "a mutation of another uid",
      act: (k: StepContext) => k.mutate({ ...target(), uid: "another" }, () => undefined),
      says: { code: "object_replaced" },
      attempts: 1,
    },
    {
      what: "an object created by others",
      act: (k: StepContext) => k.create(intent({ a: "1" })),
      says: { code: "object_exists", message: expect.stringContaining("or apply") },
      attempts: 1,
    },
    {
      what: "a manifest with a version",
      act: (k: StepContext) =>
        k.apply({ ...intent({}), metadata: { ...intent({}).metadata, resourceVersion: "7" } }),
      says: { code: "invalid_request", message: expect.stringContaining("resourceVersion") },
      attempts: 1,
    },
    {
      what: "a patch of an object that was not read",
      act: (k: StepContext) => k.patch(target(), { data: { n: "1" } }, { type: "merge" }),
      says: { code: "invalid_request", message: expect.stringContaining("resourceVersion") },
      attempts: 1,
    },
    {
      what: "a target without a name",
      act: (k: StepContext) => k.get({ ...target(), name: "" }),
      says: { code: "invalid_request", message: expect.stringContaining("name") },
      attempts: 1,
    },
    {
      what: "a kind without scale",
      act: (k: StepContext) => k.scale(target(), 2),
      says: { code: "invalid_request", message: expect.stringContaining("scale") },
      attempts: 1,
    },
    {
      what: "a Job that may be deleted before its result is read",
      act: (k: StepContext) =>
        k.runJob({
          ...target(),
          apiVersion: "batch/v1",
          kind: "Job",
          metadata: { name: "x" },
          spec: { ttlSecondsAfterFinished: 0 },
        }),
      says: { code: "invalid_request", message: expect.stringContaining("ttlSeconds") },
      attempts: 1,
    },
    {
      what: "a mutate inside a mutate",
      act: (k: StepContext) =>
        k.mutate(target(), async () => void (await k.mutate(target(), () => undefined))),
      says: { code: "nested_mutate", message: expect.stringContaining("in one function") },
      attempts: 1,
    },
    {
      what: "an unknown cluster",
      act: (k: StepContext) => k.on("nowhere").get(target()),
      says: { code: "invalid_request", message: expect.stringContaining("nowhere") },
      attempts: 1,
    },
    {
      what: "a ref to another cluster than the verb's",
      act: (k: StepContext) => k.on("west").get({ ...target(), cluster: "east" }),
      says: { code: "invalid_request", message: expect.stringContaining('on("east")') },
      attempts: 1,
    },
    {
      what: "a verb that is not awaited",
      act: async (k: StepContext) => void k.get(target()),
      says: { code: "invalid_workflow", message: expect.stringContaining("await them") },
      attempts: 1,
    },
  ])("$what fails the step with a suggested fix", async ({ act, says, attempts }) => {
    await make({ n: "0" });
    expect(await play(act)).toMatchObject({ error: says, attempts });
    expect((await read())?.data).toEqual({ n: "0" });
  });

  test("names fields of another manager with their owner, and can take them over", async () => {
    const other = verbs.client.scoped({ fieldManager: "team-b" });
    await other.apply(ConfigMap, intent({ mine: "1" }));
    expect(await play((k) => k.apply(intent({ mine: "2" })))).toMatchObject({
      error: {
        code: "field_conflict",
        message: expect.stringContaining('"team-b" owns data.mine'),
      },
      attempts: 1,
    });
    expect((await read())?.data).toEqual({ mine: "1" });
    const take = defineWorkflow("take", { version: 1 }, async (w) => {
      await w.step("act", (k) => k.apply(intent({ mine: "2" }), { force: true }));
    });
    await verbs.runs.start(take, "r");
    await verbs.runs.finish(take, "r");
    expect((await read())?.data).toEqual({ mine: "2" });
    expect((await read())?.metadata.managedFields).toContainEqual(
      expect.objectContaining({ manager: "konverge/take", operation: "Apply" }),
    );
  });

  test("deferred calls, 429, conflicts and missing responses do not count as attempts", async () => {
    await make({ n: "0" });
    const write = { method: "PATCH", path: verbs.path() };
    verbs.relay.loseRequest(write);
    verbs.relay.refuse(write, 429, "TooManyRequests");
    verbs.relay.refuse(write, 503, "ServiceUnavailable");
    // As many as the verb retries itself.
    for (let loss = 0; loss < 8; loss += 1) verbs.relay.refuse(write, 409, "Conflict");
    let tries = 0;
    const step = await play(async (k) => {
      tries += 1;
      if (tries === 1) throw new KonvergeError("deferred", "the breaker is open");
      await increment(k);
    }, 1);
    expect(step).toMatchObject({ attempts: 1 });
    expect(step?.error).toBeUndefined();
    // The client itself repeats the lost request.
    expect(tries).toBe(5);
    expect((await read())?.data).toEqual({ n: "1" });
  });

  test("a run with a step to retry reports why it waits", async () => {
    await make({ n: "0" });
    const write = { method: "PATCH", path: verbs.path() };
    verbs.relay.refuse(write, 503, "ServiceUnavailable");
    const policy = { baseMs: 60_000, factor: 1, capMs: 60_000, steps: 9, jitter: { kind: "none" } };
    const workflow = defineWorkflow("later", { version: 1 }, async (w) => {
      await w.step("act", increment, { retry: { policy: policy as BackoffPolicy } });
    });
    await verbs.runs.start(workflow, "r");
    for (const _ of ["first", "woken"]) {
      const end = await verbs.runs.execute(workflow, await verbs.runs.claim(workflow, "r"));
      expect(end.kind).toBe("waiting");
      const run = await verbs.runs.store.get({ workflow: "later", id: "r" });
      expect(run?.waits).toMatchObject([
        { step: "act", kind: "step", message: expect.stringContaining("ServiceUnavailable") },
      ]);
    }
  });

  test("get returns the frozen object, and find undefined if it does not exist", async () => {
    await make({ n: "0" });
    const seen: unknown[] = [];
    await play(async (k) => {
      const found = await k.get<ConfigMapObject>(target());
      seen.push(found, await k.find(ConfigMap, { ...target(), name: "absent" }));
      Object.assign(found.data ?? {}, { n: "9" });
    });
    expect(seen).toEqual([await read(), undefined, expect.anything(), undefined]);
  });

  test("patch and replace write onto the version that was read, with a type or a manifest", async () => {
    await make({ n: "0" });
    const step = await play(async (k) => {
      const known = await k.get(ConfigMap, target());
      const patched = await k.patch(known, { data: { n: "1" } }, { type: "merge" });
      await expect(k.patch(known, { data: { n: "9" } }, { type: "merge" })).rejects.toMatchObject({
        status: 409,
      });
      const again = await k.get<ConfigMapObject>(patched);
      await k.replace({ ...again, data: { ...again.data, m: "2" } });
      await expect(k.replace(again)).rejects.toMatchObject({ status: 409 });
      const { name, namespace } = target();
      await k.apply(ConfigMap, { metadata: { name, namespace }, data: { own: "3" } });
      const set = (draft: { status: object }) => void Object.assign(draft.status, { a: 1 });
      await expect(k.mutateStatus(patched, set)).rejects.toMatchObject({
        code: "invalid_request",
      });
    }, 1);
    expect(step?.error).toBeUndefined();
    expect((await read())?.data).toEqual({ n: "1", m: "2", own: "3" });
  });

  test("list returns the frozen objects of a kind, selector and cluster", async () => {
    const { metadata } = await make({ n: "0" });
    const listed: unknown[] = [];
    await play(async (k) => {
      const kind = { apiVersion: "v1", kind: "ConfigMap" };
      const named = { fieldSelector: `metadata.name=${metadata.name}` };
      const found = await k.list<ConfigMapObject>(kind, { ...named, namespace: "default" });
      listed.push(found, await k.list(kind, { ...named, namespace: "kube-system" }));
      const before = verbs.relay.passed.length;
      listed.push(
        (await k.on("west").list(kind, named)).length,
        verbs.relay.passed.length - before,
      );
      Object.assign(found[0]?.data ?? {}, { n: "9" });
    });
    expect(listed.slice(0, 4)).toEqual([[await read()], [], 1, 0]);
    expect(listed, "the second try, since the first one wrote into what is frozen").toHaveLength(8);
  });

  test("an unchanged draft is not written, and a mutation keeps overwritten marks", async () => {
    const { metadata } = await make({ n: "0" });
    await play((k) =>
      k.mutate<ConfigMapObject>(target(), (draft) => void (draft.data = { n: "0" })),
    );
    expect((await read())?.metadata.resourceVersion).toBe(metadata.resourceVersion);
    const careless = defineWorkflow("careless", { version: 1 }, async (w) => {
      await w.step("act", async (k) => {
        await increment(k);
        await k.mutate(target(), (draft) => void (draft.metadata.annotations = { mine: "1" }));
      });
    });
    await verbs.runs.start(careless, "r");
    await verbs.runs.finish(careless, "r");
    expect(await marks()).toHaveLength(2);
    expect((await read())?.metadata.annotations).toMatchObject({ mine: "1" });
  });

  test("on(cluster) uses another cluster, and its refs name it", async () => {
    const refs: ObjectRef[] = [];
    const before = verbs.relay.passed.length;
    await play(async (k) => {
      refs.push(await k.on("west").apply(intent({ a: "1" })));
      refs.push(
        await k.mutate<ConfigMapObject>(refs[0] ?? target(), (draft) => void (draft.data = {})),
      );
    });
    expect(refs.map(({ cluster }) => cluster)).toEqual(["west", "west"]);
    // The run's cluster is behind the relay.
    expect(verbs.relay.passed.length).toBe(before);
    expect(await read()).toMatchObject({ metadata: { uid: refs[0]?.uid } });
  });

  test("P12: stores nothing of a Secret in Redis, neither as a result nor as an error", async () => {
    const canary = `canary-${crypto.randomUUID()}`;
    const encoded = Buffer.from(canary).toString("base64");
    const { name } = verbs;
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: "default", labels: { tested: "yes" } },
      data: { password: encoded },
    };
    interface Secret extends ApiObject {
      data?: Record<string, string>;
      immutable?: boolean;
    }
    const tours: Record<string, (k: StepContext) => Promise<unknown>> = {
      apply: (k) => k.apply(secret),
      exists: (k) => k.create(secret),
      mutate: (k) => k.mutate<Secret>(secret, (draft) => void (draft.immutable = false)),
      // Its 422 contains the whole object.
      invalid: (k) =>
        k.mutate<Secret>(secret, (draft) => {
          draft.data = { ...draft.data, other: `${canary}!` };
          draft.metadata.labels = { tested: `${canary} is no label` };
        }),
      // A text of the step's own code about a Secret.
      thrown: async (k) => {
        const { data } = await k.get<Secret>(secret);
        const password = Buffer.from(data?.["password"] ?? "", "base64").toString();
        throw new Error(`login with ${password} failed`);
      },
      change: (k) =>
        k.mutate<Secret>(secret, (draft) => {
          throw new Error(`cannot use ${draft.data?.["password"]}`);
        }),
      whole: (k) => k.get(secret),
      part: async (k) => (await k.get<Secret>(secret)).data,
      list: async (k) => [{ deep: [(await k.get<Secret>(secret)).data] }],
      listed: async (k) => [await k.list({ apiVersion: "v1", kind: "Secret" })],
      text: async (k) => (await k.get<Secret>(secret)).data?.["password"],
      decoded: async (k) => {
        const { data } = await k.get<Secret>(secret);
        const password = Buffer.from(data?.["password"] ?? "", "base64").toString();
        return { url: `postgres://app:${password}@db`, port: 5_432 };
      },
      conflict: (k) => k.apply({ ...secret, data: { password: encoded.toLowerCase() } }),
      delete: (k) => k.delete(secret),
    };
    const workflow = defineWorkflow("secrets", { version: 1 }, async (w) => {
      for (const [step, act] of Object.entries(tours)) {
        const body = act as (k: StepContext) => Promise<null>;
        await w.step(step, body, { retry: { attempts: 1 } }).catch(() => undefined);
      }
    });
    await verbs.runs.start(workflow, "r");
    await verbs.runs.finish(workflow, "r");
    const steps = await verbs.runs.store.steps({ workflow: "secrets", id: "r" });
    const failed = [...steps].filter(([, { error }]) => error !== undefined).map(([step]) => step);
    expect(failed.toSorted().join()).toBe(
      "change,decoded,exists,invalid,list,listed,part,text,thrown,whole",
    );
    // The function may quote what a body has read.
    const leaking = defineWorkflow("leaking", { version: 1 }, async (w) => {
      let password = "";
      await w.step("read", async (k) => {
        const { data } = await k.get<Secret>({ ...secret, metadata: kept.metadata });
        password = Buffer.from(data?.["password"] ?? "", "base64").toString();
      });
      w.log.info({ password }, `login with ${password}`);
      throw new TypeError(`cannot use ${password}`, { cause: new Error(`since ${password}`) });
    });
    const kept = { ...secret, metadata: { ...secret.metadata, name: `${name}-kept` } };
    await verbs.client.create(SecretType, kept);
    await verbs.runs.start(leaking, "r");
    await verbs.runs.execute(leaking, await verbs.runs.claim(leaking, "r"));
    const blocked = await verbs.runs.store.get({ workflow: "leaking", id: "r" });
    await verbs.client.delete(SecretType, { namespace: "default", name: kept.metadata.name });
    expect(blocked?.blockedError?.message).toBe("cannot use (redacted)");
    expect(blocked?.blockedReason).toContain("cannot use (redacted)");
    expect(blocked?.blockedError?.frames?.join("\n")).toContain("since (redacted)");
    const dump: string[] = [];
    for (const key of await queues.redis.keys(`${queues.prefix}*`)) {
      dump.push(key, String(await queues.redis.dump(key)), await textOf(key));
    }
    const all = dump.join("\n");
    expect(all).toContain("secrets");
    expect(all).not.toContain(canary);
    expect(all).not.toContain(encoded);
  });

  test("an eviction that a disruption budget forbids counts no attempt, and succeeds once allowed", async () => {
    const { name } = verbs;
    const labels = { label: name };
    await verbs.client.create(Pod, {
      metadata: { namespace: "default", name, labels },
      spec: {
        containers: [{ name: "main", image: "main" }],
        automountServiceAccountToken: false,
      },
    });
    const at = { namespace: "default", name };
    await verbs.client.mutate<ApiObject & { status?: object }>(
      Pod,
      at,
      (pod) => {
        const conditions = [{ type: "Ready", status: "True" }];
        pod.status = { ...pod.status, phase: "Running", conditions };
      },
      { subresource: "status" },
    );
    await verbs.client.create(PodDisruptionBudget, {
      metadata: at,
      spec: { minAvailable: 1, selector: { matchLabels: labels } },
    });
    const allow = async (disruptionsAllowed: number) => {
      const healthy = { currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 };
      await verbs.client.mutate(
        PodDisruptionBudget,
        at,
        (budget) =>
          void (budget.status = { ...healthy, disruptionsAllowed, observedGeneration: 1 }),
        { subresource: "status" },
      );
    };
    await allow(0);
    let tries = 0;
    const step = await play(async (k) => {
      tries += 1;
      if (tries === 3) await allow(1);
      await k.evict({ ...target(), kind: "Pod" });
    }, 1);
    expect(step).toMatchObject({ attempts: 1 });
    expect(step?.error).toBeUndefined();
    expect(tries).toBe(3);
    const { items } = await verbs.client.list(Pod, { labelSelector: `label=${name}` });
    expect(items).toEqual([]);
    await verbs.client.delete(PodDisruptionBudget, at);
  });

  test("deletes a Job and does not keep its Pods, unless the step says so", async () => {
    // The server orphans the Pods of a Job by default.
    const hasJobs = await isServed(verbs.client, Job);
    const pod = { containers: [{ name: "a", image: "a" }], restartPolicy: "Never" };
    const { metadata } = intent({});
    const owner = hasJobs
      ? { apiVersion: "batch/v1", kind: "Job", metadata, spec: { template: { spec: pod } } }
      : intent({});
    let left: unknown;
    const step = await play(async (k) => {
      await k.delete(await k.create(owner));
      left = await k.find(owner);
      const orphaning = await k.apply(owner);
      await k.delete(orphaning, { propagationPolicy: "Orphan" });
      expect((await k.get(owner)).metadata.finalizers).toEqual(["orphan"]);
      await k.mutate(orphaning, (draft) => void delete draft.metadata.finalizers);
    });
    expect(step?.error).toBeUndefined();
    expect(left).toBeUndefined();
  });

  test("a worker without clusters suggests a fix; testWorkflow accepts a client", async () => {
    const workflow = oneStep((k) => k.apply(intent({ a: "1" })));
    const refused = await testWorkflow(workflow, undefined).settle();
    expect(refused).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("`clusters`") },
    });
    const run = testWorkflow(workflow, undefined, { kube: verbs.client, replayEveryStep: true });
    expect(await run.settle()).toMatchObject({ status: "done" });
    expect((await read())?.data).toEqual({ a: "1" });
    await run.replay();
  });
});

/** Reads a value in Redis of any type. */
async function textOf(key: string): Promise<string> {
  const { redis } = queues;
  switch (await redis.type(key)) {
    case "hash":
      return JSON.stringify(await redis.hgetall(key));
    case "list":
      return JSON.stringify(await redis.lrange(key, 0, -1));
    case "string":
      return String(await redis.get(key));
    default:
      return "";
  }
}

describe("unsafe steps", () => {
  test("does not repeat a body whose worker was lost: the step fails and is undone", async () => {
    const undone: unknown[] = [];
    let bodies = 0;
    const workflow = defineWorkflow("unsafe", { version: 1 }, async (w) => {
      await w.step("page", () => void (bodies += 1), {
        unsafe: true,
        undo: (result) => void undone.push(result),
      });
    });
    const run = testWorkflow(workflow, undefined);
    run.crashIn("page");
    expect(await run.settle()).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("a worker was lost in the body") },
    });
    expect((await run.steps()).get("page")?.error?.code).toBe("outcome_unknown");
    expect({ bodies, undone }).toEqual({ bodies: 1, undone: [undefined] });
  });

  test("does not retry an error, unless attempts are set", async () => {
    for (const [retry, expected] of [
      [{}, 1],
      [{ retry: { attempts: 3 } }, 3],
    ] as const) {
      let bodies = 0;
      const workflow = defineWorkflow("unsafe", { version: 1 }, async (w) => {
        await w.step("page", () => fail(() => (bodies += 1)), { unsafe: true, ...retry });
      });
      expect(await testWorkflow(workflow, undefined).settle()).toMatchObject({ status: "failed" });
      expect(bodies).toBe(expected);
    }
  });

  test("records a successful unsafe step like any other", async () => {
    const workflow = defineWorkflow("unsafe", { version: 1 }, async (w) => {
      return await w.step("page", ({ attempt }) => attempt, { unsafe: true });
    });
    const run = testWorkflow(workflow, undefined, { replayEveryStep: true });
    expect(await run.settle()).toMatchObject({ status: "done", result: 1 });
    await run.replay();
  });
});

function fail(first: () => void): number {
  first();
  throw new Error("busy");
}

test("never retries a terminal error", async () => {
  const workflow = oneStep(async () => {
    throw new TerminalError("no");
  }, 5);
  const run = testWorkflow(workflow, undefined);
  await run.settle();
  expect(run.bodies).toEqual(["act"]);
});
