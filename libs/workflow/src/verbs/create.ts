import {
  isAlreadyExists,
  ignoreNotFound,
  type ObjectManifest,
  type ObjectRef,
} from "@konverge/kube";
import { KonvergeError } from "@konverge/core";
import { refTo } from "../define/wait-target.ts";
import { markOf, markerName } from "./step-marker.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

const MAX_TRIES = 8;
/** Hex digits after a generateName: 40 bits. */
const SUFFIX_CHARS = 10;

/** Derives the name of a generateName, so that every attempt of the step uses the same; a server would generate new ones. */
export function withName(object: ObjectManifest, identity: string): ObjectManifest {
  const { generateName, ...metadata } = object.metadata;
  if (generateName === undefined || metadata.name !== undefined) return object;
  const name = `${generateName}${identity.slice(0, SUFFIX_CHARS)}`;
  return { ...object, metadata: { ...metadata, name } };
}

/** Creates an object, or returns the one that an earlier attempt has created and marked. */
export async function createObject(
  scope: VerbScope,
  reached: Reached,
  { object, identity }: { readonly object: ObjectManifest; readonly identity: string },
): Promise<ObjectRef> {
  const { client, type, at, label } = reached;
  const marker = markerName(identity);
  scope.noteSeen(reached, object);
  const annotations = {
    ...object.metadata.annotations,
    [marker]: await markOf(scope, { created: true }),
  };
  const marked = { ...object, metadata: { ...object.metadata, annotations } };
  for (let tries = 1; ; tries += 1) {
    await scope.assertHeld();
    try {
      return { ...refTo(reached, await client.create(type, marked)), created: true };
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await client.get(type, at).catch(ignoreNotFound);
      if (found?.metadata.annotations?.[marker] !== undefined) {
        return { ...refTo(reached, found), created: true };
      }
      // The object with the name may be deleted by now.
      if (found === undefined && tries < MAX_TRIES) continue;
      throw new KonvergeError(
        "object_exists",
        `${label} already exists and was not created by this step; use another name, or apply to take it over`,
        { cause: error },
      );
    }
  }
}
