import { defined, KonvergeError, type ApiObject, type ResourceType } from "@konverge/core";
import type { KubeClient, ListPageOptions, ObjectPage } from "../contract/kube-client.ts";
import { isExpired, isGone } from "../errors/error-predicates.ts";

/**
 * Reads a list page by page, all at the version of the first one. `call` makes each read.
 * @throws KonvergeError `list_expired` if the API server no longer has that version
 */
export async function* readPages<T extends ApiObject>(
  client: Pick<KubeClient, "listPage">,
  type: ResourceType<T>,
  {
    options,
    call,
  }: {
    readonly options: ListPageOptions;
    readonly call: <R>(read: () => Promise<R>) => Promise<R>;
  },
): AsyncGenerator<readonly T[], void, undefined> {
  let token: string | undefined;
  for (let pages = 0; ; pages += 1) {
    const asked = { ...options, ...defined({ continueToken: token }) };
    let page: ObjectPage<T>;
    try {
      page = await call(() => client.listPage(type, asked));
    } catch (error) {
      const isOld = token !== undefined && (isExpired(error) || isGone(error));
      throw isOld ? expired(type, pages, error) : error;
    }
    yield page.items;
    token = page.continueToken;
    if (token === undefined) return;
  }
}

function expired({ resource }: ResourceType, pages: number, cause: unknown): KonvergeError {
  return new KonvergeError(
    "list_expired",
    `the list of ${resource} expired after page ${pages}: the API server no longer has its version; do less work between two pages, or start the list again`,
    { cause },
  );
}
