import type { GroupRole, Scope } from "@konverge/contracts";
import { defined } from "@konverge/core";

/** The role, scope and request classes of a user. */
export type Grant = Omit<GroupRole, "group">;

const FIELDS = ["clusters", "controllers", "namespaces", "kinds"] as const;

/**
 * Returns the first entry for a group of the user, extended by the other entries of its groups that have the same role and
 * classes and differ in one field of the scope only. The result never exceeds the entries together. Undefined without an entry.
 */
export function grantOf(roles: readonly GroupRole[], groups: readonly string[]): Grant | undefined {
  const [first, ...others] = roles.filter(({ group }) => groups.includes(group));
  if (first === undefined) return undefined;
  const { role, classes } = first;
  let { scope } = first;
  const same = others.filter(
    (other) => other.role === role && keyOf(other.classes) === keyOf(classes),
  );
  // An extended scope can differ from an earlier entry in one field only.
  for (let extended = true; extended;) {
    extended = false;
    for (const other of same) {
      const joined = join(scope, other.scope);
      if (joined === undefined || isEqual(joined, scope)) continue;
      scope = joined;
      extended = true;
    }
  }
  return { role, scope, ...defined({ classes }) };
}

/** Returns the union of two scopes that differ in at most one field; undefined for others, whose union is not a scope. */
function join(one: Scope, other: Scope): Scope | undefined {
  const different = FIELDS.filter((field) => keyOf(one[field]) !== keyOf(other[field]));
  const [field] = different;
  if (field === undefined) return one;
  if (different.length > 1) return undefined;
  const { [field]: mine, ...rest } = one;
  const { [field]: theirs } = other;
  // An omitted field allows all.
  if (mine === undefined || theirs === undefined) return rest;
  return { ...rest, [field]: [...new Set([...mine, ...theirs])] };
}

function isEqual(one: Scope, other: Scope): boolean {
  return FIELDS.every((field) => keyOf(one[field]) === keyOf(other[field]));
}

function keyOf(names: readonly string[] | undefined): string {
  return JSON.stringify(names?.toSorted() ?? null);
}
