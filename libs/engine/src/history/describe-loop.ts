import type { HintCode, LoopState } from "@konverge/records";
import type { FoundLoop } from "./loop-brake.ts";

export function hintOfLoop({ kind, paths }: LoopState): HintCode {
  switch (kind) {
    case "flip":
      return "ownership_flip";
    case "requeue":
      return "requeue_never_ends";
    case "ownWrites":
      return paths.every((path) => path.includes("status"))
        ? "own_status_trigger"
        : "own_write_trigger";
  }
}

/** True for hints that only several attempts in a row show. */
export function isLoopHint(code: HintCode): boolean {
  return (
    code === "own_write_trigger" ||
    code === "own_status_trigger" ||
    code === "requeue_never_ends" ||
    code === "ownership_flip"
  );
}

/** Names and counts, for a log line, an Event, a record. */
export function describeLoop({ kind, count, paths, managers }: FoundLoop): string {
  switch (kind) {
    case "flip":
      return `${paths.join(", ")} was taken from ${managers.join(", ")} ${count} times`;
    case "ownWrites":
      return `${count} times in a row, writing ${paths.join(", ")}`;
    case "requeue":
      return `${count} times in a row`;
  }
}
