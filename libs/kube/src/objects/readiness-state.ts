/** How far an object has come, in the words of kstatus. */
export interface Readiness {
  /** `failed` may heal: a Deployment past its deadline can still come up. */
  readonly status: "current" | "inProgress" | "failed" | "terminating" | "notFound";
  /** What it lacks, for people; empty when it is current. Conditions' own words are in it, so not for sensitive kinds. */
  readonly message: string;
  /** The answer changes by itself then, epoch ms, without a change of the object. */
  readonly againAtMs?: number;
}

export const CURRENT: Readiness = { status: "current", message: "" };
export const inProgress = (message: string): Readiness => ({ status: "inProgress", message });
export const failed = (message: string): Readiness => ({ status: "failed", message });
