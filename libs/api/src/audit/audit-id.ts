/** The parts of a stream ID. */
export interface IdParts {
  readonly ms: number;
  readonly sequence: number;
}

export function partsOf(id: string): IdParts {
  const [ms, sequence] = id.split("-").map(Number);
  return { ms: ms ?? 0, sequence: sequence ?? 0 };
}

/** Returns the first ID at `ms` or later that is after the given ones. */
export function idAfter(ms: number, ids: readonly string[]): string {
  let next: IdParts = { ms, sequence: 0 };
  for (const id of ids) {
    const last = partsOf(id);
    if (last.ms < next.ms || (last.ms === next.ms && last.sequence < next.sequence)) continue;
    next = { ms: last.ms, sequence: last.sequence + 1 };
  }
  return `${next.ms}-${next.sequence}`;
}

/** Returns the last ID before another. Redis completes one without a sequence to the last of its millisecond. */
export function endBefore({ ms, sequence }: IdParts): string {
  if (sequence > 0) return `${ms}-${sequence - 1}`;
  return ms > 0 ? `${ms - 1}` : "0-0";
}

export function isNewer(one: string, other: string): boolean {
  const [a, b] = [partsOf(one), partsOf(other)];
  return a.ms === b.ms ? a.sequence > b.sequence : a.ms > b.ms;
}
