import { KonvergeError, type Outcome } from "@konverge/core";
import type { AttemptEnd } from "../contract/work-queue.ts";
import type { EndPlan } from "./end-plan.ts";

const MAX_RECORD_BYTES = 16 * 1_024;
const MAX_ERROR_CHARS = 1_000;

/** The texts that are stored with the end of an attempt. */
export interface AttemptTexts {
  readonly errorCode: string;
  readonly errorMessage: string;
  readonly record: string;
}

/** Returns the stored texts of an ended attempt. A record over the limit is replaced by its size and reported. */
export function textsOf(
  id: string,
  end: AttemptEnd,
  plan: EndPlan,
  onError: (error: Error) => void,
): AttemptTexts {
  return { ...errorTexts(end.outcome), record: fitting(recordOf(end, plan), id, onError) };
}

function recordOf({ record = "" }: AttemptEnd, { job, delayMs }: EndPlan): string {
  if (typeof record === "string") return record;
  return record(job === "retry" || job === "delay" ? Math.round(delayMs) : 0);
}

function fitting(record: string, id: string, onError: (error: Error) => void): string {
  const bytes = Buffer.byteLength(record);
  if (bytes <= MAX_RECORD_BYTES) return record;
  onError(
    new KonvergeError(
      "internal",
      `record of ${id} dropped: ${bytes} bytes, limit ${MAX_RECORD_BYTES}`,
    ),
  );
  return JSON.stringify({ droppedBytes: bytes });
}

function errorTexts(outcome: Outcome): Omit<AttemptTexts, "record"> {
  const error = "error" in outcome ? outcome.error : undefined;
  if (error === undefined) return { errorCode: "", errorMessage: "" };
  const code = "code" in error && typeof error.code === "string" ? error.code : outcome.kind;
  return { errorCode: code, errorMessage: error.message.slice(0, MAX_ERROR_CHARS) };
}
