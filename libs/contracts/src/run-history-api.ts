import { RUN_STATUSES } from "@konverge/core";
import { z } from "zod";
import { oneOf, wholeNumber } from "./query-fields.ts";
import { cluster, failure, runCursor, stepKind, workflow } from "./run-fields.ts";

/** Response of `GET /v1/runs/{id}/history`: all that an execution of the run reads, for a replay. Times are epoch ms. */
export const runHistorySchema = z.object({
  format: z.literal("konverge.dev/run-history/v1"),
  workflow: z.string(),
  /** Without workflow and cluster. */
  id: z.string(),
  /** Version of the workflow code that started the run. */
  version: z.number(),
  /** The highest version of the code that has recorded steps, if that is another one. */
  continuedBy: z.number().optional(),
  status: z.enum(RUN_STATUSES),
  createdAtMs: z.number(),
  input: z.unknown().optional(),
  /** The input as its schema parsed it, if that differs. */
  parsedInput: z.unknown().optional(),
  result: z.unknown().optional(),
  error: failure.optional(),
  /** Status and error that the run gets when its steps are undone. */
  failing: z.object({ status: z.enum(["failed", "cancelled"]), error: failure }).optional(),
  /** The records, oldest first. */
  steps: z.array(z.looseObject({ name: z.string(), kind: stepKind })),
  /** The begun steps and waits without a record. */
  progress: z.array(z.looseObject({ name: z.string(), attempts: z.number() })),
});

/** Query of `GET /v1/run-histories`. */
export const runHistoryQuerySchema = z.strictObject({
  cluster,
  workflow,
  status: z.enum(RUN_STATUSES, oneOf(RUN_STATUSES)).optional(),
  limit: wholeNumber(100).default(50),
  cursor: runCursor.optional(),
});

/** Response of the same, newest first. A page with long histories is short, and has a `next`. */
export const runHistoryListSchema = z.object({
  items: z.array(runHistorySchema),
  next: z.string().optional(),
});

export type RunHistoryItem = z.infer<typeof runHistorySchema>;
export type RunHistoryList = z.infer<typeof runHistoryListSchema>;
export type RunHistoryQuery = z.output<typeof runHistoryQuerySchema>;
