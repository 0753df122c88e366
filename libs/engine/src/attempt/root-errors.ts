import { isKonvergeError, type KonvergeError } from "@konverge/core";
import { convertApiException } from "@konverge/kube";

/** Maximum of visited errors; bounds an endless tree of causes. */
const MAX_NODES = 256;

/**
 * Finds the root errors of a thrown value: the first KonvergeError in each chain of causes, or undefined for a chain without
 * one. Each part of an AggregateError has its own chain. Safe for cycles, and for objects that throw when read.
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
    const ours = isKonvergeError(node) ? node : convertApiException(node);
    if (ours !== undefined) return { ours, inner: [] };
    const parts: unknown = "errors" in node ? node.errors : undefined;
    if (Array.isArray(parts) && parts.length > 0) return { inner: parts };
    const cause: unknown = "cause" in node ? node.cause : undefined;
    return { inner: cause === undefined || cause === null ? [] : [cause] };
  } catch {
    // A getter or a Proxy that throws has nothing more to read.
    return { inner: [] };
  }
}
