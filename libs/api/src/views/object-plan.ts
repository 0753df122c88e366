import { randomUUID } from "node:crypto";
import type { ObjectPlan } from "@konverge/contracts";
import { formatKey, KonvergeError, namespaceSegment, type ObjectKey } from "@konverge/core";
import type { PlanState, WantedPlan } from "@konverge/queue";
import { planRecordSchema, type PlanRecord } from "@konverge/records";
import type { Wait } from "../http/waits.ts";
import type { RouteInput } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";

const LOST = "the worker stopped before the plan ended; plan again";

type Asked = Pick<
  RouteInput<string, unknown, unknown>,
  "caller" | "context" | "headers" | "openWait" | "audit"
> & { readonly class: NonNullable<WantedPlan["class"]> };

/** Requests a plan from a worker of the controller, and waits for its end if the caller prefers it. */
export async function planObject(
  access: QueueAccess,
  key: ObjectKey,
  { caller, class: planClass, context, headers, openWait, audit }: Asked,
): Promise<ObjectPlan> {
  const { cluster, controller, namespace, name } = key;
  const id = randomUUID();
  const text = formatKey(key);
  const workers = (await access.workers(cluster)).filter(({ controllers }) =>
    controllers.includes(controller),
  );
  if (!workers.some(({ runsPlans }) => runsPlans === true)) {
    const message =
      workers.length === 0
        ? `no worker runs controller "${controller}"`
        : "the workers do not run plans: KONVERGE_PLANS is off, or they have an older version";
    return { id, key: text, state: "unavailable", message };
  }
  const waitMs = preferredWaitMs(context);
  using wait = openWait(waitMs);
  audit({ action: "plan", cluster, controller, namespace: namespaceSegment(namespace), name });
  await access.plans.request(cluster, {
    id,
    key: text,
    controller,
    by: caller.name,
    class: planClass,
  });
  if (waitMs > 0) headers["preference-applied"] = `wait=${waitMs / 1_000}`;
  const found = await endOf(access, { cluster, id }, wait);
  return viewOf(found, { id, key: text });
}

/** Returns a plan of an object. @throws KonvergeError `not_found` */
export async function readObjectPlan(
  access: QueueAccess,
  key: ObjectKey,
  id: string,
  wait: Wait,
): Promise<ObjectPlan> {
  const found = await endOf(access, { cluster: key.cluster, id }, wait);
  const view = viewOf(found, { id, key: formatKey(key) });
  // Also for a plan of another object, which may be outside of the scope of the caller.
  if (found === undefined || (view.plan !== undefined && view.plan.key !== view.key)) {
    throw new KonvergeError("not_found", `plan "${id}" not found; plans are kept for 7 days`);
  }
  return view;
}

export async function readObjectPlans(
  access: QueueAccess,
  key: ObjectKey,
): Promise<{ items: PlanRecord[] }> {
  const records = await access.plans.list(key.cluster, formatKey(key));
  return { items: records.flatMap((record) => parsePlan(record) ?? []) };
}

/** Waits for the end of a plan, or for as long as `wait` permits. */
function endOf(
  { plans }: QueueAccess,
  { cluster, id }: { readonly cluster: string; readonly id: string },
  wait: Wait,
): Promise<PlanState | undefined> {
  return wait.until({
    id: `plan ${cluster}/${id}`,
    read: () => plans.read(cluster, id),
    isEnd: (found) => found?.state !== "waiting" && found?.state !== "running",
  });
}

function viewOf(
  found: PlanState | undefined,
  { id, key }: { readonly id: string; readonly key: string },
): ObjectPlan {
  switch (found?.state) {
    case undefined:
      return { id, key, state: "unavailable", message: "no worker began the plan in time" };
    case "lost":
      return { id, key, state: "lost", message: LOST };
    case "waiting":
    case "running":
      return { id, key, state: found.state };
    case "ended":
      return endedView(found.record, { id, key });
  }
}

function endedView(
  record: string,
  { id, key }: { readonly id: string; readonly key: string },
): ObjectPlan {
  const plan = parsePlan(record);
  if (plan !== undefined) return { id, key, state: "ended", plan };
  const message = "the plan cannot be read, because the worker has another version";
  return { id, key, state: "unavailable", message };
}

function parsePlan(record: string): PlanRecord | undefined {
  const parsed = planRecordSchema.safeParse(JSON.parse(record));
  return parsed.success ? parsed.data : undefined;
}
