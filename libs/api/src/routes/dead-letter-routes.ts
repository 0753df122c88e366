import {
  deadLetterQuerySchema,
  keyListSchema,
  releaseActionSchema,
  releaseResponseSchema,
} from "@konverge/contracts";
import { route, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { releaseDeadLetters } from "../queues/queue-actions.ts";
import { listKeys, priceOfPage } from "../queues/queue-view.ts";

export function deadLetterRoutes(access: QueueAccess): Route[] {
  return [
    route({
      id: "listDeadLetters",
      method: "get",
      path: "/v1/dead-letters",
      summary: "List dead-lettered keys with their errors",
      role: "viewer",
      query: deadLetterQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      price: ({ query }) => priceOfPage(query.limit),
      handle: ({ query, ...asked }) => listKeys(access, { ...query, phase: "deadLettered" }, asked),
    }),
    route({
      id: "releaseDeadLetters",
      method: "post",
      path: "/v1/dead-letters/release",
      summary: "Release one dead-lettered key, or all that match; a dry run counts them",
      role: "operator",
      isOperatorAction: true,
      body: releaseActionSchema,
      answer: releaseResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ body, ...acting }) => releaseDeadLetters(access, body, acting),
    }),
  ];
}
