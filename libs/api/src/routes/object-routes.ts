import {
  contentionSchema,
  liveObjectSchema,
  objectAttemptsSchema,
  objectHistorySchema,
  objectLogQuerySchema,
  objectLogSchema,
} from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import { attemptRecordingSchema, attemptRecordSchema } from "@konverge/records";
import { demand } from "../access/caller.ts";
import { readRoute, route, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readContention } from "../views/history-view.ts";
import { readLiveObject } from "../views/live-object.ts";
import { readObjectLog } from "../views/object-log.ts";
import { readRecording } from "../views/attempt-recording.ts";
import { findKey, MAX_ATTEMPTS, readAttempts, readHistory } from "../views/object-view.ts";

/** Two calls of an API server, in simple requests. */
const LIVE_PRICE = 20;
/** A recording has up to 1 MB. */
const RECORDING_PRICE = 20;
const PATH = "/v1/objects/{cluster}/{controller}/{namespace}/{name}";

/** The object of a controller and its attempts. `_` is the namespace of cluster-scoped objects. */
export function objectRoutes(access: QueueAccess): Route[] {
  return [
    readRoute({
      id: "getObject",
      path: PATH,
      summary: "Get the state and the latest attempts of an object",
      answer: objectHistorySchema,
      problems: ["unknown_controller", "not_found", "invalid_request"],
      async handle({ params, caller }) {
        demand(caller, params);
        return await readHistory(access, params);
      },
    }),
    readRoute({
      id: "getContention",
      path: `${PATH}/contention`,
      summary: "Get the contention over an object and its throttling",
      answer: contentionSchema,
      problems: ["unknown_controller", "invalid_request"],
      async handle({ params, caller }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await readContention(access, key);
      },
    }),
    readRoute({
      id: "getLiveObject",
      path: `${PATH}/live`,
      summary: "Get the current object from the cluster, with events, owners and children",
      answer: liveObjectSchema,
      problems: ["unknown_controller", "invalid_request"],
      price: () => LIVE_PRICE,
      async handle({ params, caller, context }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await readLiveObject(access, caller, key, context.req.raw.signal);
      },
    }),
    readRoute({
      id: "listObjectAttempts",
      path: `${PATH}/attempts`,
      summary: "List the latest attempts of an object, newest first",
      answer: objectAttemptsSchema,
      problems: ["unknown_controller", "invalid_request"],
      async handle({ params, caller }) {
        demand(caller, params);
        return { items: await readAttempts(access, params) };
      },
    }),
    readRoute({
      id: "getAttempt",
      path: `${PATH}/attempts/{epoch}`,
      summary: "Get one attempt of an object",
      answer: attemptRecordSchema,
      problems: ["unknown_controller", "not_found", "invalid_request"],
      async handle({ params: { epoch, ...target }, caller }) {
        demand(caller, target);
        const found = (await readAttempts(access, target)).find(
          (attempt) => String(attempt.epoch) === epoch,
        );
        if (found !== undefined) return found;
        const detail = `attempt "${epoch}" not found; the last ${MAX_ATTEMPTS} attempts are kept`;
        throw new KonvergeError("not_found", detail);
      },
    }),
    route({
      id: "getAttemptRecording",
      method: "get",
      path: `${PATH}/attempts/{epoch}/recording`,
      summary:
        "Get everything that a recorded attempt has read and written; `latest` is the last one",
      role: "admin",
      answer: attemptRecordingSchema,
      problems: ["unknown_controller", "not_found", "invalid_request"],
      price: () => RECORDING_PRICE,
      async handle({ params: { epoch, ...target }, caller }) {
        demand(caller, target);
        const { key } = await findKey(access, target);
        return await readRecording(access, key, epoch);
      },
    }),
    readRoute({
      id: "getObjectLogs",
      path: `${PATH}/logs`,
      summary: "Get the last log lines of an object's attempts, oldest first",
      query: objectLogQuerySchema,
      answer: objectLogSchema,
      problems: ["unknown_controller", "not_found", "invalid_request"],
      async handle({ params, query: { attempt }, caller }) {
        demand(caller, params);
        const { queue, key } = await findKey(access, params);
        return { items: await readObjectLog(queue, key, attempt) };
      },
    }),
  ];
}
