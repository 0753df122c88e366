import type { RequestClass } from "../contract/work-queue.ts";

/** The number of each class in scripts and hashes; lower is more urgent. */
const CLASS_RANK: Readonly<Record<RequestClass, number>> = {
  interactive: 1,
  event: 2,
  retry: 3,
  background: 4,
};

const BY_RANK: readonly RequestClass[] = ["interactive", "event", "retry", "background"];

export function rankOf(requestClass: RequestClass): number {
  return CLASS_RANK[requestClass];
}

/** @throws RangeError for an unknown rank. */
export function classOf(rank: number): RequestClass {
  const found = BY_RANK[rank - 1];
  if (found === undefined) throw new RangeError(`no request class has rank ${rank}`);
  return found;
}

/** Returns true if the class marks new events. */
export function isNewEventByDefault(requestClass: RequestClass): boolean {
  return requestClass === "interactive" || requestClass === "event";
}
