import type { ApiObject } from "@konverge/core";
import { setCondition } from "@konverge/kube";

/** The progress of an object in terms of kstatus (kubectl wait, Flux, Argo CD, Helm). */
export interface Progress {
  /**
   * `ready`: matches the spec. `reconciling`: in progress without a problem. `stalled`: cannot continue without a change.
   */
  readonly state: "ready" | "reconciling" | "stalled";
  /** One word in CamelCase, for programs. */
  readonly reason: string;
  readonly message?: string;
}

/** A draft of `mutateStatus` whose status has `conditions` and `observedGeneration`. */
export interface ProgressDraft extends Pick<ApiObject, "metadata"> {
  status: {
    observedGeneration?: number | undefined;
    conditions?: { type: string; status: string }[] | undefined;
  };
}

/**
 * Sets the progress of the object in a draft's status: `observedGeneration`, `Ready`, and `Reconciling` or `Stalled`, which exist
 * only while they are True (kstatus, "abnormal-true" conditions). Repeating it changes nothing.
 * @throws KonvergeError `invalid_draft` for a reason that the API server would reject
 */
export function reportProgress(
  draft: ProgressDraft,
  { state, reason, message = "" }: Progress,
  now: () => Date = () => new Date(),
): void {
  const { generation: observedGeneration = 0 } = draft.metadata;
  const { status } = draft;
  status.observedGeneration = observedGeneration;
  const ready = state === "ready" ? "True" : "False";
  const facts = { reason, message, observedGeneration };
  setCondition(draft, { type: "Ready", status: ready, ...facts }, now);
  for (const [type, holds] of [
    ["Reconciling", state === "reconciling"],
    ["Stalled", state === "stalled"],
  ] as const) {
    if (holds) setCondition(draft, { type, status: "True", ...facts }, now);
    else status.conditions = status.conditions?.filter((condition) => condition.type !== type);
  }
}
