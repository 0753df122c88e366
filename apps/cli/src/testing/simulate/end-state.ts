import type { InProcessServer } from "@konverge/apiserver";
import { isJsonObject, type ApiObject, type JsonObject, type JsonValue } from "@konverge/core";
import { HOUSEKEEPING, nameOf, type SimulatedRun } from "./simulated-run.ts";

/** Resources that controllers do not create. */
const IGNORED: ReadonlySet<string> = new Set([
  ...HOUSEKEEPING,
  "customresourcedefinitions.apiextensions.k8s.io",
]);

/** Members of the metadata that differ between equal runs. */
const VOLATILE: ReadonlySet<string> = new Set([
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
  "managedFields",
  "generation",
]);

/** Values that the server generates, and those with which Konverge recognizes its own applies and steps. */
const DRAWN =
  /^\/(metadata\/annotations\/konverge\.dev\/(applied|step-[0-9a-f]+)|spec\/clusterIPs?|spec\/ports\/\*\/nodePort)$/;

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const UID = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;

/** The objects at the end of a run, as text that is equal for equal results: by kind and name, sorted. */
export function endStateOf(
  { server }: Pick<SimulatedRun, "server">,
  compare: ((object: ApiObject) => unknown) | undefined,
): ReadonlyMap<string, readonly string[]> {
  const uids = uidNames(server);
  const generated = generatedNames(server);
  const state = new Map<string, string[]>();
  for (const resource of server.resources().toSorted()) {
    if (IGNORED.has(resource)) continue;
    for (const object of server.objects(resource)) {
      const kept = compare === undefined ? object : compare(object as unknown as ApiObject);
      if (kept === undefined) continue;
      const named = isNamed(kept) ? kept : object;
      const id = `${resource} ${withoutNames(nameOf(named), generated)}`;
      const generation = (object["metadata"] as JsonObject)["generation"];
      const text = JSON.stringify(
        normalize(kept as JsonValue, { uids, generated, generation }),
        null,
        1,
      );
      state.set(id, [...(state.get(id) ?? []), text].toSorted());
    }
  }
  return state;
}

/** Returns a function that makes equal texts of equal values, without times, uids and generated names. */
export function normalizerOf({ server }: Pick<SimulatedRun, "server">): (value: unknown) => string {
  const known = {
    uids: uidNames(server),
    generated: generatedNames(server),
    generation: undefined,
  };
  return (value) => {
    // Undefined members are omitted.
    const json = JSON.parse(JSON.stringify(value)) as JsonValue;
    return JSON.stringify(normalize(json, known), null, 1);
  };
}

function isNamed(value: unknown): value is JsonObject {
  return isJsonObject(value) && isJsonObject(value["metadata"]);
}

/** Objects whose owners do not exist. */
export function orphansOf({ server }: Pick<SimulatedRun, "server">): string[] {
  const uids = uidNames(server);
  return server.resources().flatMap((resource) =>
    server
      .objects(resource)
      .filter((object) => ownersOf(object).some((uid) => !uids.has(uid)))
      .map((object) => `${resource} ${nameOf(object)}`),
  );
}

function ownersOf(object: JsonObject): string[] {
  const owners = (object["metadata"] as JsonObject)["ownerReferences"];
  if (!Array.isArray(owners)) return [];
  return owners.map((owner) => String((owner as JsonObject)["uid"]));
}

function uidNames(server: InProcessServer): ReadonlyMap<string, string> {
  return new Map(
    server
      .resources()
      .flatMap((resource) =>
        server
          .objects(resource)
          .map((object) => [
            String((object["metadata"] as JsonObject)["uid"]),
            `<uid of ${resource} ${nameOf(object)}>`,
          ]),
      ),
  );
}

/** Names that the server made, with their common part. */
function generatedNames(server: InProcessServer): ReadonlyMap<string, string> {
  return new Map(
    server.resources().flatMap((resource) =>
      server.objects(resource).flatMap((object) => {
        const { name, generateName } = object["metadata"] as JsonObject;
        return typeof generateName === "string" && generateName !== ""
          ? [[String(name), `${generateName}<generated>`] as const]
          : [];
      }),
    ),
  );
}

function withoutNames(text: string, generated: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [name, short] of generated) result = result.replaceAll(name, short);
  return result;
}

interface Normalizing {
  readonly uids: ReadonlyMap<string, string>;
  readonly generated: ReadonlyMap<string, string>;
  readonly generation: JsonValue | undefined;
}

function normalize(value: JsonValue, known: Normalizing, path = ""): JsonValue {
  if (typeof value === "string") {
    return withoutNames(value, known.generated)
      .replaceAll(TIME, "<time>")
      .replaceAll(UID, (uid) => known.uids.get(uid) ?? "<uid of no object>");
  }
  if (Array.isArray(value)) return value.map((item) => normalize(item, known, `${path}/*`));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value)
    .filter(([name]) => path !== "/metadata" || !VOLATILE.has(name))
    .filter(([name]) => !DRAWN.test(`${path}/${name}`))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => {
      if (name === "observedGeneration") {
        return [name, member === known.generation ? "<current>" : "<not current>"] as const;
      }
      return [name, normalize(member, known, `${path}/${name}`)] as const;
    });
  return Object.fromEntries(entries);
}

/** Describes the first differences of two end states; empty if there are none. */
export function differencesOf(
  expected: ReadonlyMap<string, readonly string[]>,
  actual: ReadonlyMap<string, readonly string[]>,
): string[] {
  const ids = [...new Set([...expected.keys(), ...actual.keys()])].toSorted();
  return ids.flatMap((id) => {
    const [before = [], after = []] = [expected.get(id), actual.get(id)];
    if (JSON.stringify(before) === JSON.stringify(after)) return [];
    if (before.length === 0) return [`${id} exists, but not in the run without faults`];
    if (after.length === 0) return [`${id} is missing; it exists in the run without faults`];
    if (before.length !== after.length) {
      return [
        `${id} exists ${after.length} times, in the run without faults ${before.length} times`,
      ];
    }
    return [`${id} differs from the run without faults: ${lineDifference(before, after)}`];
  });
}

function lineDifference(before: readonly string[], after: readonly string[]): string {
  const [left, right] = [before.join("\n").split("\n"), after.join("\n").split("\n")];
  const strip = (line: string) => line.trim().replace(/,$/, "");
  const missing = left.filter((line) => !right.includes(line)).map(strip);
  const added = right.filter((line) => !left.includes(line)).map(strip);
  const text = [...missing.map((line) => `- ${line}`), ...added.map((line) => `+ ${line}`)];
  return text.length === 0 ? "the order differs" : text.slice(0, 6).join("  ");
}
