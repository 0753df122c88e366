import { defined, KonvergeError, toMs, type Duration } from "@konverge/core";
import { cancelRun } from "../execution/cancel-run.ts";
import type { AnyWorkflow, Workflow } from "../define/define-workflow.ts";
import type { OnExisting } from "../define/on-existing.ts";
import { startRun } from "../store/start-run.ts";
import { jsonCopy } from "../define/json-value.ts";
import { retryRun } from "../store/retry-run.ts";
import type { NewRun } from "../store/run-actions.ts";
import { checkJson } from "../define/check-json.ts";
import { childIdOf, roundIdOf, type RunRef } from "../define/run-ref.ts";
import { isEndStatus, type LogLine, type RunView, type StepRecord } from "../store/run-record.ts";
import { heldOfRecords } from "../store/held-of-records.ts";
import type { RunHistory } from "../store/run-history.ts";
import { updateSignal, updateSignalId } from "../store/run-updates.ts";
import { refusal } from "../store/run-refusal.ts";
import { sendSignal } from "../store/send-signal.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import type { TestHeartbeat } from "./test-faults.ts";
import type {
  TestChild,
  TestRetryOptions,
  TestRun,
  TestSchedule,
  TestWorkflowOptions,
} from "./test-run.ts";
import { runAt } from "./test-schedules.ts";
import { TestWorker } from "./test-worker.ts";

