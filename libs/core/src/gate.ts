import type { KonvergeError } from "./errors.ts";

/** Priorities of API calls, highest first. */
export const CALL_PRIORITIES = ["critical", "interactive", "event", "retry", "resync"] as const;

export type CallPriority = (typeof CALL_PRIORITIES)[number];

export type CallVerb =
  | "get"
  | "list"
  | "watch"
  | "create"
  | "update"
  | "patch"
  | "apply"
  | "delete";

/** An API call that requests a permit. */
export interface GateCall {
  readonly verb: CallVerb;
  /** `resource.group`, for example `deployments.apps`. */
  readonly resource: string;
  readonly priority: CallPriority;
  /** True if earlier calls of the same work were admitted: finishing has priority over starting. */
  readonly running?: boolean;
  /** True for a guard's own call that checks whether the server has recovered. */
  readonly probe?: boolean;
  /** Cost in tokens, default 1. A long list costs the server more than a read. */
  readonly cost?: number;
}

/** The cause of an error response if it is not the server itself. */
export type FaultScope =
  /** A backend of the server: a webhook or an aggregated API. */
  | "part"
  /** The object, such as an eviction that a disruption budget rejects. */
  | "object"
  /** A version that the replica has not reached, or a watch cache that is not filled yet. */
  | "stale"
  /** The connection: its replica shuts down. */
  | "connection";

/** The result of a permitted call, for the guard. */
export type CallResult =
  | {
      readonly kind: "response";
      readonly status: number;
      readonly retryAfterMs?: number;
      readonly concern?: FaultScope;
    }
  /** No response of the server: connection refused or reset, a TLS error, or the response of something else. */
  | { readonly kind: "network" }
  /** No response within the call's deadline. */
  | { readonly kind: "timeout" }
  /** Aborted by the caller; not evidence of a server failure. */
  | { readonly kind: "aborted" };

/** Permission to send one call. */
export interface Permit {
  /** Time that the call waited for the permit, in ms. */
  readonly waitedMs: number;
  /** Must be called exactly once, after the call has ended. */
  settle(result: CallResult): void;
}

/** A call that waits for its permit. */
export interface WaitingCall {
  /** Moves the call to a higher class: more urgent work depends on it. A lower class has no effect. */
  raise(priority: CallPriority): void;
}

export interface AdmitOptions {
  readonly signal?: AbortSignal;
  /** Called once if the call has to wait. */
  readonly onWait?: (waiting: WaitingCall) => void;
}

/**
 * Admits API calls before they are sent. A gate can delay or reject a call.
 */
export interface Gate {
  /**
   * @throws KonvergeError `deferred` with `retryAfterMs` if the call must not be sent now.
   * @throws the signal's reason if aborted.
   */
  admit(call: GateCall, options?: AdmitOptions): Promise<Permit>;
  /**
   * Records that this process has no credentials, so that no call can be sent. Returns the error for the caller, which may be
   * a deferral. The next admitted call proves that there are credentials again.
   */
  withoutCredentials?(error: KonvergeError): KonvergeError;
}
