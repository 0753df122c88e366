import { computed, signal } from "@preact/signals";

/** The path that the server put us below; ends with a slash. */
const base = new URL(document.baseURI).pathname;

const read = () => ({
  path: `/${window.location.pathname.slice(base.length)}`,
  query: new URLSearchParams(window.location.search),
});
const here = signal(read());

/** Below the base, percent-encoded as it stands in the address. */
export const path = computed(() => here.value.path);
export const query = computed(() => here.value.query);

export type Params = Readonly<Record<string, string | undefined>>;

/** The address of one of our pages. Empty parameters are left out. */
export function href(to: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") search.set(name, value);
  }
  const text = search.toString();
  return `${base}${to.slice(1)}${text === "" ? "" : `?${text}`}`;
}

export function go(
  address: string,
  { replace = false }: { readonly replace?: boolean } = {},
): void {
  if (replace) window.history.replaceState(undefined, "", address);
  else window.history.pushState(undefined, "", address);
  const before = path.value;
  here.value = read();
  if (path.value === before) return;
  window.scrollTo(0, 0);
  // Whoever listens to the page is told that it is another one.
  document.querySelector("main")?.focus({ preventScroll: true });
}

/** Changes filters. The address is the state, so that every view can be sent to a colleague. */
export function setQuery(changes: Params): void {
  const params = { ...Object.fromEntries(query.value), ...changes };
  go(href(path.value, params), { replace: true });
}

/** The address of an object's page, by its key `controller/cluster/type/namespace/name`. */
export function objectHref(key: string): string {
  const [controller = "", cluster = "", , namespace = "", name = ""] = key.split("/");
  return href(`/objects/${cluster}/${controller}/${namespace}/${name}`);
}

/** The address of the page of a workflow's run, by its id `workflow/cluster/id`. */
export function runHref(id: string): string {
  const [workflow = "", cluster = "", ...rest] = id.split("/");
  return href(`/runs/${[workflow, cluster, rest.join("/")].map(encodeURIComponent).join("/")}`);
}

const PAGES =
  /^\/($|(objects|controllers|runs|attempts|workflows|contention|guards|workers|dead-letters|live)(\/|$))/;

/** Follows links between our pages without loading anything. */
export function watchLinks(): void {
  window.addEventListener("popstate", () => {
    here.value = read();
  });
  document.addEventListener("click", (event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || link.target !== "" || link.origin !== window.location.origin) return;
    if (!link.pathname.startsWith(base) || link.hash !== "") return;
    if (!PAGES.test(`/${link.pathname.slice(base.length)}`)) return;
    event.preventDefault();
    go(link.href);
  });
}
