import { defined, TerminalError, type BackoffPolicy } from "@konverge/core";
import { defineWorkflow, type ObjectRef, type StepContext } from "@konverge/workflow";
import { describe, expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useVerbs, type ConfigMapObject } from "./verbs-harness.ts";

const queues = useQueues();

type Body = (k: StepContext) => Promise<unknown>;
interface How {
  readonly undo?: (k: StepContext, ref: ObjectRef | undefined) => Promise<void>;
  readonly after?: Body;
  readonly policy?: BackoffPolicy;
}

describe.each(testServers())("an undo that deletes by name, on the $name", (server) => {
  const verbs = useVerbs(server, queues);
  const { intent, make, marks, path, read, target } = verbs;
  const other = () => ({ ...target(), name: `${verbs.name}-other` });

  /** Runs `body` as a step with an undo, then `after` as another step, and fails the run. Returns the names of its steps. */
  const play = async (
    body: Body,
    { undo = (k) => k.delete(target()), after, policy }: How = {},
  ): Promise<string[]> => {
    const workflow = defineWorkflow("undone", { version: 1 }, async (w) => {
      await w.step("make", async (k) => ((await body(k)) as ObjectRef | undefined) ?? null, {
        retry: { attempts: 1, ...defined({ policy }) },
        undo: (ref, k) => undo(k, ref ?? undefined),
      });
      if (after !== undefined) await w.step("after", async (k) => void (await after(k)));
      throw new TerminalError("the run fails");
    });
    const id = crypto.randomUUID();
    await verbs.runs.start(workflow, id);
    await verbs.runs.finish(workflow, id);
    return [...(await verbs.runs.store.steps({ workflow: "undone", id })).keys()].toSorted();
  };
  const fail = () => Promise.reject(new TerminalError("after its calls"));

  test.each([
    {
      what: "an object of others with the name",
      stranger: true,
      act: (k: StepContext) => k.create(intent({ a: "ours" })),
    },
    {
      what: "fields of other managers",
      stranger: true,
      act: (k: StepContext) => k.apply(intent({ a: "ours" })),
    },
    {
      what: "another uid",
      stranger: true,
      act: (k: StepContext) => k.apply(intent({ a: "ours" }), { uid: "another" }),
    },
    {
      what: "an invalid object",
      stranger: true,
      act: (k: StepContext) =>
        k.mutate<ConfigMapObject>(target(), (draft) => void (draft.data = { "no key": "x" })),
    },
    {
      what: "a kind that is not served",
      stranger: false,
      act: (k: StepContext) => k.apply({ ...intent({}), kind: "Nonsense" }),
    },
    {
      what: "missing permissions",
      stranger: true,
      act: async (k: StepContext) => {
        verbs.relay.refuse({ method: "POST", path: /configmaps$/ }, 403, "Forbidden");
        return await k.create(intent({ a: "ours" }));
      },
    },
  ])("does not run after $what: the step had no effect", async ({ act, stranger }) => {
    const before = stranger ? await make({ a: "theirs" }) : undefined;
    expect(await play(act)).toEqual(["make"]);
    expect(await read()).toEqual(before);
  });

  test("runs after a rejected call if an earlier call of the step had an effect", async () => {
    const { apiVersion, kind, ...metadata } = other();
    const others = await verbs.client.create(ConfigMap, { metadata, data: { a: "theirs" } });
    const steps = await play(
      async (k) => {
        await k.create(intent({ a: "ours" }));
        await k.create({ apiVersion, kind, metadata, data: {} });
      },
      {
        undo: async (k) => {
          await k.delete(target());
          await k.delete(other());
        },
      },
    );
    expect(steps).toEqual(["make", "undo:make"]);
    expect(await read()).toBeUndefined();
    const kept = await verbs.client.get(ConfigMap, metadata);
    expect(kept).toEqual(others);
    await verbs.client.delete(ConfigMap, metadata);
  });

  test("runs after a rejected call if the body awaited anything but its verbs", async () => {
    await make({ a: "theirs" });
    const body: Body = async (k) => {
      await new Promise((resolve) => setImmediate(resolve));
      await k.create(intent({}));
    };
    expect(await play(body)).toEqual(["make", "undo:make"]);
    expect((await read())?.data).toEqual({ a: "theirs" });
  });

  test.each([
    { what: "in the same execution", delayMs: 2 },
    { what: "in another execution", delayMs: 2_100 },
  ])("runs after a rejection if an earlier attempt $what had an effect", async ({ delayMs }) => {
    verbs.relay.loseAnswer({ method: "PATCH", path: path() });
    let attempts = 0;
    const body: Body = async (k) => {
      attempts += 1;
      if (attempts === 2) verbs.relay.refuse({ method: "PATCH", path: path() }, 403, "Forbidden");
      return await k.apply(intent({ a: "ours" }));
    };
    const jitter = { kind: "none" } as const;
    const policy = { baseMs: delayMs, factor: 1, capMs: delayMs, steps: 5, jitter };
    expect(await play(body, { policy })).toEqual(["make", "undo:make"]);
    expect(attempts).toBe(2);
    expect(await read()).toBeUndefined();
  });

  test.each([
    { verb: "create", act: (k: StepContext) => k.create(intent({ a: "ours" })) },
    { verb: "apply", act: (k: StepContext) => k.apply(intent({ a: "ours" })) },
  ])("deletes what the step created by $verb, with or without its result", async ({ act }) => {
    expect(await play(act)).toEqual(["make", "undo:make"]);
    expect(await read()).toBeUndefined();
    const failed = await play(async (k) => {
      await act(k);
      await fail();
    });
    expect(failed).toEqual(["make", "undo:make"]);
    expect(await read()).toBeUndefined();
  });

  test.each([
    {
      verb: "apply",
      act: (k: StepContext) => k.apply(intent({ b: "ours" })),
      data: { a: "theirs", b: "ours" },
    },
    {
      verb: "mutate",
      act: (k: StepContext) =>
        k.mutate<ConfigMapObject>(target(), (draft) => void (draft.data = { a: "ours" })),
      data: { a: "ours" },
    },
  ])("does not delete what the step changed by $verb", async ({ act, data }) => {
    const { metadata } = await make({ a: "theirs" });
    const undo: How["undo"] = async (k, ref) => {
      if (ref !== undefined) await k.delete(ref);
      await k.delete(target());
    };
    expect(await play(act, { undo })).toEqual(["make", "undo:make"]);
    expect(await read()).toMatchObject({ metadata: { uid: metadata.uid }, data });
  });

  test("does not delete an object that another run of the workflow created", async () => {
    const apply = (k: StepContext) => k.apply(intent({ a: "ours" }));
    const keeping = defineWorkflow("undone", { version: 1 }, async (w) => {
      await w.step("make", apply);
    });
    await verbs.runs.start(keeping, "first");
    await verbs.runs.finish(keeping, "first");
    const first = await read();
    expect(await play(apply)).toEqual(["make", "undo:make"]);
    expect((await read())?.metadata.uid).toBe(first?.metadata.uid);
  });

  test.each([
    { verb: "mutate", after: verbs.increment },
    { verb: "apply", after: (k: StepContext) => k.apply(intent({ n: "2" })) },
  ])("finds the mark after a $verb by a later step", async ({ after }) => {
    expect(await play((k) => k.create(intent({ n: "1" })), { after })).toEqual([
      "after",
      "make",
      "undo:make",
    ]);
    expect(await read()).toBeUndefined();
  });

  test("the mark of a creation is removed by a mutation after the end of its run", async () => {
    const made = defineWorkflow("made", { version: 1 }, async (w) => {
      await w.step("make", (k) => k.apply(intent({ n: "1" })));
      await w.step("count", verbs.increment);
    });
    await verbs.runs.start(made, "r");
    await verbs.runs.finish(made, "r");
    expect(await marks()).toHaveLength(2);
    const later = defineWorkflow("later", { version: 1 }, async (w) => {
      await w.step("count", verbs.increment);
    });
    await verbs.runs.start(later, "r");
    await verbs.runs.finish(later, "r");
    expect(await marks()).toHaveLength(1);
  });

  test("deletes an object of others by a uid that it gives itself", async () => {
    const { metadata } = await make({ a: "theirs" });
    const undo: How["undo"] = (k) => k.delete({ ...target(), uid: metadata.uid ?? "" });
    await play(() => fail(), { undo });
    expect(await read()).toBeUndefined();
  });
});
