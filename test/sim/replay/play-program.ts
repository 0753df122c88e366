import { ensureError } from "@konverge/core";
import {
  runExecution,
  type ExecutionEnd,
} from "../../../libs/workflow/src/execution/run-execution.ts";
import type { StepContext, Workflow } from "../../../libs/workflow/src/define/define-workflow.ts";
import { undoName, undoneStep } from "../../../libs/workflow/src/define/undo-name.ts";
import { PauseState } from "../../../libs/workflow/src/journal/pause-state.ts";
import { CancelRequests } from "../../../libs/workflow/src/journal/cancel-requests.ts";
import type { RunRef } from "../../../libs/workflow/src/define/run-ref.ts";
import type { Held, RunNews } from "../../../libs/workflow/src/store/run-journal-store.ts";
import type { RunView, StepRecord } from "../../../libs/workflow/src/store/run-record.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { withCodec } from "../../../libs/workflow/src/codec/coded-run-store.ts";
import { createMemoryRunStore } from "../../../libs/workflow/src/testing/memory-run-store.ts";
import { Execution, UNAVAILABLE } from "./execution.ts";
import { SpreadPlayer } from "./play-spreads.ts";
import {
  makeRounds,
  opsOf,
  rename,
  workflowOf,
  type Op,
  type Program,
  type StepOp,
  type Verb,
} from "./replay-program.ts";
import { scrambleCodec } from "../../support/scramble-codec.ts";
import { noChildren } from "../../support/no-children.ts";

type Awaited = Parameters<RunStore["news"]>[1];

const REF = { workflow: "program", id: "r" };
/** Executions after which a run counts as endless. */
const MAX_EXECUTIONS = 500;
const MAX_CRASHES = 8;
/** Reads of news after which an execution counts as endless. */
const MOST_READS = 2_000;
/** Chance of a body that looks on while an event reaches the other branches. */
const LOOKS_ON_AT = 0.3;
/** Turns of the event loop within which it must, then timers, as a replay waits by timers for a verb that is not called yet. */
const MOST_TURNS = 2_000;
const MOST_TIMERS = 100;
const TIMER_MS = 5;
/** Turns in which a verb begins its wait. */
const PARKING_TURNS = 30;
/** More than the longest sleep, in ms. */
const LONG_MS = 600_000;
/** Chance of a crash at each call of the store and each turn of a body. */
const CRASH_AT = 1 / 60;

/** Returns a generator of numbers in [0, 1), equal for equal seeds (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Plays the random program of a seed with crashes, signals, a cancellation and, for some, a change of the code. Returns what
 * breaks a promise: each execution of a round must see the answers of the first, every step that acted in the last round is
 * undone if the run fails, the last recorded first, code that no longer fits is reported, events reach the branches that wait
 * for them beside a body, a round begins with its own input and without records, and a try gets the last stored heartbeat. A try of
 * a step with a heartbeat timeout counts also if its worker was lost, a paused run begins no body and continues beside one when it
 * is resumed, and each cancellation reaches the children that the run waits for, once.
 */
export async function playSeed(seed: number): Promise<readonly string[]> {
  const random = randomOf(seed);
  const world = new World(makeRounds(random), random);
  await world.play();
  return world.findings;
}

interface Child {
  readonly name: string;
  atMs: number;
  fails: boolean;
  readonly catches: number;
  /** Cancellations that it has received. */
  cancels: number;
  /** Cancellations of the run when it received its first one. */
  calls: number;
}

class World {
  readonly findings: string[] = [];
  readonly #rounds: readonly Program[];
  /** The round of the last execution, from 1. */
  #round = 1;
  readonly #random: () => number;
  readonly #store: RunStore;
  readonly #isStrict: boolean;
  #signals: readonly string[];
  readonly #sent = new Set<string>();
  readonly #children = new Map<string, Child>();
  /** Names of children in branches that have lost a race. */
  readonly #left = new Set<string>();
  /** The last try of each step with a heartbeat timeout. */
  readonly #tries = new Map<string, number>();
  #cancelCalls = 0;
  /** Reads of news in this execution. */
  #reads = 0;
  #pauses = new PauseState();
  /** True from a pause until the run is resumed. */
  #isPaused = false;
  /** True once the execution has known of the pause for a turn of the event loop. */
  #mustRest = false;
  /** Steps whose body had its effect. */
  readonly #acted = new Set<string>();
  readonly #undoFailures = new Map<string, number>();
  /** The answers of the execution that has seen most. */
  #answers: readonly string[] = [];
  #crashes = 0;
  #serial = 0;
  /** Not 0: a note without a time is that of a child. */
  #nowMs = 1;
  #isWoken = false;
  #cancels = new CancelRequests();
  /** Tells the execution that something has happened. */
  #refresh = (): void => undefined;
  readonly #spreads: SpreadPlayer;
  readonly #timers = new Set<{ readonly atMs: number; readonly call: () => void }>();

