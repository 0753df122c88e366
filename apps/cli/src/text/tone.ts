import type { Cell } from "./columns.ts";

const BAD: readonly string[] = [
  "deadLettered",
  "terminal",
  "rejected",
  "lost",
  "open",
  "isolated",
  "fail",
  "error",
  "failed",
  "failing",
];
const UNEASY: readonly string[] = [
  "backoff",
  "retry",
  "conflict",
  "deferred",
  "halfOpen",
  "warn",
  "warning",
  "blocked",
  "compensating",
  "pausing",
  "engaging",
  "disengaging",
];
const GOOD: readonly string[] = ["done", "closed", "ok", "engaged"];

/** Returns a cell with the color of its state. */
export function toneCell(text: string): Cell {
  if (BAD.includes(text)) return { text, style: "red" };
  if (UNEASY.includes(text)) return { text, style: "yellow" };
  if (GOOD.includes(text)) return { text, style: "green" };
  return text === "paused" ? { text, style: "cyan" } : text;
}

export function outcomeCell(outcome: string | undefined): Cell {
  return toneCell(outcome ?? "-");
}
