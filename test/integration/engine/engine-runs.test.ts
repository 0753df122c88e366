import { defined, ensureError, isKonvergeError } from "@konverge/core";
import type { EngineOptions, RunState, StartRun } from "@konverge/engine";
import { createRunStarter } from "@konverge/worker";
import {
  defineWorkflow,
  openWorkflows,
  type AnyWorkflow,
  type Workflows,
} from "@konverge/workflow";
import { describe, expect, test } from "vitest";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

describe.each(testServers())("runs started by controllers on $name", (target) => {
  const engines = useEngines(target, "runs.test.konverge.dev");

  /** Workflows as a worker opens them: to start runs for handlers, and to execute these workflows. */
  const openRuns = (...workflows: readonly AnyWorkflow[]) => openKeptRuns(undefined, workflows);
  const openKeptRuns = (retentionMs: number | undefined, workflows: readonly AnyWorkflow[]) => {
    const { prefix, target: redis } = engines.queues;
    const runs = openWorkflows({
      redis,
      prefix,
      leaseMs: 2_000,
      ...defined({ retentionMs }),
    });
    runs.work({ workflows, workerId: "test" });
    engines.onStopped(() => runs.close());
    return {
      runs,
      options: { runs: () => createRunStarter(runs) } satisfies Partial<EngineOptions>,
    };
  };
  const resize = (size: number) =>
    engines.client.mutate(engines.Widgets, { namespace, name: "web" }, (draft) => {
      draft.spec = { size };
    });
  const listed = async (runs: Workflows, workflow: AnyWorkflow) =>
    (await runs.list(workflow.name)).runs.toReversed();

  test("a new generation replaces the previous run, another attempt finds it, and its end reconciles the object", async () => {
    const log: string[] = [];
    const rollout = defineWorkflow(
      "rollout",
      { version: 1 },
      async (w, { size }: { size: number }) => {
        await w.step("begin", () => void log.push(`begin ${size}`));
        if (size === 1) await w.signal("approve");
        return size;
      },
    );
    const { runs, options } = openRuns(rollout);
    const states: RunState[] = [];
    let fails = true;
    const { records, key, queue } = await engines.start(
      {
        name: "pools",
        backoff: eager,
        async reconcile({ object, kube, startRun }) {
          const size = Number(object.spec?.["size"]);
          const run = await startRun(
            rollout,
            { size },
            { onExisting: "supersede", onEnd: "reconcile" },
          );
          states.push(run);
          if (fails) {
            fails = false;
            throw new Error("after the start");
          }
          await kube.mutateStatus(object, (draft) => {
            draft.status["rollout"] = run.status;
          });
        },
      },
      options,
    );
    await engines.make("web", { size: 1 });
    await until("its attempt is repeated", () => states.length >= 2);
    expect(states[1]?.id).toBe(states[0]?.id);
    expect(states.map(({ created }) => created).slice(0, 2)).toEqual([true, false]);
    await until("the first waits", () => log.includes("begin 1"));
    await resize(2);
    await until("the object shows the end", async () => {
      const web = await engines.client.get(engines.Widgets, { namespace, name: "web" });
      return web.status?.["rollout"] === "done";
    });
    const [first, second, ...more] = await listed(runs, rollout);
    expect(more).toEqual([]);
    expect(first).toMatchObject({ status: "cancelled", by: `controller pools/${namespace}/web` });
    expect(second).toMatchObject({ status: "done", key: `pools/${namespace}/web` });
    expect(log).toEqual(["begin 1", "begin 2"]);
    expect(states.at(-1)).toMatchObject({ status: "done", result: 2, created: false });
    await until("it is quiet", async () => (await queue.getKey(key("web")))?.phase === "idle");
    const [last] = await records("web");
    expect(last?.parsed["runs"]).toEqual([{ id: states.at(-1)?.id, created: false }]);
    const triggers = (await records("web")).flatMap(
      ({ parsed }) => parsed["triggers"] as readonly { readonly by?: string; reason?: string }[],
    );
    expect(triggers).toContainEqual(
      expect.objectContaining({ by: `run ${states.at(-1)?.id}`, reason: "the run has ended" }),
    );
  });

  test("after the retention of a run, the same generation finds its end, until the object is gone", async () => {
    let bodies = 0;
    const rollout = defineWorkflow("kept", { version: 1 }, async (w) => {
      await w.step("count", () => (bodies += 1));
      return "7 machines";
    });
    const { runs, options } = openKeptRuns(1, [rollout]);
    const states: RunState[] = [];
    const { key, queue } = await engines.start(
      {
        name: "kept-pools",
        async reconcile({ startRun }) {
          states.push(await startRun(rollout, null));
        },
      },
      options,
    );
    await engines.make("web");
    const id = await until("a run has started", () => states[0]?.id.split("/").at(-1));
    await until("it has expired", async () => {
      return bodies === 1 && (await runs.get({ workflow: "kept", id })) === undefined;
    });
    const known = states.length;
    await queue.request(key("web"), { kind: "cli", reason: "again" }, { class: "interactive" });
    await until("another attempt", () => states.length > known);
    expect(states.at(-1)).toEqual({
      id: states[0]?.id,
      created: false,
      status: "done",
      result: "7 machines",
    });
    expect(bodies).toBe(1);

    const { lastChecks } = runNames(engines.queues.prefix, "default", "kept");
    const { redis } = engines.queues;
    await redis.zadd(lastChecks, "0", `kept-pools/${namespace}/web`);
    await until("the object was checked", async () => {
      const [, next] = await redis.zrange(lastChecks, "0", "0", "WITHSCORES");
      return Number(next) > Date.now();
    });
    await engines.client.delete(engines.Widgets, { namespace, name: "web" });
    await until("its key is gone", async () => {
      return (await queue.getKey(key("web")))?.lastOutcome === "gone";
    });
    await redis.zadd(lastChecks, "0", `kept-pools/${namespace}/web`);
    await until("the end is released", async () => (await redis.exists(lastChecks)) === 0);
  });

  test("rejects starts after the end of the handler, and an id with a different input", async () => {
    const workflow = defineWorkflow("once", { version: 1 }, async () => null);
    const { runs, options } = openRuns(workflow);
    const codes: string[] = [];
    let late: StartRun | undefined;
    await engines.start(
      {
        async reconcile({ startRun }) {
          await startRun(workflow, 1);
          await startRun(workflow, 2).catch((error: unknown) => {
            if (isKonvergeError(error)) codes.push(error.code);
          });
          late = startRun;
        },
      },
      options,
    );
    await engines.make("web");
    const startLate = await until("the handler has ended", () => late);
    await until("it is refused", async () => {
      const error = await startLate(workflow, 1).then(() => undefined, ensureError);
      return isKonvergeError(error) && error.code === "attempt_ended";
    });
    // An attempt may be repeated.
    expect([...new Set(codes)]).toEqual(["input_mismatch"]);
    expect(await listed(runs, workflow)).toHaveLength(1);
  });

  test("P8: a superseded attempt does not replace the run of a newer generation, even an ended one", async () => {
    const workflow = defineWorkflow("gated", { version: 1 }, async (w, n: number) => {
      if (n === 2) await w.signal("go");
      return n;
    });
    const { runs } = openRuns(workflow);
    const start = (generation: number, uid = "u") =>
      runs.start(workflow, generation, {
        id: `${uid}.${generation}`,
        key: "web",
        onExisting: "supersede",
        origin: { uid, generation },
      });
    await start(2);
    expect(await start(1)).toEqual({ id: "u.2", created: false });
    await runs.signal({ workflow: "gated", id: "u.2" }, "go");
    const ends = async (id: string) =>
      await until(`${id} ends`, async () => {
        const run = await runs.get({ workflow: "gated", id });
        return run?.endedAtMs !== undefined && run.status;
      });
    expect(await ends("u.2")).toBe("done");
    expect(await start(1)).toEqual({ id: "u.2", created: false });
    // The object was deleted and recreated: its generations start again.
    expect(await start(1, "v")).toEqual({ id: "v.1", created: true });
    expect(await ends("v.1")).toBe("done");
    expect(await start(3)).toMatchObject({ created: true });
  });
});
