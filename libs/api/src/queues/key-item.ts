import type { KeyItem, PauseView } from "@konverge/contracts";
import { defined, formatKey } from "@konverge/core";
import { formatRequestId, type KeySummary, type Pause } from "@konverge/queue";

/** Returns a key in the form of the API. */
export function keyItem(state: KeySummary): KeyItem {
  const {
    key,
    requested,
    finished,
    phase,
    failures,
    conflicts,
    lastOutcome,
    nextAt,
    paused,
    deadLetter,
  } = state;
  return {
    key,
    phase,
    failures,
    conflicts,
    ...defined({ lastOutcome }),
    ...(requested > finished ? { pending: formatRequestId(key, requested) } : {}),
    ...(paused === undefined ? {} : { paused: pauseView(paused) }),
    ...defined({ nextAt, deadLetter }),
  };
}

export function pauseView({ scope, ...action }: Pause): PauseView {
  return {
    scope: scope.kind === "key" ? { kind: "key", key: formatKey(scope.key) } : scope,
    ...action,
  };
}
