import { isKonvergeError } from "@konverge/core";
import { isKubeApiError } from "../errors/kube-api-error.ts";
import {
  isExpired,
  isGone,
  isInternalError,
  isTooManyRequests,
} from "../errors/error-predicates.ts";
import { StreamSilent } from "../wire/http-stream.ts";

/** How a reflector continues after a failed list or watch. */
export interface WatchRecovery {
  readonly next: "watch" | "list";
  /** Wait first; an immediate retry would fail too. */
  readonly backOff: boolean;
  /** A normal event in the life of a watch; not reported. */
  readonly quiet: boolean;
}

export interface WatchHistory {
  /** The watch had delivered an event, or lasted a second. */
  readonly lived: boolean;
  /** It was the first watch after a list. */
  readonly fresh: boolean;
  /** The server has sent a bookmark before. */
  readonly hasBookmarks: boolean;
}

/** Follows the rules of client-go's reflector (tools/cache/reflector.go). */
export function recoverWatch(
  error: unknown,
  { lived, fresh, hasBookmarks }: WatchHistory,
): WatchRecovery {
  const base = { quiet: false };
  if (isExpired(error) || isGone(error)) {
    // Immediately, unless the version from the list just before has expired: then the server has a problem.
    return { ...base, next: "list", backOff: fresh && !lived, quiet: true };
  }
  // Silence is normal for a server without bookmarks. If this one cannot be reached, the next watch fails.
  if (error instanceof StreamSilent) return { next: "watch", backOff: false, quiet: !hasBookmarks };
  if (isTooManyRequests(error) || isInternalError(error))
    return { ...base, next: "watch", backOff: true };
  // No response, a broken stream, or a gate that defers: the known state is still valid, so no list is needed.
  if (isKonvergeError(error) && !isKubeApiError(error)) {
    return { ...base, next: "watch", backOff: !lived || error.code === "deferred" };
  }
  return { ...base, next: "list", backOff: true };
}
