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
import { pauseScript, resumeScript } from "../scripts/pause.ts";
import { RESUME_CLAIM_MS, unpark } from "../request/unpark.ts";

const ACTIONS_KEPT = 200;

export function createQueueControl(options: QueueControlOptions): QueueControl {
  const { redis, names, controller, cluster } = options;
  const index = createKeyIndex(redis, names);
  const call = <T>(work: () => Promise<T>): Promise<T> => withRedis(redis, work);

  const checkScope = (scope: PauseScope): string => {
    if (scope.kind === "key") assertOwnKey(scope.key, { controller, cluster });
    if (scope.kind === "namespace" && scope.namespace === "") {
      throw new KonvergeError("invalid_request", "namespace is empty; name it", {
        issues: [{ pointer: "/namespace", detail: "is empty; name it" }],
      });
    }
    return fieldOfScope(scope);
  };
  return {
    async pause(scope, given) {
      const field = checkScope(scope);
      const action = checkOperatorAction(given);
      const args = [field, JSON.stringify(action), actionText("pause", scopeText(scope), action)];
      await call(() => runScript(redis, pauseScript, [names.pauses, names.actions], args));
    },
    async resume(scope, given) {
      const field = checkScope(scope);
      const keys = [names.pauses, names.actions, names.parked, names.resuming];
      const action = actionText("resume", scopeText(scope), checkOperatorAction(given));
      const args = [field, action, RESUME_CLAIM_MS];
      if ((await call(() => runScript(redis, resumeScript, keys, args))) === 0) {
        throw new KonvergeError("not_found", `${scopeText(scope)} is not paused`);
      }
      // Any worker would do the rest too, if this process ended here.
      let resumed = 0;
      for (;;) {
        const step = await call(() => unpark(redis, names, RESUME_CLAIM_MS));
        resumed += step.resumed;
        if (!step.more) return { resumed };
      }
    },
    async listPauses() {
      const stored = await call(() => redis.hgetall(names.pauses));
      return Object.entries(stored)
        .map(([field, note]) => decodePause(field, note))
        .toSorted((one, other) => one.since.localeCompare(other.since));
    },
    async cancel(requestId, given) {
      const { key, number } = parseRequestId(requestId);
      assertOwnKey(parseRequestKey(requestId, key), { controller, cluster });
      const action = checkOperatorAction(given);
      const keys = [
        names.keyHash(key),
        names.cancelled(key),
        names.aborts,
        names.parked,
        names.ageing,
        names.actions,
      ];
      const log = actionText("cancel", requestId, action);
      const args = [key, number, JSON.stringify(action), log, RETENTION_MS];
      const result = await call(() => runScript(redis, cancelScript, keys, args));
      if (result === "unknown") {
        throw new KonvergeError("not_found", `there is no request "${requestId}"`);
      }
      return result as CancelResult;
    },
    listKeys: (query = {}) => call(() => index.list(query)),
    release: createDeadLetterRelease({ ...options, index }),
    async listOperatorActions() {
      const stored = await call(() => redis.lrange(names.actions, 0, ACTIONS_KEPT - 1));
      return stored.map((text) => {
        const { atMs, ...action } = JSON.parse(text) as Omit<OperatorActionRecord, "at"> & {
          atMs: number;
        };
        return { ...action, at: new Date(atMs).toISOString() };
      });
    },
  };
}

/** The scripts put the time of Redis in front. */
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
    throw new KonvergeError("not_found", `"${requestId}" is not the id of a request`, {
      cause: error,
    });
  }
}
