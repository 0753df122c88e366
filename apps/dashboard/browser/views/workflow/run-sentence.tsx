import { formatMs, plural } from "../../parts/format.ts";
import { now } from "../../parts/time.tsx";
import { authorText, endText, slotText, waitText, type Run, type Wait } from "./wait-text.tsx";

/** The rest of the sentence that begins with a run's status. */
export function RunSentence({ run }: { readonly run: Run }) {
  const { status, slotWait, waits = [], cancel, pause, createdAt, startedAt, endedAt } = run;
  const took = formatMs(Date.parse(endedAt ?? createdAt) - Date.parse(createdAt));
  const action = cancel === undefined ? "" : `, cancelled ${authorText(cancel)}`;
  switch (status) {
    case "queued":
      return (
        <>
          for {since(createdAt)}, waiting{" "}
          {slotWait === undefined ? "for a worker" : slotText(slotWait)}
        </>
      );
    case "running":
      return (
        <>
          for {since(startedAt ?? createdAt)}
          {action}
        </>
      );
    case "waiting":
      return <WaitSentence waits={waits} />;
    case "blocked":
      return <>until the cause is fixed; it is rechecked regularly</>;
    case "pausing":
      return <>{authorText(pause ?? {})}; running bodies end first</>;
    case "paused":
      return (
        <>
          {authorText(pause ?? {})}
          {pause === undefined ? "" : `, for ${since(pause.at)}`}
        </>
      );
    case "compensating":
      return <>recorded steps{action}</>;
    case "done":
      return <>in {took}</>;
    case "failed":
      return <>after {took}</>;
    case "cancelled":
      return (
        <>
          after {took} {endText(run)}
        </>
      );
  }
}

function WaitSentence({ waits: [first, ...others] }: { readonly waits: readonly Wait[] }) {
  if (first === undefined) return null;
  const { kind, since: began, until } = first;
  return (
    <>
      {waitText(first)}
      {began === undefined ? "" : `, ${since(began)} so far`}
      {until === undefined ? "" : `; ${kind === "signal" ? "times out" : "continues"} in `}
      {until === undefined ? "" : formatMs(Math.max(0, Date.parse(until) - now.value))}
      {others.length === 0 ? "" : `; and ${plural(others.length, "more wait")}`}
    </>
  );
}

function since(iso: string): string {
  return formatMs(Math.max(0, now.value - Date.parse(iso)));
}
