import type { ApiObject } from "@konverge/core";
import { ignoreNotFound } from "@konverge/kube";
import { rememberSecret } from "./seen-secrets.ts";
import type { Seen } from "./step-verbs.ts";
import type { Reached } from "./verb-scope.ts";

export async function getObject<T extends ApiObject>({
  client,
  type,
  at,
}: Reached): Promise<Seen<T> | undefined> {
  const object = await client.get(type, at).catch(ignoreNotFound);
  if (object === undefined) return undefined;
  if (client.isSensitive(type)) rememberSecret(object);
  return freeze(object) as Seen<T>;
}

/** Whoever changed what was read would wait in vain for it to be written. */
export function freeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null && !Object.isFrozen(member)) freeze(member);
  }
  return Object.freeze(value);
}
