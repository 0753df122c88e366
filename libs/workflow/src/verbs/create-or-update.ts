import { formatApiVersion, isKonvergeError, type ApiObject } from "@konverge/core";
import {
  isNotFound,
  runChange,
  setControllerReference,
  type CreateOrUpdateOptions,
  type CreateOrUpdateResult,
  type ObjectRef,
} from "@konverge/kube";
import { createObject } from "./create.ts";
import { mutateObject } from "./mutate.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Others may create or delete the object between two calls. */
const MAX_TRIES = 8;

interface Upsert<T extends ApiObject> {
  /** Identity of the call, the same in all attempts. */
  readonly identity: string;
  readonly change: (draft: T) => void | Promise<void>;
  readonly options: CreateOrUpdateOptions;
}

/** Creates or changes an object. Both writes have the same mark, so a later attempt detects either of them. */
export async function createOrUpdate<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
  { identity, change, options: { ownedBy, dryRun } }: Upsert<T>,
): Promise<CreateOrUpdateResult<ObjectRef>> {
  const owned = async (draft: T) => {
    if (ownedBy !== undefined) setControllerReference(draft, ownedBy);
    await change(draft);
  };
  for (let tries = 1; ; tries += 1) {
    try {
      return await mutateObject<T>(scope, reached, { identity, change: owned });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    const object = newObject(reached) as T;
    await runChange(reached.label, () => owned(object));
    try {
      const ref = await createObject(scope, reached, { object, identity });
      return { kind: "created", object: dryRun === true ? { ...ref, created: false } : ref };
    } catch (error) {
      const isRace = isKonvergeError(error) && error.code === "object_exists";
      if (!isRace || tries >= MAX_TRIES) throw error;
    }
  }
}

function newObject({ type: { group, version, kind }, at }: Reached): ApiObject {
  return { apiVersion: formatApiVersion(group, version), kind, metadata: { ...at } };
}
