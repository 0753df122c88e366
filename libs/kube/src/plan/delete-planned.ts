import { defined, isJsonObject, metadataOf, type JsonObject } from "@konverge/core";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { failedPrecondition } from "./next-object.ts";
import { finalizersOf, isTerminatingView, textOf, withMetadata } from "./object-fields.ts";
import { fail, modified, notFound, replaced, succeed } from "./planned-answer.ts";
import {
  bodyOf,
  dry,
  isTrial,
  labelOf,
  pathOnly,
  queryOf,
  type ObjectPlace,
  type Place,
} from "./planned-call.ts";
import { isNew, type PlannedObject } from "./planned-object.ts";
import { listPlanned } from "./list-planned.ts";
import { readBefore } from "./read-planned.ts";
import { rebased } from "./send-planned.ts";
import type { Writing } from "./writing.ts";

/** Plans the deletion of one object, or the eviction of a Pod. */
export async function deletePlanned(writing: Writing, place: ObjectPlace): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const known = objects.find(place);
  if (known !== undefined && known.view === undefined) {
    return await fail(call, place, notFound(place));
  }
  const options = optionsOf(writing);
  const refused = known?.view && (await refuse(writing, place, { view: known.view, options }));
  if (refused !== undefined) return refused;
  const before = known === undefined ? (await readBefore(writing, place)).object : known.before;
  let answer: ApiAnswer | undefined;
  if (known === undefined || !isNew(known)) {
    answer =
      known === undefined
        ? await live(dry(call))
        : await rebased(writing, place, known, () =>
            live(dry(withoutPlannedVersion(writing, known))),
          );
  } else {
    objects.noteGap(
      labelOf(place),
      "the server has not checked its deletion, because it exists only in the plan",
    );
  }
  if (isTrial(call)) return answer ?? succeed(call, deleted(place));
  const object = known ?? objects.add(place, before ?? barely(place));
  const next = end(writing, object, { answer: answer?.value, options });
  return succeed(call, next ?? deleted(place));
}

/** Plans the deletion of all objects that match, the planned ones included. */
export async function deleteCollectionPlanned(writing: Writing, place: Place): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const { value: checked } = await live(dry(call));
  if (isTrial(call)) return succeed(call, isJsonObject(checked) ? checked : deleted(place));
  const query = queryOf(call.path);
  const selection = new URLSearchParams();
  for (const name of ["labelSelector", "fieldSelector"]) {
    const given = query.get(name);
    if (given !== null) selection.set(name, given);
  }
  const path = `${pathOnly(call.path)}?${selection.toString()}`;
  const { sensitive, ref } = call;
  const read = { verb: "list", method: "GET", path, sensitive, ref } as const;
  const { value: list } = await listPlanned({ ...writing, call: read }, place);
  const items = isJsonObject(list) && Array.isArray(list["items"]) ? list["items"] : [];
  for (const item of items.filter(isJsonObject)) {
    const { namespace, name } = metadataOf(item);
    const at = {
      ...place,
      name: String(name),
      ...(typeof namespace === "string" ? { namespace } : {}),
    };
    const object = objects.find(at) ?? objects.add(at, objects.seen(at) ?? item);
    end(writing, object, { answer: undefined, options: optionsOf(writing) });
  }
  return succeed(call, { ...(isJsonObject(list) ? list : {}), items });
}

interface Ending {
  /** The result of the dry run: the object if it would stay for a grace period, or until its finalizers are removed. */
  readonly answer: unknown;
  readonly options: JsonObject;
}

/** Ends an object: removes it, or keeps it until its finalizers are removed. Returns the kept object. */
function end(
  { objects, call }: Writing,
  object: PlannedObject,
  { answer, options }: Ending,
): JsonObject | undefined {
  const { view } = object;
  if (view === undefined) return undefined;
  const { propagationPolicy } = options;
  const isEviction = call.method === "POST";
  const write = {
    verb: isEviction ? "create" : "delete",
    ...defined({
      subresource: isEviction ? "eviction" : undefined,
      propagationPolicy: typeof propagationPolicy === "string" ? propagationPolicy : undefined,
    }),
  } as const;
  const finalizers = withPolicy(finalizersOf(view), propagationPolicy);
  const graceful = isJsonObject(answer) ? metadataOf(answer) : {};
  const isGraceful = Number(graceful["deletionGracePeriodSeconds"] ?? 0) > 0;
  if (finalizers.length === 0 && !isGraceful) {
    objects.remove(object, write);
    return undefined;
  }
  const deletionTimestamp = textOf(view, "deletionTimestamp") ?? now();
  const deletionGracePeriodSeconds = isGraceful ? graceful["deletionGracePeriodSeconds"] : 0;
  const marks = { deletionTimestamp, deletionGracePeriodSeconds: deletionGracePeriodSeconds ?? 0 };
  const next = isTerminatingView(view)
    ? withMetadata(view, { finalizers })
    : withMetadata(view, { ...marks, ...(finalizers.length === 0 ? {} : { finalizers }) });
  return objects.settle(object, next, write);
}

/** Foreground deletion and orphaning are finalizers, which the garbage collector removes. */
function withPolicy(finalizers: readonly string[], policy: unknown): string[] {
  if (typeof policy !== "string") return [...finalizers];
  const others = finalizers.filter((each) => each !== "orphan" && each !== "foregroundDeletion");
  if (policy === "Orphan") return [...others, "orphan"];
  return policy === "Foreground" ? [...others, "foregroundDeletion"] : others;
}

/** DeleteOptions, including those of an Eviction. */
function optionsOf({ call }: Writing): JsonObject {
  const body = bodyOf(call) ?? {};
  const inner = body["deleteOptions"];
  if (call.method === "POST") return isJsonObject(inner) ? inner : {};
  const policy = queryOf(call.path).get("propagationPolicy");
  return call.body === undefined && policy !== null ? { propagationPolicy: policy } : body;
}

async function refuse(
  { call }: Writing,
  place: ObjectPlace,
  { view, options }: { readonly view: JsonObject; readonly options: JsonObject },
): Promise<ApiAnswer | undefined> {
  const { preconditions } = options;
  const failed = failedPrecondition(view, isJsonObject(preconditions) ? preconditions : {});
  if (failed === undefined) return undefined;
  if (failed.kind === "conflict") return await fail(call, place, modified(place));
  const uids = { given: failed.given, uid: textOf(view, "uid") ?? "" };
  return await fail(call, place, replaced(place, uids));
}

/** The preconditions hold for the planned object, which the server has in another version. */
function withoutPlannedVersion({ call }: Writing, { before }: PlannedObject): Writing["call"] {
  const body = bodyOf(call);
  const given = body?.["preconditions"];
  if (body === undefined || !isJsonObject(given) || before === undefined) return call;
  const { resourceVersion: _planned, ...rest } = given;
  const resourceVersion = textOf(before, "resourceVersion") ?? "";
  return {
    ...call,
    body: JSON.stringify({ ...body, preconditions: { ...rest, resourceVersion } }),
  };
}

function deleted({ name = "", group, resource }: Place): JsonObject {
  const details = { name, group, kind: resource };
  return { kind: "Status", apiVersion: "v1", status: "Success", details };
}

/** An object that may not be read. */
function barely({ name, namespace }: ObjectPlace): JsonObject {
  return { metadata: defined({ name, namespace }) };
}

function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
