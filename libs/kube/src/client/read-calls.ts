import { resourceId, type ApiObject, type ResourceType } from "@konverge/core";
import type { GetOptions, ListPageOptions, ObjectPage } from "../contract/kube-client.ts";
import type { WatchEvent, WatchOptions } from "../contract/watch-event.ts";
import { query } from "../names/query-string.ts";
import { collectionPath, objectPath, type NamespacedName } from "../names/resource-path.ts";
import { readWatch, SILENT_MS } from "../wire/watch.ts";
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
  return (await calls.json({ verb: "get", method: "GET", path, subresource, ref }, signal)) as T;
}

export async function listPage<T>(
  calls: ScopedCalls,
  type: ResourceType,
  options: ListPageOptions,
): Promise<ObjectPage<T>> {
  const { namespace, labelSelector, fieldSelector, resourceVersion, signal } = options;
  const { pageSizes } = calls.shared;
  const id = resourceId(type);
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
  const answer = await calls.send({ verb: "list", method: "GET", path, ref }, signal);
  const page = toPage<T>(calls.objectOf(answer, path), type);
  pageSizes.note(id, { items: page.items.length, bytes: answer.text.length });
  return page;
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
    { verb: "watch", method: "GET", path, ref },
    { silentMs, signal },
  );
  yield* readWatch<T>(chunks, { type, ref, sensitive: calls.shared.isSensitive(type) });
}
