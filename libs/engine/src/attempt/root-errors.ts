import { isKonvergeError, type KonvergeError } from "@konverge/core";

/** More than any honest tree of causes has; also what bounds a tree without end. */
const MAX_NODES = 256;

/**
 * The errors that a thrown value comes down to: along each chain of causes the first one of ours, and undefined for a chain
 * without. An AggregateError has a chain for each of its parts. Safe with cycles, and with objects that throw when read.
 */
export function findRootErrors(thrown: unknown): readonly (KonvergeError | undefined)[] {
  const roots: (KonvergeError | undefined)[] = [];
  const seen = new Set<unknown>();
  const open: unknown[] = [thrown];
  while (open.length > 0) {
    const node = open.shift();
    if (seen.has(node)) continue;
    seen.add(node);
    const { ours, inner } = look(node);
    if (ours !== undefined) roots.push(ours);
    else if (inner.length === 0) roots.push(undefined);
    else if (seen.size + open.length < MAX_NODES) open.push(...inner.slice(0, MAX_NODES));
  }
  return roots.length === 0 ? [undefined] : roots;
}

interface Look {
  readonly ours?: KonvergeError;
  readonly inner: readonly unknown[];
}

function look(node: unknown): Look {
  if (typeof node !== "object" || node === null) return { inner: [] };
  try {
    if (isKonvergeError(node)) return { ours: node, inner: [] };
    const parts: unknown = "errors" in node ? node.errors : undefined;
    if (Array.isArray(parts) && parts.length > 0) return { inner: parts };
    const cause: unknown = "cause" in node ? node.cause : undefined;
    return { inner: cause === undefined || cause === null ? [] : [cause] };
  } catch {
    // A getter or a Proxy that throws: nothing more can be learned from it.
    return { inner: [] };
  }
}
