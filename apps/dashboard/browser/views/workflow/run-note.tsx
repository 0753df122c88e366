import { Time } from "../../parts/time.tsx";
import { authorText, endText, slotText, waitText, type Run, type Wait } from "./wait-text.tsx";

/** The reason for a run's status, for a table row. */
export function RunNote({
  run: { status, waits = [], error, blockedReason, cancel, pause, terminated, slotWait },
}: {
  run: Run;
}) {
  switch (status) {
    case "waiting":
      return <WaitNote waits={waits} />;
    case "blocked":
      return <span class="clip">{blockedReason}</span>;
    case "pausing":
    case "paused":
      return <span class="dim clip">{authorText(pause ?? {})}</span>;
    case "failed":
      return (
        <span class="clip">
          <code class="bad">{error?.code}</code> {error?.message}
        </span>
      );
    case "queued":
      return (
        <span class="dim">{slotWait === undefined ? "for a worker" : slotText(slotWait)}</span>
      );
    case "done":
      return null;
    case "running":
    case "compensating":
      return cancel === undefined ? null : (
        <span class="dim clip">cancelled {authorText(cancel)}</span>
      );
    case "cancelled":
      return <span class="dim clip">{endText({ cancel, terminated })}</span>;
  }
}

function WaitNote({ waits: [first, ...others] }: { readonly waits: readonly Wait[] }) {
  if (first === undefined) return null;
  return (
    <span class="clip">
      {waitText(first)}
      {first.until === undefined ? null : (
        <span class="dim">
          , {first.kind === "signal" ? "times out" : "continues"} <Time at={first.until} />
        </span>
      )}
      {others.length === 0 ? null : <span class="dim">, and {others.length} more</span>}
    </span>
  );
}
