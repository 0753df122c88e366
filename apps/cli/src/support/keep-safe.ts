import { createHash, randomBytes } from "node:crypto";

/** Fields whose texts come from code or from Konverge, never from objects, inputs or errors. */
const SAFE_FIELDS: ReadonlySet<string> = new Set([
  "at",
  "breaker",
  "cluster",
  "clusters",
  "code",
  "controller",
  "createdAt",
  "detectedAt",
  "group",
  "held",
  "kind",
  "level",
  "node",
  "openUntil",
  "pausedUntil",
  "platform",
  "resource",
  "role",
  "scope",
  "since",
  "state",
  "status",
  "trend",
  "version",
  "workflow",
]);
/** Lists whose items are named in code or settings. */
const NAMED_LISTS: ReadonlySet<string> = new Set([
  "checks",
  "clusters",
  "controllers",
  "workflows",
]);
const LONGEST = 100;
/** Names, versions and times; no prose. */
const PLAIN = /^[\w.:/+@ -]*$/;

/**
 * Returns a copy without texts that users, objects or errors may have provided. Each is replaced by a digest that is equal for equal
 * texts of this copy only. Numbers and booleans stay.
 */
export function keepSafe(value: unknown): unknown {
  const salt = randomBytes(16);
  const digest = (text: string) =>
    `text-${createHash("sha256").update(salt).update(text).digest("hex").slice(0, 8)}`;
  const copy = (part: unknown, field: string, list: string): unknown => {
    if (typeof part === "string") {
      const isNamed = field === "name" && NAMED_LISTS.has(list);
      const isSafe = (SAFE_FIELDS.has(field) || isNamed) && part.length <= LONGEST;
      return isSafe && PLAIN.test(part) ? part : digest(part);
    }
    if (Array.isArray(part)) return part.map((item) => copy(item, field, field));
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(
      Object.entries(part).map(([name, item]) => [
        // Names of fields are data where a map has the names of objects as its keys.
        PLAIN.test(name) && name.length <= 40 && !name.includes("/") ? name : digest(name),
        copy(item, name, list),
      ]),
    );
  };
  return copy(value, "", "");
}
