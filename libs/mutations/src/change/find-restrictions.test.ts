import type { JsonObject, JsonValue } from "@konverge/core";
import * as fc from "fast-check";
import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import type { Changes, DraftChange } from "./change.ts";
import { applyChanges } from "./apply-changes.ts";
import { findRestrictions } from "./find-restrictions.ts";
import type { OpenKind } from "./open-kind.ts";
import { formatPointer } from "./pointer.ts";

const given = process.env["KONVERGE_TEST_SEED"];
const seed = given === undefined ? randomInt(2 ** 31) : Number(given);

const deployment: OpenKind = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  resource: "deployments",
  scope: "Namespaced",
};
const limited: OpenKind = { ...deployment, paths: ["/spec/replicas", "/metadata/labels"] };
const secret: OpenKind = { ...deployment, group: "", kind: "Secret", sensitive: true };
const set = (path: string): Changes => [{ kind: "set", path, value: 1 }];
const detailsOf = (kind: OpenKind, changes: Changes, rest = {}) =>
  findRestrictions(kind, { changes, ...rest }).map(({ detail }) => detail);

test.each<[Changes]>([
  [set("/spec/replicas")],
  [set("/metadata/labels/a")],
  [set("/metadata/labels")],
  [[{ kind: "merge", patch: { metadata: { labels: { a: null } } } }]],
  [[{ kind: "jsonPatch", patch: [{ op: "test", path: "/spec/replicas", value: 1 }] }]],
  [
    [
      {
        kind: "apply",
        fieldManager: "ci",
        object: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "a", namespace: "b" },
          spec: { replicas: 1 },
        },
      },
    ],
  ],
])("allows %j below the open paths", (changes) => {
  expect(detailsOf(limited, changes)).toEqual([]);
});

test.each<[OpenKind, Changes, string]>([
  [
    limited,
    set("/spec/replicas2"),
    "/spec/replicas2 of Deployment is not open for mutations; open: /spec/replicas, /metadata/labels",
  ],
  [limited, set("/spec"), "/spec of Deployment is not open"],
  [limited, [{ kind: "merge", patch: { spec: null } }], "/spec of Deployment is not open"],
  [limited, [{ kind: "merge", patch: { spec: {} } }], "/spec of Deployment is not open"],
  [
    limited,
    [{ kind: "jsonPatch", patch: [{ op: "copy", from: "/spec/x", path: "/metadata/labels/x" }] }],
    "/spec/x of Deployment is not open",
  ],
  [deployment, set("/metadata"), "/metadata cannot be changed, because /metadata/name identifies"],
  [deployment, set("/metadata/name/x"), "/metadata/name"],
  [deployment, [{ kind: "merge", patch: { metadata: { uid: null } } }], "/metadata/uid"],
  [deployment, set("/kind"), "/kind cannot be changed"],
  [deployment, set("/metadata/annotations/konverge.dev~1mutations-abc"), "marks its writes"],
  [deployment, set("/metadata/annotations/konverge.dev~1step-abc"), "marks its writes"],
  [deployment, set("/metadata/annotations"), "change single annotations"],
  [
    deployment,
    [{ kind: "merge", patch: { metadata: { annotations: null } } }],
    "change single annotations",
  ],
  [
    secret,
    [{ kind: "jsonPatch", patch: [{ op: "test", path: "/data/password", value: "aHVudGVyMg==" }] }],
    "must be below /metadata, because Secret is sensitive",
  ],
  [deployment, set("/status/phase"), 'add subresource "status"'],
  [secret, [{ kind: "increment", path: "/data/n", by: 1 }], "its values are base64; use set"],
])("%j refuses %j", (kind, changes, text) => {
  expect(detailsOf(kind, changes)[0]).toContain(text);
});

test.each<[DraftChange]>([
  [{ kind: "increment", path: "/status/n", by: 1 }],
  [{ kind: "append", path: "/status/l", value: 1 }],
  [{ kind: "jsonPatch", patch: [{ op: "add", path: "/status/l/-", value: 1 }] }],
  [{ kind: "set", path: "/status/l/-", value: 1 }],
  [{ kind: "remove", path: "/status/l/0" }],
])("refuses %j on the status, because a repetition differs", (change) => {
  const details = detailsOf(deployment, [change], { subresource: "status" });
  expect(details.join()).toContain("could be made twice");
});

