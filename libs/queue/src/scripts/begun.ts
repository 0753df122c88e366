import type { TimeSpan, Trigger } from "@konverge/core";
import { replyNumber, replyTagged, replyText, replyWord, type Reply } from "@konverge/redis";
import { classOf } from "../contract/request-class.ts";
import type { RequestClass } from "../contract/work-queue.ts";

/** The state of a key whose job BullMQ handed out. */
export type Begun =
  | {
      readonly kind: "run";
      readonly epoch: number;
      readonly attempt: number;
      readonly failures: number;
      readonly conflicts: number;
      readonly triggers: readonly Trigger[];
      readonly floor: string;
      readonly requestedAtMs: number;
      readonly startedAtMs: number;
      readonly class: RequestClass;
      /** Number of the last request that it covers. */
      readonly covered: number;
      readonly traceparent: string | undefined;
      /** True if resyncs alone have requested the key since its last success. */
      readonly isResync: boolean;
      /** The times in which the key was parked because of a pause, oldest first. Some may be from before the requests. */
      readonly pauses: readonly TimeSpan[];
      /** Attempts in a row, up to this one, that never ended; 0 unless the last of them was found now. */
      readonly lost: number;
      /** The same, also if the last of them was found earlier. */
      readonly lostInARow: number;
    }
  /** Another epoch is running. */
  | { readonly kind: "busy"; readonly waitMs: number }
  /** Attempts of this key were lost with their workers; the key backs off before the next. */
  | {
      readonly kind: "backoff";
      readonly failures: number;
      readonly nowMs: number;
      readonly lost: number;
    }
  /** Dead-lettered; `lost` as for the others, if it was because of lost attempts now. */
  | { readonly kind: "dead"; readonly lost: number }
  | { readonly kind: "covered" }
  /** Parked until the pause is ended. */
  | { readonly kind: "paused" }
  /** Redis was restored, and no operator has accepted its work. */
  | { readonly kind: "held" };

export type RunningAttempt = Extract<Begun, { kind: "run" }>;

/** Decodes what `begin` in scripts/begin-attempt.lua returns. */
export function decodeBegun(reply: Reply): Begun {
  const [kind, first, run, last, life] = replyTagged(reply);
  switch (kind) {
    case "busy":
      return { kind, waitMs: replyNumber(first) };
    case "backoff":
      return {
        kind,
        failures: replyNumber(first),
        nowMs: replyNumber(run),
        lost: replyNumber(last),
      };
    case "dead":
      return { kind, lost: replyNumber(first) };
    case "run":
      return decodeRun(replyText(first), replyText(run), { traceparent: last, life });
    default:
      return { kind: replyWord(kind, ["covered", "paused", "held"]) };
  }
}

function decodeRun(
  counters: string,
  run: string,
  { traceparent, life }: Readonly<Record<"traceparent" | "life", Reply | undefined>>,
): RunningAttempt {
  const numbers = counters.split(" ").map(Number);
  const [epoch = 0, attempt = 0, failures = 0, conflicts = 0, covered = 0] = numbers;
  const [lost = 0, lostInARow = 0] = numbers.slice(5);
  const [startedAt, , rank, since, floor = "-", , ...triggers] = run.split("\n");
  return {
    kind: "run",
    epoch,
    attempt,
    failures,
    conflicts,
    covered,
    triggers: decodeTriggers(triggers),
    floor: floor === "-" ? "" : floor,
    requestedAtMs: Number(since),
    startedAtMs: Number(startedAt),
    class: classOf(Number(rank)),
    traceparent: traceparent == null || traceparent === "" ? undefined : replyText(traceparent),
    ...decodeLife(life == null ? "0 " : replyText(life)),
    lost,
    lostInARow,
  };
}

function decodeLife(text: string): Pick<RunningAttempt, "isResync" | "pauses"> {
  const [quiet, ...spans] = text.split(" ");
  const pauses = spans.flatMap((span) => {
    const [fromMs = 0, toMs = 0] = span.split("-").map(Number);
    return span === "" ? [] : [{ fromMs, toMs }];
  });
  return { isResync: quiet === "1", pauses };
}

/** Triggers are kept as lines of JSON, so that a script can add and cut without parsing. */
export function decodeTriggers(lines: readonly string[]): Trigger[] {
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Trigger);
}
