import { ensureError, KonvergeError } from "@konverge/core";
import { type RedisClient, runScript, type ScriptCall } from "@konverge/redis";
import type { QueueNames } from "../keys/queue-names.ts";
import { acknowledgeScript } from "../scripts/acknowledge.ts";
import { electionsScript, type Election } from "../scripts/elections.ts";
import { pumpScript, type PumpAnswer } from "../scripts/pump.ts";

/** Longest sleep of an elected pump, in ms: the longest delay of a timer that another process armed. */
const MAX_SLEEP_MS = 500;
/** Time after which another pump is elected, in ms: the longest further delay after a crash. */
const ELECT_MS = 3_000;
/** Interval for reading the elections of other pumps, in ms: shorter than an election by the longest sleep of an elected pump. */
const LOOK_MS = ELECT_MS - MAX_SLEEP_MS;
const CLAIMED_AT_ONCE = 100;
/** Time after which another pump takes over a claim, in ms. */
const CLAIM_MS = 5_000;
/** Queues that are due this soon join a round, in ms. */
const JOIN_MS = 25;

/** A queue of this process. */
export interface PumpedQueue {
  readonly names: QueueNames;
  /** Requests the key; the timer is acknowledged only when this resolves. */
  readonly fire: (id: string) => Promise<void>;
  /** Carries out operator actions; called while some are pending. Only the elected pump resumes keys. */
  readonly carryOut: (isElected: boolean) => Promise<void>;
  /** True while this process runs attempts of the queue. */
  readonly isActive: () => boolean;
  readonly onError: (error: Error) => void;
}

/** The rounds of the queues of one process under one hash tag. One script call serves all that are due. */
export class PumpRounds {
  readonly #redis: RedisClient;
  readonly #owner: string = crypto.randomUUID();
  readonly #pumps = new Set<QueuePump>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAtMs = Infinity;
  #round: Promise<void> | undefined;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  add(queue: PumpedQueue): QueuePump {
    const pump = new QueuePump(queue, this.#redis, () => this.#schedule());
    this.#pumps.add(pump);
    this.#schedule();
    return pump;
  }

  /** Waits for the pump's part of a round in progress. */
  async remove(pump: QueuePump): Promise<void> {
    this.#pumps.delete(pump);
    if (this.#pumps.size === 0) clearTimeout(this.#timer);
    await pump.stop();
    await this.#round;
  }

  #schedule(): void {
    if (this.#round !== undefined || this.#pumps.size === 0) return;
    const atMs = Math.min(...[...this.#pumps].map(({ nextAtMs }) => nextAtMs));
    if (atMs >= this.#wakesAtMs || atMs === Infinity) return;
    clearTimeout(this.#timer);
    this.#wakesAtMs = atMs;
    const run = () => {
      this.#wakesAtMs = Infinity;
      this.#round = this.#run().finally(() => {
        this.#round = undefined;
        this.#schedule();
      });
    };
    this.#timer = setTimeout(run, Math.max(1, atMs - performance.now()));
  }

  async #run(): Promise<void> {
    const soonMs = performance.now() + JOIN_MS;
    const due = [...this.#pumps].filter(({ nextAtMs }) => nextAtMs <= soonMs);
    const [first] = due;
    if (first === undefined) return;
    try {
      await this.#readElections(due.filter((pump) => pump.mayBeIdle));
      await this.#pump(due.filter(({ nextAtMs }) => nextAtMs <= soonMs));
    } catch (error) {
      for (const pump of due) pump.take(undefined);
      if (this.#pumps.has(first)) first.reportError(error);
    }
  }

  /** Postpones the rounds of pumps whose queue another process still serves. */
  async #readElections(due: readonly QueuePump[]): Promise<void> {
    const [first] = due;
    if (first === undefined) return;
    const elections = await runScript(this.#redis, electionsScript, {
      keys: { pumps: first.names.pumps },
      args: { owner: this.#owner, electMs: ELECT_MS },
      each: due.map(({ names }) => ({ queue: names.bullName })),
    });
    for (const [index, pump] of due.entries()) pump.applyElection(elections[index]);
  }

  async #pump(due: readonly QueuePump[]): Promise<void> {
    const [first] = due;
    if (first === undefined) return;
    const answers = await runScript(this.#redis, pumpScript, {
      keys: { pumps: first.names.pumps },
      args: {
        owner: this.#owner,
        electMs: ELECT_MS,
        claimMs: CLAIM_MS,
        limit: CLAIMED_AT_ONCE,
      },
      each: due.map((pump) => pump.begin()),
    });
    for (const [index, pump] of due.entries()) pump.take(answers[index]);
  }
}

/** Turns the due timers of one queue into requests. Claims in Redis prevent duplicates. */
export class QueuePump {
  readonly #queue: PumpedQueue;
  readonly #redis: RedisClient;
  readonly #onChange: () => void;
  #nextAtMs = 0;
  /** When a timer of this process is due before the elected pump looks again. */
  #armedAtMs = Infinity;
  /** Undefined before the first round. */
  #isElected: boolean | undefined;
  #hasWaiting = false;
  #hasActive = false;
  #isStopped = false;
  #taking: Promise<void> | undefined;

  constructor(queue: PumpedQueue, redis: RedisClient, onChange: () => void) {
    this.#queue = queue;
    this.#redis = redis;
    this.#onChange = onChange;
  }

  get names(): QueueNames {
    return this.#queue.names;
  }

