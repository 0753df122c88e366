import { globSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  isJsonObject,
  jsonEquals,
  type ApiObject,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import { defineResource } from "@konverge/engine";
import { isServed, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { expect, onTestFinished, test } from "vitest";
import type { z } from "zod";
import { pascalCase } from "../../../apps/cli/src/crd-types/kind-names.ts";
import { loadCrds } from "../../../apps/cli/src/crd-types/load-crds.ts";
import { makeTypeFile } from "../../../apps/cli/src/crd-types/make-type-file.ts";
import { makeZodFile } from "../../../apps/cli/src/crd-types/make-zod-file.ts";
import { readKinds } from "../../../apps/cli/src/crd-types/read-kinds.ts";
import { toStructuralSchema } from "../../../libs/engine/src/define/crd-schema.ts";
import { compileTypes } from "../../support/compile-types.ts";
import { until } from "../../support/until.ts";
import { testServers } from "./kube-servers.ts";

const FOLDER = "test/integration/kube/published-crds";

/** Objects as the documentation of the projects writes them, and one mistake in each. */
const OBJECTS = {
  "cert-manager": {
    kind: "Certificate",
    spec: {
      secretName: "web-tls",
      dnsNames: ["example.com"],
      duration: "2160h0m0s",
      privateKey: { algorithm: "ECDSA", size: 256 },
      issuerRef: { name: "letsencrypt", kind: "ClusterIssuer" },
    },
    mistake: '{ secretName: "a", issuerRef: { name: "b" }, privateKey: { algorithm: "DSA" } }',
  },
  keda: {
    kind: "ScaledObject",
    spec: {
      scaleTargetRef: { name: "web" },
      minReplicaCount: 1,
      triggers: [{ type: "cron", metadata: { timezone: "UTC", start: "0 8 * * *" } }],
    },
    mistake: '{ scaleTargetRef: { name: "web" } }',
  },
};

async function typesOf(project: string): Promise<string> {
  return makeTypeFile(readKinds(await loadCrds(`${FOLDER}/${project}.yaml`)), "konverge types x");
}

const projects = globSync(`${FOLDER}/*.yaml`).map((path) => basename(path, ".yaml"));

test("types of published CRDs compile, and check objects", async () => {
  expect(projects).toHaveLength(16);
  const modules: Record<string, string> = {};
  for (const project of projects) modules[project] = await typesOf(project);
  for (const [project, { kind, spec, mistake }] of Object.entries(OBJECTS)) {
    modules[project] += `
export const valid: ${kind}["spec"] = ${JSON.stringify(spec)};
// @ts-expect-error
export const invalid: ${kind}["spec"] = ${mistake};
`;
  }
  expect(await compileTypes(modules)).toBe("");
});

test("zod schemas of published CRDs compile", async () => {
  const modules: Record<string, string> = {};
  for (const project of projects) {
    const kinds = readKinds(await loadCrds(`${FOLDER}/${project}.yaml`));
    modules[project] = makeZodFile(kinds, "konverge types x --zod");
  }
  // What `parse` returns can be written.
  modules["keda"] += `
export const parsed: ScaledObject = ScaledObjectSchema.parse({});
// @ts-expect-error
export const invalid: ScaledObjectSpec = { scaleTargetRef: { name: "web" } };
`;
  expect(await compileTypes(modules, { isZod: true })).toBe("");
});

test.each(projects)("the CRD of the zod schemas of %s is the published one", async (project) => {
  const kinds = readKinds(await loadCrds(`${FOLDER}/${project}.yaml`));
  const module = await importModule<z.ZodType>(project, makeZodFile(kinds, "x"));
  for (const { kind, schema } of kinds) {
    for (const [field, published] of Object.entries(schema.properties ?? {})) {
      const zodSchema = module[`${kind}${pascalCase(field)}`];
      if (zodSchema === undefined) continue;
      const made = toStructuralSchema(zodSchema, field);
      expect(comparable(made), `${kind}.${field}`).toEqual(comparable(published as JsonObject));
    }
    const { [`${kind}Spec`]: spec } = module;
    if (spec === undefined) continue;
    const defined = defineResource({ group: "example.com", version: "v1", kind: "Copy", spec });
    expect(defined.crd().spec["versions"]).toHaveLength(1);
  }
});

const OPEN = "x-kubernetes-preserve-unknown-fields";

/** Leaves out what docs/bring-your-code.md lists as different. */
function comparable(schema: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "description" || value === false) continue;
    if (key === "properties" && isJsonObject(value)) {
      const members = Object.entries(value).map(([name, member]) => [
        name,
        comparable(member as JsonObject),
      ]);
      if (members.length > 0) result[key] = Object.fromEntries(members) as JsonObject;
    } else if ((key === "items" || key === "additionalProperties") && isJsonObject(value)) {
      result[key] = comparable(value);
    } else result[key] = value;
  }
  const { properties, required } = schema;
  if (Array.isArray(required)) {
    const hasDefault = (name: JsonValue) => {
      const property = isJsonObject(properties) ? properties[String(name)] : undefined;
      return isJsonObject(property) && property["default"] !== undefined;
    };
    const left = required.filter((name) => !hasDefault(name)).toSorted();
    if (left.length > 0) result["required"] = left;
    else delete result["required"];
  }
  if (result["minimum"] === Number.MIN_SAFE_INTEGER) delete result["minimum"];
  if (result["maximum"] === Number.MAX_SAFE_INTEGER) delete result["maximum"];
  if (result["x-kubernetes-int-or-string"] === true) delete result["anyOf"];
  const { additionalProperties: values, type } = result;
  if (values === true || jsonEquals(values ?? null, { [OPEN]: true })) {
    delete result["additionalProperties"];
    result[OPEN] = true;
  }
  // It has no effect on scalars and lists.
  if (type !== undefined && type !== "object") delete result[OPEN];
  if (result["x-kubernetes-embedded-resource"] === true) {
    const {
      apiVersion: _a,
      kind: _k,
      metadata: _m,
      ...own
    } = {
      ...(result["properties"] as JsonObject | undefined),
    };
    delete result["properties"];
    if (Object.keys(own).length > 0) result["properties"] = own;
    delete result["required"];
  }
  return result;
}

