import type { KeyItem, PauseView } from "@konverge/contracts";
import { formatKey } from "@konverge/core";
import type { KeySummary, Pause } from "@konverge/queue";

/** A key as the API shows it. */
export function keyItem(state: KeySummary): KeyItem {
  const { key, phase, failures, conflicts, lastOutcome, nextAt, paused, dead } = state;
  return {
    key,
    phase,
    failures,
    conflicts,
    ...(lastOutcome === undefined ? {} : { lastOutcome }),
    ...(nextAt === undefined ? {} : { nextAt }),
    ...(paused === undefined ? {} : { paused: pauseView(paused) }),
    ...(dead === undefined ? {} : { dead }),
  };
}

export function pauseView({ scope, ...order }: Pause): PauseView {
  return {
    scope: scope.kind === "key" ? { kind: "key", key: formatKey(scope.key) } : scope,
    ...order,
  };
}
