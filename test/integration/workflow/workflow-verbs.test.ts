import { TerminalError } from "@konverge/core";
import { defineWorkflow, type ObjectRef, type StepContext } from "@konverge/workflow";
import { describe, expect, test } from "vitest";
import { ConfigMap, Deployment, Job, Pod } from "@konverge/kube/kinds";
import { retryRun } from "../../../libs/workflow/src/store/retry-run.ts";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import type { Match } from "../kube/request-relay.ts";
import { useVerbs } from "./verbs-harness.ts";

interface Verb {
  readonly verb: string;
  readonly before?: () => Promise<unknown>;
  readonly act: (k: StepContext) => Promise<ObjectRef | void>;
  readonly write: () => Match;
  readonly check: () => Promise<void>;
}
const containers = [{ name: "main", image: "main" }];
const deployment = (name: string) => ({
  metadata: { namespace: "default", name },
  spec: {
    selector: { matchLabels: { label: name } },
    template: { metadata: { labels: { label: name } }, spec: { containers } },
  },
});
const pod = (name: string) => ({
  metadata: { namespace: "default", name, labels: { label: name } },
  spec: { containers, automountServiceAccountToken: false },
});
const job = (name: string) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { namespace: "default", generateName: `${name}-`, labels: { label: name } },
  spec: { template: { spec: { containers, restartPolicy: "Never" } } },
});
const queues = useQueues();

