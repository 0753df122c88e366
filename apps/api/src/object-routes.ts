import { attemptRecordSchema, type AttemptRecord, type ObjectHistory } from "@konverge/contracts";
import { formatKey, KonvergeError } from "@konverge/core";
import type { StoredAttempt } from "@konverge/queue";
import { Hono } from "hono";
import { html } from "hono/html";
import { renderObjectPage } from "./object-page.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";

const MAX_ATTEMPTS = 50;
const NO_NAMESPACE = "_";
const PATH = "/:cluster/:controller/:namespace/:name";

/** `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}`; `_` is the namespace of cluster-scoped objects. */
export function objectRoutes(access: QueueAccess): Hono {
  return new Hono().get(PATH, async ({ req, json }) =>
    json(await readHistory(access, req.param())),
  );
}

/** The same as a page for people. */
export function objectPages(access: QueueAccess): Hono {
  return new Hono().get(PATH, async (context) => {
    const history = await readHistory(access, context.req.param());
    return context.html(html`<!doctype html>${renderObjectPage(history)}`);
  });
}

async function readHistory(
  access: QueueAccess,
  target: {
    readonly cluster: string;
    readonly controller: string;
    readonly namespace: string;
    readonly name: string;
  },
): Promise<ObjectHistory> {
  const { queue, announced } = await access.find(target.cluster, target.controller);
  const key = keyFor(announced, {
    name: target.name,
    ...(target.namespace === NO_NAMESPACE ? {} : { namespace: target.namespace }),
  });
  const [state, stored] = await Promise.all([
    queue.getKey(key),
    queue.listAttempts(key, { limit: MAX_ATTEMPTS }),
  ]);
  if (state === undefined) {
    throw new KonvergeError("not_found", `nothing was ever requested for ${formatKey(key)}`);
  }
  return {
    key: state.key,
    phase: state.phase,
    failures: state.failures,
    conflicts: state.conflicts,
    ...(state.lastOutcome === undefined ? {} : { lastOutcome: state.lastOutcome }),
    ...(state.nextAt === undefined ? {} : { nextAt: state.nextAt }),
    attempts: stored.map((attempt) => readRecord(state.key, queue.controller, attempt)),
  };
}

/**
 * The engine's record, or what the queue itself knows: of an attempt whose worker died that is all there is, and a user
 * of the queue alone may keep no records.
 */
function readRecord(key: string, controller: string, stored: StoredAttempt): AttemptRecord {
  const kept = attemptRecordSchema.safeParse(
    stored.record === "" ? undefined : JSON.parse(stored.record),
  );
  if (kept.success) return kept.data;
  const { id, outcome, worker, startedAtMs, endedAtMs, error } = stored;
  const startedAt = new Date(startedAtMs).toISOString();
  return {
    id: `${key}#${id}`,
    key,
    controller,
    attempt: 1,
    worker,
    triggers: [],
    requestedAt: startedAt,
    startedAt,
    finishedAt: new Date(endedAtMs ?? startedAtMs).toISOString(),
    durationMs: Math.max(0, (endedAtMs ?? startedAtMs) - startedAtMs),
    waits: { queueMs: 0, limiterMs: 0, laneMs: 0, conflictMs: 0, backoffMs: 0 },
    outcome,
    ...(error === undefined ? {} : { error }),
    writes: [],
    conflicts: [],
    calls: { n: 0, ms: 0 },
  };
}
