import { formatKey, KonvergeError, parseKey, type ObjectKey } from "@konverge/core";
import { runScript, withRedis } from "@konverge/redis";
import { RETENTION_MS } from "../attempt/attempt-store.ts";
import { checkOperatorAction } from "./check-operator-action.ts";
import type { QueueControlOptions } from "./queue-control-options.ts";
import { createDeadLetterRelease } from "./release-dead-letters.ts";
import { createKeyIndex } from "./key-index.ts";
import { decodePause, fieldOfScope } from "../contract/pause-scope.ts";
import type { PauseScope } from "../contract/pause.ts";
import type {
  CancelResult,
  OperatorActionRecord,
  QueueControl,
} from "../contract/queue-control.ts";
import type { OperatorAction } from "../contract/pause.ts";
import { assertOwnKey } from "../keys/job-payload.ts";
import { parseRequestId } from "../keys/request-id.ts";
import { cancelScript } from "../scripts/cancel.ts";
import { pauseScript } from "../scripts/pause.ts";
import { resumeScript } from "../scripts/resume.ts";
import { RESUME_CLAIM_MS, unpark } from "../request/unpark.ts";

const ACTIONS_KEPT = 200;

export function createQueueControl(options: QueueControlOptions): QueueControl {
  const { redis, names } = options;
  const index = createKeyIndex(redis, names);
  return {
    ...pausesOf(options),
    cancel: (requestId, given) => cancelRequest(options, requestId, given),
    listKeys: (query = {}, scan = {}) => index.list(query, scan),
    release: createDeadLetterRelease({ ...options, index }),
    async listOperatorActions() {
      const stored = await withRedis(redis, () => redis.lrange(names.actions, 0, ACTIONS_KEPT - 1));
      return stored.map((text) => {
        const { atMs, ...action } = JSON.parse(text) as Omit<OperatorActionRecord, "at"> & {
          atMs: number;
        };
        return { ...action, at: new Date(atMs).toISOString() };
      });
    },
  };
}

function pausesOf(
  options: QueueControlOptions,
): Pick<QueueControl, "pause" | "resume" | "listPauses"> {
  const { redis, names } = options;
  const { pauses, actions, parked, resuming } = names;
  return {
    async pause(scope, given) {
      const field = fieldOfOwnScope(scope, options);
      const action = checkOperatorAction(given);
      await withRedis(redis, () =>
        runScript(redis, pauseScript, {
          keys: { pauses, actions },
          args: {
            field,
            note: JSON.stringify(action),
            action: actionText("pause", scopeText(scope), action),
          },
        }),
      );
    },
    async resume(scope, given) {
      const field = fieldOfOwnScope(scope, options);
      const action = actionText("resume", scopeText(scope), checkOperatorAction(given));
      const wasPaused = await withRedis(redis, () =>
        runScript(redis, resumeScript, {
          keys: { pauses, actions, parked, resuming },
          args: { field, action, claimMs: RESUME_CLAIM_MS },
        }),
      );
      if (!wasPaused) {
        throw new KonvergeError("not_found", `${scopeText(scope)} is not paused`);
      }
      // If this process ends here, any worker completes the rest.
      let resumed = 0;
      for (;;) {
        const step = await withRedis(redis, () => unpark(redis, names, RESUME_CLAIM_MS));
        resumed += step.resumed;
        if (!step.more) return { resumed };
      }
    },
    async listPauses() {
      const stored = await withRedis(redis, () => redis.hgetall(pauses));
      return Object.entries(stored)
        .map(([field, note]) => decodePause(field, note))
        .toSorted((one, other) => one.since.localeCompare(other.since));
    },
  };
}

async function cancelRequest(
  { redis, names, controller, cluster }: QueueControlOptions,
  requestId: string,
  given: OperatorAction,
): Promise<CancelResult> {
  const { key, number } = parseRequestId(requestId);
  assertOwnKey(parseRequestKey(requestId, key), { controller, cluster });
  const action = checkOperatorAction(given);
  const result = await withRedis(redis, () =>
    runScript(redis, cancelScript, {
      keys: {
        key: names.keyHash(key),
        cancelled: names.cancelled(key),
        aborts: names.aborts,
        parked: names.parked,
        aging: names.aging,
        actions: names.actions,
      },
      args: {
        member: key,
        asked: number,
        note: JSON.stringify(action),
        action: actionText("cancel", requestId, action),
        retentionMs: RETENTION_MS,
      },
    }),
  );
  if (result === "unknown") {
    throw new KonvergeError("not_found", `request "${requestId}" does not exist`);
  }
  return result;
}

function fieldOfOwnScope(scope: PauseScope, { controller, cluster }: QueueControlOptions): string {
  if (scope.kind === "key") assertOwnKey(scope.key, { controller, cluster });
  if (scope.kind === "namespace" && scope.namespace === "") {
    const detail = "must not be empty";
    throw new KonvergeError("invalid_request", `namespace ${detail}`, {
      issues: [{ pointer: "/namespace", detail }],
    });
  }
  return fieldOfScope(scope);
}

/** Returns the log entry of an action. The scripts add the time. */
function actionText(
  kind: OperatorActionRecord["kind"],
  scope: string,
  action: OperatorAction,
): string {
  return JSON.stringify({ kind, scope, ...action });
}

function scopeText(scope: PauseScope): string {
  switch (scope.kind) {
    case "controller":
      return "the controller";
    case "namespace":
      return `namespace ${scope.namespace}`;
    case "key":
      return formatKey(scope.key);
  }
}

function parseRequestKey(requestId: string, key: string): ObjectKey {
  try {
    return parseKey(key);
  } catch (error) {
    throw new KonvergeError("not_found", `"${requestId}" is not a request id`, {
      cause: error,
    });
  }
}
