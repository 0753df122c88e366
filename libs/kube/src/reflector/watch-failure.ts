import { isKonvergeError } from "@konverge/core";
import {
  isExpired,
  isGone,
  isInternalError,
  isKubeApiError,
  isResourceVersionTooLarge,
  isTooManyRequests,
} from "../errors/kube-api-error.ts";

/** How a reflector continues after a failed list or watch. */
export interface WatchRecovery {
  readonly next: "watch" | "list";
  /** Wait first; an immediate retry would fail too. */
  readonly backOff: boolean;
  /** A normal event in the life of a watch; not reported. */
  readonly quiet: boolean;
  /** The server no longer has the version to resume at; only its newest state can be read. */
  readonly versionLost: boolean;
}

export interface WatchHistory {
  /** The watch had delivered an event, or lasted a second. */
  readonly lived: boolean;
  /** It was the first watch after a list. */
  readonly fresh: boolean;
}

/** Follows the rules of client-go's reflector (tools/cache/reflector.go). */
export function recoverWatch(error: unknown, { lived, fresh }: WatchHistory): WatchRecovery {
  const base = { quiet: false, versionLost: false };
  if (isExpired(error) || isGone(error)) {
    // Immediately, unless the version from the list just before has expired: then the server has a problem.
    return { ...base, next: "list", backOff: fresh && !lived, quiet: true };
  }
  if (isResourceVersionTooLarge(error))
    return { ...base, next: "list", backOff: true, versionLost: true };
  if (isTooManyRequests(error) || isInternalError(error))
    return { ...base, next: "watch", backOff: true };
  // No response, a broken stream, or a gate that defers: the known state is still valid, so no list is needed.
  if (isKonvergeError(error) && !isKubeApiError(error)) {
    return { ...base, next: "watch", backOff: !lived || error.code === "deferred" };
  }
  return { ...base, next: "list", backOff: true };
}

/** Like {@link recoverWatch}, for a list at version `version`. */
export function recoverList(error: unknown, version: string): WatchRecovery {
  const lost = isExpired(error) || isGone(error) || isResourceVersionTooLarge(error);
  // Immediately, but only once: the newest state cannot be too new.
  return { next: "list", backOff: !lost || version === "", quiet: lost, versionLost: lost };
}
