import {
  pauseActionSchema,
  pauseListSchema,
  pausesQuerySchema,
  resumeResponseSchema,
} from "@konverge/contracts";
import { demandSome } from "../access/caller.ts";
import { actionRoute, readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { pause, resume } from "../queues/queue-actions.ts";
import { listPauses } from "../queues/queue-view.ts";

/** Pauses of controllers, namespaces and objects. */
export function pauseRoutes(access: QueueAccess): Route[] {
  return [
    readRoute({
      id: "listPauses",
      path: "/v1/pauses",
      summary: "List pauses with author, reason and time",
      query: pausesQuerySchema,
      answer: pauseListSchema,
      async handle({ query: { cluster }, caller }) {
        demandSome(caller, { cluster });
        return await listPauses(access, caller, cluster);
      },
    }),
    actionRoute({
      id: "pause",
      path: "/v1/pauses",
      summary: "Pause an object, namespace or controller",
      body: pauseActionSchema,
      answer: pauseListSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ body, ...acting }) => pause(access, body, acting),
    }),
    actionRoute({
      id: "resume",
      path: "/v1/pauses/resume",
      summary: "Resume an object, namespace or controller",
      body: pauseActionSchema,
      answer: resumeResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ body, ...acting }) => resume(access, body, acting),
    }),
  ];
}
