import {
  defined,
  formatKey,
  KonvergeError,
  parseTraceparent,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import { explainRedisError, type RedisClient, runScript, withRedis } from "@konverge/redis";
import { isNewEventByDefault, rankOf } from "./request-class.ts";
import { formatRequestId } from "../keys/request-id.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { requestScript } from "../scripts/request.ts";
import { createTickBatch } from "./tick-batch.ts";
import type { AcceptedRequest, RequestOptions } from "../contract/work-queue.ts";

/** Triggers kept between two attempts. */
const TRIGGERS_KEPT = 20;
/** Characters of each text of a trigger; texts are for people and come from anywhere. */
const MAX_TEXT = 500;
/** Characters of a resourceVersion; of those that compare none has more than 20. */
const MAX_VERSION = 100;

/** Requests per script call: with all of them new, Redis does nothing else for half a millisecond. */
const BATCH = 32;

/** The arguments of one request, and what the script answers; see there. */
type RequestCall = readonly [number, number, string, string, number | "", string, number | ""];
type RequestAnswer = readonly [number, number] | Error;

export type Requester = (
  key: ObjectKey,
  trigger: Trigger,
  options?: RequestOptions & {
    /** True for what may never be refused, whoever asks. */
    readonly unbounded?: boolean;
  },
) => Promise<AcceptedRequest>;

/** Whose requests are refused when the queue is full; all others' would be lost work. */
const FROM_OUTSIDE: ReadonlySet<Trigger["kind"]> = new Set(["http", "cli"]);
/** When to come again, in ms. */
const FULL_RETRY_MS = 5_000;
const FAILED_RETRY_MS = 1_000;

/** Requests keys, as soon as Redis is there. Those of one turn of the event loop share a script call. */
export function createRequester(
  redis: RedisClient,
  names: QueueNames,
  maxQueueLength: number = Infinity,
): Requester {
  const common = [
    names.fair,
    names.ageing,
    names.index,
    names.dead,
    names.parked,
    names.bullWaiting,
  ];
  const batch = createTickBatch<RequestCall, RequestAnswer>(
    BATCH,
    async (calls) => {
      const keys = [...common, ...calls.map(([, , , , , id]) => names.keyHash(id))];
      const args = [names.bullRoot, TRIGGERS_KEPT, ...calls.flat()];
      const answers = await withRedis(redis, () => runScript(redis, requestScript, keys, args));
      return answers as RequestAnswer[];
    },
    setImmediate,
  );
  return async (key, trigger, options = {}) => {
    const { class: requestClass = "event", news, unbounded = false } = options;
    const id = formatKey(key);
    const bounded =
      maxQueueLength !== Infinity &&
      !unbounded &&
      requestClass !== "retry" &&
      FROM_OUTSIDE.has(trigger.kind);
    const isNews = news ?? isNewEventByDefault(requestClass);
    const told = clipped(trigger);
    const answer = await batch([
      rankOf(requestClass),
      isNews ? 1 : 0,
      JSON.stringify(told),
      told.resourceVersion ?? "",
      told.generation ?? "",
      id,
      bounded ? maxQueueLength : "",
    ]).answer;
    if (answer instanceof Error) throw explainRedisError(answer, FAILED_RETRY_MS);
    const [number, joined] = answer;
    if (number === 0) {
      throw new KonvergeError(
        "queue_full",
        `${joined} keys wait for controller "${key.controller}", and at most ${maxQueueLength} may; try again later`,
        { retryAfterMs: FULL_RETRY_MS },
      );
    }
    return { id: formatRequestId(id, number), key: id, number, coalesced: joined === 1 };
  };
}

function clipped(trigger: Trigger): Trigger {
  const {
    kind,
    by,
    reason,
    traceparent,
    resourceVersion = "",
    generation,
    version = "",
    seen,
  } = trigger;
  return {
    // First, since a script looks for it and for the trace behind it.
    kind,
    ...(resourceVersion === "" || resourceVersion.length > MAX_VERSION ? {} : { resourceVersion }),
    ...(version === "" || version.length > MAX_VERSION ? {} : { version }),
    // Scripts keep it in a line of its own.
    ...(Number.isSafeInteger(generation) ? { generation } : {}),
    ...(traceparent === undefined || parseTraceparent(traceparent) === undefined
      ? {}
      : { traceparent }),
    ...(by === undefined ? {} : { by: by.slice(0, MAX_TEXT) }),
    ...(reason === undefined ? {} : { reason: reason.slice(0, MAX_TEXT) }),
    // From watches alone, never from outside.
    ...defined({ seen }),
  };
}
