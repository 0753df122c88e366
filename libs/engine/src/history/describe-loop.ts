import type { HintCode, LoopState } from "@konverge/records";
import type { FoundLoop } from "./loop-throttle.ts";

export function hintOfLoop({ kind, paths }: LoopState): HintCode {
  switch (kind) {
    case "ownershipFlip":
      return "ownership_flip";
    case "requeue":
      return "endless_requeue";
    case "selfTriggered":
      return paths.every((path) => path.includes("status"))
        ? "own_status_trigger"
        : "own_write_trigger";
  }
}

/** True for hints that require several attempts. */
export function isLoopHint(code: HintCode): boolean {
  return (
    code === "own_write_trigger" ||
    code === "own_status_trigger" ||
    code === "endless_requeue" ||
    code === "ownership_flip"
  );
}

/** Describes a loop by names and counts, for a log line, an Event or a record. */
export function describeLoop({ kind, count, paths, managers }: FoundLoop): string {
  switch (kind) {
    case "ownershipFlip":
      return `${paths.join(", ")} taken over from ${managers.join(", ")} ${count} times`;
    case "selfTriggered":
      return `${count} consecutive attempts, writes of ${paths.join(", ")}`;
    case "requeue":
      return `${count} consecutive attempts`;
  }
}
