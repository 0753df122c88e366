import type { StepRecord } from "../store/run-record.ts";

/**
 * How often a recorded verb that the function has not called yet is looked for; an `import` of a module ends within it. A blocked
 * event loop counts as one check.
 */
const CHECKS = 10;
const CHECK_EVERY_MS = 5;

/** A verb whose record is known, and that has not returned it yet. */
interface Turn {
  readonly key: string;
  readonly seq: number;
  readonly deliver: () => void;
}

interface Expected {
  readonly key: string;
  readonly seq: number;
}

/** The first record that does not fit the code. */
export interface Misfit {
  /** Recorded verbs that the function has not called, in the order of their records. */
  readonly missing: readonly string[];
  /** The verb that was called before the first of them, if the order has changed. */
  readonly early?: string;
}

/**
 * Delivers the records of a run to its function one at a time, in the order of their commits. Between two deliveries the
 * function computes until it only waits for verbs. Every execution, the first one included, therefore sees the same results in the same
 * order, so that `Promise.race` and the like give the same answer in each. New work begins when all known records are delivered.
 */
export class DeliveryOrder {
  /** By seq. */
  readonly #turns: Turn[] = [];
  readonly #expected: readonly Expected[];
  readonly #delivered = new Set<string>();
  /** Index of the first expected record that is not delivered. */
  #nextExpected = 0;
  #atRest: (() => void)[] = [];
  #onRest: () => void = () => undefined;
  /** All records up to this one are known. */
  #knownSeq: number;
  readonly #lastExpectedSeq: number;
  #isReplaying = true;
  readonly #laterSeqs = new Set<number>();
  #commits = 0;
  /** True after the error of a commit, whose record may be stored all the same. Nothing is delivered after it. */
  #hasFailed = false;
  #isRunning = false;
  #patience: "unused" | "waiting" | "over" = "unused";
  #early: string | undefined;

  constructor(steps: ReadonlyMap<string, StepRecord>) {
    const recorded = [...steps].map(([key, { seq = 0, kind }]) => ({ key, seq, kind }));
    this.#lastExpectedSeq = recorded.reduce((last, { seq }) => Math.max(last, seq), 0);
    this.#knownSeq = this.#lastExpectedSeq;
    this.#expected = recorded
      .filter(({ kind }) => kind !== "undo")
      .toSorted((a, b) => a.seq - b.seq);
  }

  /** True while records are to be delivered, or work is to begin. */
  get isBusy(): boolean {
    return this.#isRunning || this.#turns.length > 0 || this.#atRest.length > 0;
  }

  /** True until the function receives a record that earlier executions do not have. */
  get isReplaying(): boolean {
    return this.#isReplaying;
  }

  /** Sets what is called each time when nothing is left to deliver. */
  onRest(call: () => void): void {
    this.#onRest = call;
  }

  /** Counts a commit, whose record may come before records that are known already. */
  async commit(write: () => Promise<StepRecord>): Promise<StepRecord> {
    this.#commits += 1;
    try {
      const record = await write();
      this.#learn(record.seq);
      return record;
    } catch (error) {
      this.#hasFailed = true;
      this.#turns.length = 0;
      throw error;
    } finally {
      this.#commits -= 1;
      if (this.isBusy) this.#start();
    }
  }

  /** Resolves when the record is the next one for the function; never after a failure. */
  async turn(key: string, seq: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!this.#hasFailed) {
      const at = this.#turns.findLastIndex((turn) => turn.seq <= seq) + 1;
      this.#turns.splice(at, 0, { key, seq, deliver: resolve });
      this.#start();
    }
    await promise;
  }

  /** Resolves when the function has received all known records and waits for more. */
  async rest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#atRest.push(resolve);
    this.#start();
    await promise;
  }

  /** Returns how the code differs from the journal; undefined if all recorded verbs were called in their order. */
  misfit(): Misfit | undefined {
    const missing = this.#expected
      .slice(this.#nextExpected)
      .flatMap(({ key }) => (this.#delivered.has(key) ? [] : [key]));
    const early = this.#early;
    if (missing.length === 0 && early === undefined) return undefined;
    return early === undefined ? { missing } : { missing, early };
  }

  #learn(seq = 0): void {
    this.#laterSeqs.add(seq);
    while (this.#laterSeqs.delete(this.#knownSeq + 1)) this.#knownSeq += 1;
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    afterMicrotasks(() => this.#next());
  }

  #next(): void {
    const [turn] = this.#turns;
    const isNext = turn === undefined || turn.seq <= this.#knownSeq || this.#commits === 0;
    // The end of the commit, a verb of the function or the end of the patience starts it again.
    if (!isNext || this.#isPatient(turn)) {
      this.#isRunning = false;
      return;
    }
    if (turn === undefined) {
      this.#isRunning = false;
      for (const resolve of this.#atRest.splice(0)) resolve();
      this.#onRest();
      return;
    }
    this.#turns.shift();
    if (turn.seq > this.#lastExpectedSeq) this.#isReplaying = false;
    this.#delivered.add(turn.key);
    this.#skipDelivered();
    turn.deliver();
    afterMicrotasks(() => this.#next());
  }

  /** Returns true if the function may still call the verb of an earlier record. It is asked once per execution. */
  #isPatient(turn: Turn | undefined): boolean {
    const expected = this.#expected[this.#nextExpected];
    if (this.#hasFailed || expected === undefined || expected.key === turn?.key) return false;
    if (turn === undefined && this.#atRest.length === 0) return false;
    if (this.#patience === "over") {
      this.#early ??= turn?.key;
      return false;
    }
    if (this.#patience === "unused") {
      this.#patience = "waiting";
      this.#wait(CHECKS);
    }
    return true;
  }

  #wait(checks: number): void {
    setTimeout(() => {
      if (checks > 1) return this.#wait(checks - 1);
      this.#patience = "over";
      this.#start();
    }, CHECK_EVERY_MS);
  }

  #skipDelivered(): void {
    for (;;) {
      const expected = this.#expected[this.#nextExpected];
      if (expected === undefined || !this.#delivered.has(expected.key)) return;
      this.#nextExpected += 1;
    }
  }
}

/** Calls after all microtasks, those queued by others included. */
function afterMicrotasks(call: () => void): void {
  queueMicrotask(() => process.nextTick(call));
}
