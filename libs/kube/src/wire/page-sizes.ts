/** The number of objects to request per page of a list, by the size of the latest page of each resource. */
export interface PageSizes {
  of(resource: string): number;
  note(resource: string, page: { readonly items: number; readonly bytes: number }): void;
}

/** Of the first page. etcd limits an object to 1.5 MiB, so even the largest objects stay below the longest string (512 MiB). */
const FIRST = 250;
/** A page is parsed at once, which stops the process for about 10 ms per MB. */
const TARGET_BYTES = 8 * 1024 * 1024;
const MOST = 500;

export function createPageSizes(): PageSizes {
  const sizes = new Map<string, number>();
  return {
    of: (resource) => sizes.get(resource) ?? FIRST,
    note(resource, { items, bytes }) {
      if (items === 0) return;
      sizes.set(resource, Math.min(MOST, Math.max(1, Math.floor((TARGET_BYTES * items) / bytes))));
    },
  };
}
