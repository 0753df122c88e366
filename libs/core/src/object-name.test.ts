import { expect, test } from "vitest";
import { findNameIssue } from "./object-name.ts";

const namespaced = { kind: "Pool", scope: "Namespaced" } as const;
const clusterScoped = { kind: "Tenant", scope: "Cluster" } as const;

test.each([
  [namespaced, { namespace: "demo", name: "a" }, undefined],
  [clusterScoped, { name: "a" }, undefined],
  [clusterScoped, { name: "system:node" }, undefined],
  [namespaced, { name: "a" }, ["namespace", "is required, because Pool is namespaced"]],
  [
    clusterScoped,
    { namespace: "demo", name: "a" },
    ["namespace", "is not allowed, because Tenant is cluster-scoped"],
  ],
  [namespaced, { namespace: "", name: "a" }, ["namespace", "must not be empty"]],
  [namespaced, { namespace: "demo" }, ["name", "is required"]],
  [namespaced, { namespace: "demo", name: "" }, ["name", "must not be empty"]],
  [namespaced, { namespace: "demo", name: 5 }, ["name", "must be text (got number)"]],
  [namespaced, { namespace: null, name: "a" }, ["namespace", "must be text (got object)"]],
  [clusterScoped, { name: "a/b" }, ["name", 'must not contain "/" or "%", or be "." or ".."']],
  [clusterScoped, { name: ".." }, ["name", 'must not contain "/" or "%", or be "." or ".."']],
] as const)("%j %j", (kind, name, issue) => {
  const found = findNameIssue(kind, name);
  expect(found && [found.field, found.detail]).toEqual(issue);
});
