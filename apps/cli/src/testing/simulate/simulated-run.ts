import type { InProcessServer } from "@konverge/apiserver";
import type { JsonObject, ObjectKey } from "@konverge/core";
import { MemoryQueues, type MemoryQueueEvent } from "@konverge/queue/memory";
import type { AttemptLease } from "@konverge/queue";
import { runOfKey } from "@konverge/workflow";
import { MemoryWorkflows } from "@konverge/workflow/memory";
import type { SimulatedFault } from "./fault.ts";
import { describeFault } from "./fault.ts";
import { drawnFor, seeded } from "./random.ts";
import { places, START_MS, VirtualClock, type Actor, type Place } from "./virtual-clock.ts";

/** A line of the story of a run. */
export interface StoryLine {
  readonly atMs: number;
  readonly actor: string;
  readonly text: string;
}

/** A check that failed. */
export interface Violation {
  readonly check: string;
  readonly detail: string;
}

/** A call of a handler, with its faults. */
export interface NumberedCall {
  readonly number: number;
  readonly faults: readonly SimulatedFault[];
}

/** The name of the simulated cluster. */
export const CLUSTER = "default";
/** Consecutive attempts of a key without a change, after which its timer counts as rest. */
const QUIET_ATTEMPTS = 2;
/** A timer beyond this counts as rest, in ms. */
const FAR_MS = 3_600_000;
/** Timers of a key in a row without a change, each below a second, that count as a busy loop. */
const STORM_TIMERS = 25;

/** The resources that Konverge itself writes. */
export const HOUSEKEEPING: ReadonlySet<string> = new Set([
  "leases.coordination.k8s.io",
  "events",
  "events.events.k8s.io",
]);

interface KeyActivity {
  /** Consecutive ended attempts without a change of an object. */
  quiet: number;
  shortTimers: number;
  lastOutcome: string;
  lastError: string;
}

/** One run of a scenario: its clock, its faults and what happened. */
export class SimulatedRun {
  readonly clock: VirtualClock;
  readonly server: InProcessServer;
  readonly queues: MemoryQueues;
  readonly workflows: MemoryWorkflows;
  /** Called after each change of a workflow run. */
  readonly onRunChange: Set<() => void> = new Set();
  readonly story: StoryLine[] = [];
  readonly violations: Violation[] = [];
  readonly cloud: Place;
  /** False once the faults have ceased. */
  isFaulty = true;
  /** True if timers count as rest. */
  isPeriodic = false;
  calls = 0;
  events = 0;
  attempts = 0;
  /** Calls of handlers that changed an object. */
  writes = 0;
  /** Operations that keep the world from being at rest: starts, crashed or suspended workers, broken watches. */
  readonly pending = new Set<string>();
  readonly activity = new Map<string, KeyActivity>();
  /** Called when the scenario must not wait any longer. */
  onEarly: () => void = () => undefined;
  readonly #faults: Set<SimulatedFault>;
  readonly #latency: (() => number) | undefined;
  readonly #attempts = new Map<AttemptLease, { changes: number }>();
  #writer: Place | undefined;
  readonly #collectMs: number;

  constructor(server: (run: SimulatedRun) => InProcessServer, faults: readonly SimulatedFault[]) {
    this.#faults = new Set(faults);
    const timing = faults.find((fault) => fault.kind === "timing");
    const chance = timing && seeded(timing.seed);
    this.#latency = chance && (() => Math.ceil(chance() * 30));
    const collect = faults.find((fault) => fault.kind === "collect");
    this.#collectMs = collect?.ms ?? 0;
    const random = seeded(7);
    this.clock = new VirtualClock({
      random,
      tie:
        timing &&
        chance &&
        ((line) => (line === undefined ? chance() : drawnFor(timing.seed, line))),
      onNetwork: (what) => this.violate("no network calls", `the code under test made a ${what}`),
    });
    this.cloud = { clock: this.clock, actor: { name: "cluster" } };
    this.server = places.run(this.cloud, () => server(this));
    this.queues = new MemoryQueues({
      cluster: CLUSTER,
      now: () => this.clock.nowMs,
      after: (ms, run) => void this.clock.after(this.cloud, ms, run, ms === 0),
      random,
      observe: (event) => this.#observe(event),
    });
    const now = () => this.clock.nowMs;
    this.workflows = places.run(this.cloud, () => new MemoryWorkflows({ cluster: CLUSTER, now }));
  }

  place(actor: Actor): Place {
    return { clock: this.clock, actor };
  }

  note(actor: string, text: string): void {
    this.story.push({ atMs: this.clock.nowMs - START_MS, actor, text });
  }

  violate(check: string, detail: string): void {
    if (this.violations.some((one) => one.check === check && one.detail === detail)) return;
    this.violations.push({ check, detail });
    this.note("check", `${check}: ${detail}`);
  }

