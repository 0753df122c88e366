import {
  defined,
  formatKey,
  KonvergeError,
  parseTraceparent,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import {
  explainRedisError,
  type RedisClient,
  runScript,
  type ScriptCall,
  withRedis,
} from "@konverge/redis";
import { isNewEventByDefault, rankOf } from "../contract/request-class.ts";
import { formatRequestId } from "../keys/request-id.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { requestScript, type RequestAnswer } from "../scripts/request.ts";
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

type RequestCall = ScriptCall<typeof requestScript.signature>["each"][number];

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
  const { fair, ageing, index, dead, parked, bullWaiting } = names;
  const batch = createTickBatch<RequestCall, RequestAnswer>(
    BATCH,
    (each) =>
      withRedis(redis, () =>
        runScript(redis, requestScript, {
          keys: { fair, ageing, index, dead, parked, bullWaiting },
          args: { bull: names.bullRoot, cap: TRIGGERS_KEPT },
          each,
        }),
      ),
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
    const answer = await batch({
      key: names.keyHash(id),
      class: rankOf(requestClass),
      news: isNews,
      trigger: JSON.stringify(told),
      version: told.resourceVersion ?? "",
      generation: told.generation ?? "",
      member: id,
      most: bounded ? maxQueueLength : "",
    }).answer;
    if (answer.kind === "failed") throw explainRedisError(answer.error, FAILED_RETRY_MS);
    if (answer.kind === "full") {
      throw new KonvergeError(
        "queue_full",
        `${answer.waiting} keys wait for controller "${key.controller}", and at most ${maxQueueLength} may; try again later`,
        { retryAfterMs: FULL_RETRY_MS },
      );
    }
    const { number, joined } = answer;
    return { id: formatRequestId(id, number), key: id, number, coalesced: joined };
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
