import { defined, KonvergeError } from "@konverge/core";
import {
  assertSelected,
  ignoreNotFound,
  isNotFound,
  isReplaced,
  type DeleteCallOptions,
  type DeleteCollectionOptions,
} from "@konverge/kube";
import { undoneStep } from "../define/undo-name.ts";
import { creationMarksIn } from "./step-marker.ts";
import type { Reached, ReachedKind, VerbScope } from "./verb-scope.ts";

/** Deletes an object, never another one that has taken its name. An undo deletes only what its step created. */
export async function deleteObject(
  scope: VerbScope,
  reached: Reached,
  options: Omit<DeleteCallOptions, "dryRun">,
): Promise<void> {
  const { client, type, at } = reached;
  const undone = undoneStep(scope.step);
  if (undone !== undefined && reached.created === false) return;
  const uid = options.uid ?? reached.uid ?? (await findUid(scope, reached, undone));
  if (uid === undefined) return;
  await scope.assertHeld();
  try {
    await client.delete(type, at, { ...options, uid });
  } catch (error) {
    if (!isNotFound(error) && !isReplaced(error)) throw error;
  }
}

async function findUid(
  scope: VerbScope,
  { client, type, at }: Reached,
  undone: string | undefined,
): Promise<string | undefined> {
  const { metadata } = (await client.get(type, at).catch(ignoreNotFound)) ?? {};
  if (undone === undefined) return metadata?.uid;
  const marks = await creationMarksIn(scope, metadata?.annotations);
  return marks.some(({ step }) => step === undone) ? metadata?.uid : undefined;
}

/** Deletes the objects that match now. A later attempt deletes those that match then. */
export async function deleteCollection(
  scope: VerbScope,
  { client, type }: ReachedKind,
  { dryRun, all, ...options }: DeleteCollectionOptions,
): Promise<number> {
  assertSelected(type, { ...options, ...defined({ all }) });
  if (type.scope === "Namespaced" && options.namespace === undefined) {
    const detail = `deleteCollection of ${type.resource} has no namespace; set one`;
    throw new KonvergeError("invalid_request", detail);
  }
  await scope.assertHeld();
  const scoped = dryRun === true ? client.scoped({ dryRun }) : client;
  return (await scoped.deleteCollection(type, options)).length;
}
