import {
  createKubePlan,
  type EventInput,
  type EventRecorder,
  type KubePlan,
  type KubePlanOptions,
  type PlanGap,
} from "@konverge/kube";
import { KonvergeError, type ResourceRef } from "@konverge/core";
import type { ObjectLanes } from "@konverge/lanes";

/** An event that the handler would emit. */
export interface PlannedEvent {
  readonly about: ResourceRef;
  readonly event: EventInput;
}

/** A workflow run that the handler would start or find. */
export interface PlannedRun {
  readonly workflow: string;
  /** Undefined if it is derived from the object. */
  readonly id?: string;
}

/** Events that are kept. */
const MOST_EVENTS = 100;
/** Maximum number of calls, and of runs; further ones are rejected. */
const MOST_NOTES = 10_000;

/** The effects that a planned attempt would have. */
export class AttemptPlan {
  readonly #clusters = new Map<string, KubePlan>();
  readonly events: PlannedEvent[] = [];
  readonly externals: string[] = [];
  readonly runs: PlannedRun[] = [];
  /** Calls outside of the API server that were not made. */
  readonly refusals: PlanGap[] = [];
  readonly #options: KubePlanOptions;
  #omittedEvents = 0;

  constructor(options: KubePlanOptions = {}) {
    this.#options = options;
  }

  /** The plan of the calls to a cluster. */
  in(cluster: string): KubePlan {
    const plan = this.#clusters.get(cluster) ?? createKubePlan(this.#options);
    this.#clusters.set(cluster, plan);
    return plan;
  }

  get clusters(): ReadonlyMap<string, KubePlan> {
    return this.#clusters;
  }

  /** Number of events that are not kept. */
  get omittedEvents(): number {
    return this.#omittedEvents;
  }

  /** True if an object or a list has changed while it was planned. */
  get isChanged(): boolean {
    return [...this.#clusters.values()].some(({ objects }) => objects.isChanged);
  }

  /** Number of reads that the hash does not cover. */
  get omittedReads(): number {
    return [...this.#clusters.values()].reduce(
      (sum, { objects }) => sum + objects.reads.omitted,
      0,
    );
  }

  readonly recorder: EventRecorder = {
    record: async (_client, about, event) => {
      if (this.events.length < MOST_EVENTS) this.events.push({ about, event });
      else this.#omittedEvents += 1;
      return "counted";
    },
  };

  noteExternal(name: string): void {
    this.#note(this.externals, name, "calls of ctx.external");
  }

  noteRefusal(refusal: PlanGap): void {
    this.refusals.push(refusal);
  }

  /** True if a call was refused that the live attempt would make. */
  get isRefused(): boolean {
    const refused = [...this.#clusters.values()].some(({ objects }) => objects.isRefused);
    return refused || this.refusals.length > 0;
  }

  noteRun(run: PlannedRun): void {
    this.#note(this.runs, run, "workflow runs");
  }

  /** @throws KonvergeError `not_plannable` for too many notes */
  #note<T>(notes: T[], note: T, about: string): void {
    if (notes.length < MOST_NOTES) {
      notes.push(note);
      return;
    }
    const reason = `the plan has more than ${MOST_NOTES} ${about}`;
    if (this.refusals.every((each) => each.reason !== reason)) this.noteRefusal({ about, reason });
    throw new KonvergeError("not_plannable", `${reason}; plan a smaller change`);
  }
}

/** A plan writes nothing, so it waits for no other writer. */
export const NO_LANES: ObjectLanes = {
  enter: async () => ({ carried: undefined, waitedMs: 0, leave: () => undefined }),
  close: () => undefined,
};
