import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { KonvergeError, TerminalError } from "@konverge/core";
import { defineWorkflow, StepFailedError, type AnyWorkflow } from "@konverge/workflow";
import { startRedisCluster } from "../redis/redis-cluster-fixture.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import { until } from "../../support/until.ts";

const harness = useWorkflows();
const quick = {
  baseMs: 1,
  factor: 1,
  capMs: 1,
  steps: Infinity,
  jitter: { kind: "none" },
} as const;
const approval = z.object({ by: z.string() });

function work(...workflows: AnyWorkflow[]) {
  const runs = harness.openRuns();
  runs.work({ workflows, workerId: "test" });
  return runs;
}

test("P9: a run that waits repeatedly executes each body once and ends with its result", async () => {
  // The clock of an execution stands still, so that no sleep has already ended when its record is stored.
  const resume = () => void vi.restoreAllMocks();
  onTestFinished(resume);
  const ignore = () => undefined;
  const observer = {
    executionEnded: resume,
    recorded: ignore,
    handedBack: ignore,
    dropped: ignore,
  };
  const bodies: string[] = [];
  const times: number[] = [];
  const ids: string[] = [];
  const workflow = defineWorkflow("waits", { version: 1 }, async (w, input: { n: number }) => {
    vi.spyOn(performance, "now").mockReturnValue(performance.now());
    ids.push(w.id("object"));
    const a = await w.step("a", async () => bodies.push("a") + input.n);
    times.push(await w.now());
    await w.sleep("short", 30);
    const b = await w.step("b", async () => bodies.push("b") + a);
    await w.sleep("short", 30);
    return await w.step("b", async () => bodies.push("b#2") + b);
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test", observer });
  const { id } = await runs.start(workflow, { n: 10 });
  const run = await ended(runs, workflow, id);
  expect(run).toMatchObject({ status: "done", result: 16 });
  expect(bodies).toEqual(["a", "b", "b#2"]);
  expect(new Set(times).size).toBe(1);
  expect(new Set(ids).size).toBe(1);
  expect(times.length).toBe(3);
  const steps = await runs.steps({ workflow: "waits", id });
  expect(steps.map(({ name }) => name)).toEqual(["a", "now", "short", "b", "short#2", "b#2"]);
  // G7: the end of a sleep is recorded after it, by the same clock.
  for (const { untilMs = Infinity, atMs } of steps.filter(({ kind }) => kind === "sleep")) {
    expect(atMs).toBeGreaterThanOrEqual(untilMs);
  }
});

test("P8: a process that was suspended for longer than its lease begins no body of a step", async () => {
  const leaseMs = 1_000;
  const begun: string[] = [];
  let stalls = 0;
  let isLate = false;
  const workflow = defineWorkflow("late", { version: 1 }, async (w) => {
    if (stalls++ === 0) {
      const endMs = performance.now() + leaseMs;
      while (performance.now() < endMs);
      isLate = true;
      // The body would begin before any timer runs.
      setImmediate(() => (isLate = false));
    }
    await w.step("a", () => void begun.push(isLate ? "late" : "in time"));
  });
  const runs = harness.openRuns({ leaseMs });
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  await until("the body runs", () => begun.length > 0);
  expect(begun).not.toContain("late");
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done" });
});

test("G7: buffers signals, delivers them once in order, and drops and reports invalid ones", async () => {
  const workflow = defineWorkflow("signals", { version: 1 }, async (w) => {
    const first = await w.signal("approve", { schema: approval });
    await w.sleep("pause", 20);
    const second = await w.signal("approve", { schema: approval });
    const late = await w.signal("never", { timeout: 30 });
    const third = await w.signal<string>("other");
    return [first.by, second.by, late, third];
  });
  const runs = harness.openRuns();
  const { id } = await runs.start(workflow, undefined);
  const ref = { workflow: "signals", id };
  await runs.signal(ref, "approve", { payload: "nonsense", id: "bad", by: "mallory" });
  await runs.signal(ref, "approve", { payload: { by: "ann" }, id: "1", by: "ann" });
  await runs.signal(ref, "approve", { payload: { by: "ann" }, id: "1" });
  runs.work({ workflows: [workflow], workerId: "test" });
  await until("the first is consumed", async () =>
    (await runs.steps(ref)).find(({ name }) => name === "pause"),
  );
  await runs.signal(ref, "approve", { payload: { by: "bob" } });
  await until("the timeout has passed", async () =>
    (await runs.steps(ref)).find(({ name }) => name === "never"),
  );
  await runs.signal(ref, "other", { payload: "last" });
  expect(await ended(runs, workflow, id)).toMatchObject({ result: ["ann", "bob", null, "last"] });
  const steps = await runs.steps(ref);
  expect((await runs.refusedSignals(ref)).last).toMatchObject([
    { id: "bad", message: expect.stringContaining("expected object") },
  ]);
  expect(steps.find(({ name }) => name === "approve")).toMatchObject({ by: "ann" });
  await expect(runs.signal(ref, "other")).rejects.toMatchObject({ code: "run_ended" });
  await expect(runs.signal({ workflow: "signals", id: "no" }, "x")).rejects.toMatchObject({
    code: "not_found",
  });
});

test("retries a step up to its attempts; its failure is the same in each execution and can be caught", async () => {
  const tries: string[] = [];
  const keys = new Set<string>();
  const workflow = defineWorkflow("retries", { version: 1 }, async (w) => {
    const text = await w.step(
      "flaky",
      async ({ attempt, idempotencyKey }) => {
        tries.push(`flaky ${attempt}`);
        keys.add(idempotencyKey);
        if (attempt < 3) throw new Error("not yet");
        return "up";
      },
      { retry: { policy: quick } },
    );
    const caught: string[] = [];
    for (const [name, error] of Object.entries({
      broken: new Error("broken"),
      terminal: new TerminalError("no use"),
    })) {
      try {
        await w.step(
          name,
          async ({ attempt }) => {
            tries.push(`${name} ${attempt}`);
            throw error;
          },
          { retry: { attempts: 2, policy: quick } },
        );
      } catch (failed) {
        if (failed instanceof StepFailedError)
          caught.push(`${failed.step}: ${failed.failure.message}`);
      }
      await w.sleep("replay", 1);
    }
    return { text, caught };
  });
  const runs = work(workflow);
  const { id } = await runs.start(workflow, undefined);
  expect(await ended(runs, workflow, id)).toMatchObject({
    status: "done",
    result: { text: "up", caught: ["broken: broken", "terminal: no use"] },
  });
  expect(tries).toEqual(["flaky 1", "flaky 2", "flaky 3", "broken 1", "broken 2", "terminal 1"]);
  expect(keys.size).toBe(1);
});

test("aborts and abandons a body after its timeout; a non-JSON result fails with its path", async () => {
  let shown: unknown;
  const workflow = defineWorkflow("limits", { version: 1 }, async (w) => {
    const failures: string[] = [];
    const note = (error: unknown) => failures.push((error as StepFailedError).failure.code);
    await w
      .step(
        "slow",
        ({ signal }) => {
          signal.addEventListener("abort", () => (shown = signal.reason));
          return new Promise<void>(() => undefined);
        },
        { timeout: 20, retry: { attempts: 1 } },
      )
      .catch(note);
    await w.step("date", async () => ({ deep: [new Date() as unknown as string] })).catch(note);
    await w.step("nested", async () => await w.step("inner", async () => 1)).catch(note);
    await Promise.all([w.step("same", async () => 1), w.step("same", async () => 2)]).catch(
      (error: unknown) => failures.push((error as { code: string }).code),
    );
    return failures;
  });
  const runs = work(workflow);
  const { id } = await runs.start(workflow, undefined);
  expect(await ended(runs, workflow, id)).toMatchObject({
    result: ["timed_out", "invalid_result", "invalid_workflow", "invalid_workflow"],
  });
  expect(shown).toMatchObject({ code: "timed_out" });
  const steps = await runs.steps({ workflow: "limits", id });
  expect(steps.find(({ name }) => name === "date")?.error?.message).toContain(
    "/deep/0 is an instance of Date",
  );
});

test("records concurrent branches separately, and continues after the slowest", async () => {
  const bodies: string[] = [];
  const workflow = defineWorkflow("branches", { version: 1 }, async (w) => {
    const branch = async (name: string, ms: number) => {
      await w.step(`${name}/begin`, async () => void bodies.push(`${name}/begin`));
      await w.sleep(`${name}/sleep`, ms);
      return await w.step(`${name}/end`, async () => {
        bodies.push(`${name}/end`);
        return name;
      });
    };
    return await Promise.all([branch("a", 120), branch("b", 10), branch("c", 60)]);
  });
  const runs = work(workflow);
  const { id } = await runs.start(workflow, undefined);
  expect(await ended(runs, workflow, id)).toMatchObject({ result: ["a", "b", "c"] });
  expect(bodies.toSorted()).toEqual(["a/begin", "a/end", "b/begin", "b/end", "c/begin", "c/end"]);
});

test("a failed run undoes its steps in reverse order, each once, and reports its error", async () => {
  const undone: string[] = [];
  let failures = 0;
  const workflow = defineWorkflow("undo", { version: 1 }, async (w) => {
    for (const name of ["network", "disk", "machine"]) {
      await w.step(name, async () => `id of ${name}`, {
        retry: { policy: quick },
        undo: (result) => {
          if (name === "disk" && failures++ < 2) throw new Error("disk is busy");
          undone.push(`${name}: ${result}`);
        },
      });
    }
    await w.sleep("boot", 10);
    await w.step(
      "start",
      async () => {
        throw new TerminalError("no licence");
      },
      { undo: (result) => void undone.push(`start: ${result}`) },
    );
  });
  const runs = work(workflow);
  const { id } = await runs.start(workflow, undefined);
  expect(await ended(runs, workflow, id)).toMatchObject({
    status: "failed",
    error: { code: "step_failed", message: 'step "start" failed: no licence' },
  });
  expect(undone).toEqual([
    "start: undefined",
    "machine: id of machine",
    "disk: id of disk",
    "network: id of network",
  ]);
  const steps = await runs.steps({ workflow: "undo", id });
  expect(steps.filter(({ kind }) => kind === "undo").map(({ name }) => name)).toEqual([
    "undo:start",
    "undo:machine",
    "undo:disk",
    "undo:network",
  ]);
});

test("a cancellation during the backoff of an uncounted attempt undoes the step, which may have acted", async () => {
  const undone: string[] = [];
  const workflow = defineWorkflow("uncounted", { version: 1 }, async (w) => {
    await w.step(
      "make",
      async () => {
        await new Promise((resolve) => setImmediate(resolve));
        throw new KonvergeError("kube_unreachable", "the response was lost", {
          retryAfterMs: 3_600_000,
        });
      },
      { undo: () => void undone.push("make") },
    );
  });
  const runs = work(workflow);
  const { id } = await runs.start(workflow, undefined);
  await inStatus(runs, workflow, id, "waiting");
  await runs.cancel({ workflow: "uncounted", id }, { by: "ann" });
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "cancelled" });
  expect(undone).toEqual(["make"]);
});