  constructor(rounds: readonly Program[], random: () => number) {
    this.#rounds = rounds;
    this.#random = random;
    this.#isStrict = random() < 0.5;
    const codec = random() < 0.2 ? scrambleCodec() : undefined;
    const memory = createMemoryRunStore({ now: () => this.#nowMs });
    const store = withCodec(memory, { codec, executes: true });
    this.#store = { ...store, news: (held, awaited) => this.#news(store, held, awaited) };
    this.#spreads = new SpreadPlayer({
      store: this.#store,
      nowMs: () => this.#nowMs,
      random,
      open: () => new Execution(() => this.#crashesNow(), random),
      workflow: (execution, answers) => this.#workflowOf(this.#program, execution, answers),
      ended: (answers) => {
        this.#compare(answers);
        this.#wake();
      },
      report: (finding) => void this.findings.push(finding),
      pause: (ms) => void (this.#nowMs += Math.ceil(ms)),
    });
    this.#signals = rounds.flatMap(opsOf).flatMap((op) => (op.kind === "signal" ? [op.name] : []));
  }

  /** The program of the current round. */
  get #program(): Program {
    return this.#rounds[this.#round - 1] ?? [];
  }

  async play(): Promise<void> {
    await this.#store.start({ ...REF, version: 1, input: 1 });
    const renamesAt = this.#random() < 0.2 ? 1 + Math.floor(this.#random() * 5) : Infinity;
    for (let count = 0; count < MAX_EXECUTIONS; count += 1) {
      if (count >= renamesAt && (await this.#playRenamed())) return;
      const end = await this.#execute();
      if (this.findings.length > 0) return;
      if (end === undefined) return await this.#checkEnd();
      await this.#continue(end);
    }
    this.findings.push(`the run has not ended after ${MAX_EXECUTIONS} executions`);
  }

  /** Runs one execution, possibly with a step renamed. Returns undefined when the run has ended. */
  async #execute(renamed?: string): Promise<ExecutionEnd | undefined> {
    const lease = (this.#serial += 1);
    const held = await this.#store.claim(REF, { lease, owner: String(lease) });
    if (held.kind === "ended") return undefined;
    if (held.kind === "paused") {
      await this.#resume();
      return { kind: "waiting" };
    }
    if (held.kind !== "held") throw new Error(`claim: ${held.kind}`);
    await this.#beginRound(held);
    const crashes = renamed === undefined;
    const program = crashes ? this.#program : rename(this.#program, renamed);
    const execution = new Execution(() => crashes && this.#crashesNow(), this.#random);
    execution.isRenamed = !crashes;
    const answers: string[] = [];
    const workflow = this.#workflowOf(program, execution, answers);
    this.#isWoken = false;
    this.#reads = 0;
    this.#cancels = new CancelRequests();
    this.#pauses = new PauseState(held.resumes);
    this.#mustRest = false;
    const end = await runExecution({
      store: execution.storeOf(this.#store),
      workflow,
      held,
      stopped: execution.stopped,
      cancels: this.#cancels,
      pauses: this.#pauses,
      wakeUps: {
        start: (refresh) => void (this.#refresh = refresh),
        stop: () => void (this.#refresh = () => undefined),
      },
      after: (ms, call) => this.#setTimer(ms, call),
      startChild: {
        ...noChildren,
        start: (run) => this.#child(run.id),
        cancel: async (ref, request) => {
          if (this.#children.has(ref.id)) this.#cancelChild(ref.id);
          else await this.#spreads.cancel(ref, request);
        },
        get: async (ref) =>
          this.#children.has(ref.id) ? await this.#child(ref.id) : await this.#spreads.get(ref),
      },
      spread: this.#spreads,
      clock: () => this.#nowMs,
      random: this.#random,
      pause: async (ms) => void (this.#nowMs += Math.ceil(ms)),
      beatEveryMs: 0,
    });
    execution.end();
    this.#timers.clear();
    if (crashes) this.#compare(answers);
    if (end.kind === "error" && end.error.message !== UNAVAILABLE) {
      this.findings.push(`error: ${String(end.error.stack)}`);
    }
    return end.kind === "ended" ? undefined : end;
  }

  /** Notes the round of an execution. A new one has its own input, and nothing of the one before but its signals. */
  async #beginRound({ run: { round = 1, input }, steps, progress }: Held): Promise<void> {
    if (round === this.#round) return;
    if (round !== this.#round + 1) this.findings.push(`round ${round} follows ${this.#round}`);
    if (input !== round) this.findings.push(`round ${round} has the input ${String(input)}`);
    const kept = [...steps.keys(), ...progress.keys()];
    if (kept.length > 0) this.findings.push(`round ${round} begins with ${kept.join()}`);
    this.#round = round;
    this.#answers = [];
    this.#acted.clear();
    this.#tries.clear();
    const buffered = (await this.#store.unconsumedSignals(REF)).map(({ name }) => name);
    for (const { kind, ...op } of this.#rounds.slice(round - 1).flatMap(opsOf)) {
      if (kind !== "signal" || !("name" in op) || !this.#sent.has(op.name)) continue;
      if (!buffered.includes(op.name)) this.findings.push(`round ${round} lacks signal ${op.name}`);
    }
  }

  #crashesNow(): boolean {
    if (this.#crashes >= MAX_CRASHES || this.#random() >= CRASH_AT) return false;
    this.#crashes += 1;
    return true;
  }

  #workflowOf(program: Program, execution: Execution, answers: string[]): Workflow {
    const rounds = this.#rounds.length;
    return workflowOf(program, this.#playerOf(execution, answers), {
      strict: this.#isStrict,
      rounds,
    });
  }

  #playerOf(execution: Execution, answers: string[]) {
    const left = this.#left;
    return {
      answers,
      asked: (op: Verb) => void execution.open.set(op.name, op),
      answered(name: string, answer: string) {
        execution.open.delete(name);
        answers.push(answer);
      },
      lost(ops: readonly Op[]) {
        for (const op of ops) {
          if (!("name" in op)) continue;
          execution.lose(op.name);
          left.add(op.name);
        }
      },
      compute: async () => {
        for (let turns = Math.floor(this.#random() * 20); turns > 0; turns -= 1)
          await Promise.resolve();
        return (this.#serial += 1);
      },
      ended: () => execution.functionEnded(),
      body: async (op: StepOp, k: StepContext) =>
        await this.#spreads.atWork(execution, op, () => this.#body(execution, op, k)),
      undo: async (op: StepOp) => await this.#undo(execution, op),
    };
  }

  async #body(execution: Execution, op: StepOp, context: StepContext): Promise<string> {
    const { attempt, signal } = context;
    await this.#checkBegin(execution, op, attempt);
    // A try that a cancellation aborts does not count.
    const uncount = () => !execution.isOver && this.#tries.set(op.name, attempt - 1);
    signal.addEventListener("abort", uncount, { once: true });
    await this.#beat(execution, op, context);
    for (let turn = 0; turn < op.turns; turn += 1) {
      await execution.turn();
      if (this.#random() < 0.05) await this.#disturb();
      if (this.#random() < 0.05) this.#fireTimer();
      if (signal.aborted) throw ensureError(signal.reason);
      if (execution.lost.has(op.name) && !execution.isRenamed)
        this.findings.push(`${op.name} runs on after its race`);
    }
    if (!this.#spreads.has(execution) && this.#random() < LOOKS_ON_AT)
      await this.#lookOn(execution, op);
    if (signal.aborted) throw ensureError(signal.reason);
    const { name } = op;
    if ((await this.#store.steps(REF)).has(name)) {
      this.findings.push(`the body of ${name} runs again behind its record`);
    }
    // A try may fail before or behind its effect.
    if (attempt > op.failures || this.#random() < 0.5) this.#acted.add(name);
    for (let turns = 1 + Math.floor(this.#random() * 6); turns > 0; turns -= 1) {
      await execution.turn();
    }
    if (attempt <= op.failures) throw new Error(`${name} fails as planned`);
    return `${name}/${(this.#serial += 1)}`;
  }

  async #checkBegin(
    execution: Execution,
    { name, isWatched }: StepOp,
    attempt: number,
  ): Promise<void> {
    const { status } = (await this.#store.get(REF)) ?? {};
    // A spread step may have been admitted before the pause.
    const isOwn = execution.isLive && !this.#spreads.has(execution);
    const isPaused = status === "paused" || (this.#mustRest && !isWatched);
    if (isPaused && isOwn) this.findings.push(`${name} begins in a paused run`);
    if (!isWatched || execution.isRenamed || execution.isOver) return;
    const last = this.#tries.get(name) ?? 0;
    if (attempt <= last) this.findings.push(`try ${attempt} of ${name} follows try ${last}`);
    this.#tries.set(name, attempt);
  }

  /** Sends heartbeats, with numbers that grow over all tries of a step. */
  async #beat(execution: Execution, op: StepOp, context: StepContext): Promise<void> {
    const { name, beats } = op;
    const { progress } = await this.#store.journal(REF);
    const stored = Number(progress.get(name)?.heartbeat?.progress ?? 0);
    const last = Number(context.lastHeartbeat ?? 0);
    if (last < stored && !execution.isRenamed) {
      this.findings.push(`${name} has heartbeat ${last}, but ${stored} is stored`);
    }
    for (let beat = 0; beat < beats; beat += 1) {
      context.heartbeat((this.#serial += 1));
      await execution.turn();
    }
  }

  /** Sends a signal or lets time pass, and waits for the branches that this continues. */
  async #lookOn(execution: Execution, { name: body }: StepOp): Promise<void> {
    for (let turn = 0; turn < PARKING_TURNS; turn += 1) await execution.turn();
    if (this.#isPaused) await this.#resume();
    const signal = this.#signals.find((name) => execution.open.has(name));
    const isSignal = signal !== undefined && this.#random() < 0.5;
    const expected = isSignal ? [signal] : execution.timed();
    if (isSignal) await this.#send(signal);
    else this.#passTime(LONG_MS);
    for (let turn = 0; execution.isLive; turn += 1) {
      const late = expected.filter((name) => execution.open.has(name));
      if (late.length === 0) return;
      if (turn > MOST_TURNS + MOST_TIMERS) {
        this.findings.push(`${late.join()} waited for the body of ${body}`);
        return;
      }
      // A verb that was slow to begin its wait counts from then on.
      if (!isSignal && turn % PARKING_TURNS === 0) this.#passTime(LONG_MS);
      if (turn > MOST_TURNS) await new Promise((resolve) => setTimeout(resolve, TIMER_MS));
      await execution.turn();
    }
  }

  #passTime(ms: number): void {
    this.#nowMs += ms;
    const due = [...this.#timers].filter(({ atMs }) => atMs <= this.#nowMs);
    for (const timer of due) if (this.#timers.delete(timer)) timer.call();
  }

  async #undo(execution: Execution, op: StepOp): Promise<void> {
    const { name, undoFailures } = op;
    this.#spreads.checkUndo(op);
    await execution.turn();
    const failures = this.#undoFailures.get(name) ?? 0;
    if (failures < undoFailures) {
      this.#undoFailures.set(name, failures + 1);
      throw new Error(`the undo of ${name} fails as planned`);
    }
    await execution.turn();
  }

  async #child(id: string): Promise<RunView> {
    const op = this.#rounds
      .flatMap(opsOf)
      .find(({ kind, ...rest }) => kind === "child" && "name" in rest && id.endsWith(rest.name));
    if (op?.kind !== "child") throw new Error(`child ${id} is not in the program`);
    const { name, fails } = op;
    const begun = {
      name,
      fails,
      atMs: this.#nowMs + op.takesMs,
      catches: op.catches,
      cancels: 0,
      calls: 0,
    };
    const known = this.#children.get(id) ?? begun;
    this.#children.set(id, known);
    const base = { workflow: "child", id, version: 1, input: null, createdAtMs: 0 };
    if (this.#nowMs < known.atMs) return { ...base, status: "running" };
    if (!known.fails) return { ...base, status: "done", result: id };
    return { ...base, status: "failed", error: { code: "internal", message: "as planned" } };
  }

  /** Reads what has arrived. The store has the spread steps, but not the children. */
  async #news(store: RunStore, held: Held, awaited: Awaited): Promise<RunNews> {
    this.#reads += 1;
    if (this.#reads > MOST_READS) {
      this.findings.push(`an execution reads its news more than ${MOST_READS} times`);
      throw new Error(UNAVAILABLE);
    }
    const isOwn = ({ id }: RunRef) => this.#children.has(id);
    const children = awaited.children.filter((child) => !isOwn(child));
    const news = await store.news(held, { ...awaited, children });
    const ended = awaited.children.filter(
      ({ id }) => (this.#children.get(id)?.atMs ?? Infinity) <= this.#nowMs,
    );
    return { ...news, ended: [...news.ended, ...ended] };
  }

  #cancelChild(id: string): void {
    const child = this.#children.get(id);
    if (child === undefined || child.atMs <= this.#nowMs) return;
    child.cancels += 1;
    if (child.cancels === 1) child.calls = this.#cancelCalls;
    if (child.cancels <= child.catches) return;
    child.atMs = this.#nowMs;
    child.fails = true;
    this.#isWoken = true;
  }

  /** Checks that each cancellation since their first one has reached the children that the run waits for. */
  async #checkPassedOn(): Promise<void> {
    if ((await this.#store.history(REF))?.failing !== undefined) return;
    for (const { name, atMs, cancels, calls } of this.#children.values()) {
      const isOpen = atMs > this.#nowMs && cancels > 0 && !this.#left.has(name);
      const missing = this.#cancelCalls - calls + 1 - cancels;
      if (isOpen && missing > 0)
        this.findings.push(`${missing} cancellations of child ${name} are missing`);
    }
  }

  async #pause(): Promise<void> {
    const [answer] = await this.#store.pause(REF.workflow, [REF.id], { request: {} });
    this.#isPaused = answer === "pausing" || answer === "paused";
    // A worker may look for paused runs before the next record.
    const pauses = this.#pauses;
    if (this.#isPaused && this.#random() < 0.5) {
      pauses.note(true);
      setImmediate(() => (this.#mustRest = pauses === this.#pauses && this.#isPaused));
    }
    if (this.#isPaused) this.#wake();
  }

  async #resume(): Promise<void> {
    this.#isPaused = false;
    this.#mustRest = false;
    await this.#store.resume(REF.workflow, [REF.id]);
    this.#wake();
  }

  /** Something happens outside of the run. */
  async #disturb(): Promise<void> {
    const draw = this.#random();
    if (draw < 0.15) {
      const resumes = this.#random() < 0.5;
      const answer = await this.#store.cancel(REF, { reason: "as planned" }, { resumes });
      if (answer === "requested" || answer === "pending") this.#cancelCalls += 1;
      if (resumes) {
        this.#isPaused = false;
        this.#mustRest = false;
      }
      const cancel = (await this.#store.cancelling(REF.workflow)).get(REF.id);
      if (cancel !== undefined) {
        this.#cancels.note(cancel);
        this.#spreads.cancelAll(cancel);
      }
    } else if (draw < 0.35) {
      return await (this.#isPaused ? this.#resume() : this.#pause());
    } else {
      const name = this.#signals[Math.floor(this.#random() * this.#signals.length)];
      if (name === undefined) return;
      return await this.#send(name);
    }
    this.#wake();
  }

  async #send(name: string): Promise<void> {
    this.#signals = this.#signals.filter((each) => each !== name);
    const sent = await this.#store.signal(REF, { name, id: name, payload: name });
    if (sent !== "stored" && sent !== "buffered") return;
    this.#sent.add(name);
    if (sent === "stored") this.#wake();
  }

  #wake(): void {
    this.#isWoken = true;
    this.#refresh();
  }

  #setTimer(ms: number, call: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.ceil(ms), call };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Advances the clock to the next timer of the execution. */
  #fireTimer(): void {
    const [timer] = [...this.#timers].toSorted((a, b) => a.atMs - b.atMs);
    if (timer === undefined) return;
    this.#timers.delete(timer);
    this.#nowMs = Math.max(this.#nowMs, timer.atMs);
    timer.call();
  }

  /** Lets something happen after which the run continues. */
  async #continue(end: ExecutionEnd): Promise<void> {
    if (end.kind === "blocked" && !end.reason.includes("could not be undone")) {
      this.findings.push(`blocked: ${end.reason}`);
    }
    if (this.#isWoken || end.kind === "lost" || end.kind === "error") return;
    if (this.#isPaused) return await this.#resume();
    await this.#checkPassedOn();
    if (await this.#spreads.play()) return;
    if (this.#signals.length > 0 && this.#random() < 0.5) return await this.#disturb();
    const childEnds = [...this.#children.values()].flatMap(({ atMs }) =>
      atMs > this.#nowMs ? [atMs - this.#nowMs] : [],
    );
    const afterMs = "afterMs" in end && end.afterMs !== undefined ? [end.afterMs] : [];
    const waits = [...childEnds, ...afterMs, ...this.#spreads.afterMs()];
    if (waits.length > 0) this.#nowMs += Math.ceil(Math.min(...waits));
    else await this.#disturb();
  }

  #compare(answers: readonly string[]): void {
    const [longer, shorter] =
      answers.length > this.#answers.length ? [answers, this.#answers] : [this.#answers, answers];
    const at = shorter.findIndex((answer, index) => longer[index] !== answer);
    if (at !== -1) {
      this.findings.push(`answer ${at} was ${this.#answers[at]}, then ${answers[at]}`);
    }
    this.#answers = longer;
  }

  async #checkEnd(): Promise<void> {
    const run = await this.#store.get(REF);
    const steps = await this.#store.steps(REF);
    await this.#spreads.end();
    if (run?.warnings !== undefined) {
      this.findings.push(`warnings: ${JSON.stringify(run.warnings)}`);
    }
    const isDone = run?.status === "done";
    const { round = 1 } = run ?? {};
    if (isDone && round !== this.#rounds.length) {
      this.findings.push(`done in round ${round} of ${this.#rounds.length}`);
    }
    this.#checkUndone(isDone, steps);
  }

  #checkUndone(isDone: boolean, steps: ReadonlyMap<string, StepRecord>): void {
    const seqOf = (name: string) => steps.get(name)?.seq ?? 0;
    const undone = [...steps.keys()].flatMap((name) => undoneStep(name) ?? []);
    if (isDone) {
      if (undone.length > 0) this.findings.push(`done, but undid ${undone.join()}`);
      return;
    }
    for (const op of opsOf(this.#program)) {
      if (op.kind !== "step" || !op.undo || !this.#acted.has(op.name)) continue;
      if (!steps.has(undoName(op.name))) this.findings.push(`${op.name} acted and was not undone`);
    }
    const inOrder = undone.toSorted((a, b) => seqOf(undoName(a)) - seqOf(undoName(b)));
    const expected = undone.toSorted((a, b) => seqOf(b) - seqOf(a));
    if (inOrder.join() !== expected.join()) {
      this.findings.push(`undone as ${inOrder.join()}, not ${expected.join()}`);
    }
  }

  /** Runs one execution of code with a renamed step. Returns false if no step could be renamed. */
  async #playRenamed(): Promise<boolean> {
    const before = await this.#store.steps(REF);
    const recorded = opsOf(this.#program).filter(
      (op): op is StepOp => op.kind === "step" && before.has(op.name),
    );
    const op = recorded[Math.floor(this.#random() * recorded.length)];
    if (op === undefined) return false;
    this.#spreads.freeze();
    const end = await this.#execute(op.name);
    // The record that carries the warning may have failed; the next execution gives it again.
    if (end?.kind === "error") return true;
    const run = await this.#store.get(REF);
    const steps = await this.#store.steps(REF);
    // A failing run records the outcomes of its spread steps, to undo them.
    const isFailing = (await this.#store.history(REF))?.failing !== undefined;
    const isNew = ([name, { kind, error }]: [string, StepRecord]) =>
      !before.has(name) && kind !== "undo" && error?.code !== "outcome_unknown" && !isFailing;
    const fresh = [...steps].filter(isNew).map(([name]) => name);
    if (fresh.length > 0 && this.#isStrict) {
      this.findings.push(`strict, but recorded ${fresh.join()} without ${op.name}`);
    }
    const isReported = run?.warnings?.some(({ code }) => code === "code_changed");
    if (fresh.length > 0 && isReported !== true && !this.#isStrict) {
      this.findings.push(`recorded ${fresh.join()} without ${op.name} and without a warning`);
    }
    const isLost = op.undo && this.#acted.has(op.name) && !steps.has(undoName(op.name));
    if (isLost && (run?.status === "failed" || run?.status === "cancelled")) {
      this.findings.push(`${run.status} without the undo of ${op.name}, which the code lost`);
    }
    return true;
  }
}
