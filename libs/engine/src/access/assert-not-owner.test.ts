import type { ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import { assertNotOwner } from "./assert-not-owner.ts";

const owner: ApiObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", uid: "7a1e" },
};
const references = [{ kind: "ConfigMap", name: "a", uid: "7a1e" }];

test.each([
  ["an object", { metadata: { ownerReferences: references } }],
  ["an added list", [{ op: "add", path: "/metadata/ownerReferences", value: references }]],
  ["an added entry", [{ op: "add", path: "/metadata/ownerReferences/-", value: references[0] }]],
  ["new metadata", [{ op: "add", path: "/metadata", value: { ownerReferences: references } }]],
  ["YAML", "metadata:\n  ownerReferences: [{ uid: 7a1e }]"],
])("rejects %s with the reconciled object as owner", (_, body) => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  expect(() => assertNotOwner(owner, text)).toThrow(
    expect.objectContaining({ code: "invalid_owner" }) as Error,
  );
  expect(() => assertNotOwner(undefined, text)).not.toThrow();
});

test("accepts the uid in other fields, other owners, and bodies that cannot be read", () => {
  const other = [{ kind: "ConfigMap", name: "a", uid: "other" }];
  for (const body of [
    { metadata: { labels: { source: "7a1e" }, ownerReferences: other } },
    [{ op: "add", path: "/metadata/labels/source", value: "7a1e" }],
    "{ 7a1e: [",
  ]) {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    expect(() => assertNotOwner(owner, text)).not.toThrow();
  }
});