test("a cancellation aborts the running body, lets the function clean up, and undoes the steps", async () => {
  const seen: string[] = [];
  const workflow = defineWorkflow("cancelled", { version: 1 }, async (w) => {
    await w.step("made", async () => 1, { undo: () => void seen.push("undo made") });
    try {
      await w.step(
        "long",
        ({ signal }) =>
          new Promise<void>((_, reject) => {
            seen.push("long");
            signal.addEventListener("abort", () => reject(new Error("shown")));
          }),
        { undo: () => void seen.push("undo long") },
      );
    } catch (error) {
      seen.push((error as { code: string }).code);
      await w.step("clean", async () => void seen.push("clean"));
      throw error;
    }
  });
  const asleep = defineWorkflow("asleep", { version: 1 }, async (w) => {
    await w.sleep("night", "8h");
  });
  const runs = work(workflow, asleep);
  const { id } = await runs.start(workflow, undefined);
  await until("the body runs", () => seen.includes("long"));
  await runs.cancel({ workflow: "cancelled", id }, { by: "ann", reason: "wrong one" });
  expect(await ended(runs, workflow, id)).toMatchObject({
    status: "cancelled",
    cancel: { by: "ann", reason: "wrong one" },
    error: { code: "cancelled" },
  });
  expect(seen).toEqual(["long", "cancelled", "clean", "undo long", "undo made"]);

  const other = await runs.start(asleep, undefined);
  await inStatus(runs, asleep, other.id, "waiting");
  await runs.cancel({ workflow: "asleep", id: other.id });
  expect(await ended(runs, asleep, other.id)).toMatchObject({ status: "cancelled" });
  await expect(runs.cancel({ workflow: "asleep", id: other.id })).rejects.toMatchObject({
    code: "run_ended",
  });
});

