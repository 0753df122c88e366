import { ignoreNotFound, isNotFound, isReplaced, type DeleteCallOptions } from "@konverge/kube";
import { undoneStep } from "../define/undo-name.ts";
import { creationMarksIn } from "./step-marker.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Deletes an object, never another one that has taken its name. An undo deletes only what its step created. */
export async function deleteObject(
  scope: VerbScope,
  reached: Reached,
  options: DeleteCallOptions,
): Promise<void> {
  const { client, type, at } = reached;
  const undone = undoneStep(scope.step);
  if (undone !== undefined && reached.created === false) return;
  const uid = reached.uid ?? (await findUid(scope, reached, undone));
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
