import {
  createKubePlan,
  type EventInput,
  type EventRecorder,
  type KubePlan,
  type PlanGap,
} from "@konverge/kube";
import type { ResourceRef } from "@konverge/core";
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

const MOST_NOTES = 100;

/** The effects that a planned attempt would have. */
export class AttemptPlan {
  readonly #clusters = new Map<string, KubePlan>();
  readonly events: PlannedEvent[] = [];
  readonly externals: string[] = [];
  readonly runs: PlannedRun[] = [];
  /** Calls outside of the API server that were not made. */
  readonly refusals: PlanGap[] = [];
  #omittedNotes = 0;

  /** The plan of the calls to a cluster. */
  in(cluster: string): KubePlan {
    const plan = this.#clusters.get(cluster) ?? createKubePlan();
    this.#clusters.set(cluster, plan);
    return plan;
  }

  get clusters(): ReadonlyMap<string, KubePlan> {
    return this.#clusters;
  }

  /** Events, calls and runs that are not kept. */
  get omittedNotes(): number {
    return this.#omittedNotes;
  }

  readonly recorder: EventRecorder = {
    record: async (_client, about, event) => {
      this.#note(this.events, { about, event });
      return "counted";
    },
  };

  noteExternal(name: string): void {
    this.#note(this.externals, name);
  }

  noteRefusal(refusal: PlanGap): void {
    this.#note(this.refusals, refusal);
  }

  /** True if a call was refused that the live attempt would make. */
  get isRefused(): boolean {
    const refused = [...this.#clusters.values()].some(({ objects }) => objects.isRefused);
    return refused || this.refusals.length > 0;
  }

  noteRun(run: PlannedRun): void {
    this.#note(this.runs, run);
  }

  #note<T>(notes: T[], note: T): void {
    if (notes.length < MOST_NOTES) notes.push(note);
    else this.#omittedNotes += 1;
  }
}

/** A plan writes nothing, so it waits for no other writer. */
export const NO_LANES: ObjectLanes = {
  enter: async () => ({ carried: undefined, waitedMs: 0, leave: () => undefined }),
  close: () => undefined,
};
