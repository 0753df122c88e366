import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFINITIONS, GROUP } from "./objects.ts";
import { startEmbedded, startReal, type TestedServer } from "./servers.ts";

const VERSIONS = [
  "/api/v1",
  "/apis/apiextensions.k8s.io/v1",
  "/apis/apps/v1",
  "/apis/autoscaling/v2",
  "/apis/batch/v1",
  "/apis/coordination.k8s.io/v1",
  "/apis/events.k8s.io/v1",
  "/apis/networking.k8s.io/v1",
  "/apis/policy/v1",
  "/apis/rbac.authorization.k8s.io/v1",
];

let embedded: TestedServer;
let real: TestedServer | undefined;

beforeAll(async () => {
  embedded = await startEmbedded();
  real = await startReal((line) => console.error(line));
});
afterAll(async () => {
  await embedded.stop();
  await real?.stop();
});

test("serves every exported kind under the names, verbs and subresources of kube-apiserver", async () => {
  const kinds = await import("@konverge/kube/kinds");
  for (const { group, version, kind, resource, scope } of Object.values(kinds)) {
    const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const row = (await resourcesOf(embedded, path)).find(({ name }) => name === resource);
    expect(row, resource).toMatchObject({ kind, namespaced: scope === "Namespaced" });
  }
});

test.for(VERSIONS)("lists the resources of %s as kube-apiserver does", async (path) => {
  if (real === undefined) return;
  const there = await resourcesOf(real, path);
  for (const row of await resourcesOf(embedded, path)) {
    const { storageVersionHash: _, ...same } = there.find(({ name }) => name === row["name"]) ?? {};
    expect(row).toEqual(same);
  }
});

test.for(VERSIONS)("describes the kinds of %s as kube-apiserver does", async (path) => {
  if (real === undefined) return;
  const document = `/openapi/v3${path}`;
  const there = await schemasOf(real, document);
  for (const [name, schema] of Object.entries(await schemasOf(embedded, document))) {
    expect(withoutTexts(schema), name).toEqual(withoutTexts(there[name] ?? {}));
  }
});

test("describes custom resources, and names its documents", async () => {
  const { api } = embedded;
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify(DEFINITIONS[0]);
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await api.send({ method: "POST", path, body, headers });
  const own = `/openapi/v3/apis/${GROUP}/v1`;
  const { text } = await api.send({ method: "GET", path: "/openapi/v3" });
  expect(text).toContain(`"serverRelativeURL":"${own}"`);
  const { "dev.konverge.conformance.v1.Widget": widget } = await schemasOf(embedded, own);
  expect(widget).toMatchObject({
    properties: { spec: { properties: { size: { type: "string" } } } },
    "x-kubernetes-group-version-kind": [{ group: GROUP, version: "v1", kind: "Widget" }],
  });
});

async function schemasOf({ api }: TestedServer, path: string): Promise<JsonObject> {
  const { text } = await api.send({ method: "GET", path });
  const { components } = JSON.parse(text) as { readonly components: { schemas: JsonObject } };
  return components.schemas;
}

/** Without descriptions, other forms of a schema and the versions of shared definitions. */
function withoutTexts(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutTexts);
  if (!isJsonObject(value)) return value;
  const { description, "x-kubernetes-unions": _, ...rest } = value;
  const isText = typeof description === "string" || description === undefined;
  const kept = isText ? rest : { ...rest, description };
  const types = kept["x-kubernetes-group-version-kind"];
  if (Array.isArray(types) && types.length > 1) delete kept["x-kubernetes-group-version-kind"];
  if ("oneOf" in kept) delete kept["oneOf"];
  // A reference with a description is the only item of an allOf.
  const { allOf, ...others } = kept;
  if (Array.isArray(allOf) && isJsonObject(allOf[0])) Object.assign(others, allOf[0]);
  return Object.fromEntries(Object.entries(others).map(([key, one]) => [key, withoutTexts(one)]));
}

async function resourcesOf({ api }: TestedServer, path: string): Promise<JsonObject[]> {
  const { text } = await api.send({ method: "GET", path });
  const { resources } = JSON.parse(text) as JsonObject;
  return Array.isArray(resources) ? resources.filter(isJsonObject) : [];
}
