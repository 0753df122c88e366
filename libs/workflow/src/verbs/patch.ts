import { defined, type ApiObject, type JsonValue } from "@konverge/core";
import {
  fieldConflict,
  isFieldManagerConflict,
  type ObjectIdentity,
  type ObjectRef,
  type ObjectTarget,
  type PatchCallOptions,
} from "@konverge/kube";
import { refTo } from "../define/wait-target.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

export interface StepPatch {
  readonly target: ObjectTarget;
  readonly body: JsonValue;
  readonly options: PatchCallOptions;
}

/** Patches an object that was read, with its version as precondition. Nothing marks the patch: a later attempt repeats it. */
export async function patchObject(
  scope: VerbScope,
  reached: Reached,
  { target, body, options }: StepPatch,
): Promise<ObjectRef> {
  const { client, type, at, label } = reached;
  const { subresource, force, fieldManager } = options;
  if (typeof body === "object" && body !== null) scope.noteSeen(reached, { body });
  const read = "metadata" in target ? (target as ApiObject) : undefined;
  await scope.assertHeld();
  try {
    const patched = await client
      .scoped(defined({ fieldManager }))
      .patch(type, at, { type: options.type, body }, defined({ subresource, force, read }));
    return { ...refTo(reached, patched), created: false };
  } catch (error) {
    throw isFieldManagerConflict(error) ? fieldConflict(error, label) : error;
  }
}

/** Replaces an object that was read, with its version as precondition. */
export async function replaceObject(
  scope: VerbScope,
  reached: Reached,
  object: ObjectIdentity,
): Promise<ObjectRef> {
  scope.noteSeen(reached, object);
  await scope.assertHeld();
  const replaced = await reached.client.replace(reached.type, object as ApiObject);
  return { ...refTo(reached, replaced), created: false };
}
