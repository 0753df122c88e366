import type { Pages } from "@konverge/client";
import type { Command } from "commander";
import { print, type Shown } from "../text/output.ts";
import { showWatched, withWatch, type WatchFlags } from "./show-watched.ts";

export interface PageFlags extends WatchFlags {
  readonly limit: string;
  readonly cursor?: string;
  readonly all?: boolean;
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}

export interface ShowItems<Item> {
  readonly nameOf: (item: Item) => string;
  readonly table: (items: readonly Item[]) => string;
  /** Printed to stderr for an empty list. */
  readonly empty: string;
}

export function withPages(command: Command, limit = "100"): Command {
  return withWatch(command)
    .option("--limit <n>", "Items per page", limit)
    .option("--cursor <text>", "Cursor from the previous page")
    .option("--all", "Read all pages; jsonl and name print items as they arrive");
}

/** Prints one page, with the next cursor on stderr, or all pages. With `--watch`, both are read again. */
export async function showPages<Item, Answer extends Page<Item>>(
  flags: PageFlags,
  pages: Pages<Item, Answer>,
  show: ShowItems<Item>,
): Promise<void> {
  const { output, all = false, watch = false } = flags;
  if (all && !watch && (output === "jsonl" || output === "name")) {
    for await (const item of pages) print(output, shownOf({ items: [item] }, show));
    return;
  }
  await showWatched(flags, async () => {
    if (all) {
      const items: Item[] = [];
      for await (const item of pages) items.push(item);
      return shownOf({ items }, show);
    }
    const page = await pages.page();
    const { next } = page;
    const note = next === undefined ? undefined : `next page: --cursor '${next}', or use --all`;
    return { ...shownOf(page, show), note };
  });
}

function shownOf<Item>(document: Page<Item>, { nameOf, table, empty }: ShowItems<Item>): Shown {
  const { items, next } = document;
  return {
    document,
    items,
    names: items.map(nameOf),
    table: () => (items.length === 0 ? "" : table(items)),
    // A page before the last one can be short or empty.
    empty: next === undefined ? empty : undefined,
  };
}

/** Returns the named flags that are set. */
export function pick<Flags extends object, Name extends keyof Flags>(
  flags: Flags,
  names: readonly Name[],
): Partial<Pick<Flags, Name>> {
  const found: Partial<Pick<Flags, Name>> = {};
  for (const name of names) {
    if (flags[name] !== undefined) found[name] = flags[name];
  }
  return found;
}
