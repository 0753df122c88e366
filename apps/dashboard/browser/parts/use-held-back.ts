import { defined } from "@konverge/core";
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** New rows are held back when the page is scrolled further than this. */
const TOP_PX = 120;

export interface HeldBack<Row> {
  readonly rows: readonly Row[];
  /** The number of newer rows that are not shown. */
  readonly fresh: number;
  /** Shows them. */
  readonly show: () => void;
}

/** Adds new rows at the top of a list, except while the user reads it. `path` identifies the list. */
export function useHeldBack<Row extends { readonly id: string }>(
  path: string,
  items: readonly Row[] | undefined,
  list: RefObject<HTMLDivElement | null>,
): HeldBack<Row> {
  const [shown, setShown] = useState<{ readonly path: string; readonly newest?: string }>({ path });
  const newest = items?.[0]?.id;
  const show = () => setShown({ path, ...defined({ newest }) });
  useEffect(() => {
    if (newest === undefined || shown.newest === newest) return;
    const isRead =
      window.scrollY > TOP_PX ||
      list.current?.matches(":hover") === true ||
      list.current?.contains(document.activeElement) === true;
    if (shown.path !== path || shown.newest === undefined || !isRead) show();
  }, [path, items]);
  const all = items ?? [];
  const at = shown.path === path ? all.findIndex(({ id }) => id === shown.newest) : 0;
  const fresh = Math.max(0, at);
  return { rows: all.slice(fresh), fresh, show };
}
