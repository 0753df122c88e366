import type {
  ListOptions,
  ListPageOptions,
  ObjectList,
  ObjectPage,
} from "../contract/kube-client.ts";
import { listPages } from "../wire/list-pages.ts";

/** Reads all pages of a list. */
export async function listAll<T>(
  readPage: (options: ListPageOptions) => Promise<ObjectPage<T>>,
  options: ListOptions,
): Promise<ObjectList<T>> {
  let list: ObjectList<T> = { items: [], resourceVersion: "" };
  for await (const { isFirst, items, resourceVersion } of listPages(readPage, options)) {
    if (isFirst) list = { items, resourceVersion };
    else for (const item of items) list.items.push(item);
  }
  return list;
}
