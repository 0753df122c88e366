/** The cost of lists in tokens, by the size of the latest pages of each resource. */
export interface ListCosts {
  of(resource: string): number;
  note(resource: string, bytes: number): void;
}

/** Priority and fairness counts one seat per 100 kB of a list, at most ten (apiserver `list_work_estimator.go`). */
const BYTES_PER_TOKEN = 100_000;
const MOST = 10;

export function createListCosts(): ListCosts {
  const costs = new Map<string, number>();
  return {
    of: (resource) => costs.get(resource) ?? 1,
    note(resource, bytes) {
      // A token less at a time: the last page of a list is smaller than the first page of the next list.
      const least = (costs.get(resource) ?? 1) - 1;
      costs.set(resource, Math.min(MOST, Math.max(1, least, Math.ceil(bytes / BYTES_PER_TOKEN))));
    },
  };
}
