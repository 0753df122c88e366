import { deepFreeze, KonvergeError } from "@konverge/core";
import type { ObjectRef, ReadonlyObject, Scale } from "@konverge/kube";
import { refTo } from "../define/wait-target.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Sets the number of replicas through `/scale`, then reads the object for its generation. */
export async function scaleObject(
  scope: VerbScope,
  reached: Reached,
  replicas: number,
): Promise<ObjectRef> {
  const { client, type, subresources, at, uid, label } = reached;
  if (!Number.isSafeInteger(replicas) || replicas < 0) {
    throw invalid(`replicas must be an integer >= 0 (got ${replicas})`);
  }
  if (!subresources.includes("scale")) {
    throw invalid(`${label} cannot be scaled: its kind has no scale subresource; use mutate`);
  }
  const set = async (draft: Scale) => {
    draft.spec = { ...draft.spec, replicas };
    await scope.assertHeld();
  };
  const only = uid === undefined ? {} : { uid };
  await client.mutate<Scale>(type, at, set, { subresource: "scale", ...only });
  return { ...refTo(reached, await client.get(type, at)), created: false };
}

export async function readScale({ client, type, at }: Reached): Promise<ReadonlyObject<Scale>> {
  const scale: unknown = await client.get(type, at, { subresource: "scale" });
  return deepFreeze(scale as object) as ReadonlyObject<Scale>;
}

function invalid(detail: string): KonvergeError {
  return new KonvergeError("invalid_request", detail);
}
