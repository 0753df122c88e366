import {
  deadLetterQuerySchema,
  keyListSchema,
  releaseActionSchema,
  releaseResponseSchema,
} from "@konverge/contracts";
import { actionRoute, readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { releaseDeadLetters } from "../queues/queue-actions.ts";
import { listKeys, priceOfPage } from "../queues/queue-view.ts";

export function deadLetterRoutes(access: QueueAccess): Route[] {
  return [
    readRoute({
      id: "listDeadLetters",
      path: "/v1/dead-letters",
      summary: "List dead-lettered keys with their errors",
      query: deadLetterQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      price: ({ query }) => priceOfPage(query.limit),
      handle: ({ query, ...asked }) => listKeys(access, { ...query, phase: "deadLettered" }, asked),
    }),
    actionRoute({
      id: "releaseDeadLetters",
      path: "/v1/dead-letters/release",
      summary: "Release one dead-lettered key, or all that match; a dry run counts them",
      body: releaseActionSchema,
      answer: releaseResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ body, ...acting }) => releaseDeadLetters(access, body, acting),
    }),
  ];
}