const [embedded] = testServers();

test.each(Object.entries(OBJECTS))(
  "an object of %s is written and read by its generated type",
  async (project, { kind, spec }) => {
    const opened = await embedded?.open();
    if (opened === undefined) throw new Error("no server");
    onTestFinished(() => opened.close());
    const { client } = opened;
    for (const crd of await loadCrds(`${FOLDER}/${project}.yaml`)) {
      await client.create(CustomResourceDefinition, crd as unknown as ApiObject);
    }
    const type = await generatedType(project, kind);
    await untilServed(client, type);
    const object = { metadata: { name: "a", namespace: "default" }, spec };
    await client.create(type, object as Partial<ApiObject> as ApiObject);
    const read = await client.get(type, { namespace: "default", name: "a" });
    expect(read).toMatchObject({ kind, spec });
  },
);

/** Imports the generated module. */
async function generatedType(project: string, kind: string): Promise<ResourceType> {
  const type = (await importModule<ResourceType>(project, await typesOf(project)))[kind];
  if (type === undefined) throw new Error(`no type ${kind}`);
  return type;
}

/** Imports a module from a folder in which the packages resolve. */
async function importModule<T>(name: string, text: string): Promise<Partial<Record<string, T>>> {
  const folder = await mkdtemp(join(import.meta.dirname, "types-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, `${name}.ts`);
  await writeFile(file, text);
  return (await import(pathToFileURL(file).href)) as Record<string, T>;
}

async function untilServed(client: KubeClient, type: ResourceType): Promise<void> {
  await until(`${type.kind} is served`, () => isServed(client, type));
}
