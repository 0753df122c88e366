import { isKonvergeError, parseJson, type JsonObject } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { makeDraft, patchOf } from "./draft.ts";

const read = (): JsonObject =>
  parseJson(
    `{"apiVersion":"v1","kind":"Pool","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},
      "spec":{"replicas":1,"serial":9007199254740993,"list":[{"x":1},{"x":2}]}}`,
  ) as JsonObject;

/** Changes a draft by path, like untyped code. */
const edit = (change: (draft: any) => void, subresource?: string) => {
  const edited = makeDraft(read(), subresource);
  change(edited.draft);
  return () => patchOf(edited, subresource);
};
const pointersOf = (run: () => unknown): string[] => {
  try {
    run();
  } catch (error) {
    if (isKonvergeError(error) && error.code === "invalid_draft")
      return error.issues.map(({ pointer }) => pointer);
    throw error;
  }
  return [];
};

test("an untouched draft gives no patch", () => {
  expect(edit(() => undefined)()).toBeUndefined();
});
test("the patch contains only the difference", () => {
  expect(edit((draft) => (draft.spec.replicas = 2))()).toEqual({ spec: { replicas: 2 } });
  expect(edit((draft) => delete draft.spec.list)()).toEqual({ spec: { list: null } });
});
test("the object that was read cannot be changed through the draft", () => {
  const edited = makeDraft(read(), undefined);
  (edited.draft as any).spec.list[0].x = 9;
  expect((edited.before as any).spec.list[0].x).toBe(1);
});
test("a changed list is written as a whole, with its 64-bit integers", () => {
  const patch = edit((draft) => (draft.spec.list = [draft.spec.serial]))();
  expect(JSON.stringify(patch)).toBe('{"spec":{"list":[9007199254740993]}}');
});

describe("rejects with a pointer to each field:", () => {
  test.each<[string, (draft: any) => void, string[]]>([
    ["name", (draft) => (draft.metadata.name = "b"), ["/metadata/name"]],
    ["namespace", (draft) => (draft.metadata.namespace = "b"), ["/metadata/namespace"]],
    [
      "uid and version at once",
      (draft) => {
        delete draft.metadata.uid;
        draft.metadata.resourceVersion = "8";
      },
      ["/metadata/uid", "/metadata/resourceVersion"],
    ],
    ["managedFields", (draft) => (draft.metadata.managedFields = []), ["/metadata/managedFields"]],
    [
      "all metadata",
      (draft) => delete draft.metadata,
      ["/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion"],
    ],
    ["kind", (draft) => (draft.kind = "Other"), ["/kind"]],
    [
      "NaN, which would delete the field",
      (draft) => (draft.spec.replicas = NaN),
      ["/spec/replicas"],
    ],
    ["a Date", (draft) => (draft.spec.at = new Date(0)), ["/spec/at"]],
    ["a bigint", (draft) => (draft.spec.serial = 5n), ["/spec/serial"]],
    ["a function under an odd key", (draft) => (draft.spec["a/b~c"] = () => 1), ["/spec/a~1b~0c"]],
    ["a Map", (draft) => (draft.spec.map = new Map()), ["/spec/map"]],
    [
      "a circular reference, direct or through a list",
      (draft) => {
        draft.spec.self = draft.spec;
        draft.spec.list.push(draft.spec.list);
      },
      ["/spec/list/2", "/spec/self"],
    ],
    ["undefined in a list", (draft) => draft.spec.list.push(undefined), ["/spec/list/2"]],
    ["Infinity inside a list", (draft) => (draft.spec.list[1].x = Infinity), ["/spec/list/1/x"]],
  ])("%s", (_title, change, pointers) => {
    expect(pointersOf(edit(change))).toEqual(pointers);
  });
});

describe("subresource status", () => {
  test("the draft has a status, and an unchanged empty one is not a change", () => {
    expect(edit((draft) => expect(draft.status).toEqual({}), "status")()).toBeUndefined();
    expect(edit((draft) => (draft.status.ready = true), "status")()).toEqual({
      status: { ready: true },
    });
  });
  test("rejects changes that the server would drop silently", () => {
    const edited = edit((draft) => {
      draft.spec.replicas = 2;
      draft.metadata.labels = { a: "b" };
      draft.status.ready = true;
    }, "status");
    expect(pointersOf(edited)).toEqual(["/metadata", "/spec"]);
  });
});
