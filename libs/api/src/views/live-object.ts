import { liveObjectSchema, type LiveObject } from "@konverge/contracts";
import { formatKey, namespaceSegment, parseApiVersion, type ObjectKey } from "@konverge/core";
import { covers, type Caller } from "../access/caller.ts";
import { placeOf } from "../queues/place-of.ts";
import { keyFor, type QueueAccess } from "../queues/queue-access.ts";

type Link = Extract<LiveObject, { kind: "found" }>["owners"][number];

const NO_ANSWER = "no worker responded within 5 s";

/** Asks a worker for the object, because the API process has no credentials of a cluster. */
export async function readLiveObject(
  access: QueueAccess,
  caller: Caller,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<LiveObject> {
  const { cluster, controller, namespace, name } = key;
  const workers = (await access.workers(cluster)).filter(({ controllers }) =>
    controllers.includes(controller),
  );
  if (!workers.some(({ readsObjects }) => readsObjects === true)) {
    return unavailable(
      workers.length === 0
        ? `no worker runs controller "${controller}"`
        : "the workers do not read objects: KONVERGE_OBJECT_READS is off, or they have an older version",
    );
  }
  const text = await access.readObject(cluster, { controller, namespace, name }, signal);
  if (text === undefined) return unavailable(NO_ANSWER);
  const found = liveObjectSchema.safeParse(JSON.parse(text));
  if (!found.success) {
    const message = "the response cannot be read, because the worker has another version";
    return { kind: "unavailable", code: "unexpected_response", message };
  }
  const { data } = found;
  if (data.kind !== "found") return data;
  const keyOf = await keysOf(access, caller, cluster);
  // A cluster-scoped object may have children in all namespaces.
  const children = data.children.filter((child) =>
    covers(caller.scope, { cluster, controller, namespace: namespaceSegment(child.namespace) }),
  );
  return { ...data, owners: data.owners.map(keyOf), children: children.map(keyOf) };
}

function unavailable(message: string): LiveObject {
  return { kind: "unavailable", code: "no_worker", message };
}

/** Adds the key of each linked object whose kind a controller reconciles, within the scope of the caller. */
async function keysOf(
  access: QueueAccess,
  { scope }: Caller,
  cluster: string,
): Promise<(link: Link) => Link> {
  const announced = await access.controllers(cluster);
  return (link) => {
    const { group } = parseApiVersion(link.apiVersion);
    const controller = announced.find((each) => each.kind === link.kind && each.group === group);
    if (controller === undefined) return link;
    // The owner of a namespaced object may be cluster-scoped.
    const { namespace: _namespace, ...rest } = link;
    const place = controller.scope === "Cluster" ? rest : link;
    const key = keyFor(controller, place);
    return covers(scope, placeOf(key)) ? { ...place, key: formatKey(key) } : link;
  };
}