  /** Takes the faults of the next call of a handler. A conflict waits for a call that can have one. */
  nextCall({ canConflict }: { readonly canConflict: boolean }): NumberedCall {
    this.calls += 1;
    const number = this.calls;
    const faults = this.#take((fault) => {
      if (!("call" in fault)) return false;
      const isConflict = fault.kind === "fail" && fault.answer === 409;
      return isConflict ? canConflict && fault.call <= number : fault.call === number;
    });
    return { number, faults };
  }

  /** Takes the faults of the next watch event. */
  nextEvent(): readonly SimulatedFault[] {
    this.events += 1;
    const number = this.events;
    return this.#take((fault) => "event" in fault && fault.event === number);
  }

  #take(matches: (fault: SimulatedFault) => boolean): readonly SimulatedFault[] {
    if (!this.isFaulty || this.#faults.size === 0) return [];
    const found = [...this.#faults].filter(matches);
    for (const fault of found) {
      this.#faults.delete(fault);
      this.note("fault", describeFault(fault));
    }
    return found;
  }

  /** Time of one way to the API server, in ms. */
  get latencyMs(): number {
    return this.isFaulty ? (this.#latency?.() ?? 1) : 1;
  }

  /** Runs work of the cluster's controllers. */
  collect(work: () => void): void {
    this.clock.after(this.cloud, this.isFaulty ? this.#collectMs : 0, work);
  }

  /** Runs a call of the API server, whose changes are those of the place. */
  land<R>(place: Place, call: () => R): R {
    this.#writer = place;
    try {
      return places.run(this.cloud, call);
    } finally {
      this.#writer = undefined;
    }
  }

  /** The place whose call the API server executes. */
  get writer(): Place | undefined {
    return this.#writer;
  }

  /** Counts a change of an object by the running call. */
  noteChange(resource: string): void {
    const attempt = this.#writer?.attempt;
    if (attempt === undefined || HOUSEKEEPING.has(resource)) return;
    this.writes += 1;
    const activity = this.#attempts.get(attempt);
    if (activity !== undefined) activity.changes += 1;
  }

  runChanged(): void {
    for (const changed of this.onRunChange) changed();
  }

  /** True while an execution of a workflow run is at work. */
  get areRunsExecuted(): boolean {
    return this.queues
      .keys()
      .some(({ key, run }) => run !== undefined && runOfKey(key) !== undefined);
  }

  /** True if nothing is left to run, apart from periodic work without effect. */
  get isAtRest(): boolean {
    if (this.clock.pendingWork > 0 || this.pending.size > 0) return false;
    return this.queues.keys().every(({ id, key, isAtRest, timerAtMs }) => {
      if (!isAtRest) return false;
      const rest = restOf(this.workflows, key, this.clock.nowMs);
      if (rest !== undefined) return rest;
      if (this.isPeriodic || timerAtMs === undefined || timerAtMs - this.clock.nowMs > FAR_MS)
        return true;
      return (this.activity.get(id)?.quiet ?? 0) >= QUIET_ATTEMPTS;
    });
  }

  #observe(event: MemoryQueueEvent): void {
    if (event.kind === "lost") {
      const { id, epoch, process, isDead } = event;
      this.note("queue", `attempt ${epoch} of ${shortKey(id)} on ${process} was lost`);
      if (isDead) this.note("queue", `${shortKey(id)} dead-lettered`);
      return;
    }
    const { attempt, process } = event;
    const { id, epoch } = attempt;
    if (event.kind === "began") {
      this.attempts += 1;
      this.#attempts.set(attempt, { changes: 0 });
      const why = attempt.triggers.map(({ by = "", reason }) => reason ?? by).at(-1) ?? "retry";
      this.note(process, `attempt ${epoch} of ${shortKey(id)} begins (${why})`);
      return;
    }
    const { outcome, isFenced, nextInMs } = event;
    const error = "error" in outcome ? outcome.error : undefined;
    const changes = this.#attempts.get(attempt)?.changes ?? 0;
    const before = this.activity.get(id);
    const isShort = outcome.kind === "requeueAfter" && outcome.afterMs < 1_000 && changes === 0;
    this.activity.set(id, {
      quiet: changes > 0 || error !== undefined ? 0 : (before?.quiet ?? 0) + 1,
      shortTimers: isShort ? (before?.shortTimers ?? 0) + 1 : 0,
      lastOutcome: outcome.kind,
      lastError: error?.message ?? "",
    });
    if ((before?.shortTimers ?? 0) + 1 >= STORM_TIMERS && isShort) {
      this.violate(
        "no busy loops",
        `${shortKey(id)} was requeued ${STORM_TIMERS} times in a row without a change, each time in less than 1 s; return a longer requeueAfter`,
      );
    }
    const next = nextInMs === undefined ? "" : `, next in ${Math.round(nextInMs) / 1_000} s`;
    const text = error === undefined ? outcome.kind : `${outcome.kind}: ${error.message}`;
    const fenced = isFenced ? ", ignored: its lease was lost" : "";
    this.note(process, `attempt ${epoch} of ${shortKey(id)} ends: ${text}${next}${fenced}`);
  }
}

/** A key without its cluster and group. */
export function shortKey(id: string): string {
  const [controller = "", , , namespace = "", name = ""] = id.split("/");
  return namespace === "_" ? `${controller} ${name}` : `${controller} ${namespace}/${name}`;
}

/** Returns `namespace/name` of an object. */
export function nameOf(object: JsonObject): string {
  const { namespace, name } = object["metadata"] as { namespace?: string; name?: string };
  return namespace === undefined ? (name ?? "") : `${namespace}/${name ?? ""}`;
}

/** Whether a workflow run is at rest; undefined if its number of attempts without effect decides, and for objects. */
function restOf(workflows: MemoryWorkflows, key: ObjectKey, nowMs: number): boolean | undefined {
  const ref = runOfKey(key);
  const { waits = [] } = (ref && workflows.viewOf(ref)) ?? {};
  if (waits.some(({ kind }) => kind === "signal" || kind === "update")) return true;
  // A wait for objects is checked again, and ends with a change.
  const timed = waits.filter(({ kind }) => kind !== "wait");
  if (timed.some(({ untilMs = Infinity }) => untilMs - nowMs <= FAR_MS)) return false;
  return timed.length > 0 && timed.length === waits.length ? true : undefined;
}