test("passes a child's result and failure to the parent, and the parent's cancellation to the child", async () => {
  const child = defineWorkflow("child", { version: 1 }, async (w, input: { how: string }) => {
    await w.sleep("a little", 10);
    if (input.how === "fail") throw new TerminalError("no luck");
    if (input.how === "wait") await w.signal("never");
    return { how: input.how };
  });
  const parent = defineWorkflow("parent", { version: 1 }, async (w, input: { how: string }) => {
    const fine = await w.child("fine", child, { how: "well" });
    const failed = await w.child("failed", child, { how: "fail" }).then(
      () => "no",
      (error: unknown) => (error as StepFailedError).failure.message,
    );
    if (input.how === "wait") await w.child("waiting", child, { how: "wait" });
    return { fine, failed };
  });
  const runs = work(parent, child);
  const { id } = await runs.start(parent, { how: "end" }, { id: "p" });
  expect(await ended(runs, parent, id)).toMatchObject({
    result: { fine: { how: "well" }, failed: "run p.failed is failed: no luck" },
  });
  expect(await runs.get({ workflow: "child", id: "p.fine" })).toMatchObject({
    parent: { workflow: "parent", id: "p" },
  });
  await runs.start(parent, { how: "wait" }, { id: "q" });
  await until("the child waits", async () => {
    const run = await runs.get({ workflow: "child", id: "q.waiting" });
    return run?.status === "waiting" && run.waitingUntilMs === undefined;
  });
  await runs.cancel({ workflow: "parent", id: "q" });
  expect(await ended(runs, parent, "q")).toMatchObject({ status: "cancelled" });
  expect(await runs.get({ workflow: "child", id: "q.waiting" })).toMatchObject({
    status: "cancelled",
  });
});

