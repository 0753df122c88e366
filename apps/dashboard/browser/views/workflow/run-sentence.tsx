import { formatMs, plural } from "../../parts/format.ts";
import { now } from "../../parts/time.tsx";
import { authorText, waitText, type Run, type Wait } from "./wait-text.tsx";

/** How a run stands, as one sentence. */
export function RunSentence({ run }: { readonly run: Run }) {
  const { status, waits = [], cancel, createdAt, startedAt, endedAt } = run;
  const took = formatMs(Date.parse(endedAt ?? createdAt) - Date.parse(createdAt));
  const action = cancel === undefined ? "" : `, cancelled ${authorText(cancel)}`;
  switch (status) {
    case "queued":
      return <>for {since(createdAt)}, until a worker takes it</>;
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
      return <>until its cause is gone; a worker looks every minute</>;
    case "compensating":
      return <>what it did{action}</>;
    case "done":
      return <>in {took}</>;
    case "failed":
      return <>after {took}</>;
    case "cancelled":
      return (
        <>
          after {took} {authorText(cancel)}
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
      {until === undefined ? "" : `; ${kind === "signal" ? "ends" : "goes on"} by itself in `}
      {until === undefined ? "" : formatMs(Math.max(0, Date.parse(until) - now.value))}
      {others.length === 0 ? "" : `; and for ${plural(others.length, "thing")} more`}
    </>
  );
}

function since(iso: string): string {
  return formatMs(Math.max(0, now.value - Date.parse(iso)));
}
