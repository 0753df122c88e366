import { findLabelIssue, MAX_LABELS, RUN_STATUSES } from "@konverge/core";
import { z } from "zod";
import { oneOf, text, wholeNumber } from "./query-fields.ts";

const BAD_WORKFLOW = "must be a workflow name of 1 to 63 characters";
export const workflow = z.string(BAD_WORKFLOW).min(1, BAD_WORKFLOW).max(63, BAD_WORKFLOW);
export const cluster = text.default("default");
const BAD_ID = "must have 1 to 500 characters without spaces and control characters";
export const id = z.string(BAD_ID).regex(/^[^\s\x00-\x1f\x7f-\x9f]{1,500}$/, BAD_ID);
const BAD_SHORT_TEXT = "must have 1 to 200 characters";
export const shortText = z.string(BAD_SHORT_TEXT).min(1, BAD_SHORT_TEXT).max(200, BAD_SHORT_TEXT);
const BAD_CURSOR = "must be the cursor of an earlier response";

export const labels = z.record(z.string(), z.string()).superRefine((given, context) => {
  const entries = Object.entries(given);
  for (const [name, value] of entries) {
    const message = findLabelIssue(name, value);
    if (message !== undefined) context.addIssue({ code: "custom", message, path: [name] });
  }
  if (entries.length <= MAX_LABELS) return;
  context.addIssue({ code: "custom", message: `must have at most ${MAX_LABELS} labels` });
});
const BAD_TIME = "must be a time, such as 2026-11-22T08:00:00Z";
const time = z.iso.datetime({ offset: true, error: BAD_TIME });
const BAD_PARENT = "must be the ID of a run, or none";
const BAD_LABELS = `must have 1 to ${MAX_LABELS} labels, such as region=eu,tier=gold`;
/** `name=value`, separated by commas. */
const labelFilter = z
  .string(BAD_LABELS)
  .max(2_000, BAD_LABELS)
  .refine((filter) => {
    const wanted = Object.entries(parseLabels(filter));
    const isValid = wanted.every(([name, value]) => findLabelIssue(name, value) === undefined);
    return isValid && wanted.length <= MAX_LABELS;
  }, BAD_LABELS);

/** Parses `region=eu,tier=gold`. */
export function parseLabels(pairs: string): Record<string, string> {
  return Object.fromEntries(
    pairs.split(",").map((pair) => {
      const [name = "", ...value] = pair.split("=");
      return [name, value.join("=")];
    }),
  );
}

export const runCursor = z
  .string()
  .max(610, BAD_CURSOR)
  .regex(/^\d{1,16}\/[-a-z0-9]{1,63}\/\S*$/, BAD_CURSOR);

/** Filters of runs, combined with AND. */
export const runFilterFields = {
  /** Default: all workflows. */
  workflow: workflow.optional(),
  status: z.enum(RUN_STATUSES, oneOf(RUN_STATUSES)).optional(),
  key: id.optional(),
  /** Author. */
  by: shortText.optional(),
  /** Labels that the run has, such as `region=eu,tier=gold`. */
  label: labelFilter.optional(),
  /** The run was started at this time or later. */
  since: time.optional(),
  /** The run was started before this time. */
  until: time.optional(),
  /** Version of the workflow code. */
  version: wholeNumber(Number.MAX_SAFE_INTEGER).optional(),
  /** Code of the error. */
  error: shortText.optional(),
  /** ID of the run that started it; `none` for runs without a parent. */
  parent: z.string(BAD_PARENT).min(1, BAD_PARENT).max(600, BAD_PARENT).optional(),
  /** Substring of the ID, key or author. */
  search: shortText.optional(),
};

export const failure = z.object({
  code: z.string(),
  message: z.string(),
  /** Where it was thrown, as `at function (file:line:column)`; of the error, then of its causes. */
  frames: z.array(z.string()).optional(),
});
export const stepKind = z.enum([
  "step",
  "sleep",
  "signal",
  "child",
  "now",
  "undo",
  "update",
  "wait",
  "race",
]);