test("queued runs with a key run one after another, in the order of their starts", async () => {
  const order: string[] = [];
  const workflow = defineWorkflow("serial", { version: 1 }, async (w, input: { name: string }) => {
    await w.step("begin", async () => void order.push(`${input.name} begins`));
    await w.step("end", async () => void order.push(`${input.name} ends`));
  });
  const runs = work(workflow);
  const names = Array.from({ length: 8 }, (_, n) => `r${n}`);
  for (const name of names) {
    await runs.start(workflow, { name }, { id: name, key: "k", onExisting: "queue" });
  }
  for (const name of names) await ended(runs, workflow, name);
  // A body may run twice, but not beside or after the next run.
  expect(order.filter((line, index) => line !== order[index - 1])).toEqual(
    names.flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
});

test("a cancelled queued run ends at once, and a second cancellation reaches a child", async () => {
  const kid = defineWorkflow("deaf-kid", { version: 1 }, async (w) => {
    await w.signal("never").catch(() => undefined);
    await w.signal("clean up");
  });
  const boss = defineWorkflow("boss", { version: 1 }, async (w) => {
    await w.child("kid", kid, undefined);
  });
  const workflows = work(boss, kid);
  const first = { workflow: "boss", id: "first" };
  const second = { workflow: "boss", id: "second" };
  for (const { id } of [first, second]) {
    await workflows.start(boss, undefined, { id, key: "k", onExisting: "queue" });
  }
  await inStatus(workflows, kid, "first.kid", "waiting");
  expect(await workflows.cancel(second, { by: "ann" })).toEqual({ effect: "requested" });
  expect(await workflows.get(second)).toMatchObject({
    status: "cancelled",
    error: { code: "cancelled", message: "the run was cancelled by ann" },
  });
  expect(await workflows.cancel(first)).toEqual({ effect: "requested" });
  await until("the kid has caught its cancellation", async () => {
    const kidRun = await workflows.get({ workflow: "deaf-kid", id: "first.kid" });
    return kidRun?.waits?.[0]?.step === "clean up";
  });
  await until("the second cancellation is passed on", async () => {
    return (await workflows.cancel(first)).effect === "requested";
  });
  expect(await ended(workflows, boss, "first")).toMatchObject({ status: "cancelled" });
  expect(await ended(workflows, kid, "first.kid")).toMatchObject({ status: "cancelled" });
});

test("a child that is done when its parent fails beside it is undone", async () => {
  const seen: string[] = [];
  const copy = defineWorkflow("copy", { version: 1 }, async (w) => {
    await w.step("copy", () => void seen.push("copied"));
  });
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    const fail = async (): Promise<void> => {
      await until("the child is done", async () => {
        return (await runs.get({ workflow: "copy", id: "p.copy" }))?.status === "done";
      });
      throw new TerminalError("no");
    };
    await Promise.all([
      w.child("copy", copy, undefined, { undo: () => void seen.push("copy deleted") }),
      w.step("fail", fail, { timeout: "5m" }),
    ]);
  });
  const runs = work(parent, copy);
  await runs.start(parent, undefined, { id: "p" });
  expect(await ended(runs, parent, "p")).toMatchObject({ status: "failed" });
  expect(seen).toContain("copy deleted");
});