  /** False if the pump of another process serves the queue. */
  get isElected(): boolean {
    return this.#isElected === true;
  }

  /** Whether keys of the queue waited at the last round. False if the pump is not elected. */
  get hasWaiting(): boolean {
    return this.#hasWaiting;
  }

  /** Whether the queue had active jobs at the last round, which is up to 4 s ago. */
  get hasActive(): boolean {
    return this.#hasActive;
  }

  /** When the next round is due, on the local monotonic clock, in ms. */
  get nextAtMs(): number {
    if (this.#taking !== undefined || this.#isStopped) return Infinity;
    return Math.min(this.#nextAtMs, this.#armedAtMs);
  }

  /** Reports a timer of this process that is due in `afterMs`. The elected pump sees those that are due later. */
  armed(afterMs: number): void {
    if (afterMs >= MAX_SLEEP_MS) return;
    this.#armedAtMs = Math.min(this.#armedAtMs, performance.now() + afterMs);
    this.#onChange();
  }

  /** Reports the begin of an attempt, which an operator can cancel. */
  began(): void {
    const atMs = tickAfter(performance.now());
    if (this.#nextAtMs <= atMs) return;
    this.#nextAtMs = atMs;
    this.#onChange();
  }

  /** True if another pump was elected at the last round, and this process has neither an attempt nor a timer due soon. */
  get mayBeIdle(): boolean {
    return this.#isElected === false && this.#armedAtMs === Infinity && !this.#queue.isActive();
  }

  /** Postpones the round if another pump is elected. */
  applyElection(election: Election | undefined): void {
    if (election === undefined || election.electedForMs === 0) return;
    this.#hasActive = election.hasActive;
    // An attempt may have begun meanwhile.
    const nowMs = performance.now();
    this.#nextAtMs = this.#queue.isActive() ? tickAfter(nowMs) : lookAt(nowMs, election);
  }

  /** Returns this queue's part of a round. */
  begin(): ScriptCall<typeof pumpScript.signature>["each"][number] {
    const { names } = this;
    const { timers, firing, resuming, aborts, aging, fair } = names;
    const fires = this.#armedAtMs <= performance.now();
    if (fires) this.#armedAtMs = Infinity;
    const isActive = this.#queue.isActive();
    return {
      timers,
      firing,
      resuming,
      aborts,
      aging,
      fair,
      waiting: names.bullWaiting,
      returned: `${names.bullRoot}wait`,
      delayed: `${names.bullRoot}delayed`,
      active: `${names.bullRoot}active`,
      queue: names.bullName,
      isActive,
      fires,
    };
  }

  /** Carries out the answer of a round; undefined if it failed, which leaves all claims to a later round. */
  take(answer: PumpAnswer | undefined): void {
    this.#nextAtMs = nextRoundAt(answer, this.#queue.isActive());
    if (answer === undefined || this.#isStopped) return;
    this.#isElected = answer.isElected;
    this.#hasWaiting = answer.hasWaiting;
    this.#hasActive = answer.hasActive;
    if (!answer.isElected && answer.waitMs >= 0) this.armed(answer.waitMs);
    if (answer.due.length === 0 && !answer.ordered) return;
    this.#taking = this.#carryOut(answer).finally(() => {
      this.#taking = undefined;
      this.#onChange();
    });
  }

  reportError(error: unknown): void {
    if (!this.#isStopped) this.#queue.onError(ensureError(error));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#taking;
  }

  async #carryOut({ ordered, due, claimedUntilMs, isElected }: PumpAnswer): Promise<void> {
    try {
      if (ordered) await this.#queue.carryOut(isElected);
      if (due.length === 0) return;
      const fired = await Promise.allSettled(due.map((id) => this.#fire(id)));
      const each = due
        .filter((_, index) => fired[index]?.status === "fulfilled")
        .map((member) => ({ member }));
      await runScript(this.#redis, acknowledgeScript, {
        keys: { firing: this.names.firing },
        args: { claimedUntilMs },
        each,
      });
      for (const result of fired) if (result.status === "rejected") throw result.reason;
    } catch (error) {
      // Claims without an acknowledgement become due again.
      this.reportError(error);
    }
  }

  async #fire(id: string): Promise<void> {
    try {
      await this.#queue.fire(id);
    } catch (error) {
      // Not written by Konverge, and invalid on every retry.
      if (!(error instanceof KonvergeError && error.code === "invalid_key")) throw error;
      this.#queue.onError(error);
    }
  }
}

function nextRoundAt(answer: PumpAnswer | undefined, isActive: boolean): number {
  const nowMs = performance.now();
  const tickMs = tickAfter(nowMs);
  if (answer === undefined) return tickMs;
  const { isElected, waitMs, due } = answer;
  if (!isElected) return isActive ? tickMs : lookAt(nowMs, answer);
  if (due.length === CLAIMED_AT_ONCE) return nowMs;
  return waitMs >= 0 ? Math.min(nowMs + waitMs, tickMs) : tickMs;
}

/** Returns when to read another pump's election again: with those of other queues, or soon after it ends. */
function lookAt(nowMs: number, { electedForMs }: Pick<Election, "electedForMs">): number {
  return Math.min(tickAfter(nowMs, LOOK_MS), tickAfter(nowMs + electedForMs));
}

/** Queues without a due timer share the ticks of their process, and so its calls. Processes have different ticks. */
function tickAfter(afterMs: number, everyMs = MAX_SLEEP_MS): number {
  return (Math.floor(afterMs / everyMs) + 1) * everyMs;
}
