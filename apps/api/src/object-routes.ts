import type { ObjectHistory } from "@konverge/contracts";
import { formatKey, KonvergeError, type ObjectKey } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import { Hono } from "hono";
import { html } from "hono/html";
import { readContention } from "./history-routes.ts";
import { renderObjectPage } from "./object-page.ts";
import { keyItem } from "./key-item.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";
import { readRecord } from "./read-record.ts";

const MAX_ATTEMPTS = 50;
const NO_NAMESPACE = "_";
const PATH = "/:cluster/:controller/:namespace/:name";

/** `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}`; `_` is the namespace of cluster-scoped objects. */
export function objectRoutes(access: QueueAccess): Hono {
  return new Hono()
    .get(PATH, async ({ req, json }) => json(await readHistory(access, req.param())))
    .get(`${PATH}/contention`, async ({ req, json }) => {
      const { key } = await findKey(access, req.param());
      return json(await readContention(access, key));
    });
}

/** The same as a page for people. */
export function objectPages(access: QueueAccess): Hono {
  return new Hono().get(PATH, async (context) => {
    const { key } = await findKey(access, context.req.param());
    const [history, contention] = await Promise.all([
      readHistory(access, context.req.param()),
      readContention(access, key),
    ]);
    return context.html(html`<!doctype html>${renderObjectPage(history, contention)}`);
  });
}

interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
}

async function findKey(
  access: QueueAccess,
  { cluster, controller, namespace, name }: Target,
): Promise<{ readonly queue: WorkQueue; readonly key: ObjectKey }> {
  const { queue, announced } = await access.find(cluster, controller);
  const key = keyFor(announced, {
    name,
    ...(namespace === NO_NAMESPACE ? {} : { namespace }),
  });
  return { queue, key };
}

async function readHistory(access: QueueAccess, target: Target): Promise<ObjectHistory> {
  const { queue, key } = await findKey(access, target);
  const [state, stored] = await Promise.all([
    queue.getKey(key),
    queue.listAttempts(key, { limit: MAX_ATTEMPTS }),
  ]);
  if (state === undefined) {
    throw new KonvergeError("not_found", `nothing was ever requested for ${formatKey(key)}`);
  }
  return {
    ...keyItem(state),
    attempts: stored.map((attempt) => readRecord(state.key, queue.controller, attempt)),
  };
}
