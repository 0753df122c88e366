import * as fc from "fast-check";
import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import {
  applyMergePatch,
  cloneJson,
  isKonvergeError,
  jsonEquals,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { makeDraft, patchOf, type Draft } from "../../libs/kube/src/draft.ts";
import { trackFields } from "../../libs/kube/src/field-tracker.ts";
import { fieldsPatch } from "../../libs/kube/src/fields-patch.ts";
import { applyJsonPatch, JsonPatchError } from "../../libs/testkit/src/patch/json-patch.ts";

const given = process.env["KONVERGE_TEST_SEED"];
const seed = given === undefined ? randomInt(2 ** 31) : Number(given);

/** One thing that a change may do. What it has seen until then decides what it counts. */
type Step =
  | { readonly kind: "read" | "has" | "keys"; readonly path: Path }
  | { readonly kind: "delete" | "push" | "spread" | "count"; readonly path: Path }
  | { readonly kind: "set" | "default"; readonly path: Path; readonly value: JsonValue }
  | { readonly kind: "move"; readonly path: Path; readonly to: Path };
type Path = readonly string[];

/** Few names and values, so that changes meet. */
const name = fc.constantFrom("a", "b", "c");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => ["spec", ...parts]);
const anyPath = fc.oneof(
  { weight: 12, arbitrary: path },
  { weight: 1, arbitrary: fc.constantFrom(["spec"], ["metadata"], ["metadata", "labels"], []) },
);
const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<JsonValue>(0, 1, "x", true, null),
    fc.array(fc.constantFrom<JsonValue>(1, "x", { a: 1 }), { maxLength: 2 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));
const look = fc.record({ kind: fc.constantFrom("read", "has", "keys"), path: anyPath });
const write = fc.oneof(
  fc.record({ kind: fc.constantFrom("delete", "push", "spread", "count", "count"), path }),
  fc.record({ kind: fc.constantFrom("set", "default"), path, value }),
  fc.record({ kind: fc.constant("move"), path, to: path }),
);
const steps = fc
  .tuple(fc.array(fc.oneof(look, write), { maxLength: 5 }), write)
  .map(([first, last]) => [...first, last]) as fc.Arbitrary<Step[]>;
const foreignSteps = fc.array(write, { minLength: 1, maxLength: 2 }) as fc.Arbitrary<Step[]>;
const spec = fc.dictionary(name, value, { minKeys: 1, maxKeys: 3 });

const isObject = (found: unknown): found is Record<string, unknown> =>
  typeof found === "object" && found !== null;

/** Does the steps as code would, on a draft that tracks or on a plain one. */
function run(draft: JsonObject, program: readonly Step[]): void {
  let seen = 0;
  const see = (found: unknown): void => {
    // To the API server an absent member is null, so that no test can tell one from the other.
    const text = isObject(found) ? (Array.isArray(found) ? "list" : "object") : String(found ?? "");
    for (const char of text) seen = (seen * 31 + char.charCodeAt(0)) % 1_000;
  };
  const find = (parts: Path): unknown =>
    parts.reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), draft);
  for (const one of program) {
    const parent = find(one.path.slice(0, -1));
    const last = one.path.at(-1) ?? "";
    if (one.kind === "read") see(find(one.path));
    else if (one.kind === "has") see(isObject(parent) && last in parent && parent[last] !== null);
    else if (one.kind === "keys") {
      const found = find(one.path);
      see(isObject(found) ? Object.keys(found).toSorted().join() : found);
    } else if (!isObject(parent) || Array.isArray(parent)) see("no parent");
    else if (one.kind === "set") parent[last] = cloneJson(one.value);
    else if (one.kind === "default") parent[last] ??= cloneJson(one.value);
    else if (one.kind === "delete") delete parent[last];
    else if (one.kind === "count") parent[last] = seen;
    else if (one.kind === "move") {
      const target = find(one.to.slice(0, -1));
      const isHome = isObject(target) && !Array.isArray(target);
      if (isHome) target[one.to.at(-1) ?? ""] = { moved: [parent[last] ?? null] };
    } else {
      const found = parent[last];
      if (Array.isArray(found)) found.push(seen);
      else if (one.kind === "spread" && isObject(found)) parent[last] = { ...found, c: seen };
    }
  }
}

const objectWith = (content: JsonObject, version: string): JsonObject => ({
  apiVersion: "v1",
  kind: "Pool",
  metadata: { name: "a", uid: "u", resourceVersion: version, labels: { a: "x" } },
  spec: content,
});
/** The patch, or why there is none. An object that was put into itself is no JSON. */
function patchOrNot(edited: Draft): JsonObject | "no write" | "invalid" {
  try {
    return patchOf(edited, undefined) ?? "no write";
  } catch (error) {
    if (isKonvergeError(error) && error.code === "draft_invalid") return "invalid";
    throw error;
  }
}
/** What the steps make of an object, as a guarded patch would write it. */
function alone(object: JsonObject, program: readonly Step[]): JsonObject | "invalid" {
  const edited = makeDraft(object, undefined);
  run(edited.draft, program);
  const patch = patchOrNot(edited);
  if (typeof patch === "string") return patch === "invalid" ? patch : object;
  return applyMergePatch(object, patch) as JsonObject;
}
/** What the server has after the JSON Patch of the steps, built on one state and sent to another. */
function sent(
  read: JsonObject,
  live: JsonObject,
  program: readonly Step[],
): JsonObject | "refused" | "no write" | "invalid" {
  const edited = makeDraft(read, undefined);
  const tracked = trackFields(edited.draft);
  run(tracked.draft, program);
  const patch = patchOrNot(edited);
  if (typeof patch === "string") return patch;
  const body = JSON.parse(
    JSON.stringify(fieldsPatch({ read, touched: tracked.touched, patch })),
  ) as JsonObject[];
  const version = body.find(({ path: at }) => at === "/metadata/resourceVersion");
  if (version !== undefined && version["value"] !== versionOf(live)) return "refused";
  try {
    return applyJsonPatch(live, body) as JsonObject;
  } catch (error) {
    if (error instanceof JsonPatchError) return "refused";
    throw error;
  }
}
const versionOf = (object: JsonObject) => (object["metadata"] as JsonObject)["resourceVersion"];

const options = { seed, numRuns: 20_000 };

test(`what lands is what the change makes of the object as it is by then (KONVERGE_TEST_SEED=${seed})`, () => {
  const count = { landed: 0, refused: 0, "no write": 0, invalid: 0 };
  fc.assert(
    fc.property(spec, steps, foreignSteps, (content, program, foreign) => {
      const read = objectWith(content, "1");
      const changed = alone(read, foreign);
      fc.pre(changed !== "invalid" && !jsonEquals(changed["spec"], content));
      const live = objectWith((changed["spec"] ?? {}) as JsonObject, "2");
      const result = sent(read, live, program);
      if (typeof result === "string") count[result] += 1;
      else {
        count.landed += 1;
        expect(result).toEqual(alone(live, program));
      }
    }),
    options,
  );
  console.log(JSON.stringify(count));
  expect(count.landed).toBeGreaterThan(1_000);
  expect(count.refused).toBeGreaterThan(1_000);
});

test(`when nothing has changed it lands (KONVERGE_TEST_SEED=${seed})`, () => {
  fc.assert(
    fc.property(spec, steps, (content, program) => {
      const read = objectWith(content, "1");
      const result = sent(read, read, program);
      expect(result === "no write" ? read : result).toEqual(alone(read, program));
    }),
    options,
  );
});
