import { AsyncLocalStorage } from "node:async_hooks";
import type { SpreadStarter } from "../../../libs/workflow/src/execution/await-spread.ts";
import { runSpreadStep } from "../../../libs/workflow/src/execution/run-spread-step.ts";
import type { AnyWorkflow } from "../../../libs/workflow/src/define/define-workflow.ts";
import type { RunRef } from "../../../libs/workflow/src/define/run-ref.ts";
import { CancelRequests } from "../../../libs/workflow/src/journal/cancel-requests.ts";
import type { Held } from "../../../libs/workflow/src/store/run-journal-store.ts";
import type { NumberedCancel } from "../../../libs/workflow/src/store/run-record.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { UNAVAILABLE, type Execution } from "./execution.ts";
import type { StepOp } from "./replay-program.ts";

/** Chance of a spread step that begins beside the execution of its run. */
const BEGINS_AT_ONCE = 0.7;
const MAX_TRIES = 100;
/** Most turns of the event loop until a worker has noticed a cancellation. */
const MOST_TURNS = 60;

interface Spread {
  readonly ref: RunRef;
  /** Infinity once it has ended, or until it is woken. */
  dueAtMs: number;
  tries: number;
  running?: Promise<void>;
  active?: { readonly held: Held; readonly cancels: CancelRequests };
}

export interface SpreadWorld {
  readonly store: RunStore;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly open: () => Execution;
  readonly workflow: (execution: Execution, answers: string[]) => AnyWorkflow;
  /** Called with what the function has seen, when an execution of a spread step has ended. */
  readonly ended: (answers: readonly string[]) => void;
  readonly report: (finding: string) => void;
  readonly pause: (ms: number) => void;
}

/** The workers that execute the spread steps of a program, each of which may die. */
export class SpreadPlayer implements SpreadStarter {
  readonly #world: SpreadWorld;
  readonly #spreads = new Map<string, Spread>();
  readonly #executions = new Set<Execution>();
  readonly #bodies = new Map<Execution, string>();
  /** Calls as another worker does: not in the branch of the function that begins a step. */
  readonly #elsewhere = AsyncLocalStorage.snapshot();
  #lease = 0;
  #isFrozen = false;

  constructor(world: SpreadWorld) {
    this.#world = world;
  }

  readonly start: SpreadStarter["start"] = async (run) => {
    const started = await this.#world.store.start(run);
    const { workflow, id } = run;
    if (started.kind === "exists") return started.run;
    this.#spreads.set(id, { ref: { workflow, id }, dueAtMs: 0, tries: 0 });
    if (this.#world.random() < BEGINS_AT_ONCE) this.#begin();
    return { id, created: true };
  };

  readonly terminate: SpreadStarter["terminate"] = async () => undefined;

  readonly cancel: SpreadStarter["cancel"] = async (ref, request) => {
    const { store } = this.#world;
    if ((await store.cancel(ref, request)) !== "requested") return;
    const cancel = (await store.cancelling(ref.workflow)).get(ref.id);
    const { active } = this.#spreads.get(ref.id) ?? {};
    if (cancel !== undefined) void this.#later(() => active?.cancels.note(cancel));
    await this.wake(ref);
  };

  readonly get: SpreadStarter["get"] = async (ref) => await this.#world.store.get(ref);

  readonly wake: SpreadStarter["wake"] = async ({ id }) => {
    const spread = this.#spreads.get(id);
    if (spread !== undefined) spread.dueAtMs = 0;
  };

  /** Begins nothing any more: these workers do not have the code of the run. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** True for the execution of a spread step. */
  has(execution: Execution): boolean {
    return this.#executions.has(execution);
  }

  /** Runs a body, and notes that it is at work. */
  async atWork<T>(execution: Execution, { name }: StepOp, body: () => Promise<T>): Promise<T> {
    if (!this.has(execution)) return await body();
    this.#bodies.set(execution, name);
    try {
      return await body();
    } finally {
      this.#bodies.delete(execution);
    }
  }

  /** Checks that a body has ended before its undo begins. */
  checkUndo({ name }: StepOp): void {
    if (this.#atWork().includes(name)) this.#world.report(`${name} is undone during its body`);
  }

  /** The steps whose body is running in a live worker. */
  #atWork(): readonly string[] {
    return [...this.#bodies].flatMap(([{ isOver }, name]) => (isOver ? [] : [name]));
  }

  /** The workers find that the run is cancelled. */
  cancelAll(cancel: NumberedCancel): void {
    for (const { active } of this.#spreads.values()) {
      if (active === undefined) continue;
      const { held, cancels } = active;
      void this.#later(() => cancels.note({ ...cancel, number: held.cancels + 1 }));
    }
  }

  /** As in production, where a worker looks for cancellations once a second. */
  async #later(call: () => void): Promise<void> {
    for (let turns = Math.floor(this.#world.random() * MOST_TURNS); turns > 0; turns -= 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    call();
  }

  /** Executes what is due. Returns true if something was. */
  async play(): Promise<boolean> {
    this.#begin();
    const running = [...this.#spreads.values()].flatMap((spread) => spread.running ?? []);
    await Promise.all(running);
    return running.length > 0;
  }

  /** Delays until spread steps are due. */
  afterMs(): readonly number[] {
    const nowMs = this.#world.nowMs();
    return [...this.#spreads.values()].flatMap(({ dueAtMs }) =>
      dueAtMs === Infinity ? [] : [Math.max(0, dueAtMs - nowMs)],
    );
  }

  /** Checks that the run has ended after its bodies. */
  async end(): Promise<void> {
    for (const name of this.#atWork()) {
      this.#world.report(`${name} is at work after the end of the run`);
    }
    await this.play();
  }

  #begin(): void {
    for (const spread of this.#spreads.values()) {
      if (this.#isFrozen || spread.running !== undefined || spread.dueAtMs > this.#world.nowMs())
        continue;
      spread.dueAtMs = Infinity;
      spread.running = this.#elsewhere(() => this.#execute(spread))
        .catch((error: unknown) => this.#world.report(`spread: ${String(error)}`))
        .finally(() => delete spread.running);
    }
  }

  async #execute(spread: Spread): Promise<void> {
    const { store, random, nowMs, report, pause } = this.#world;
    spread.tries += 1;
    if (spread.tries > MAX_TRIES) return report(`${spread.ref.id} has not ended`);
    const lease = (this.#lease += 1);
    const held = await store.claim(spread.ref, { lease, owner: String(lease) });
    if (held.kind !== "held") return;
    const execution = this.#world.open();
    this.#executions.add(execution);
    const cancels = new CancelRequests();
    spread.active = { held, cancels };
    const answers: string[] = [];
    const end = await runSpreadStep({
      store: execution.storeOf(store),
      workflow: this.#world.workflow(execution, answers),
      held,
      stopped: execution.stopped,
      cancels,
      clock: nowMs,
      random,
      pause: async (ms) => pause(ms),
      wake: async () => this.#world.ended([]),
      onError: (error) => report(error.message),
    });
    delete spread.active;
    execution.end();
    switch (end.kind) {
      case "waiting":
      case "blocked":
        // Unless it was woken meanwhile.
        spread.dueAtMs = Math.min(spread.dueAtMs, nowMs() + (end.afterMs ?? Infinity));
        break;
      case "lost":
        spread.dueAtMs = 0;
        break;
      case "error":
        if (end.error.message !== UNAVAILABLE) report(`spread: ${String(end.error.stack)}`);
        spread.dueAtMs = 0;
        break;
      default:
    }
    this.#world.ended(answers);
  }
}
