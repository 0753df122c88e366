import type { AttemptRecord } from "@konverge/records";
import { formatMs, plural } from "../../parts/format.ts";
import { toneOfOutcome, textOfOutcome } from "../../parts/status.tsx";
import { setQuery } from "../../state/router.ts";
import { conflictsOf, numberOf } from "./conflicts-of.ts";

/** One tick per kept attempt, oldest first. A click opens the attempt. */
export function AttemptStrip({ attempts }: { readonly attempts: readonly AttemptRecord[] }) {
  const failed = attempts.filter(({ outcome }) => toneOfOutcome(outcome) === "bad").length;
  const conflicts = attempts.reduce((sum, record) => sum + conflictsOf(record), 0);
  const summary = `Last ${plural(attempts.length, "attempt")}: ${failed} failed, ${plural(conflicts, "conflict")}`;
  return (
    <div class="strip" role="group" aria-label={summary}>
      {attempts.toReversed().map((record) => (
        <button
          key={record.id}
          type="button"
          tabIndex={-1}
          class={`tick ${conflictsOf(record) > 0 ? "race" : toneOfOutcome(record.outcome)}`}
          title={titleOf(record)}
          aria-label={`Open attempt ${numberOf(record)}: ${titleOf(record)}`}
          onClick={() => openAttempt(numberOf(record))}
        />
      ))}
    </div>
  );
}

function titleOf(record: AttemptRecord): string {
  const { outcome, startedAt, durationMs, error } = record;
  const text = `#${numberOf(record)} ${textOfOutcome(outcome)}, ${startedAt.slice(11, 19)} UTC, ${formatMs(durationMs)}`;
  return error === undefined ? text : `${text}: ${error.message.slice(0, 160)}`;
}

/** Opens an attempt of the page and scrolls to it. */
function openAttempt(number: string): void {
  setQuery({ attempt: number, tab: undefined });
  // The row is rendered with the next frame.
  window.requestAnimationFrame(() =>
    window.setTimeout(() =>
      document.querySelector(`[data-attempt="${number}"]`)?.scrollIntoView({ block: "center" }),
    ),
  );
}
