import { globSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Schema } from "@konverge/apiserver/schema";
import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { z } from "zod";
import { loadCrds } from "../../apps/cli/src/crd-types/load-crds.ts";
import { makeZodFile } from "../../apps/cli/src/crd-types/make-zod-file.ts";
import { readKinds } from "../../apps/cli/src/crd-types/read-kinds.ts";
import { sampleOf } from "../../apps/cli/src/crd-types/sample-of.ts";
import { until } from "../support/until.ts";
import { randomObject } from "./random-object.ts";
import { Choices } from "./random-rules.ts";
import { startEmbedded, startReal, type TestedServer } from "./servers.ts";
import { isLongRun, seed } from "../support/test-run.ts";

/** Objects of each kind. */
const OBJECTS = isLongRun ? 50 : 25;
/** Kinds of each project, rotated by the seed: a server takes a second to install one. */
const KINDS = isLongRun ? Infinity : 1;
const FILES = [
  "test/conformance/all-features.yaml",
  ...globSync("test/integration/kube/published-crds/*.yaml"),
];
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const servers: TestedServer[] = [];
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(import.meta.dirname, "schemas-"));
  servers.push(await startEmbedded());
  const real = await startReal((line) => console.error(line));
  if (real !== undefined) servers.push(real);
});
afterAll(async () => {
  for (const server of servers) await server.stop();
  await rm(folder, { recursive: true });
});

/**
 * Returns the CRD with one version, without the parts that zod does not have: rules in CEL, and the subresource that removes
 * the status from new objects.
 */
function comparable(crd: JsonObject, version: string): JsonObject {
  const spec = crd["spec"] as unknown as JsonObject & { readonly versions: readonly JsonObject[] };
  const { subresources: _, ...found } = spec.versions.find(({ name }) => name === version) ?? {};
  const metadata = crd["metadata"] as JsonObject;
  return {
    ...crd,
    metadata: {
      ...metadata,
      annotations: { "api-approved.kubernetes.io": "unapproved, for tests only" },
    },
    spec: {
      ...spec,
      versions: [{ ...found, storage: true, schema: withoutRules(found["schema"] ?? {}) }],
    },
  };
}

function withoutRules(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutRules);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).filter(([key]) => key !== "x-kubernetes-validations");
  return Object.fromEntries(entries.map(([key, member]) => [key, withoutRules(member)]));
}

async function send({ api }: TestedServer, method: string, path: string, body?: JsonValue) {
  const { code, text } = await api.send({
    method,
    path,
    headers: { "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // A kind that is not served yet has a plain text.
  return { code, object: JSON.parse(text.startsWith("{") ? text : "{}") as JsonObject };
}

/** What an object contains besides the fields that each server sets. */
function contentOf(object: JsonObject): JsonObject {
  const { metadata: _, ...content } = object;
  return content;
}

test.each(FILES.map((path) => [basename(path, ".yaml"), path]))(
  `zod schemas of %s accept what the API server accepts, with the same result, seed ${seed}`,
  async (project, path) => {
    const crds = await loadCrds(path);
    const kinds = readKinds(crds);
    const file = join(folder, `${project}.ts`);
    await writeFile(file, makeZodFile(kinds, "konverge types --zod x"));
    const module = (await import(pathToFileURL(file).href)) as Record<string, z.ZodType>;
    const first = seed % kinds.length;
    const rotated = [...kinds.slice(first), ...kinds.slice(0, first)];
    for (const { group, version, kind, resource, scope, schema } of rotated.slice(0, KINDS)) {
      const name = `${resource}.${group}`;
      const crd = crds.find(({ metadata }) => isJsonObject(metadata) && metadata["name"] === name);
      const place = scope === "Cluster" ? "" : "namespaces/default/";
      const list = `/apis/${group}/${version}/${place}${resource}`;
      const install = async (server: TestedServer) => {
        // The definition of an earlier run that failed.
        await send(server, "DELETE", `${CRDS}/${name}`);
        const created = await until(`${name} can be created`, async () => {
          const answer = await send(server, "POST", CRDS, comparable(crd ?? {}, version));
          return answer.code === 409 ? undefined : answer;
        });
        expect(created.code, JSON.stringify(created.object)).toBe(201);
        await until(`${name} is served`, async () => {
          return (await send(server, "GET", list)).code === 200;
        });
      };
      await Promise.all(servers.map(install));
      const zodSchema = module[`${kind}Schema`];
      const choices = new Choices(seed);
      let accepted = 0;
      // Few random objects of the CRD with all features are valid.
      const count = project === "all-features" ? OBJECTS * 8 : OBJECTS;
      for (let index = 0; index <= count; index += 1) {
        const object = {
          // The first one is valid.
          ...(index === 0 ? sampleOf(schema) : randomObject(schema as Schema, choices)),
          apiVersion: `${group}/${version}`,
          kind,
          metadata: { name: "a" },
        };
        const parsed = zodSchema?.safeParse(structuredClone(object));
        accepted += parsed?.success === true ? 1 : 0;
        for (const server of servers) {
          const query = "dryRun=All&fieldValidation=Ignore";
          const answer = await send(server, "POST", `${list}?${query}`, object);
          const context = `${server.kind}: ${JSON.stringify(object)}\nserver: ${JSON.stringify(answer.object["message"])}\nzod: ${String(parsed?.error)}`;
          expect(answer.code === 201, context).toBe(parsed?.success);
          if (answer.code !== 201) continue;
          expect(contentOf(answer.object), context).toEqual(contentOf(parsed?.data as JsonObject));
        }
      }
      expect(accepted, `accepted objects of ${kind}`).toBeGreaterThan(0);
      for (const server of servers) {
        expect((await send(server, "DELETE", `${CRDS}/${name}`)).code).toBe(200);
      }
    }
  },
);
