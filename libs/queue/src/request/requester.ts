import {
  defined,
  formatKey,
  KonvergeError,
  parseTraceparent,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import {
  createTickBatch,
  explainRedisError,
  type RedisClient,
  runScript,
  type ScriptCall,
  withRedis,
} from "@konverge/redis";
import { isNewEventByDefault, rankOf } from "../contract/request-class.ts";
import { formatRequestId } from "../keys/request-id.ts";
import { revisionOf } from "../keys/revision.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { requestScript, type RequestAnswer } from "../scripts/request.ts";
import type { AcceptedRequest, RequestOptions } from "../contract/work-queue.ts";

/** Triggers kept between two attempts. */
const TRIGGERS_KEPT = 20;
/** Longest text of a trigger, in characters. Texts are untrusted and for display only. */
const MAX_TEXT = 500;
/** Longest resourceVersion, in characters. Comparable versions have at most 20. */
const MAX_VERSION = 100;

/** Requests per script call. If all are new, the call blocks Redis for half a millisecond. */
const BATCH = 32;

type RequestCall = ScriptCall<typeof requestScript.signature>["each"][number];

export type Requester = (
  key: ObjectKey,
  trigger: Trigger,
  options?: RequestOptions & {
    /** True for requests that are accepted even if the queue is full. */
    readonly unbounded?: boolean;
  },
) => Promise<AcceptedRequest>;

/** Trigger kinds that are rejected when the queue is full. Rejecting the others would lose work. */
const FROM_OUTSIDE: ReadonlySet<Trigger["kind"]> = new Set(["http", "cli"]);
/** `Retry-After` of rejected requests, in ms. */
const FULL_RETRY_MS = 5_000;
const FAILED_RETRY_MS = 1_000;

/** Returns a function that requests keys. Requests of one turn of the event loop share a script call. */
export function createRequester(
  redis: RedisClient,
  names: QueueNames,
  maxQueueLength: number = Infinity,
): Requester {
  const { fair, aging, index, dead, parked, bullWaiting } = names;
  const batch = createTickBatch<RequestCall, RequestAnswer>(
    BATCH,
    (each) =>
      withRedis(redis, () =>
        runScript(redis, requestScript, {
          keys: { fair, aging, index, dead, parked, bullWaiting },
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
    const stored = clipped(trigger);
    const answer = await batch({
      key: names.keyHash(id),
      class: rankOf(requestClass),
      news: isNews,
      trigger: JSON.stringify(stored),
      version: stored.resourceVersion ?? "",
      revision: revisionOf(stored, options),
      member: id,
      most: bounded ? maxQueueLength : "",
    }).answer;
    if (answer.kind === "failed") throw explainRedisError(answer.error, FAILED_RETRY_MS);
    if (answer.kind === "full") {
      throw new KonvergeError(
        "queue_full",
        `controller "${key.controller}" has ${answer.waiting} waiting keys, limit ${maxQueueLength}; retry later`,
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
    // First, because a script searches for it and for the trace after it.
    kind,
    ...(resourceVersion === "" || resourceVersion.length > MAX_VERSION ? {} : { resourceVersion }),
    ...(version === "" || version.length > MAX_VERSION ? {} : { version }),
    // Scripts store it on a separate line.
    ...(Number.isSafeInteger(generation) ? { generation } : {}),
    ...(traceparent === undefined || parseTraceparent(traceparent) === undefined
      ? {}
      : { traceparent }),
    ...(by === undefined ? {} : { by: by.slice(0, MAX_TEXT) }),
    ...(reason === undefined ? {} : { reason: reason.slice(0, MAX_TEXT) }),
    // Set by watches only, never by external requests.
    ...defined({ seen }),
  };
}
