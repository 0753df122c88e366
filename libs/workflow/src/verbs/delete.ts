import { ignoreNotFound, isNotFound, isReplaced } from "@konverge/kube";
import type { StepDeleteOptions } from "../define/step-verbs.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Deletes an object, never another one that has taken its name. */
export async function deleteObject(
  scope: VerbScope,
  { client, type, at, uid: given }: Reached,
  options: StepDeleteOptions,
): Promise<void> {
  const uid = given ?? (await client.get(type, at).catch(ignoreNotFound))?.metadata.uid;
  if (uid === undefined) return;
  await scope.assertHeld();
  try {
    await client.delete(type, at, { ...options, uid });
  } catch (error) {
    if (!isNotFound(error) && !isReplaced(error)) throw error;
  }
}
