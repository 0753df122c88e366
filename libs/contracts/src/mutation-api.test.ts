import { expect, test } from "vitest";
import { submitMutationSchema, submitMutationsSchema } from "./mutation-api.ts";

const mutation = {
  kind: "ConfigMap",
  namespace: "demo",
  name: "usage",
  changes: [{ kind: "increment", path: "/data/count", by: 1 }],
};
/** Returns the issues as `pointer: text`. */
function issuesOf(input: unknown): string[] {
  const { error } = submitMutationSchema.safeParse(input);
  return (error?.issues ?? []).map(({ path, message }) => `/${path.join("/")}: ${message}`);
}
const changed = (change: unknown) => issuesOf({ ...mutation, changes: [change] });

test("a mutation has defaults for cluster only", () => {
  expect(submitMutationSchema.parse(mutation)).toEqual({ cluster: "default", ...mutation });
  const full = {
    ...mutation,
    apiVersion: "v1",
    uid: "u",
    if: { generation: 2, fields: [{ path: "/data/a", value: null }] },
    deadline: "30s",
    class: "event",
    id: "order-7",
  };
  expect(submitMutationSchema.parse(full)).toMatchObject({ deadline: 30_000 });
});

test.each<[unknown, string]>([
  [{ kind: "set", path: "/a" }, "/changes/0/value: is required"],
  [{ kind: "set", path: "/a", value: null }, "/changes/0/value: is required and must not be null"],
  [{ kind: "set", path: "", value: 1 }, "/changes/0/path: must be a JSON Pointer"],
  [{ kind: "set", path: "a", value: 1 }, "/changes/0/path: must be a JSON Pointer"],
  [{ kind: "set", path: "/a~2", value: 1 }, "/changes/0/path: must be a JSON Pointer"],
  [{ kind: "set", path: "/a".repeat(33), value: 1 }, "/changes/0/path: must have at most"],
  [{ kind: "increment", path: "/a", by: 1.5 }, "/changes/0/by: must be a whole number"],
  [{ kind: "increment", path: "/a", by: 2 ** 60 }, "/changes/0/by: must be a whole number"],
  [{ kind: "increment", path: "/a", by: 0 }, "/changes/0/by: must be a whole number"],
  [{ kind: "merge", patch: [] }, "/changes/0/patch: must be a JSON object"],
  [{ kind: "jsonPatch", patch: [] }, "/changes/0/patch: must have 1 to 256 operations"],
  [
    { kind: "jsonPatch", patch: [{ op: "add", path: "/a" }] },
    "/changes/0/patch/0/value: is required",
  ],
  [{ kind: "jsonPatch", patch: [{ op: "swap", path: "/a" }] }, "op must be one of add"],
  [{ kind: "apply", object: {} }, "/changes/0/fieldManager: is required"],
  [{ kind: "replace", path: "/a" }, "kind must be one of set, merge, increment"],
])("%j is refused: %s", (change, text) => {
  expect(changed(change).join("; ")).toContain(text);
});

test.each<[object, string]>([
  [{ changes: [] }, "/changes: must have 1 to 64 changes"],
  [{ kind: "config maps" }, "/kind: must be a kind, such as Deployment"],
  [{ namespace: "a/b" }, "/namespace: is not an object name"],
  [{ name: ".." }, "/name: is not an object name"],
  [{ deadline: "10ms" }, "/deadline: must be from 1s to 7d"],
  [{ deadline: "soon" }, "/deadline: must be a number and a unit"],
  [{ id: "a b" }, "/id: must be 1 to 100 letters"],
  [{ class: "retry" }, "/class: must be one of"],
  [{ if: { fields: [{ path: "/a" }] } }, "must have a path and either value or exists"],
  [{ if: { exists: false } }, "/if: exists: false requires create"],
  [{ if: { exists: false, generation: 1 }, create: true }, "/if/generation: cannot be combined"],
  [{ if: { exists: true }, create: true }, "/create: cannot be combined with exists: true"],
  [{ create: true, uid: "u" }, "/create: cannot be combined with uid"],
  [{ create: true, subresource: "status" }, "/create: cannot be combined with subresource"],
  [
    {
      if: {
        fields: [
          { path: "/a", value: 1 },
          { path: "/a", value: 2 },
        ],
      },
    },
    "/if/fields/1/path: must not repeat /a",
  ],
  [
    { changes: [{ kind: "apply", object: {}, fieldManager: "ci" }, ...mutation.changes] },
    "/changes: apply must be the only change",
  ],
  [
    { changes: [{ kind: "set", path: "/data/a", value: "x".repeat(262_144) }] },
    "the mutation must have at most 262144 bytes",
  ],
])("%j is refused: %s", (fields, text) => {
  expect(issuesOf({ ...mutation, ...fields }).join("; ")).toContain(text);
});

test("a value nested deeper than any stack is refused", () => {
  let value: unknown = 1;
  for (let depth = 0; depth < 100_000; depth++) value = [value];
  expect(changed({ kind: "set", path: "/a", value }).join()).toContain("at most 64 levels");
  expect(changed({ kind: "merge", patch: { value } }).join()).toContain("at most 64 levels");
});

test("a batch has 1 to 1,000 mutations", () => {
  const { error } = submitMutationsSchema.safeParse({
    items: Array.from({ length: 1_001 }, () => mutation),
  });
  expect(error?.issues[0]?.message).toBe("must have 1 to 1000 items");
  expect(
    submitMutationsSchema.safeParse({ items: Array.from({ length: 1_000 }, () => mutation) })
      .success,
  ).toBe(true);
});
