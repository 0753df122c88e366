import {
  isKonvergeError,
  KonvergeError,
  type CallVerb,
  type JsonObject,
  type ResourceRef,
} from "@konverge/core";

/** One cause of an error response. Its type is called `reason` on the wire. */
export interface StatusCause {
  readonly type: string;
  readonly message: string;
  /** Field path, for example `spec.replicas`; empty if the cause concerns no field. */
  readonly field: string;
}

export interface KubeApiErrorFields {
  /** HTTP status, or the code of a Status inside a watch. */
  readonly status: number;
  /** Machine-readable reason, for example `Conflict`; empty if the server sent none. */
  readonly reason: string;
  readonly causes?: readonly StatusCause[];
  /** `details` of the Status without its causes. */
  readonly details?: JsonObject;
  readonly trait?: ErrorTrait;
  readonly retryAfterMs?: number;
  readonly ref?: ErrorRef;
  readonly verb?: CallVerb;
}

/**
 * A property that only the server's message reveals. It is detected before the message is redacted, so that the
 * predicates also work for sensitive kinds.
 */
export type ErrorTrait =
  | "replaced"
  | "quotaExceeded"
  /** The account lacks a permission; other 403s are rejections by admission. */
  | "notPermitted"
  | "resourceVersionTooLarge"
  /** A webhook or an aggregated API failed, not the server itself. */
  | "extension"
  /** The watch cache is being filled. */
  | "cacheNotReady"
  /** A disruption budget forbids the eviction. */
  | "disruptionBudget";

/** The target of a failed call; without a name for a collection. */
export type ErrorRef = Omit<ResourceRef, "name"> & {
  readonly name?: string;
  /** Name of the cluster, if it is not that of the caller. */
  readonly cluster?: string;
};

/** An error response of the API server. Distinguish kinds by the predicates, never by the message. */
export class KubeApiError extends KonvergeError {
  override readonly name = "KubeApiError";
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly StatusCause[];
  readonly details: JsonObject;
  readonly trait: ErrorTrait | undefined;
  readonly ref: ErrorRef | undefined;
  readonly verb: CallVerb | undefined;

  constructor(message: string, fields: KubeApiErrorFields) {
    super(
      "kube_api",
      message,
      fields.retryAfterMs === undefined ? {} : { retryAfterMs: fields.retryAfterMs },
    );
    this.status = fields.status;
    this.reason = fields.reason;
    this.causes = fields.causes ?? [];
    this.details = fields.details ?? {};
    this.trait = fields.trait;
    this.ref = fields.ref;
    this.verb = fields.verb;
  }
}

/** Returns true for a {@link KubeApiError}, also from another copy of this package. Ignores causes. */
export function isKubeApiError(error: unknown): error is KubeApiError {
  return isKonvergeError(error) && error.code === "kube_api";
}
