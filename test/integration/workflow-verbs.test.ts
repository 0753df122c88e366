import type { ApiObject, ResourceType } from "@konverge/core";
import { ignoreNotFound, loadKubeCredentials } from "@konverge/kube";
import { defineWorkflow, type ObjectRef, type StepContext } from "@konverge/workflow";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createRedisRunStore } from "../../libs/workflow/src/redis-run-store.ts";
import { createActivations, type Activations } from "./activation-harness.ts";
import { testServers } from "./kube-servers.ts";
import { useQueues } from "./queue-harness.ts";
import { startRequestRelay, type Match, type RequestRelay } from "./request-relay.ts";

interface ConfigMap extends ApiObject {
  data?: Record<string, string>;
}
const CONFIG_MAPS: ResourceType<ConfigMap> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  scope: "Namespaced",
};
const MARKER = /^konverge\.dev\/step-/;

const harness = useQueues();
let serial = 0;

describe.each(testServers())("Kubernetes verbs on the $name", (server) => {
  let open: Awaited<ReturnType<typeof server.open>>;
  let relay: RequestRelay;
  let runs: Activations;
  /** Of the object that a test is about. */
  let name: string;
  const target = () => ({ apiVersion: "v1", kind: "ConfigMap", namespace: "default", name });
  const object = (data: Record<string, string>) => {
    const { apiVersion, kind, ...metadata } = target();
    return { apiVersion, kind, metadata, data };
  };
  const path = () => new RegExp(`/configmaps/${name}$`);
  const read = async () =>
    await open.client.get(CONFIG_MAPS, { namespace: "default", name }).catch(ignoreNotFound);
  const make = async (data: Record<string, string>) =>
    await open.client.create(CONFIG_MAPS, { metadata: { namespace: "default", name }, data });
  const markers = async () =>
    Object.keys((await read())?.metadata.annotations ?? {}).filter((key) => MARKER.test(key));
  const increment = async (k: StepContext): Promise<ObjectRef> =>
    await k.mutate<ConfigMap>(target(), (draft) => {
      draft.data = { ...draft.data, n: String(Number(draft.data?.["n"]) + 1) };
    });

  beforeAll(async () => {
    open = await server.open();
  });
  afterAll(async () => {
    await open.close();
  });
  beforeEach(async () => {
    name = `verbs-${process.pid}-${(serial += 1)}`;
    relay = await startRequestRelay(loadKubeCredentials(open.kubeconfig));
    const store = createRedisRunStore({
      call: (run) => run(harness.redis),
      prefix: harness.prefix,
      cluster: "default",
      retentionMs: 60_000,
    });
    runs = createActivations(store, { default: relay.client });
  });
  afterEach(async () => {
    await relay[Symbol.asyncDispose]();
    await open.client.delete(CONFIG_MAPS, { namespace: "default", name }).catch(ignoreNotFound);
  });

  /** What happens to the write of a verb, and to what is recorded of it. */
  const crashes: readonly {
    readonly what: string;
    readonly arrange: (write: Match) => void;
  }[] = [
    { what: "nothing goes wrong", arrange: () => undefined },
    { what: "the request is lost", arrange: (write) => relay.loseRequest(write) },
    { what: "the answer is lost", arrange: (write) => relay.loseAnswer(write) },
    { what: "the worker dies before the commit", arrange: () => runs.dieAtCommit("act", "before") },
    {
      what: "the answer is lost, and then the worker dies before the commit",
      arrange(write) {
        relay.loseAnswer(write);
        runs.dieAtCommit("act", "before");
      },
    },
    { what: "the commit's answer is lost", arrange: () => runs.dieAtCommit("act", "after") },
  ];
  const verbs: readonly {
    readonly verb: string;
    readonly before?: () => Promise<unknown>;
    readonly act: (k: StepContext) => Promise<ObjectRef | void>;
    readonly write: () => Match;
    readonly check: () => Promise<void>;
  }[] = [
    {
      verb: "mutate",
      before: () => make({ n: "7" }),
      act: increment,
      write: () => ({ method: "PATCH", path: path() }),
      check: async () => expect((await read())?.data).toEqual({ n: "8" }),
    },
    {
      verb: "apply",
      act: (k) => k.apply(object({ a: "1" })),
      write: () => ({ method: "PATCH", path: path() }),
      check: async () => expect((await read())?.data).toEqual({ a: "1" }),
    },
    {
      verb: "delete",
      before: () => make({}),
      act: (k) => k.delete(target()),
      write: () => ({ method: "DELETE", path: path() }),
      check: async () => expect(await read()).toBeUndefined(),
    },
  ];
  const table = verbs.flatMap((verb) => crashes.map((crash) => ({ ...verb, ...crash })));

  test.each(table)(
    "P10: $verb has its effect once when $what",
    async ({ before, act, write, check, arrange }) => {
      await before?.();
      const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
        // One try: what goes wrong outside of the step is not counted.
        return (await w.step("act", act, { retry: { attempts: 1 } })) ?? null;
      });
      await runs.start(workflow, "r");
      arrange(write());
      await runs.finish(workflow, "r");
      expect((await runs.store.get({ workflow: "act", id: "r" }))?.error).toBeUndefined();
      await check();
    },
  );

  test("P8, P10: a worker taken for dead whose write is still on its way changes nothing any more", async () => {
    await make({ n: "0" });
    const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
      await w.step("one", increment);
      await w.step("two", increment);
    });
    await runs.start(workflow, "r");
    const held = relay.hold({ method: "PATCH", path: path() });
    const zombie = runs.activate(workflow, await runs.claim(workflow, "r"));
    await held.arrived;
    await runs.finish(workflow, "r");
    // The mark of the first step is gone by now, so it is not what stops the zombie.
    expect(await markers()).toHaveLength(1);
    const passed = relay.passed.length;
    held.release();
    expect(await zombie).toEqual({ kind: "lost" });
    // It was refused, read again, and did not write again.
    expect(relay.passed.slice(passed).map((call) => call.split(" ")[0])).toEqual(["PATCH", "GET"]);
    expect((await read())?.data).toEqual({ n: "2" });
  });

  test("P8: an apply that comes late does not overwrite what its successor has applied since", async () => {
    const workflow = defineWorkflow("act", { version: 1 }, async (w) => {
      for (const step of ["1", "2"]) {
        await w.step(step, (k) => k.apply(object({ step })));
      }
    });
    for (const isNew of [true, false]) {
      const id = String(isNew);
      await runs.start(workflow, id);
      const held = relay.hold({ method: "PATCH", path: path() });
      const zombie = runs.activate(workflow, await runs.claim(workflow, id));
      await held.arrived;
      await runs.finish(workflow, id);
      held.release();
      expect(await zombie).toEqual({ kind: "lost" });
      expect((await read())?.data).toEqual({ step: "2" });
    }
  });

  test("marks of steps that are recorded go with the next marked write, also of another run; others stay", async () => {
    await make({ n: "0" });
    const both = defineWorkflow("both", { version: 1 }, async (w) => {
      await w.step("act", async (k) => {
        await increment(k);
        await increment(k);
      });
    });
    await runs.start(both, "r");
    runs.dieAtCommit("act", "before");
    await runs.activate(both, await runs.claim(both, "r"));
    expect(await markers()).toHaveLength(2);
    await runs.start(both, "s");
    await runs.finish(both, "s");
    // The first run may still look for its own.
    expect(await markers()).toHaveLength(4);
    await runs.finish(both, "r");
    expect((await read())?.data).toEqual({ n: "4" });
    await runs.start(both, "t");
    await runs.finish(both, "t");
    expect(await markers()).toHaveLength(2);
    expect((await read())?.data).toEqual({ n: "6" });
  });

  test("what the API server refuses for good ends the step with its words, without endless tries", async () => {
    await make({ n: "0" });
    const outcomes = {
      field: (k: StepContext) => k.apply({ ...object({ n: "1" }), spec: { replicas: 1 } }),
      value: (k: StepContext) =>
        k.mutate<ConfigMap>(target(), (draft) => void (draft.data = { "no key": "x" })),
      kind: (k: StepContext) => k.delete({ ...target(), kind: "Nonsense" }),
      absent: (k: StepContext) => k.mutate({ ...target(), name: "absent" }, () => undefined),
    };
    const steps = defineWorkflow("wrong", { version: 1 }, async (w) => {
      const messages: Record<string, string> = {};
      for (const [step, act] of Object.entries(outcomes)) {
        const how = { retry: { attempts: 2 } };
        await w
          .step(step, async (k) => void (await act(k)), how)
          .catch((error: Error) => {
            messages[step] = error.message;
          });
      }
      return messages;
    });
    await runs.start(steps, "r");
    await runs.finish(steps, "r");
    const ref = { workflow: "wrong", id: "r" };
    expect((await runs.store.get(ref))?.result).toEqual({
      field: expect.stringContaining("spec"),
      value: expect.stringContaining("no key"),
      kind: expect.stringContaining("Nonsense"),
      absent: expect.stringContaining("not found"),
    });
    const tries = [...(await runs.store.steps(ref))].map(([step, { attempts }]) => [
      step,
      attempts,
    ]);
    expect(Object.fromEntries(tries)).toEqual({ field: 2, value: 1, kind: 1, absent: 2 });
  });

  test("a try that took too long and goes on writes no more", async () => {
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
      await w.step("act", act, { timeout: "50ms" });
      await w.step("next", increment);
    });
    await runs.start(slow, "r");
    await runs.finish(slow, "r");
    held.resolve();
    await expect(late).rejects.toMatchObject({ code: "timed_out" });
    expect((await read())?.data).toEqual({ n: "2" });
  });
});
