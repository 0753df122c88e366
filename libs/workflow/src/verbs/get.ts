import type { ApiObject } from "@konverge/core";
import { ignoreNotFound } from "@konverge/kube";
import type { Seen } from "../define/step-verbs.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

export async function getObject<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
): Promise<Seen<T> | undefined> {
  const { client, type, at } = reached;
  const object = await client.get(type, at).catch(ignoreNotFound);
  if (object === undefined) return undefined;
  scope.noteSeen(reached, object);
  return freeze(object) as Seen<T>;
}

/** Whoever changed what was read would wait in vain for it to be written. */
export function freeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null && !Object.isFrozen(member)) freeze(member);
  }
  return Object.freeze(value);
}
