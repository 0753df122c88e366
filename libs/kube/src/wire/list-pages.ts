import { isExpired, isGone } from "../errors/error-predicates.ts";
import type { ListPageOptions, ObjectPage } from "../contract/kube-client.ts";

export interface ListedPage<T> extends ObjectPage<T> {
  /** True for the first page, also when the list begins again: all earlier pages are void. */
  readonly isFirst: boolean;
}

/** Objects per page when a list begins again for the first time, and the growth for each further time. */
const LARGER_PAGE = 2_000;
const GROWTH = 4;

/**
 * Reads the pages of one list, all at the version of the first one. A continue token lives about five minutes (etcd
 * compaction). If one expires, the list begins again with larger pages: continuing at the newest state, which the server
 * offers, gives no consistent list.
 */
export async function* listPages<T>(
  readPage: (options: ListPageOptions) => Promise<ObjectPage<T>>,
  options: ListPageOptions,
): AsyncGenerator<ListedPage<T>> {
  const { resourceVersion: _first, ...rest } = options;
  let limit = options.limit;
  let continueToken: string | undefined;
  for (;;) {
    const paging = limit === undefined ? {} : { limit };
    let page: ObjectPage<T>;
    try {
      page = await readPage(
        continueToken === undefined
          ? { ...options, ...paging }
          : { ...rest, ...paging, continueToken },
      );
    } catch (error) {
      if (continueToken === undefined || !(isExpired(error) || isGone(error))) throw error;
      limit = Math.max(LARGER_PAGE, (limit ?? 0) * GROWTH);
      continueToken = undefined;
      continue;
    }
    yield { ...page, isFirst: continueToken === undefined };
    continueToken = page.continueToken;
    if (continueToken === undefined) return;
  }
}
