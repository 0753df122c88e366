import {
  defined,
  isJsonObject,
  KonvergeError,
  sleepMs,
  type ApiObject,
  type JsonValue,
} from "@konverge/core";
import {
  fieldConflict,
  ignoreNotFound,
  isFieldManagerConflict,
  isOptimisticConflict,
  isReplaced,
  type ApplyCallOptions,
  type ObjectManifest,
  type ObjectRef,
} from "@konverge/kube";
import { replaced } from "./object-replaced.ts";
import { creationMarksIn, markerName, markOf, type CreationMark } from "./step-marker.ts";
import { refTo } from "../define/wait-target.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

const MAX_TRIES = 8;
/** Longest delay after a conflict, with full jitter, in ms. */
const MAX_WAIT_MS = 100;
/** No object has this version, so the apply either creates the object or is rejected. */
const NO_VERSION = "1";

export interface Application {
  readonly object: ObjectManifest;
  /** Identity of the call, the same in all attempts. */
  readonly identity: string;
  readonly options: ApplyCallOptions;
}

/** Applies on the object that was read, with its version and uid as precondition, or its absence. */
export async function applyObject(
  scope: VerbScope,
  reached: Reached,
  { object, identity, options }: Application,
): Promise<ObjectRef> {
  const { type, at } = reached;
  const { uid = reached.uid, force = false, fieldManager, subresource } = options;
  const client = reached.client.scoped(defined({ fieldManager }));
  const how = { force, ...defined({ subresource }) };
  assertIntent(object);
  scope.noteSeen(reached, object);
  for (let tries = 1; ; tries += 1) {
    const read = await client.get(type, at).catch(ignoreNotFound);
    if (uid !== undefined && read?.metadata.uid !== uid) throw replaced(reached);
    const guard = {
      resourceVersion: read?.metadata.resourceVersion ?? NO_VERSION,
      ...(read?.metadata.uid === undefined ? {} : { uid: read.metadata.uid }),
    };
    const marks = await marksFor(scope, identity, read);
    await scope.assertHeld();
    const metadata = { ...object.metadata, ...withMarks(object, marks), ...guard };
    const intent = { ...object, metadata };
    const created = marks.some(({ step }) => step === scope.step);
    try {
      return { ...refTo(reached, await client.apply(type, intent, how)), created };
    } catch (error) {
      if (isFieldManagerConflict(error)) throw fieldConflict(error, reached.label);
      if (uid !== undefined && isReplaced(error)) throw replaced(reached, error);
      const isLost = isOptimisticConflict(error) || isReplaced(error);
      if (!isLost || tries >= MAX_TRIES) throw error;
    }
    await sleepMs(scope.journal.random() * MAX_WAIT_MS, scope.signal);
  }
}

/** A new object gets the mark of its creation. Existing ones keep it, since an apply removes what it omits. */
async function marksFor(
  scope: VerbScope,
  identity: string,
  read: ApiObject | undefined,
): Promise<readonly CreationMark[]> {
  if (read !== undefined) return await creationMarksIn(scope, read.metadata.annotations);
  const text = await markOf(scope, { created: true });
  return [{ name: markerName(identity), text, step: scope.step }];
}

/** Without marks, the manifest's own annotations, if any: an empty map would be a field of its own. */
function withMarks({ metadata }: ObjectManifest, marks: readonly CreationMark[]) {
  if (marks.length === 0) return {};
  const added = Object.fromEntries(marks.map(({ name, text }) => [name, text]));
  return { annotations: { ...metadata.annotations, ...added } };
}

/** @throws KonvergeError `invalid_request` */
function assertIntent({ metadata }: ObjectManifest): void {
  const given = metadata as unknown as JsonValue;
  for (const field of ["resourceVersion", "managedFields"]) {
    if (!isJsonObject(given) || given[field] === undefined) continue;
    const detail = `metadata.${field} cannot be applied; pass only the fields that the workflow wants, not an object that was read`;
    throw new KonvergeError("invalid_request", detail, {
      issues: [{ pointer: `/metadata/${field}`, detail }],
    });
  }
}
