import { NOTIFICATION_FORMATS, NOTIFICATION_STATES } from "@konverge/core";
import { z } from "zod";
import { text, wholeNumber } from "./query-fields.ts";

/** A newer version may have stored an event that this one does not know. */
const event = z.string();

const notificationSchema = z.object({
  /** The deduplication key, which is in the message and the same in every try. */
  id: z.string(),
  cluster: z.string(),
  /** The name of the webhook. */
  receiver: z.string(),
  format: z.enum(NOTIFICATION_FORMATS),
  state: z.enum(NOTIFICATION_STATES),
  createdAt: z.string(),
  /** The time after which it is no longer tried. */
  deadline: z.string(),
  /** The faults by event and controller, workflow or cluster. */
  groups: z.array(
    z.object({
      event,
      group: z.string(),
      /** New faults. */
      firing: z.number(),
      /** Faults that have ended. */
      resolved: z.number(),
      /** Faults that existed at the time of the message. */
      open: z.number(),
      /** The start of the oldest of them. */
      since: z.string(),
    }),
  ),
  /** Some of the new faults. */
  examples: z.array(
    z.object({
      event,
      group: z.string(),
      /** The key, run, object or cluster. */
      subject: z.string(),
      summary: z.string(),
      since: z.string(),
    }),
  ),
  /** The number of tries. */
  tries: z.number(),
  /** The last 5 of them, oldest first. */
  lastTries: z.array(
    z.object({
      at: z.string(),
      /** HTTP status; missing without an answer. */
      status: z.number().optional(),
      /** The start of the answer, without secrets of the receiver. */
      answer: z.string().optional(),
      error: z.string().optional(),
    }),
  ),
  /** The next try. */
  nextAt: z.string().optional(),
  /** The time of the last try of a sent or failed notification. */
  endedAt: z.string().optional(),
});

/** Query of `GET /v1/notifications`. */
export const notificationQuerySchema = z.strictObject({
  /** Default: the cluster of the API process. */
  cluster: text.optional(),
  state: z.enum(NOTIFICATION_STATES).optional(),
  limit: wholeNumber(1_000).default(100),
});

/** Response of `GET /v1/notifications`, newest first. The last 1,000 of a cluster are kept. */
export const notificationListSchema = z.object({ items: z.array(notificationSchema) });

export type NotificationQuery = z.input<typeof notificationQuerySchema>;
export type NotificationList = z.infer<typeof notificationListSchema>;
export type NotificationView = z.infer<typeof notificationSchema>;
