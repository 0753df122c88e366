import { defined, ensureError, KonvergeError, toMs, type Duration } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { ChildStarter } from "../execution/await-child.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow, Workflow } from "../define/define-workflow.ts";
import { runExecution, type ExecutionEnd } from "../execution/run-execution.ts";
import type { RunRef } from "../define/run-ref.ts";
import { isEndStatus, type RunView, type StepRecord } from "../store/run-record.ts";
import type { Held } from "../store/run-journal-store.ts";
import type { RunStore } from "../store/run-store.ts";
import { createMemoryRunStore } from "./memory-run-store.ts";

/** Executions of one wake-up, after which a test is ended that would never come to rest. */
const MAX_EXECUTIONS = 10_000;

export interface TestWorkflowOptions {
  /** The clock at the start, epoch ms. Default 0. */
  readonly startMs?: number;
  /** What `w.child` may start. */
  readonly children?: readonly AnyWorkflow[];
  /**
   * Ends the activation behind each record, so that the function runs again from its start after every step: code between
   * steps that is not the same each time comes to light. Default false.
   */
  readonly replayEveryStep?: boolean;
  /** The API server of the cluster `default`, which is the one of the run. Default: none, and what needs one is refused. */
  readonly kube?: KubeClient;
  /** Several API servers, in place of `kube`. */
  readonly clusters?: ClusterAccess;
}

/**
 * A run in memory, with a clock that stands still. Every call resolves when the run, and its children, have come to rest; it
 * rejects when the run has ended and `failStep`, `crashAfter` or `crashIn` named a step that it did not come to.
 */
export interface TestRun {
  /** How the run stands. */
  run(): Promise<RunView>;
  /** What is recorded, by name. */
  steps(): Promise<ReadonlyMap<string, StepRecord>>;
  /** Bodies that were begun, of steps and undos, in order. */
  readonly bodies: readonly string[];
  /** Runs until all waits, and looks anew at the objects that are waited for. The first call of any kind does it too. */
  settle(): Promise<RunView>;
  /** Moves the clock, stopping at each time at which something goes on. */
  advance(duration: Duration): Promise<RunView>;
  signal(name: string, payload?: unknown): Promise<RunView>;
  cancel(): Promise<RunView>;
  /** The next `times` tries of the step throw `error` in place of its body. Default 1. */
  failStep(step: string, error: Error, options?: { readonly times?: number }): void;
  /** The activation dies once, right behind the record of the step. */
  crashAfter(step: string): void;
  /** The activation dies once, when the body of the step has run and nothing is recorded. */
  crashIn(step: string): void;
  /**
   * Runs the function once more, on what is recorded.
   * @throws Error naming what it did although all that went before was recorded: it is not the same function each time
   */
  replay(): Promise<void>;
}

/** Thrown in place of dying. */
class CrashError extends Error {
  override readonly name = "CrashError";
}

/**
 * Starts a run without Redis: for tests of what a workflow does, not of what Redis keeps. Timeouts of bodies are in real time;
 * all other waits pass when the test says so, those between tries at once.
 *
 * @example
 * const t = testWorkflow(rollout, { name: "web" });
 * t.crashAfter("create");
 * await t.advance("30m");
 * expect((await t.signal("approve", { by: "ann" })).status).toBe("done");
 */
