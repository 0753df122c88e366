/** What an API call is for; a scarce budget is spent in this order. */
export type CallPriority = "critical" | "interactive" | "event" | "retry" | "resync";

export type CallVerb =
  | "get"
  | "list"
  | "watch"
  | "create"
  | "update"
  | "patch"
  | "apply"
  | "delete";

/** One API call that asks to be sent. */
export interface GateCall {
  readonly verb: CallVerb;
  /** `resource.group`, for example `deployments.apps`. */
  readonly resource: string;
  readonly priority: CallPriority;
  /** True when the work that calls has already been granted calls: to finish it comes before starting more. */
  readonly running?: boolean;
  /** True for the call that a guard makes itself to see whether the server is back. */
  readonly probe?: boolean;
  /** Tokens that it costs; default 1. A long list costs the server more than a read. */
  readonly cost?: number;
}

/** Whose trouble a response tells of, where that is not the server's own. */
export type FaultScope =
  /** A part behind the server: a webhook, an aggregated API. */
  | "part"
  /** The object alone, such as an eviction that a disruption budget forbids. */
  | "object"
  /** A version that this replica has not seen yet, a watch cache that is being filled. */
  | "stale"
  /** This connection: the replica behind it shuts down. */
  | "connection";

/** How a permitted call ended, for whoever guards the API server. */
export type CallResult =
  | {
      readonly kind: "response";
      readonly status: number;
      readonly retryAfterMs?: number;
      readonly concern?: FaultScope;
    }
  /** No answer: refused, reset, TLS. */
  | { readonly kind: "network" }
  /** No answer within the call's deadline. */
  | { readonly kind: "timeout" }
  /** We gave up ourselves; says nothing about the server. */
  | { readonly kind: "aborted" };

/** The right to send one call. */
export interface Permit {
  /** How long the call waited for this right, in ms. */
  readonly waitedMs: number;
  /** Must be called exactly once, when the call has ended. */
  settle(result: CallResult): void;
}

/**
 * What every API call asks before it is sent. A gate may let the call wait, or refuse it.
 */
export interface Gate {
  /**
   * @throws KonvergeError `deferred` (with `retryAfterMs`) when the call may not be sent for a while.
   * @throws the signal's reason when aborted.
   */
  admit(call: GateCall, options?: { readonly signal?: AbortSignal }): Promise<Permit>;
}
