import type { Pages } from "@konverge/client";
import type { Command } from "commander";
import { print, printNote, type Shown } from "../text/output.ts";
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
  /** Printed to stderr for an empty list. */
  readonly empty: string;
}

export function withPages(command: Command, limit = "100"): Command {
  return command
    .option("--limit <n>", "Items per page", limit)
    .option("--cursor <text>", "Cursor from the previous page")
    .option("--all", "Read all pages; jsonl and name print items as they arrive");
}

/** Prints one page, with the next cursor on stderr, or all pages. */
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
    // A page before the last one can be short or empty.
    const isNothing = page.items.length === 0 && page.next === undefined;
    if (page.items.length > 0 || isNothing || output !== "table") print(output, shownOf(page));
    if (page.next !== undefined) printNote(`next page: --cursor '${page.next}', or use --all`);
    return;
  }
  const items: Item[] = [];
  for await (const item of pages) {
    if (output === "jsonl" || output === "name") print(output, shownOf({ items: [item] }));
    else items.push(item);
  }
  if (output !== "jsonl" && output !== "name") print(output, shownOf({ items }));
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
