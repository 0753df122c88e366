/** The readiness of an object, with the states of kstatus. */
export interface Readiness {
  /** `failed` may recover: a Deployment past its deadline can still become available. */
  readonly status: "current" | "inProgress" | "failed" | "terminating" | "notFound";
  /** The missing step, for users; empty if current. Quotes conditions, so it must not be used for sensitive kinds. */
  readonly message: string;
  /** Unix time in ms at which the result changes without a change of the object. */
  readonly againAtMs?: number;
}

export const CURRENT: Readiness = { status: "current", message: "" };
export const inProgress = (message: string): Readiness => ({ status: "inProgress", message });
export const failed = (message: string): Readiness => ({ status: "failed", message });
