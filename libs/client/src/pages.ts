interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}

/** A list that is read page by page: `for await` gives each item over all pages, `page()` the one page asked for. */
export interface Pages<Item, Answer extends Page<Item> = Page<Item>> extends AsyncIterable<Item> {
  /** One request. Its `next`, where there is more, is the `cursor` of the next one. */
  page(): Promise<Answer>;
}

/** @param read reads the page behind a cursor; undefined: the first one asked for. */
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
