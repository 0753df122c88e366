import { expect, test } from "vitest";
import { isFinal, type OutcomeKind } from "./outcome.ts";

// Exhaustive by type: a new outcome must be placed here.
const FINAL: Record<OutcomeKind, boolean> = {
  done: true,
  requeueAfter: true,
  awaitChange: true,
  gone: true,
  terminal: true,
  conflict: false,
  retry: false,
  rejected: false,
  deferred: false,
  cancelled: false,
};

test.each(Object.entries(FINAL) as [OutcomeKind, boolean][])(
  "%s settles its requests: %s",
  (kind, final) => {
    expect(isFinal(kind)).toBe(final);
  },
);
