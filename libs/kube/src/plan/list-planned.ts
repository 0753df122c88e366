import {
  defined,
  getOwn,
  isJsonObject,
  metadataOf,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { matchesLabels, parseLabelSelector } from "../names/label-selector.ts";
import { createHash } from "node:crypto";
import { textOf } from "./object-fields.ts";
import { succeed } from "./planned-answer.ts";
import { apiVersionOf, queryOf, type Place } from "./planned-call.ts";
import type { PlannedObject } from "./planned-object.ts";
import { inVersion } from "./read-planned.ts";
import type { Writing } from "./writing.ts";

/** Answers a list with the planned objects in it. */
export async function listPlanned(writing: Writing, place: Place): Promise<ApiAnswer> {
  const { objects, call, live } = writing;
  const answer = await live(call);
  const list = answer.value;
  if (!isJsonObject(list) || !Array.isArray(list["items"])) {
    if (objects.ofKind(place).length > 0) {
      objects.noteGap(`list of ${place.resource}`, "a table does not show the planned objects");
    }
    if (writing.isExact) objects.noteAnswer(call.path, answer.text);
    return answer;
  }
  const items = list["items"].filter(isJsonObject);
  noteItems(writing, place, { list, items, size: answer.text.length });
  const written = objects.ofKind(place);
  if (written.length === 0) return answer;
  const selection = selectionOf(writing, place);
  const views = written.map((known) => {
    const at = { ...known.place, version: place.version };
    return { ...known, view: known.view && inVersion(writing, at, known.view) };
  });
  const merged = mergeItems(items, views, {
    ...selection,
    isLast: textOf(list, "continue") === undefined,
  });
  const isPart = call.accept?.includes("as=PartialObjectMetadataList") === true;
  return succeed(call, { ...list, items: isPart ? merged.map(asPart) : merged });
}

function asPart(item: JsonObject): JsonObject {
  const { apiVersion: _a, kind: _k } = item;
  return {
    apiVersion: "meta.k8s.io/v1",
    kind: "PartialObjectMetadata",
    metadata: metadataOf(item),
  };
}

interface NotedList {
  readonly list: JsonObject;
  readonly items: readonly JsonObject[];
  /** In characters of JSON. */
  readonly size: number;
}

function noteItems(
  { objects, call }: Writing,
  place: Place,
  { list, items, size }: NotedList,
): void {
  const query = queryOf(call.path);
  const sum = items.reduce(
    (total, item) => total + sumOf(item),
    objects.reads.sumBefore(query.get("continue")),
  );
  const version = sum.toString(16);
  const selection = `${query.get("labelSelector") ?? ""}&${query.get("fieldSelector") ?? ""}`;
  const following = textOf(list, "continue");
  if (following === undefined) objects.noteRead(place, version, selection);
  else {
    const { group, resource, namespace } = place;
    const part = { group, resource, query: `${selection}&part`, version };
    objects.reads.noteStart(following, sum, { ...part, ...defined({ namespace }) });
  }
  if (list["kind"] === "PartialObjectMetadataList") return;
  const kind = String(list["kind"] ?? "").replace(/List$/, "");
  for (const item of items) {
    const { namespace, name } = metadataOf(item);
    if (typeof name !== "string") continue;
    const at = typeof namespace === "string" ? { ...place, namespace, name } : { ...place, name };
    const object = { apiVersion: apiVersionOf(place), kind, ...item };
    objects.noteSeen(at, object, size / items.length);
  }
}

/** Of its name and version. The sum of a list is the same for each size of its pages. */
function sumOf(item: JsonObject): bigint {
  const text = `${keyOf(item)}@${textOf(item, "resourceVersion") ?? ""}`;
  return BigInt(`0x${createHash("sha256").update(text).digest("hex")}`);
}

interface Selection {
  /** Undefined if only the server can decide. */
  readonly matches: (object: JsonObject) => boolean | undefined;
}

function selectionOf({ objects, call }: Writing, place: Place): Selection {
  const query = queryOf(call.path);
  const labelText = query.get("labelSelector") ?? "";
  const fieldText = query.get("fieldSelector") ?? "";
  const labels = parseLabelSelector(labelText);
  const fields = parseFields(fieldText);
  if (labels === undefined || fields === undefined) {
    const selector = labels === undefined ? labelText : fieldText;
    objects.noteGap(
      `list of ${place.resource}`,
      `only the server evaluates the selector "${selector}"`,
    );
  }
  if (fieldText.split(",").some((part) => part !== "" && !IDENTITY.test(part))) {
    objects.noteGap(
      `list of ${place.resource}`,
      `the field selector "${fieldText}" was evaluated on the planned objects without the server`,
    );
  }
  return {
    matches(object) {
      if (labels === undefined || fields === undefined) return undefined;
      const { labels: given } = metadataOf(object) as {
        readonly labels?: Readonly<Record<string, string>>;
      };
      return matchesLabels(labels, given) && fields.every((field) => field(object));
    },
  };
}

/** Replaces, removes and adds the planned objects; new ones come with the last page. */
function mergeItems(
  items: readonly JsonObject[],
  written: readonly PlannedObject[],
  { matches, isLast }: Selection & { readonly isLast: boolean },
): JsonObject[] {
  const planned = new Map(written.map((each) => [keyOfPlace(each), each] as const));
  const kept = items.flatMap((item) => {
    const known = planned.get(keyOf(item));
    if (known === undefined) return [item];
    const { view } = known;
    return view === undefined || matches(view) === false ? [] : [view];
  });
  if (!isLast) return kept;
  const shown = new Set(kept.map(keyOf));
  const added = written.flatMap(({ before, view }) => {
    if (view === undefined || matches(view) !== true || shown.has(keyOf(view))) return [];
    return before !== undefined && matches(before) === true ? [] : [view];
  });
  return added.length === 0
    ? kept
    : [...kept, ...added].toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

function keyOf(object: JsonObject): string {
  const { namespace, name } = metadataOf(object);
  return `${typeof namespace === "string" ? namespace : ""}/${String(name)}`;
}

function keyOfPlace({ place: { namespace = "", name } }: PlannedObject): string {
  return `${namespace}/${name}`;
}

/** Fields that each kind has. */
const IDENTITY = /^metadata\.(?:name|namespace)(?:=|!=)/;
const FIELD = /^([A-Za-z0-9.\-_/[\]]+?)(==?|!=)(.*)$/;

/** The requirements of a field selector; undefined for another form. */
function parseFields(text: string): ((object: JsonObject) => boolean)[] | undefined {
  const requirements: ((object: JsonObject) => boolean)[] = [];
  for (const part of text.split(",").filter((each) => each !== "")) {
    const [, path, operator, value] = FIELD.exec(part) ?? [];
    if (path === undefined || value === undefined) return undefined;
    requirements.push((object) => (valueText(object, path) === value) === (operator !== "!="));
  }
  return requirements;
}

/** A missing field counts as empty. */
function valueText(object: JsonObject, path: string): string {
  let value: JsonValue | undefined = object;
  for (const name of path.split(".")) value = isJsonObject(value) ? getOwn(value, name) : undefined;
  return value === undefined || value === null ? "" : String(value);
}
