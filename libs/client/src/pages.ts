interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}

/** A list in pages: `for await` yields the items of all pages, `page()` reads one page. */
export interface Pages<Item, Answer extends Page<Item> = Page<Item>> extends AsyncIterable<Item> {
  /** Reads one page. Its `next` is the `cursor` of the next page, if there is one. */
  page(): Promise<Answer>;
}

/** @param read reads the page after a cursor, or the first page without one */
export function pagesOf<Item, Answer extends Page<Item>>(
  read: (cursor: string | undefined) => Promise<Answer>,
): Pages<Item, Answer> {
  return {
    page: () => read(undefined),
    async *[Symbol.asyncIterator]() {
      let cursor: string | undefined;
      do {
        const { items, next } = await read(cursor);
        yield* items;
        cursor = next;
      } while (cursor !== undefined);
    },
  };
}
