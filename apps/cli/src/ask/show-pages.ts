import type { Pages } from "@konverge/client";
import type { Command } from "commander";
import { print, say, type Shown } from "../text/output.ts";
import type { ClientFlags } from "./run-with-client.ts";

export interface PageFlags extends ClientFlags {
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
  /** Told on stderr when there is nothing. */
  readonly empty: string;
}

export function withPages(command: Command, limit = "100"): Command {
  return command
    .option("--limit <n>", "items per page", limit)
    .option("--cursor <text>", "go on behind this one")
    .option("--all", "all pages; with jsonl and name as they come");
}

/** One page, with a word on stderr when there are more, or all of them. */
export async function showPages<Item, Answer extends Page<Item>>(
  { output, all = false }: PageFlags,
  pages: Pages<Item, Answer>,
  { nameOf, table, empty }: ShowItems<Item>,
): Promise<void> {
  const shownOf = (document: Page<Item>): Shown => ({
    document,
    items: document.items,
    names: document.items.map(nameOf),
    table: () => table(document.items),
    empty,
  });
  if (!all) {
    const page = await pages.page();
    // A page can be short, even empty, and not the last.
    const isNothing = page.items.length === 0 && page.next === undefined;
    if (page.items.length > 0 || isNothing || output !== "table") print(output, shownOf(page));
    if (page.next !== undefined) say(`more: --cursor '${page.next}', or --all`);
    return;
  }
  const items: Item[] = [];
  for await (const item of pages) {
    if (output === "jsonl" || output === "name") print(output, shownOf({ items: [item] }));
    else items.push(item);
  }
  if (output !== "jsonl" && output !== "name") print(output, shownOf({ items }));
}

/** What of the flags goes into a query. */
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
