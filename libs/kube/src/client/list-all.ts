import { KonvergeError } from "@konverge/core";
import { isExpired, isGone } from "../errors/kube-api-error.ts";
import type {
  ListOptions,
  ListPageOptions,
  ObjectList,
  ObjectPage,
} from "../contract/kube-client.ts";

/**
 * Reads all pages. A continue token lives about five minutes (etcd compaction). If it expires, everything is read again
 * in one request: continuing at the newest state, which the server offers, gives no consistent list.
 */
export async function listAll<T>(
  readPage: (options: ListPageOptions) => Promise<ObjectPage<T>>,
  options: ListOptions,
): Promise<ObjectList<T>> {
  const first = await readPage(options);
  const items = first.items;
  let token = first.continueToken;
  while (token !== undefined) {
    const { resourceVersion: _first, ...rest } = options;
    let page: ObjectPage<T>;
    try {
      page = await readPage({ ...rest, continueToken: token });
    } catch (error) {
      if (!isExpired(error) && !isGone(error)) throw error;
      return inOnePiece(readPage, options);
    }
    for (const item of page.items) items.push(item);
    token = page.continueToken;
  }
  return { items, resourceVersion: first.resourceVersion };
}

async function inOnePiece<T>(
  readPage: (options: ListPageOptions) => Promise<ObjectPage<T>>,
  options: ListOptions,
): Promise<ObjectList<T>> {
  const { items, resourceVersion, continueToken } = await readPage({ ...options, limit: 0 });
  if (continueToken !== undefined) {
    throw new KonvergeError(
      "kube_unreachable",
      "the server paged a list that was requested without pages",
    );
  }
  return { items, resourceVersion };
}
