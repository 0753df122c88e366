import { computed, signal } from "@preact/signals";

/** The base path with a trailing slash. */
const base = new URL(document.baseURI).pathname;

const read = () => ({
  path: `/${window.location.pathname.slice(base.length)}`,
  query: new URLSearchParams(window.location.search),
});
const here = signal(read());

/** The path below the base, percent-encoded. */
export const path = computed(() => here.value.path);
export const query = computed(() => here.value.query);

export type Params = Readonly<Record<string, string | undefined>>;

/** Returns the address of a page. Omits empty parameters. */
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
  else {
    // Back returns to the same place of the list.
    window.history.replaceState({ scrollY: window.scrollY }, "");
    window.history.pushState(undefined, "", address);
  }
  const before = path.value;
  here.value = read();
  if (path.value === before) return;
  window.scrollTo(0, 0);
  // Makes screen readers announce the new page.
  document.querySelector("main")?.focus({ preventScroll: true });
}

/** Changes query parameters. Filters are kept in the address, so that users can share a view. */
export function setQuery(changes: Params): void {
  const params = { ...Object.fromEntries(query.value), ...changes };
  go(href(path.value, params), { replace: true });
}

/** Returns the address of an object's page for its key `controller/cluster/type/namespace/name`. */
export function objectHref(key: string): string {
  return href(`/objects/${placeOf(key)}`);
}

/** Returns the address of the plan of an object that waits for an approval. */
export function approvalHref(key: string): string {
  return href(`/approvals/${placeOf(key)}`);
}

/** Returns the address of the drift of an object. */
export function driftHref(key: string): string {
  return href(`/drift/${placeOf(key)}`);
}

function placeOf(key: string): string {
  const [controller = "", cluster = "", , namespace = "", name = ""] = key.split("/");
  return `${cluster}/${controller}/${namespace}/${name}`;
}

/** Returns the address of a run's page for its id `workflow/cluster/id`. */
export function runHref(id: string): string {
  const [workflow = "", cluster = "", ...rest] = id.split("/");
  return href(`/runs/${[workflow, cluster, rest.join("/")].map(encodeURIComponent).join("/")}`);
}

const PAGES =
  /^\/($|(objects|controllers|runs|attempts|workflows|schedules|contention|guards|workers|dead-letters|approvals|drift|live|audit|docs|hints)(\/|$))/;

/** Scrolls as soon as the page is long enough: its data arrives later. */
function restoreScroll(top: number, tries = 60): void {
  const most = document.documentElement.scrollHeight - window.innerHeight;
  window.scrollTo(0, Math.min(top, most));
  if (most < top && tries > 0) {
    window.requestAnimationFrame(() => window.setTimeout(restoreScroll, 50, top, tries - 1));
  }
}

/** Follows links between pages without a page load. */
export function watchLinks(): void {
  window.history.scrollRestoration = "manual";
  window.addEventListener("popstate", ({ state }) => {
    here.value = read();
    const { scrollY = 0 } = (state ?? {}) as { readonly scrollY?: number };
    restoreScroll(scrollY);
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
