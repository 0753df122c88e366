import { isKonvergeError } from "@konverge/core";
import {
  isExpired,
  isGone,
  isInternalError,
  isKubeApiError,
  isResourceVersionTooLarge,
  isTooManyRequests,
} from "../errors/kube-api-error.ts";

/** How a reflector goes on after a list or a watch failed. */
export interface WatchRecovery {
  readonly next: "watch" | "list";
  /** Wait first; what failed would fail again. */
  readonly backOff: boolean;
  /** Belongs to the life of a watch; nobody needs to hear of it. */
  readonly quiet: boolean;
  /** The version to resume at is lost to the server: only its newest state will do. */
  readonly versionLost: boolean;
}

export interface WatchHistory {
  /** The watch had delivered something, or lasted a second. */
  readonly lived: boolean;
  /** It was the first one after a list. */
  readonly fresh: boolean;
}

/** The rules of client-go's reflector (tools/cache/reflector.go). */
export function recoverWatch(error: unknown, { lived, fresh }: WatchHistory): WatchRecovery {
  const base = { quiet: false, versionLost: false };
  if (isExpired(error) || isGone(error)) {
    // At once, unless the version expired that was listed just now: then the server is in trouble.
    return { ...base, next: "list", backOff: fresh && !lived, quiet: true };
  }
  if (isResourceVersionTooLarge(error))
    return { ...base, next: "list", backOff: true, versionLost: true };
  if (isTooManyRequests(error) || isInternalError(error))
    return { ...base, next: "watch", backOff: true };
  // No answer, a cut stream, or a gate that says not now: what was seen is still true, so there is nothing to list.
  if (isKonvergeError(error) && !isKubeApiError(error)) {
    return { ...base, next: "watch", backOff: !lived || error.code === "deferred" };
  }
  return { ...base, next: "list", backOff: true };
}

/** As {@link recoverWatch}, for a list at version `version`. */
export function recoverList(error: unknown, version: string): WatchRecovery {
  const lost = isExpired(error) || isGone(error) || isResourceVersionTooLarge(error);
  // At once, but not for ever: the newest state cannot be too new.
  return { next: "list", backOff: !lost || version === "", quiet: lost, versionLost: lost };
}