/**
 * Starts a run without Redis, to test the logic of a workflow. Timeouts of bodies use real time; all other waits end when the
 * test advances the clock, and delays between attempts end at once.
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
  return new MemoryTestRun(workflow, input, options);
}

class MemoryTestRun implements TestRun {
  #workflow: AnyWorkflow;
  /** The run, or the latest retry of it. */
  #ref: RunRef;
  readonly #worker: TestWorker;
  readonly #started: Promise<void>;
  #signals = 0;
  #others = 0;

  constructor(workflow: AnyWorkflow, input: unknown, options: TestWorkflowOptions) {
    this.#workflow = workflow;
    this.#ref = { workflow: workflow.name, id: "test" };
    this.#worker = new TestWorker(workflow, options);
    this.#started = this.#start(input, options.key);
    // Each call of the test throws it.
    this.#started.catch(() => undefined);
  }

  get bodies(): readonly string[] {
    return this.#worker.faults.bodies;
  }

  get heartbeats(): readonly TestHeartbeat[] {
    return this.#worker.faults.heartbeats;
  }

  async run(): Promise<RunView> {
    await this.#started;
    return await this.#view();
  }

  steps(): Promise<ReadonlyMap<string, StepRecord>> {
    return this.#worker.store.steps(this.#ref);
  }

  async history(): Promise<RunHistory> {
    await this.#started;
    const history = await this.#worker.store.history(this.#ref);
    if (history === undefined) throw new Error("the run does not exist");
    return history;
  }

  async settle(): Promise<RunView> {
    await this.#started;
    await this.#worker.settle();
    return await this.#settled();
  }

  async advance(duration: Duration): Promise<RunView> {
    await this.settle();
    return await this.#advanceTo(this.#worker.nowMs + toMs(duration, "duration"));
  }

  async outage(duration: Duration): Promise<RunView> {
    await this.settle();
    if (this.#worker.isHeld) throw new Error("a body is held; call releaseStep before outage");
    this.#worker.skip(toMs(duration, "duration"));
    return await this.#advanceTo(this.#worker.nowMs);
  }

  schedule(schedule: Schedule): TestSchedule {
    this.#worker.schedules.add(schedule);
    const { name, workflow } = schedule;
    if (!this.#worker.definitions.has(workflow.name))
      this.#worker.definitions.set(workflow.name, workflow);
    const { control } = this.#worker.schedules;
    const refs = () => this.#worker.schedules.runsOf(schedule);
    const settled = async <T>(call: () => Promise<T>): Promise<T> => {
      await this.settle();
      const result = await call();
      await this.settle();
      return result;
    };
    return {
      get: async () => await settled(async () => await control.get(name)),
      runs: async () =>
        await settled(async () => await Promise.all(refs().map((ref) => this.#viewOf(ref)))),
      run: (index = -1) => this.#handleOf(async () => runAt(refs(), index, schedule)),
      pause: async () => await settled(async () => await control.pause(name)),
      resume: async () => await settled(async () => await control.resume(name)),
      trigger: async (options) => {
        const { id } = await settled(async () => await control.trigger(name, options));
        this.#worker.schedules.note(name, id);
        return await this.#viewOf({ workflow: workflow.name, id });
      },
      backfill: async (options) => {
        const { times } = await settled(async () => await control.backfill(name, options));
        for (const { run } of times) this.#worker.schedules.note(name, run);
      },
    };
  }

  async signal(name: string, payload?: unknown): Promise<RunView> {
    await this.settle();
    this.#signals += 1;
    return await this.#signal(this.#ref, { name, id: String(this.#signals), payload });
  }

  logs(): Promise<readonly LogLine[]> {
    return this.#worker.store.logs(this.#ref);
  }

  async update(name: string, payload?: unknown): Promise<unknown> {
    await this.settle();
    this.#signals += 1;
    const id = String(this.#signals);
    const signal = { name: updateSignal(name), id: updateSignalId(id), payload };
    await this.#signal(this.#ref, signal);
    const answer = await this.#worker.store.answerTo(this.#ref, id);
    if (answer === undefined) throw new Error(`the run does not handle update "${name}" now`);
    if (answer.kind === "refused") {
      const { message, issues } = answer.refusal;
      throw new KonvergeError("invalid_request", message, { issues });
    }
    return answer.value;
  }

  async cancel(): Promise<RunView> {
    await this.settle();
    return await this.#wake(await this.#cancel(this.#ref));
  }

  async pause(): Promise<RunView> {
    await this.settle();
    const { workflow, id } = this.#ref;
    const [answer = "missing"] = await this.#worker.store.pause(workflow, [id], { request: {} });
    return await this.#wake(answer);
  }

  async resume(): Promise<RunView> {
    await this.settle();
    const { workflow, id } = this.#ref;
    const [answer = "missing"] = await this.#worker.store.resume(workflow, [id]);
    return await this.#wake(answer);
  }

  child(step: string): TestChild {
    return this.#childOf(async () => this.#ref, step);
  }

  async retry(options: TestRetryOptions = {}): Promise<RunView> {
    await this.settle();
    const { version } = this.#workflow;
    this.#ref = await retryRun(
      {
        store: this.#worker.store,
        start: async (run) =>
          void (await startRun(this.#worker.store, this.#worker.wakeLater, run)),
        wake: this.#worker.wakeLater,
      },
      this.#ref,
      { version, ...options },
    );
    return await this.settle();
  }

  async startOther(
    input: unknown,
    { onExisting }: { readonly onExisting?: OnExisting } = {},
  ): Promise<TestChild> {
    const { key } = await this.settle();
    if (key === undefined) throw new Error("the run has no key; pass key to testWorkflow");
    this.#others += 1;
    const id = `other-${this.#others}`;
    const run = { ...this.#newRun(id, input), key, ...defined({ onExisting }) };
    const started = await startRun(this.#worker.store, this.#worker.wakeLater, run);
    await this.settle();
    return this.#handleOf(async () => ({ workflow: this.#workflow.name, id: started.id }));
  }

  deploy(workflow: AnyWorkflow): void {
    const { name } = workflow;
    if (!this.#worker.definitions.has(name)) {
      const known = [...this.#worker.definitions.keys()].join(", ");
      throw new Error(`workflow "${name}" is not part of this test; its workflows: ${known}`);
    }
    this.#worker.definitions.set(name, workflow);
    if (name === this.#workflow.name) this.#workflow = workflow;
  }

  failStep(step: string, error: Error, { times = 1 }: { readonly times?: number } = {}): void {
    this.#worker.faults.failStep(step, error, times);
  }

  crashAfter(step: string): void {
    this.#worker.faults.crashAfter(step);
  }

  crashIn(step: string): void {
    this.#worker.faults.crashIn(step);
  }

  crashAtHeartbeat(step: string, nth = 1): void {
    this.#worker.faults.crashAtHeartbeat(step, nth);
  }

  holdStep(step: string): void {
    this.#worker.faults.holdStep(step);
  }

  async releaseStep(step: string): Promise<RunView> {
    this.#worker.faults.releaseStep(step);
    return await this.settle();
  }

  async replay(): Promise<void> {
    const run = await this.settle();
    if (this.#worker.isHeld) throw new Error("a body is held; call releaseStep before replay");
    const before = this.bodies.length;
    const { parsedInput } = await this.history();
    const held = heldOfRecords({
      ...this.#ref,
      run,
      steps: await this.steps(),
      nowMs: this.#worker.nowMs,
      ...defined({ parsedInput }),
    });
    const end = await this.#worker.replay(this.#workflow, held);
    const again = this.bodies.slice(before);
    if (again.length > 0) throw new Error(`the replay executed ${again.join(", ")} again`);
    if (end.kind === "error") throw end.error;
    if (end.kind === "blocked" && run.status !== "blocked") throw new Error(end.reason);
  }

  async #start(input: unknown, key: string | undefined): Promise<void> {
    await this.#worker.store.start({ ...this.#newRun(this.#ref.id, input), ...defined({ key }) });
    this.#worker.wake(this.#ref);
  }

  #newRun(id: string, input: unknown): NewRun {
    const { name, version } = this.#workflow;
    checkJson(input, `the input of "${name}"`);
    return { workflow: name, id, version, input: jsonCopy(input ?? null) };
  }

  async #advanceTo(untilMs: number): Promise<RunView> {
    await this.#worker.advanceTo(untilMs);
    return await this.#settled();
  }

  #childOf(parent: () => Promise<RunRef>, step: string): TestChild {
    return this.#handleOf(async () => await this.#findChild(await parent(), step));
  }

  #handleOf(refOf: () => Promise<RunRef>): TestChild {
    const find = async () => {
      await this.settle();
      return await refOf();
    };
    return {
      run: async () => await this.#viewOf(await find()),
      steps: async () => await this.#worker.store.steps(await find()),
      signal: async (name, payload) => {
        const ref = await find();
        this.#signals += 1;
        await this.#signal(ref, { name, id: String(this.#signals), payload });
        return await this.#viewOf(ref);
      },
      cancel: async () => {
        const ref = await find();
        await this.#wake(await this.#cancel(ref), ref);
        return await this.#viewOf(ref);
      },
      child: (inner) => this.#childOf(find, inner),
    };
  }

  async #findChild(parent: RunRef, step: string): Promise<RunRef> {
    const { round } = (await this.#worker.store.get(parent)) ?? {};
    const id = childIdOf(roundIdOf({ id: parent.id, ...defined({ round }) }), step);
    for (const workflow of this.#worker.definitions.keys()) {
      if ((await this.#worker.store.get({ workflow, id })) !== undefined) return { workflow, id };
    }
    throw new Error(`run ${parent.id} of "${parent.workflow}" has not started a child "${step}"`);
  }

  /** By the rules of production. */
  async #signal(ref: RunRef, signal: Parameters<typeof sendSignal>[3]): Promise<RunView> {
    await sendSignal(this.#worker.store, this.#worker.wakeLater, ref, signal);
    return await this.settle();
  }

  async #cancel(ref: RunRef): Promise<string> {
    const { store, wakeLater: wake } = this.#worker;
    const canceller = { store, wake, notify: async () => undefined };
    return (await cancelRun(canceller, ref, {}, { resumes: true })).answer;
  }

  async #wake(result: string, ref = this.#ref): Promise<RunView> {
    if (result === "ended" || result === "missing") throw refusal(ref, result);
    this.#worker.wake(ref);
    return await this.settle();
  }

  async #view(): Promise<RunView> {
    return await this.#viewOf(this.#ref);
  }

  async #viewOf(ref: RunRef): Promise<RunView> {
    const run = await this.#worker.store.get(ref);
    if (run === undefined) throw new Error(`run ${ref.id} does not exist`);
    return run;
  }

  async #settled(): Promise<RunView> {
    const run = await this.#view();
    if (isEndStatus(run.status)) this.#worker.faults.assertMet((await this.steps()).keys());
    return run;
  }
}
