import type { ApiObject } from "@konverge/core";
import { setCondition } from "@konverge/kube";

/** How far an object is, as tools that read kstatus understand it (kubectl wait, Flux, Argo CD, Helm). */
export interface Progress {
  /**
   * `ready`: as the spec says. `reconciling`: on the way, nothing is wrong. `stalled`: it cannot go on until somebody changes
   * something.
   */
  readonly state: "ready" | "reconciling" | "stalled";
  /** One word in CamelCase for machines. */
  readonly reason: string;
  readonly message?: string;
}

/** A draft inside of `mutateStatus` whose status has `conditions` and `observedGeneration`. */
export interface ProgressDraft extends Pick<ApiObject, "metadata"> {
  status: {
    observedGeneration?: number | undefined;
    conditions?: { type: string; status: string }[] | undefined;
  };
}

/**
 * Says in a draft's status how far the object is: `observedGeneration`, `Ready`, and while they hold `Reconciling` and `Stalled`,
 * which are there only when they are True (kstatus, "abnormal-true" conditions). The same again changes nothing.
 * @throws KonvergeError `invalid_draft` for a reason that the API server would refuse
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