export function testWorkflow<I>(
  workflow: Workflow<I>,
  input: NoInfer<I>,
  options: TestWorkflowOptions = {},
): TestRun {
  const { startMs = 0, children = [], replayEveryStep = false, kube } = options;
  const clusters = options.clusters ?? (kube === undefined ? undefined : onlyCluster(kube));
  const ref: RunRef = { workflow: workflow.name, id: "test" };
  const definitions = new Map([workflow as AnyWorkflow, ...children].map((one) => [one.name, one]));
  const bodies: string[] = [];
  const failures = new Map<string, { readonly error: Error; left: number; met: boolean }>();
  const crashes = { after: new Set<string>(), in: new Set<string>() };
  const woken: RunRef[] = [];
  /** Runs that wait for objects. */
  const watching = new Map<string, RunRef>();
  const dueAtMs = new Map<string, { readonly ref: RunRef; readonly atMs: number }>();
  let nowMs = startMs;
  let lease = 0;
  let signals = 0;
  const store = createMemoryRunStore(() => nowMs);
  const fragile: RunStore = {
    ...store,
    async leave(held, leave) {
      const { workflow: name, id } = held;
      const key = `${name}/${id}`;
      const isWatching = leave.kind === "waiting" && (leave.objects ?? []).length > 0;
      if (isWatching) watching.set(key, { workflow: name, id });
      else if (leave.kind !== "compensating") watching.delete(key);
      return await store.leave(held, leave);
    },
    async commit(held, step, record, how) {
      if (crashes.in.delete(step)) throw new CrashError(`crash in ${step}`);
      const stored = await store.commit(held, step, record, how);
      if (crashes.after.delete(step) || replayEveryStep) {
        throw new CrashError(`crash after ${step}`);
      }
      return stored;
    },
  };
  const readOnly: RunStore = {
    ...store,
    commit: async (_, step) => {
      throw new Error(`replay would record "${step}", which the run did not come to`);
    },
    note: async (_, __, { attempts }) => ({ attempts, untilMs: Infinity }),
    watch: async () => undefined,
    leave: async () => ({}),
  };
  const startChild: ChildStarter = {
    async start(run) {
      if (!definitions.has(run.workflow)) {
        throw new KonvergeError(
          "invalid_config",
          `name "${run.workflow}" in children of testWorkflow`,
        );
      }
      const started = await store.start(run);
      if (started.kind === "created") woken.push(run);
      return started.kind === "exists" ? started.run : undefined;
    },
    async cancel(child, request) {
      if ((await store.cancel(child, request)) === "requested") woken.push(child);
    },
  };
  const beforeBody = (step: string) => {
    bodies.push(step);
    const failure = failures.get(step);
    if (failure === undefined || failure.left === 0) return;
    failure.left -= 1;
    failure.met = true;
    throw failure.error;
  };

  const execute = async (which: RunRef): Promise<ExecutionEnd | undefined> => {
    lease += 1;
    const held = await store.claim(which, { lease, owner: String(lease) });
    const definition = definitions.get(which.workflow);
    if (held.kind !== "held" || definition === undefined) return undefined;
    return await activateOn(fragile, definition, held);
  };
  const activateOn = async (
    on: RunStore,
    definition: AnyWorkflow,
    held: Held,
  ): Promise<ExecutionEnd> =>
    await runExecution({
      store: on,
      workflow: definition,
      held,
      stopped: new AbortController().signal,
      cancelRequested: new AbortController().signal,
      startChild,
      clock: () => nowMs,
      random: () => 0,
      pause: async (ms) => {
        nowMs += Math.ceil(ms);
      },
      beforeBody,
      ...defined({ clusters }),
    });
  const follow = (which: RunRef, end: ExecutionEnd) => {
    const key = `${which.workflow}/${which.id}`;
    dueAtMs.delete(key);
    switch (end.kind) {
      case "waiting":
      case "blocked":
        if (end.afterMs !== undefined) dueAtMs.set(key, { ref: which, atMs: nowMs + end.afterMs });
        return;
      case "ended":
        if (end.followers.parent !== undefined) woken.push(end.followers.parent);
        return;
      case "error":
        if (!(end.error instanceof CrashError)) throw end.error;
        woken.push(which);
        return;
      case "lost":
        throw new Error(`two executions of ${key} met in one test`);
    }
  };
  const rest = async () => {
    for (let count = 0; woken.length > 0; count += 1) {
      if (count > MAX_EXECUTIONS) throw new Error("the run never comes to rest");
      const which = woken.shift() ?? ref;
      const end = await execute(which);
      if (end !== undefined) follow(which, end);
    }
  };
  const view = async (): Promise<RunView> => {
    const run = await store.get(ref);
    if (run === undefined) throw new Error("the run is not there");
    return run;
  };
  /** Else a misspelt name would be a test of nothing. */
  const assertMet = async () => {
    const unmet = [
      ...[...failures].filter(([, { met }]) => !met).map(([step]) => `failStep("${step}")`),
      ...[...crashes.after].map((step) => `crashAfter("${step}")`),
      ...[...crashes.in].map((step) => `crashIn("${step}")`),
    ];
    if (unmet.length === 0) return;
    const steps = [...(await store.steps(ref)).keys()].join(", ");
    throw new Error(`the run ended without coming to ${unmet.join(", ")}; its steps: ${steps}`);
  };
  const started = (async () => {
    const { version } = workflow;
    await store.start({
      ...ref,
      version,
      input: JSON.parse(JSON.stringify(input ?? null)) as unknown,
    });
    woken.push(ref);
  })();
  const atRest = async () => {
    const run = await view();
    if (isEndStatus(run.status)) await assertMet();
    return run;
  };
  const settle = async () => {
    await started;
    // What a watch would tell.
    woken.push(...watching.values());
    await rest();
    return await atRest();
  };

  return {
    async run() {
      await started;
      return await view();
    },
    steps: () => store.steps(ref),
    bodies,
    settle,
    async advance(duration) {
      await settle();
      const untilMs = nowMs + toMs(duration, "duration");
      for (;;) {
        const [next] = [...dueAtMs.values()].toSorted((a, b) => a.atMs - b.atMs);
        if (next === undefined || next.atMs > untilMs) break;
        nowMs = Math.max(nowMs, next.atMs);
        woken.push(next.ref);
        await rest();
      }
      nowMs = Math.max(nowMs, untilMs);
      return await atRest();
    },
    async signal(name, payload) {
      await settle();
      signals += 1;
      const stored = await store.signal(ref, { name, id: String(signals), payload });
      if (stored === "ended") throw new KonvergeError("run_ended", "the run has ended");
      woken.push(ref);
      return await settle();
    },
    async cancel() {
      await settle();
      if ((await store.cancel(ref, {})) === "ended") {
        throw new KonvergeError("run_ended", "the run has ended");
      }
      woken.push(ref);
      return await settle();
    },
    failStep(step, error, { times = 1 } = {}) {
      failures.set(step, { error: ensureError(error), left: times, met: times === 0 });
    },
    crashAfter: (step) => void crashes.after.add(step),
    crashIn: (step) => void crashes.in.add(step),
    async replay() {
      const run = await settle();
      const before = bodies.length;
      const end = await activateOn(readOnly, workflow, {
        ...ref,
        epoch: 0,
        run,
        steps: await store.steps(ref),
        progress: new Map(),
        bytes: 0,
        signals: [],
        waited: [],
        died: false,
        wakeSeq: 0,
        watched: new Set(),
        nowMs,
      });
      const again = bodies.slice(before);
      if (again.length > 0) throw new Error(`replay executed ${again.join(", ")} again`);
      if (end.kind === "error") throw end.error;
    },
  };
}

function onlyCluster(kube: KubeClient): ClusterAccess {
  const home = "default";
  return {
    home,
    async client(name) {
      if (name === home) return kube;
      throw new KonvergeError(
        "invalid_request",
        `cluster "${name}" is not known to this test; give clusters in place of kube`,
      );
    },
  };
}
