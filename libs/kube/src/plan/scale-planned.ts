import { isJsonObject, metadataOf, type JsonObject } from "@konverge/core";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { nextObject } from "./next-object.ts";
import { withMetadata } from "./object-fields.ts";
import { fail, inapplicable, modified, notFound, replaced, succeed } from "./planned-answer.ts";
import { dry, isTrial, labelOf, pathOnly, type ObjectPlace } from "./planned-call.ts";
import { isNew, type PlannedObject } from "./planned-object.ts";
import { readBefore } from "./read-planned.ts";
import { writeOf, type Writing } from "./writing.ts";

/** Answers reads and writes of a scale, which is a view of its object. */
export async function scalePlanned(writing: Writing, place: ObjectPlace): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const known = objects.find(place);
  if (known !== undefined && known.view === undefined) {
    return await fail(call, place, notFound(place));
  }
  if (call.method === "GET") {
    return known === undefined
      ? await readScale(writing)
      : succeed(call, await scaleOf(writing, place, known));
  }
  if (isTrial(call) && known === undefined) return await live(call);
  return known === undefined
    ? await scaleFirst(writing, place)
    : await scaleAgain(writing, place, known);
}

async function readScale({ objects, call, live, isExact }: Writing): Promise<ApiAnswer> {
  const answer = await live(call);
  if (isExact) objects.noteAnswer(call.path, answer.text);
  return answer;
}

async function scaleFirst(writing: Writing, place: ObjectPlace): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const { object: before } = await readBefore(writing, place);
  const answer = await live(dry(call));
  const scale = answer.value;
  if (!isJsonObject(scale) || before === undefined) return answer;
  const object = objects.add(place, before);
  const replicas = replicasOf(scale);
  const next = withReplicas(writing, place, before, replicas);
  const settled = objects.settle(object, next, writeOf(call, place));
  const { resourceVersion = "" } = metadataOf(settled);
  return succeed(call, withMetadata(scale, { resourceVersion }));
}

async function scaleAgain(
  writing: Writing,
  place: ObjectPlace,
  known: PlannedObject,
): Promise<ApiAnswer> {
  const { objects, call } = writing;
  const scale = await scaleOf(writing, place, known);
  const wanted = nextObject(scale, call);
  if (wanted.kind === "conflict") return await fail(call, place, modified(place));
  if (wanted.kind === "replaced") {
    return await fail(call, place, replaced(place, { given: wanted.given, uid: "" }));
  }
  if (wanted.kind !== "object" && wanted.kind !== "merge") {
    return await fail(call, place, inapplicable());
  }
  const replicas = replicasOf(wanted.kind === "object" ? wanted.object : wanted.intent);
  const view = known.view ?? {};
  const next = withReplicas(writing, place, view, replicas);
  if (isTrial(call)) return succeed(call, scale);
  const settled = objects.settle(known, next, writeOf(call, place));
  objects.noteGap(
    labelOf(place),
    "the server has not checked its scale after an earlier planned write",
  );
  const { resourceVersion = "" } = metadataOf(settled);
  const spec = replicas === undefined ? {} : { spec: { replicas } };
  return succeed(call, { ...withMetadata(scale, { resourceVersion }), ...spec });
}

/** The scale of a planned object. */
async function scaleOf(
  { call, live }: Writing,
  place: ObjectPlace,
  known: PlannedObject,
): Promise<JsonObject> {
  const { view = {} } = known;
  const replicas = replicasOf(view);
  const { name = place.name, namespace, uid, resourceVersion } = metadataOf(view);
  const given = { name, namespace, uid, resourceVersion };
  const metadata = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as JsonObject;
  const spec = replicas === undefined ? {} : { replicas };
  const planned = { apiVersion: "autoscaling/v1", kind: "Scale", metadata, spec };
  if (isNew(known)) return { ...planned, status: { replicas: 0 } };
  const read = {
    ...call,
    verb: "get",
    method: "GET",
    body: undefined,
    contentType: undefined,
  } as const;
  const { value } = await live({ ...read, path: pathOnly(call.path) });
  return isJsonObject(value)
    ? { ...value, metadata: { ...metadataOf(value), ...metadata }, spec }
    : planned;
}

function replicasOf(object: JsonObject): number | undefined {
  const spec = object["spec"];
  const replicas = isJsonObject(spec) ? spec["replicas"] : undefined;
  return typeof replicas === "number" ? replicas : undefined;
}

/** A definition names the field of its scale, which is `spec.replicas` by convention. */
function withReplicas(
  { objects }: Writing,
  place: ObjectPlace,
  object: JsonObject,
  replicas: number | undefined,
): JsonObject {
  const spec = object["spec"];
  const isKnown = isJsonObject(spec) && (place.group === "apps" || "replicas" in spec);
  if (replicas === undefined || !isKnown) {
    objects.noteGap(labelOf(place), "the field that its scale writes is unknown");
    return object;
  }
  return { ...object, spec: { ...spec, replicas } };
}
