import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  applyJsonPatch,
  applyMergePatch,
  isKonvergeError,
  jsonEquals,
  JsonPatchError,
  type JsonObject,
} from "@konverge/core";
import { makeDraft, patchOf, type Draft } from "../../libs/kube/src/mutate/draft.ts";
import { trackFields } from "../../libs/kube/src/mutate/field-tracker.ts";
import { fieldsPatch } from "../../libs/kube/src/mutate/fields-patch.ts";
import { changes, foreignChanges, runSteps, specs, type Step } from "./random-changes.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const objectWith = (content: JsonObject, version: string): JsonObject => ({
  apiVersion: "v1",
  kind: "Pool",
  metadata: { name: "a", uid: "u", resourceVersion: version, labels: { a: "x" } },
  spec: content,
});
/** Returns the patch, or the error. An object that contains itself is not JSON. */
function patchOrNot(edited: Draft): JsonObject | "no write" | "invalid" {
  try {
    return patchOf(edited, undefined) ?? "no write";
  } catch (error) {
    if (isKonvergeError(error) && error.code === "invalid_draft") return "invalid";
    throw error;
  }
}
/** Returns the result of the steps on an object, as a guarded patch would write it. */
function alone(object: JsonObject, program: readonly Step[]): JsonObject | "invalid" {
  const edited = makeDraft(object, undefined);
  runSteps(edited.draft, program);
  const patch = patchOrNot(edited);
  if (typeof patch === "string") return patch === "invalid" ? patch : object;
  return applyMergePatch(object, patch) as JsonObject;
}
/** Returns the server's object after a JSON Patch that was built on one state and sent to another. */
function sent(
  read: JsonObject,
  live: JsonObject,
  program: readonly Step[],
): JsonObject | "refused" | "no write" | "invalid" {
  const edited = makeDraft(read, undefined);
  const tracked = trackFields(edited.draft);
  runSteps(tracked.draft, program);
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

const options = { seed, numRuns: isLongRun ? 20_000 : 3_000 };

test(`a patch has the effect of the change on the current object (KONVERGE_TEST_SEED=${seed})`, () => {
  const count = { landed: 0, refused: 0, "no write": 0, invalid: 0 };
  fc.assert(
    fc.property(specs, changes, foreignChanges, (content, program, foreign) => {
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
  expect(count.landed).toBeGreaterThan(options.numRuns / 20);
  expect(count.refused).toBeGreaterThan(options.numRuns / 20);
});

test(`a patch on an unchanged object succeeds (KONVERGE_TEST_SEED=${seed})`, () => {
  fc.assert(
    fc.property(specs, changes, (content, program) => {
      const read = objectWith(content, "1");
      const result = sent(read, read, program);
      expect(result === "no write" ? read : result).toEqual(alone(read, program));
    }),
    options,
  );
});
