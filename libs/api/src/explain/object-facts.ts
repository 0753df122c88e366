import type {
  Contention,
  Explanation,
  ExplanationCause,
  GuardView,
  KeyItem,
  LiveObject,
  RunList,
  SourceView,
} from "@konverge/contracts";
import type { ObjectKey } from "@konverge/core";
import type { AnnouncedWorker, RestoreState } from "@konverge/queue";
import type { AttemptRecord } from "@konverge/records";

/** Everything that an explanation considers. All of it was read at about the same time. */
export interface ObjectFacts {
  readonly nowMs: number;
  readonly key: ObjectKey;
  /** Undefined for an object that was never requested. */
  readonly state: KeyItem | undefined;
  /** Newest first. */
  readonly attempts: readonly AttemptRecord[];
  readonly contention: Contention;
  /** The live workers of the cluster, with the controllers in the scope of the caller. */
  readonly workers: readonly AnnouncedWorker[];
  /** Jobs of the controller's queue. */
  readonly queue: { readonly waiting: number; readonly active: number; readonly delayed: number };
  readonly guard: GuardView | undefined;
  readonly restore: RestoreState;
  /** The sources of the controller. */
  readonly sources: readonly SourceView[];
  /** The runs that the last attempts started or found, in the scope of the caller. */
  readonly runs: readonly RunList["items"][number][];
  readonly live: LiveObject;
}

export type Cause = ExplanationCause;
export type Evidence = Cause["evidence"][number];
export type Verdict = Explanation["verdict"];

/** Returns true if a request of the object has not ended. */
export function isPending({ state }: Pick<ObjectFacts, "state">): boolean {
  return state !== undefined && (state.pending !== undefined || state.phase === "running");
}

/** Returns the evidence for an attempt. */
export function attemptEvidence(attempt: AttemptRecord): Evidence {
  const { id, finishedAt, outcome, error } = attempt;
  const detail = error === undefined ? outcome : `${outcome}: ${error.code}`;
  return { kind: "attempt", name: id, at: finishedAt, detail };
}

/** Returns `attempt 17`, or `the last attempt` if its number is unknown. */
export function attemptName({ epoch }: AttemptRecord): string {
  return epoch === undefined ? "the last attempt" : `attempt ${epoch}`;
}

/** Returns the words of a command line that name the object. */
export function objectWords({ controller, namespace, name }: ObjectKey): string {
  return `${controller} ${name}${namespace === undefined ? "" : ` -n ${namespace}`}`;
}