test("one run per key: attach returns it, reject fails, supersede cancels it and starts after its end", async () => {
  const order: string[] = [];
  const workflow = defineWorkflow("keyed", { version: 1 }, async (w, input: { name: string }) => {
    await w.step("begin", async () => void order.push(`${input.name} begins`), {
      undo: () => void order.push(`${input.name} undone`),
    });
    if (input.name !== "last") await w.signal("go");
  });
  const runs = work(workflow);
  const key = "rollout:demo/web";
  // Runs of the same millisecond are sorted by id.
  const first = await runs.start(workflow, { name: "first" }, { key, id: "1" });
  expect(await runs.start(workflow, { name: "other" }, { key })).toEqual({
    id: first.id,
    created: false,
  });
  await expect(
    runs.start(workflow, { name: "other" }, { key, onExisting: "reject" }),
  ).rejects.toMatchObject({ code: "run_exists" });
  await until("the first starts", () => order.length > 0);
  const second = await runs.start(
    workflow,
    { name: "second" },
    { key, onExisting: "supersede", id: "2" },
  );
  const last = await runs.start(
    workflow,
    { name: "last" },
    { key, onExisting: "supersede", id: "3" },
  );
  expect(await ended(runs, workflow, last.id)).toMatchObject({ status: "done" });
  expect(await ended(runs, workflow, first.id)).toMatchObject({ status: "cancelled" });
  expect(await ended(runs, workflow, second.id)).toMatchObject({ status: "cancelled" });
  // The second is cancelled before or after its first step; the last one starts after both.
  expect(order.filter((line) => !line.startsWith("second"))).toEqual([
    "first begins",
    "first undone",
    "last begins",
  ]);
  expect(order.at(-1)).toBe("last begins");
  const page = await runs.list("keyed", { limit: 2 });
  expect(page.runs.map(({ id }) => id)).toEqual([last.id, second.id]);
  expect(
    (await runs.list("keyed", { limit: 2, ...(page.next && { from: page.next }) })).runs.map(
      ({ id }) => id,
    ),
  ).toEqual([first.id]);
});

test("unfit code blocks a run with a reason, and fitting code continues it", async () => {
  const bodies: string[] = [];
  const step = async () => void bodies.push("x");
  const old = defineWorkflow("changing", { version: 1 }, async (w) => {
    await w.step("x", step);
    await w.signal("go");
    return "old";
  });
  const oldRuns = harness.openRuns();
  const oldWorker = oldRuns.work({ workflows: [old], workerId: "old" });
  const { id } = await oldRuns.start(old, undefined);
  const ref = { workflow: "changing", id };
  await inStatus(oldRuns, old, id, "waiting");
  await oldWorker.stop();

  const newer = defineWorkflow("changing", { version: 2 }, async () => "new");
  const newRuns = harness.openRuns();
  const newWorker = newRuns.work({ workflows: [newer], workerId: "new" });
  await newRuns.signal(ref, "go");
  expect((await inStatus(newRuns, newer, id, "blocked")).blockedReason).toMatch(
    /started by version 1.*has version 2.*accepts/,
  );
  await newWorker.stop();

  const clash = defineWorkflow("changing", { version: 3, accepts: [1] }, async (w) => {
    await w.sleep("x", "1h");
    return "clash";
  });
  const clashRuns = harness.openRuns();
  const clashWorker = clashRuns.work({ workflows: [clash], workerId: "clash" });
  await clashRuns.signal(ref, "wake");
  await until("the mismatch is reported", async () =>
    (await clashRuns.get(ref))?.blockedReason?.includes(
      'the journal has "x" as a step, but the code makes it a sleep',
    ),
  );
  await clashWorker.stop();

  const fitting = defineWorkflow("changing", { version: 4, accepts: [1] }, async (w) => {
    await w.step("new first", step);
    await w.step("x", step);
    return await w.signal("go").then(() => "fits");
  });
  const runs = work(fitting);
  await runs.signal(ref, "wake");
  expect(await ended(runs, fitting, id)).toMatchObject({ status: "done", result: "fits" });
  expect(bodies).toEqual(["x", "x"]);
});

