import { isAlreadyExists, ignoreNotFound } from "@konverge/kube";
import { KonvergeError } from "@konverge/core";
import type { ObjectRef } from "../define/object-ref.ts";
import { refTo } from "../define/wait-target.ts";
import { markOf, markerName } from "./step-marker.ts";
import type { ObjectManifest } from "../define/step-verbs.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

const MAX_TRIES = 8;
/** Hex digits behind a generateName: 40 bits. */
const SUFFIX_CHARS = 10;

/** The name that every try of the step gives the object: a server would make another one for each. */
export function withName(object: ObjectManifest, identity: string): ObjectManifest {
  const { generateName, ...metadata } = object.metadata;
  if (generateName === undefined || metadata.name !== undefined) return object;
  const name = `${generateName}${identity.slice(0, SUFFIX_CHARS)}`;
  return { ...object, metadata: { ...metadata, name } };
}

/** Creates the object, or takes the one that an earlier try has created: it bears the mark. */
export async function createObject(
  scope: VerbScope,
  reached: Reached,
  { object, identity }: { readonly object: ObjectManifest; readonly identity: string },
): Promise<ObjectRef> {
  const { client, type, at, label } = reached;
  const marker = markerName(identity);
  scope.noteSeen(reached, object);
  const annotations = { ...object.metadata.annotations, [marker]: await markOf(scope) };
  const marked = { ...object, metadata: { ...object.metadata, annotations } };
  for (let tries = 1; ; tries += 1) {
    await scope.assertHeld();
    try {
      return refTo(reached, await client.create(type, marked));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await client.get(type, at).catch(ignoreNotFound);
      if (found?.metadata.annotations?.[marker] !== undefined) return refTo(reached, found);
      // What took the name may be gone by now.
      if (found === undefined && tries < MAX_TRIES) continue;
      throw new KonvergeError(
        "object_exists",
        `${label} is there already, and this step has not created it: choose another name, or use apply if it may be taken over`,
        { cause: error },
      );
    }
  }
}
