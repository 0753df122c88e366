/** What lists cost, in tokens, by what the last one of a resource weighed. */
export interface ListCosts {
  of(resource: string): number;
  note(resource: string, bytes: number): void;
}

/** Priority and fairness counts a list as a seat per 100 kB, ten at most (apiserver `list_work_estimator.go`). */
const BYTES_PER_TOKEN = 100_000;
const MOST = 10;

export function createListCosts(): ListCosts {
  const costs = new Map<string, number>();
  return {
    of: (resource) => costs.get(resource) ?? 1,
    note(resource, bytes) {
      costs.set(resource, Math.min(MOST, Math.max(1, Math.ceil(bytes / BYTES_PER_TOKEN))));
    },
  };
}