test("an input that newer code rejects blocks a run with records until code accepts it", async () => {
  const undone: string[] = [];
  const make = (version: number, input: z.ZodType<{ readonly name: string }>) =>
    defineWorkflow("stricter", { version, accepts: version === 1 ? [] : [1], input }, async (w) => {
      await w.step("make", () => null, { undo: () => void undone.push("make") });
      await w.signal("go");
      throw new TerminalError("to be undone");
    });
  const old = make(1, z.object({ name: z.string() }));
  const oldRuns = harness.openRuns();
  const oldWorker = oldRuns.work({ workflows: [old], workerId: "old" });
  const { id } = await oldRuns.start(old, { name: "a" });
  const ref = { workflow: "stricter", id };
  await inStatus(oldRuns, old, id, "waiting");
  await oldWorker.stop();

  const strict = make(2, z.object({ name: z.string().min(2) }));
  const strictRuns = harness.openRuns();
  const strictWorker = strictRuns.work({ workflows: [strict], workerId: "strict" });
  await strictRuns.signal(ref, "go");
  expect((await inStatus(strictRuns, strict, id, "blocked")).blockedReason).toMatch(
    /the input of "stricter" does not fit its schema.*earlier code accepted it/s,
  );
  await strictWorker.stop();

  const fitting = make(3, z.object({ name: z.string() }));
  const runs = work(fitting);
  await runs.signal(ref, "wake");
  expect(await ended(runs, fitting, id)).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["make"]);
});

test("rejects input that is invalid or not JSON, and passes schema defaults to the run", async () => {
  const input = z.object({ name: z.string().min(1), replicas: z.number() });
  const workflow = defineWorkflow(
    "checked",
    { version: 1, input },
    async (_, { name, replicas }) => {
      return `${name} x ${replicas}`;
    },
  );
  const runs = work(workflow);
  await expect(runs.start(workflow, { name: "", replicas: 1 })).rejects.toMatchObject({
    code: "invalid_request",
  });
  const odd = { name: "web", replicas: Number.NaN };
  await expect(runs.start(workflow, odd)).rejects.toMatchObject({
    code: "invalid_result",
    message: expect.stringContaining("/replicas is NaN") as string,
  });
  expect((await runs.list("checked")).runs).toEqual([]);
  const { id } = await runs.start(workflow, { name: "web", replicas: 3 });
  expect(await ended(runs, workflow, id)).toMatchObject({ result: "web x 3" });
});

test("a Redis Cluster has the runs of a cluster in one slot, with their queues over several shards", async () => {
  await using cluster = await startRedisCluster();
  const child = defineWorkflow("part", { version: 1 }, async (w, n: number) => {
    return await w.step("square", async () => n * n);
  });
  const workflow = defineWorkflow("whole", { version: 1 }, async (w) => {
    const parts = await Promise.all([1, 2, 3].map((n) => w.child(`part ${n}`, child, n)));
    await w.sleep("pause", 5);
    return [...parts, await w.signal<number>("last")];
  });
  const runs = harness.openRuns({ redis: { url: cluster.url }, shards: 3 });
  runs.work({ workflows: [workflow, child], workerId: "test" });
  const key = "one";
  // A producer waits less than 1 s, but a loaded machine needs longer to connect to every node.
  const first = await until("the first start", () =>
    runs.start(workflow, undefined, { key, id: "first" }).catch(() => undefined),
  );
  const second = await runs.start(workflow, undefined, { key, onExisting: "supersede" });
  await runs.signal({ workflow: "whole", id: second.id }, "last", { payload: 16 });
  expect(await ended(runs, workflow, second.id)).toMatchObject({ result: [1, 4, 9, 16] });
  expect(await runs.get({ workflow: "whole", id: first.id })).toMatchObject({
    status: "cancelled",
  });
  await runs.close();
});