test("a subresource accepts its own fields only", () => {
  expect(detailsOf(deployment, set("/status/phase"), { subresource: "status" })).toEqual([]);
  expect(detailsOf(deployment, set("/spec/x"), { subresource: "status" })[0]).toContain("/status");
  expect(detailsOf(deployment, set("/spec/replicas"), { subresource: "scale" })).toEqual([]);
  expect(detailsOf(deployment, set("/spec/x"), { subresource: "scale" })[0]).toContain(
    "accepts only",
  );
});

test("the limits of a token and of the configuration both apply", () => {
  const limits = [["/metadata/labels/team"]];
  expect(findRestrictions(limited, { changes: set("/metadata/labels/team") }, limits)).toEqual([]);
  expect(findRestrictions(limited, { changes: set("/metadata/labels/a") }, limits)).toHaveLength(1);
  const created = { changes: [], createIfMissing: { spec: { paused: true } } };
  expect(findRestrictions(limited, created)[0]?.pointer).toBe("/create");
});

test("a precondition cannot test the content of a secret", () => {
  const preconditions = { fields: [{ path: "/data/password", value: "aHVudGVyMg==" }] };
  const [issue] = findRestrictions(secret, { changes: set("/data/a"), preconditions });
  expect(issue).toMatchObject({ pointer: "/if/fields/0/path" });
});

const MARKS = ["konverge.dev/mutations-abc", "konverge.dev/step-abc"];

/** Draft changes at random paths of the names. */
function anyChange(...words: readonly string[]): fc.Arbitrary<DraftChange> {
  const names = fc.constantFrom(...words);
  const path = fc.array(names, { minLength: 1, maxLength: 4 }).map(formatPointer);
  const value = fc.constantFrom<JsonValue>(1, "2", { x: 1 }, {});
  return fc.oneof(
    fc.record({ kind: fc.constant("set" as const), path, value }),
    fc.record({ kind: fc.constant("remove" as const), path }),
    fc.record({
      kind: fc.constant("merge" as const),
      patch: fc
        .tuple(fc.array(names, { minLength: 1, maxLength: 4 }), fc.option(value))
        .map(
          ([at, leaf]) =>
            at.reduceRight<JsonValue>((inner, name) => ({ [name]: inner }), leaf) as JsonObject,
        ),
    }),
    fc.record({ kind: fc.constant("increment" as const), path, by: fc.integer() }),
    fc.record({
      kind: fc.constant("jsonPatch" as const),
      patch: fc.array(
        fc.oneof(
          fc.record({ op: fc.constant("add" as const), path, value }),
          fc.record({ op: fc.constantFrom("move" as const, "copy" as const), from: path, path }),
          fc.record({ op: fc.constant("remove" as const), path }),
        ),
        { maxLength: 3 },
      ),
    }),
  );
}

test(`allowed changes never alter a mark (seed ${seed})`, () => {
  const change = anyChange("metadata", "annotations", "x", ...MARKS);
  const marks = Object.fromEntries(MARKS.map((name) => [name, "1"]));
  const draft = { metadata: { name: "a", annotations: { ...marks, x: "1" } } };
  const property = fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
    if (findRestrictions(deployment, { changes }).length > 0) return;
    const result = applyChanges(draft, changes);
    if (!("object" in result)) return;
    expect(result.object).toMatchObject({ metadata: { annotations: marks } });
  });
  fc.assert(property, { seed, numRuns: 3_000 });
});

test(`allowed changes never alter a field outside of the open paths (seed ${seed})`, () => {
  const change = anyChange("metadata", "labels", "spec", "replicas", "name", "x");
  const draft = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "a", uid: "u", labels: { x: "1" } },
    spec: { replicas: 1, x: { labels: 2 } },
  };
  const closed = (object: typeof draft) => ({
    ...object,
    metadata: { ...object.metadata, labels: undefined },
    spec: { ...object.spec, replicas: undefined },
  });
  const property = fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
    if (findRestrictions(limited, { changes }).length > 0) return;
    const result = applyChanges(draft, changes);
    if (!("object" in result)) return;
    expect(closed(result.object as typeof draft)).toEqual(closed(draft));
  });
  fc.assert(property, { seed, numRuns: 3_000 });
});
