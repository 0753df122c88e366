import { z } from "zod";
import { text } from "./query-fields.ts";

const SOURCE_KINDS = ["poll", "stream", "inbound"] as const;

/** Query of `POST /v1/inbound/{name}`. */
export const inboundQuerySchema = z.strictObject({
  /** Default: the cluster of the API process. */
  cluster: text.optional(),
});

/** Response of `POST /v1/inbound/{name}`. */
export const inboundResultSchema = z.object({
  /** The ID from the sender; a generated one if the sender sent none. */
  id: z.string(),
  /** `duplicate`: the delivery was accepted before, and is not processed again. */
  status: z.enum(["accepted", "duplicate"]),
});

const source = z.object({
  cluster: z.string(),
  controller: z.string(),
  name: z.string(),
  kind: z.enum(SOURCE_KINDS),
  /** `unknown`: no leader has reported it yet. */
  state: z.enum(["ok", "failing", "unknown"]),
  /** Consecutive failures. */
  failures: z.number(),
  /** The time of the first of them. */
  failingSince: z.string().optional(),
  /** The last error. */
  error: z.string().optional(),
  /** Events that are not requested yet. */
  waiting: z.number(),
  /** Age of the oldest of them; for a poll, of the last complete list. */
  lagMs: z.number().optional(),
  /** The time of the report. */
  reportedAt: z.string().optional(),
  /** The last success. */
  succeededAt: z.string().optional(),
  /** The worker that runs it. */
  worker: z.string().optional(),
});

/** Response of `GET /v1/sources`. */
export const sourceListSchema = z.object({ items: z.array(source) });

export type InboundResult = z.infer<typeof inboundResultSchema>;
export type SourceList = z.infer<typeof sourceListSchema>;
export type SourceView = z.infer<typeof source>;