describe.each(testServers())("Kubernetes verbs on the $name", (server) => {
  const verbs = useVerbs(server, queues);
  const { intent, increment, make, marks, path, read, target } = verbs;

  /** Faults of a verb's write, and of its record. */
  const crashes: readonly {
    readonly what: string;
    readonly arrange: (write: Match) => void;
  }[] = [
    { what: "there is no fault", arrange: () => undefined },
    { what: "the request is lost", arrange: (write) => verbs.relay.loseRequest(write) },
    { what: "the response is lost", arrange: (write) => verbs.relay.loseAnswer(write) },
    {
      what: "the worker dies before the commit",
      arrange: () => verbs.runs.dieAtCommit("act", "before"),
    },
    {
      what: "the response is lost, and then the worker dies before the commit",
      arrange(write) {
        verbs.relay.loseAnswer(write);
        verbs.runs.dieAtCommit("act", "before");
      },
    },
    {
      what: "the commit's response is lost",
      arrange: () => verbs.runs.dieAtCommit("act", "after"),
    },
  ];
  const upsert = async (k: StepContext) => {
    const { object } = await k.createOrUpdate(ConfigMap, target(), (draft) => {
      draft.data = { n: String(Number(draft.data?.["n"] ?? 0) + 1) };
    });
    return object;
  };
  const table: readonly Verb[] = [
    {
      verb: "mutate",
      before: () => make({ n: "7" }),
      act: increment,
      write: () => ({ method: "PATCH", path: path() }),
      check: async () => expect((await read())?.data).toEqual({ n: "8" }),
    },
    {
      verb: "apply",
      act: (k) => k.apply(intent({ a: "1" })),
      write: () => ({ method: "PATCH", path: path() }),
      check: async () => expect((await read())?.data).toEqual({ a: "1" }),
    },
    {
      verb: "create",
      act: (k) => k.create(intent({ a: "1" })),
      write: () => ({ method: "POST", path: /\/configmaps$/ }),
      check: async () => expect((await read())?.data).toEqual({ a: "1" }),
    },
    {
      verb: "create with generateName",
      act(k) {
        const { metadata, ...rest } = intent({});
        const { name: label, ...where } = metadata;
        const generateName = `${label}-`;
        return k.create({ ...rest, metadata: { ...where, generateName, labels: { label } } });
      },
      write: () => ({ method: "POST", path: /\/configmaps$/ }),
      async check() {
        const { items } = await verbs.client.list(ConfigMap, {
          labelSelector: `label=${verbs.name}`,
        });
        expect(items.map(({ metadata }) => metadata.name)).toEqual([
          expect.stringMatching(new RegExp(`^${verbs.name}-[0-9a-f]{10}$`)),
        ]);
      },
    },
    {
      verb: "createOrUpdate of an object that exists",
      before: () => make({ n: "7" }),
      act: upsert,
      write: () => ({ method: "PATCH", path: path() }),
      check: async () => expect((await read())?.data).toEqual({ n: "8" }),
    },
    {
      verb: "createOrUpdate of a new object",
      act: upsert,
      write: () => ({ method: "POST", path: /\/configmaps$/ }),
      check: async () => expect((await read())?.data).toEqual({ n: "1" }),
    },
    {
      verb: "delete",
      before: () => make({}),
      act: (k) => k.delete(target()),
      write: () => ({ method: "DELETE", path: path() }),
      check: async () => expect(await read()).toBeUndefined(),
    },
    {
      verb: "scale",
      before: () => verbs.client.create(Deployment, deployment(verbs.name)),
      act: (k) => k.scale({ ...target(), apiVersion: "apps/v1", kind: "Deployment" }, 3),
      write: () => ({ method: "PATCH", path: /\/scale$/ }),
      async check() {
        const { spec, metadata } = await verbs.client.get(Deployment, {
          namespace: "default",
          name: verbs.name,
        });
        expect(spec?.replicas).toBe(3);
        const [step] = (await verbs.runs.store.steps({ workflow: "act", id: "r" })).values();
        expect(step?.value).toMatchObject({ uid: metadata.uid, generation: 2 });
      },
    },
    ...(server.name === "kube-apiserver" ? realOnly() : []),
  ];
  // The embedded server has neither Jobs nor Pods.
  function realOnly(): Verb[] {
    return [
      {
        verb: "runJob",
        act: (k) => k.runJob(job(verbs.name)),
        write: () => ({ method: "POST", path: /\/jobs$/ }),
        async check() {
          const { items } = await verbs.client.list(Job, { labelSelector: `label=${verbs.name}` });
          expect(items).toHaveLength(1);
        },
      },
      {
        verb: "evict",
        before: () => verbs.client.create(Pod, pod(verbs.name)),
        act: (k) => k.evict({ ...target(), kind: "Pod" }),
        write: () => ({ method: "POST", path: /\/eviction$/ }),
        async check() {
          const { items } = await verbs.client.list(Pod, { labelSelector: `label=${verbs.name}` });
          expect(items).toEqual([]);
        },
      },
    ];
  }
  const cases = table.flatMap((verb) => crashes.map((crash) => ({ ...verb, ...crash })));

  test.each(cases)(
    "P10: $verb has its effect once when $what",
    async ({ before, act, write, check, arrange }) => {
      await before?.();
      const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
        // One attempt: faults outside the step are not counted.
        return (await w.step("act", act, { retry: { attempts: 1 } })) ?? null;
      });
      await verbs.runs.start(workflow, "r");
      arrange(write());
      await verbs.runs.finish(workflow, "r");
      expect((await verbs.runs.store.get({ workflow: "act", id: "r" }))?.error).toBeUndefined();
      await check();
    },
  );

  test.each(table)(
    "P8, P10: $verb has its effect once when its write arrives after a successor has finished",
    async ({ before, act, write, check }) => {
      await before?.();
      const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
        return (await w.step("act", act, { retry: { attempts: 1 } })) ?? null;
      });
      await verbs.runs.start(workflow, "r");
      const held = verbs.relay.hold(write());
      const zombie = verbs.runs.execute(workflow, await verbs.runs.claim(workflow, "r"));
      await held.arrived;
      await verbs.runs.finish(workflow, "r");
      const recorded = await verbs.runs.store.steps({ workflow: "act", id: "r" });
      held.release();
      expect(await zombie).toEqual({ kind: "lost" });
      expect(await verbs.runs.store.steps({ workflow: "act", id: "r" })).toEqual(recorded);
      await check();
    },
  );

  test("a late delete does not delete an object that its successor has created", async () => {
    await make({});
    const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
      await w.step("delete", (k) => k.delete(target()));
      await w.step("apply", (k) => k.apply(intent({ a: "1" })));
    });
    await verbs.runs.start(workflow, "r");
    const held = verbs.relay.hold({ method: "DELETE", path: path() });
    const zombie = verbs.runs.execute(workflow, await verbs.runs.claim(workflow, "r"));
    await held.arrived;
    await verbs.runs.finish(workflow, "r");
    held.release();
    expect(await zombie).toEqual({ kind: "lost" });
    expect((await read())?.data).toEqual({ a: "1" });
  });

  test("P8, P10: a delayed write of a worker taken for dead changes nothing", async () => {
    await make({ n: "0" });
    const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
      await w.step("one", increment);
      await w.step("two", increment);
    });
    await verbs.runs.start(workflow, "r");
    const held = verbs.relay.hold({ method: "PATCH", path: path() });
    const zombie = verbs.runs.execute(workflow, await verbs.runs.claim(workflow, "r"));
    await held.arrived;
    await verbs.runs.finish(workflow, "r");
    // The mark of the first step is removed by now, so it does not stop the outdated worker.
    expect(await marks()).toHaveLength(1);
    const passed = verbs.relay.passed.length;
    held.release();
    expect(await zombie).toEqual({ kind: "lost" });
    // It was rejected, read again, and did not write again.
    expect(verbs.relay.passed.slice(passed).map((call) => call.split(" ")[0])).toEqual([
      "PATCH",
      "GET",
    ]);
    expect((await read())?.data).toEqual({ n: "2" });
  });

  test("P8: a late apply does not overwrite the apply of its successor", async () => {
    const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
      for (const step of ["1", "2"]) {
        await w.step(step, (k) => k.apply(intent({ step })));
      }
    });
    for (const isNew of [true, false]) {
      const id = String(isNew);
      await verbs.runs.start(workflow, id);
      const held = verbs.relay.hold({ method: "PATCH", path: path() });
      const zombie = verbs.runs.execute(workflow, await verbs.runs.claim(workflow, id));
      await held.arrived;
      await verbs.runs.finish(workflow, id);
      held.release();
      expect(await zombie).toEqual({ kind: "lost" });
      expect((await read())?.data).toEqual({ step: "2" });
    }
  });

  test("the next marked write removes marks of recorded steps, also of another run", async () => {
    await make({ n: "0" });
    const both = defineWorkflow("both", { version: 1 }, async (w) => {
      await w.step("act", async (k) => {
        await increment(k);
        await increment(k);
      });
    });
    await verbs.runs.start(both, "r");
    verbs.runs.dieAtCommit("act", "before");
    await verbs.runs.execute(both, await verbs.runs.claim(both, "r"));
    expect(await marks()).toHaveLength(2);
    await verbs.runs.start(both, "s");
    await verbs.runs.finish(both, "s");
    // The first run may still read its own mark.
    expect(await marks()).toHaveLength(4);
    await verbs.runs.finish(both, "r");
    expect((await read())?.data).toEqual({ n: "4" });
    await verbs.runs.start(both, "t");
    await verbs.runs.finish(both, "t");
    expect(await marks()).toHaveLength(2);
    expect((await read())?.data).toEqual({ n: "6" });
  });

  test("P10: a run resumed after a failure detects the failed step's change, also after other changes", async () => {
    await make({ n: "0" });
    let isBroken = true;
    const fragile = defineWorkflow("fragile", { version: 1 }, async (w) => {
      await w.step("before", increment);
      await w
        .step("failing", async (k) => {
          await increment(k);
          if (isBroken) throw new TerminalError("broken");
        })
        .catch(() => undefined);
      await w.step("behind", increment);
      if (isBroken) throw new TerminalError("as planned");
    });
    const other = defineWorkflow("other", { version: 1 }, async (w) => {
      await w.step("act", increment);
    });
    await verbs.runs.start(fragile, "r");
    await verbs.runs.finish(fragile, "r");
    // The mark of the step before the failure is removed.
    expect(await marks()).toHaveLength(2);
    for (const id of ["a", "b"]) {
      await verbs.runs.start(other, id);
      await verbs.runs.finish(other, id);
    }
    expect((await read())?.data).toEqual({ n: "5" });
    expect(await marks()).toHaveLength(3);
    isBroken = false;
    await retryRun(
      {
        store: verbs.runs.store,
        start: async () => undefined,
        wake: async () => undefined,
      },
      { workflow: "fragile", id: "r" },
      { fromFailed: true },
    );
    await verbs.runs.finish(fragile, "r");
    expect((await read())?.data).toEqual({ n: "5" });
    // Now they are no longer needed.
    await verbs.runs.start(other, "c");
    await verbs.runs.finish(other, "c");
    expect(await marks()).toHaveLength(1);
  });

  test("removes marks that only a retry needs beyond 200 per object, but not those of others", async () => {
    await make({ n: "0" });
    const failing = defineWorkflow("failing", { version: 1 }, async (w) => {
      await w.step("act", async (k) => {
        await increment(k);
        throw new TerminalError("as planned");
      });
    });
    await verbs.runs.start(failing, "r");
    await verbs.runs.finish(failing, "r");
    const [mark = ""] = await marks();
    const text = (await read())?.metadata.annotations?.[mark] ?? "";
    const foreign = JSON.stringify({ ...(JSON.parse(text) as object), installation: "another" });
    const annotate = async (values: Record<string, string>) => {
      const at = { namespace: "default", name: verbs.name };
      await verbs.client.mutate(ConfigMap, at, (draft) => {
        draft.metadata.annotations = { ...draft.metadata.annotations, ...values };
      });
    };
    const many = (count: number, value: string, kind: string) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`konverge.dev/step-${kind}${index}`, value]),
      );
    const other = defineWorkflow("other", { version: 1 }, async (w) => {
      await w.step("act", increment);
    });
    const countBehind = async (id: string) => {
      await verbs.runs.start(other, id);
      await verbs.runs.finish(other, id);
      return (await marks()).length;
    };
    await annotate({
      ...many(199, text, "own"),
      ...many(10, foreign, "foreign"),
      "konverge.dev/step-odd": "x",
    });
    // 200 of ours, and 11 of unknown origin.
    expect(await countBehind("a")).toBe(200 + 11 + 1);
    // Now 201: as many are removed as are checked at once.
    expect(await countBehind("b")).toBeLessThanOrEqual(200 + 11 + 2 - 49);
    const left = await marks();
    expect(left.filter((each) => /foreign|odd/.test(each))).toHaveLength(11);
  });

  test("an attempt that continues after its timeout writes nothing", async () => {
    await make({ n: "0" });
    let tries = 0;
    let late: Promise<unknown> = Promise.resolve();
    const held = Promise.withResolvers<void>();
    const slow = defineWorkflow("slow", { version: 1 }, async (w) => {
      const act = (k: StepContext) => {
        tries += 1;
        if (tries > 1) return increment(k);
        late = held.promise.then(() => increment(k));
        return late.then(() => null);
      };
      await w.step("act", act, { timeout: "1s" });
      await w.step("next", increment);
    });
    await verbs.runs.start(slow, "r");
    await verbs.runs.finish(slow, "r");
    held.resolve();
    await expect(late).rejects.toMatchObject({ code: "timed_out" });
    expect((await read())?.data).toEqual({ n: "2" });
  });
});
