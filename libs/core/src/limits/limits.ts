import { KonvergeError } from "../errors.ts";

/** A use of a named limit. */
export interface LimitUse {
  /** A name in `limits` of the configuration. */
  readonly name: string;
  /** Each key, such as a tenant, has a rate and slots of its own. Default: one for all. */
  readonly key?: string;
  /** Permits of the rate that one use takes. Default 1. */
  readonly cost?: number;
}

export interface PermitRequest extends LimitUse {
  /** Keeps its place in the queue over several requests. `<object key> <use>`: the key is requested when a slot is free. */
  readonly waiter: string;
  /** Longest wait in the call, in ms. */
  readonly inPlaceMs: number;
  /** Aborts the call. */
  readonly signal: AbortSignal;
}

/** A permit of a named limit. */
export interface HeldPermit {
  /** Aborted with a `deferred` error if another may have the slot, because this process was stopped or cut off. */
  readonly signal: AbortSignal;
  /** Frees the slot. */
  release(): void;
}

export type PermitResult =
  | { readonly kind: "held"; readonly permit: HeldPermit }
  /** The place in the queue is kept until some time after `afterMs`. */
  | { readonly kind: "waiting"; readonly afterMs: number };

/** The named limits of an installation, as one process uses them. */
export interface Limits {
  /** @throws KonvergeError `invalid_config` for an unknown name or an impossible cost */
  check(use: LimitUse): void;
  /** @throws as `check`; the reason of `signal` */
  take(request: PermitRequest): Promise<PermitResult>;
  /** Leaves the queue. */
  leave(request: LimitUse & Pick<PermitRequest, "waiter">): void;
}

/** The text by which users recognize the wait. */
export function limitWait({ name, key }: LimitUse): string {
  return `waiting for limit "${name}"${key === undefined ? "" : `, key "${key}"`}`;
}

/** Defers an attempt until a permit is expected. A request ends the wait. */
export class LimitWaitError extends KonvergeError {
  override readonly name = "LimitWaitError";
  readonly limit: LimitUse;

  constructor(use: LimitUse, retryAfterMs: number) {
    super("deferred", limitWait(use), { retryAfterMs });
    this.limit = use;
  }
}
