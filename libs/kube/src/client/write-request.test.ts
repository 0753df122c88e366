import { describe, expect, test } from "vitest";
import { Deployment, Node } from "../names/kinds.ts";
import type { Patch } from "../contract/kube-client.ts";
import { collectionPath, objectPath, parsePath } from "../names/resource-path.ts";
import { makeIsSensitive, redactValues } from "../names/sensitive-kinds.ts";
import { prepareApply, prepareCreate, preparePatch, prepareReplace } from "./write-request.ts";

const target = { namespace: "n", name: "web" };
const patch =
  (type: Patch["type"], body: any, options = {}) =>
  () =>
    preparePatch(Deployment, target, { patch: { type, body }, options });

describe("paths", () => {
  test("follow group, scope and subresource", () => {
    expect(collectionPath(Deployment)).toBe("/apis/apps/v1/deployments");
    expect(objectPath(Deployment, target, "status")).toBe(
      "/apis/apps/v1/namespaces/n/deployments/web/status",
    );
    expect(objectPath(Node, { name: "a:b" })).toBe("/api/v1/nodes/a%3Ab");
  });
  test.each<[string, () => unknown, string]>([
    ["a missing namespace", () => objectPath(Deployment, { name: "web" }), "namespace is missing"],
    ["a superfluous namespace", () => objectPath(Node, target), "cluster-scoped"],
    [
      "a name with dot segments",
      () => objectPath(Deployment, { namespace: "n", name: ".." }),
      'name ".."',
    ],
    [
      "a name with a slash",
      () => objectPath(Deployment, { namespace: "n", name: "a/status" }),
      'name "a/status"',
    ],
    ["an empty name", () => objectPath(Deployment, { namespace: "n", name: "" }), 'name ""'],
  ])("refuse %s", (_title, run, message) => {
    expect(run).toThrow(message);
  });
  test.each([
    [
      "/apis/apps/v1/namespaces/n/deployments/web/scale",
      { group: "apps", resource: "deployments", namespace: "n", name: "web", subresource: "scale" },
    ],
    ["/api/v1/namespaces/n/secrets?limit=1", { group: "", resource: "secrets", namespace: "n" }],
    ["/api/v1/namespaces/n/status", { resource: "namespaces", name: "n", subresource: "status" }],
    ["/api/v1/namespaces/n", { resource: "namespaces", name: "n" }],
  ])("parses the path of a raw call: %s", (path, expected) => {
    expect(parsePath(path)).toMatchObject(expected);
  });
  test("has no target for other paths", () => {
    expect([parsePath("/version"), parsePath("/apis/apps/v1"), parsePath("/api")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe("requires unguarded for writes that could overwrite unread changes", () => {
  const web = { metadata: { ...target } };
  test.each<[string, () => unknown]>([
    ["replace without a version", () => prepareReplace(Deployment, web, {})],
    ["merge without a version", patch("merge", { spec: {} })],
    ["strategic without a version", patch("strategic", { metadata: { labels: {} } })],
    ["json without a test", patch("json", [{ op: "replace", path: "/spec/replicas", value: 1 }])],
  ])("%s", (_title, run) => {
    expect(run).toThrow("unguarded");
  });
  test("accepts these writes with unguarded or a guard", () => {
    expect(prepareReplace(Deployment, web, { unguarded: true }).method).toBe("PUT");
    expect(patch("merge", { spec: {} }, { unguarded: true })().contentType).toBe(
      "application/merge-patch+json",
    );
    expect(patch("merge", { metadata: { resourceVersion: "4" } })().expectedVersion).toBe("4");
    expect(patch("json", [{ op: "test", path: "/a", value: 1 }])().verb).toBe("patch");
    expect(
      patch("json", [{ op: "replace", path: "/metadata/resourceVersion", value: "4" }])().verb,
    ).toBe("patch");
    expect(patch("apply", {})().verb).toBe("apply");
  });
});

describe("names the field of invalid input and a fix", () => {
  test.each<[string, () => unknown, string]>([
    ["no metadata", () => prepareCreate(Deployment, {}), "metadata is missing"],
    [
      "no name",
      () => prepareCreate(Deployment, { metadata: { namespace: "n" } }),
      "metadata.name is missing",
    ],
    [
      "no namespace",
      () => prepareCreate(Deployment, { metadata: { name: "a" } }),
      "metadata.namespace is missing",
    ],
    [
      "a version on create",
      () => prepareCreate(Deployment, { metadata: { ...target, resourceVersion: "1" } }),
      "metadata.resourceVersion",
    ],
    [
      "managedFields in an apply",
      () => prepareApply(Deployment, { metadata: { ...target, managedFields: [] } }, {}),
      "metadata.managedFields",
    ],
    [
      "force on a merge patch",
      patch("merge", { metadata: { resourceVersion: "1" } }, { force: true }),
      "force",
    ],
    ["an unknown patch type", patch("yaml" as "json", {}), 'type is "yaml"'],
  ])("%s", (_title, run, message) => {
    expect(run).toThrow(message);
  });
});

test("takes apiVersion and kind from the type", () => {
  expect(prepareCreate(Deployment, { metadata: target }).body).toEqual({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: target,
  });
});

test("treats Secrets and configured resources as sensitive and redacts all values of their patches", () => {
  const isSensitive = makeIsSensitive(["databases.example.com"]);
  const types = [
    { group: "", resource: "secrets" },
    { group: "example.com", resource: "databases" },
    { group: "x", resource: "secrets" },
    Node,
  ];
  expect(types.map((type) => isSensitive(type))).toEqual([true, true, false, false]);
  expect(
    redactValues({ data: { a: "x", b: null }, list: ["x"], metadata: { labels: { c: "x" } } }),
  ).toEqual({
    data: { a: "<redacted>", b: null },
    list: "<redacted>",
    metadata: { labels: { c: "<redacted>" } },
  });
});
