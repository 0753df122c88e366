import type { ApiObject } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { addFinalizer, removeFinalizer } from "./finalizers.ts";
import {
  ownerOf,
  setControllerReference,
  setOwnerReference,
  type Owned,
} from "./owner-references.ts";

const owner = (
  change: Partial<ApiObject["metadata"]> = {},
  apiVersion = "demo.dev/v1",
): ApiObject => ({
  apiVersion,
  kind: "Pool",
  metadata: { name: "blue", namespace: "n", uid: "u1", ...change },
});
const owned = (): Owned => ({ kind: "Machine", metadata: { name: "m", namespace: "n" } });
const reference = { apiVersion: "demo.dev/v1", kind: "Pool", name: "blue", uid: "u1" };

describe("owner references", () => {
  test("a controller reference controls and blocks, an owner reference does neither", () => {
    const [a, b] = [owned(), owned()];
    expect([setControllerReference(a, owner()), setOwnerReference(b, owner())]).toEqual([
      true,
      true,
    ]);
    expect(a.metadata.ownerReferences).toEqual([
      { ...reference, controller: true, blockOwnerDeletion: true },
    ]);
    expect(b.metadata.ownerReferences).toEqual([reference]);
    expect([ownerOf(a)?.name, ownerOf(b)]).toEqual(["blue", undefined]);
  });
  test("changes nothing for the same owner; updates a new version or uid in place", () => {
    const object = owned();
    setControllerReference(object, owner());
    expect(setControllerReference(object, owner())).toBe(false);
    expect(setControllerReference(object, owner({ uid: "u2" }, "demo.dev/v2"))).toBe(true);
    expect(object.metadata.ownerReferences).toEqual([
      {
        ...reference,
        apiVersion: "demo.dev/v2",
        uid: "u2",
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });
  test("a cluster-scoped owner may own any object", () => {
    const { namespace: _none, ...metadata } = owner().metadata;
    expect(setControllerReference(owned(), { ...owner(), metadata })).toBe(true);
  });
  test("an owner of the same name in another group is a different owner", () => {
    const object = owned();
    setOwnerReference(object, owner());
    expect(setOwnerReference(object, owner({}, "other.dev/v1"))).toBe(true);
    expect(object.metadata.ownerReferences).toHaveLength(2);
  });
  test.each<[string, () => unknown, string]>([
    [
      "an owner in another namespace",
      () => setControllerReference(owned(), owner({ namespace: "other" })),
      "in the same namespace",
    ],
    [
      "a namespaced owner of a cluster-scoped object",
      () => setOwnerReference({ metadata: { name: "m" } }, owner()),
      "cluster-scoped",
    ],
    [
      "an owner that was not read from the server",
      () => setOwnerReference(owned(), owner({ uid: "" })),
      "no uid",
    ],
    [
      "a second controller",
      () => {
        const object = owned();
        setControllerReference(object, owner());
        setControllerReference(object, owner({ name: "red" }));
      },
      'Pool "blue" already controls it',
    ],
  ])("refuses %s", (_title, run, message) => {
    expect(run).toThrow(message);
  });
});

describe("finalizers", () => {
  test("are added once and removed once, and an empty list disappears", () => {
    const draft = { metadata: {} as { finalizers?: string[] } };
    expect([addFinalizer(draft, "a/b"), addFinalizer(draft, "a/b")]).toEqual([true, false]);
    expect(draft.metadata.finalizers).toEqual(["a/b"]);
    expect([removeFinalizer(draft, "a/b"), removeFinalizer(draft, "a/b")]).toEqual([true, false]);
    expect(draft.metadata).toEqual({});
  });
  test("others stay", () => {
    const draft = { metadata: { finalizers: ["x", "a/b", "y"] } };
    removeFinalizer(draft, "a/b");
    expect(draft.metadata.finalizers).toEqual(["x", "y"]);
  });
});
