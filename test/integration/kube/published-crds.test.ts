import { globSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ApiObject, ResourceType } from "@konverge/core";
import { isServed, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { expect, onTestFinished, test } from "vitest";
import { loadCrds } from "../../../apps/cli/src/crd-types/load-crds.ts";
import { makeTypeFile } from "../../../apps/cli/src/crd-types/make-type-file.ts";
import { readKinds } from "../../../apps/cli/src/crd-types/read-kinds.ts";
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

test("types of published CRDs compile, and check objects", async () => {
  const projects = globSync(`${FOLDER}/*.yaml`).map((path) => basename(path, ".yaml"));
  expect(projects).toHaveLength(9);
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
  const folder = await mkdtemp(join(tmpdir(), "konverge-types-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, `${project}.ts`);
  await writeFile(file, await typesOf(project));
  const types = (await import(pathToFileURL(file).href)) as Record<string, ResourceType>;
  const type = types[kind];
  if (type === undefined) throw new Error(`no type ${kind}`);
  return type;
}

async function untilServed(client: KubeClient, type: ResourceType): Promise<void> {
  await until(`${type.kind} is served`, () => isServed(client, type));
}
