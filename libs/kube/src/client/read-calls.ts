import { resourceId, type ApiObject, type ResourceType } from "@konverge/core";
import type { GetOptions, ListPageOptions, ObjectPage } from "../contract/kube-client.ts";
import type { WatchEvent, WatchOptions } from "../contract/watch-event.ts";
import { query } from "../names/query-string.ts";
import { collectionPath, objectPath, type NamespacedName } from "../names/resource-path.ts";
import { readWatch, SILENT_MS } from "../wire/watch.ts";
import { acceptOf, partOf } from "../names/kept-part.ts";
import { toPage } from "./object-page.ts";
import type { ScopedCalls } from "./scoped-calls.ts";

export async function getObject<T>(
  calls: ScopedCalls,
  type: ResourceType,
  target: NamespacedName,
  { resourceVersion, subresource, signal }: { [P in keyof GetOptions]?: GetOptions[P] | undefined },
): Promise<T> {
  const path = objectPath(type, target, subresource) + query({ resourceVersion });
  const ref = calls.refOf(type, target);
  const accept = acceptOf(type, false);
  const parts = { verb: "get", method: "GET", path, subresource, ref, accept } as const;
  return partOf(type, (await calls.json(parts, signal)) as T);
}

export async function listPage<T>(
  calls: ScopedCalls,
  type: ResourceType,
  options: ListPageOptions,
): Promise<ObjectPage<T>> {
  const { namespace, labelSelector, fieldSelector, resourceVersion, signal } = options;
  const { pageSizes } = calls.shared;
  // Metadata is smaller than whole objects.
  const id = `${resourceId(type)}${type.keep === "metadata" ? "#metadata" : ""}`;
  const { limit = pageSizes.of(id), continueToken } = options;
  const path =
    collectionPath(type, namespace) +
    query({
      labelSelector,
      fieldSelector,
      limit: limit === 0 ? undefined : limit,
      continue: continueToken,
      resourceVersion,
    });
  const ref = calls.refOf(type, { namespace });
  const answer = await calls.send(
    { verb: "list", method: "GET", path, ref, accept: acceptOf(type, true) },
    signal,
  );
  const page = toPage<T>(calls.objectOf(answer, path), type);
  pageSizes.note(id, { items: page.items.length, bytes: answer.text.length });
  return type.keep === undefined
    ? page
    : { ...page, items: page.items.map((item) => partOf(type, item)) };
}

export async function* watchObjects<T extends ApiObject>(
  calls: ScopedCalls,
  type: ResourceType,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const { namespace, labelSelector, fieldSelector, resourceVersion, signal } = options;
  const { timeoutSeconds = 300 + Math.floor(Math.random() * 300) } = options;
  const path =
    collectionPath(type, namespace) +
    query({
      watch: 1,
      allowWatchBookmarks: true,
      timeoutSeconds,
      labelSelector,
      fieldSelector,
      resourceVersion,
    });
  const ref = calls.refOf(type, { namespace });
  const { silentMs = SILENT_MS } = options;
  const chunks = await calls.stream(
    { verb: "watch", method: "GET", path, ref, accept: acceptOf(type, false) },
    { silentMs, signal },
  );
  const events = readWatch<T>(chunks, { type, ref, sensitive: calls.shared.isSensitive(type) });
  if (type.keep === undefined) return yield* events;
  for await (const event of events) {
    yield event.kind === "bookmark" ? event : { ...event, object: partOf(type, event.object) };
  }
}
