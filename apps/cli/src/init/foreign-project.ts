import { formatApiVersion, isJsonObject, KonvergeError } from "@konverge/core";
import { dump } from "js-yaml";
import type { CrdKind } from "../crd-types/crd-schema.ts";
import { findCrds, type CrdSource } from "../crd-types/find-crds.ts";
import { portableCrd } from "../crd-types/foreign-kinds.ts";
import { pascalCase } from "../crd-types/kind-names.ts";
import { literalOf } from "../crd-types/literal.ts";
import { makeTypeFile } from "../crd-types/make-type-file.ts";
import { readKinds } from "../crd-types/read-kinds.ts";
import { sampleOf } from "../crd-types/sample-of.ts";

/** The CRD of a new project. */
export interface ForeignChoice extends CrdSource {
  /** Name of the CRD. Default: the only one. */
  readonly crd?: string;
}

/** A kind that another project defines, for a new project. */
export interface ForeignKindChoice {
  readonly kind: CrdKind;
  readonly crd: ReturnType<typeof portableCrd>;
}

/** Returns the selected CRD. @throws KonvergeError `invalid_request`, `not_found` */
export async function chooseForeignKind(choice: ForeignChoice): Promise<ForeignKindChoice> {
  const crds = await findCrds(choice);
  const named = crds.map((crd) => {
    const { name } = isJsonObject(crd["metadata"]) ? crd["metadata"] : {};
    return { name: String(name), crd };
  });
  const names = named.map(({ name }) => name).toSorted();
  if (choice.crd === undefined && names.length > 1) {
    throw new KonvergeError("invalid_request", `select one CRD with --crd: ${names.join(", ")}`);
  }
  const found = named.find(({ name }) => name === (choice.crd ?? names[0]));
  const [kind] = found === undefined ? [] : readKinds([found.crd]);
  if (found === undefined || kind === undefined) {
    const detail = `no CRD has the name ${choice.crd ?? ""}; found: ${names.join(", ")}`;
    throw new KonvergeError("not_found", detail);
  }
  return { kind, crd: portableCrd(found.crd) };
}

/** Returns the files of a project that differ from those of the template, by path; undefined removes a file. */
export function foreignFiles({ kind, crd }: ForeignKindChoice): Record<string, string | undefined> {
  const names = namesOf(kind);
  const { Kind, file, crdFile } = names;
  const required = [...(kind.schema.required ?? []), "spec"];
  const { status: _, ...sample } = sampleOf({ ...kind.schema, required });
  delete sample["apiVersion"];
  delete sample["kind"];
  const draft = { ...sample, metadata: { name: "example" } };
  const manifest = {
    apiVersion: formatApiVersion(kind.group, kind.version),
    kind: kind.kind,
    ...draft,
  };
  return {
    "greeting.yaml": undefined,
    "src/greeting.ts": undefined,
    "src/greeter.ts": undefined,
    "src/greeter.test.ts": undefined,
    [crdFile]: dump(crd, { lineWidth: 120, noRefs: true }),
    [`${file}.yaml`]: dump(manifest),
    [`src/${file}.ts`]: makeTypeFile([kind], `konverge types ${crdFile}`),
    [`src/${file}-controller.ts`]: controllerOf(kind, names),
    [`src/${file}-controller.test.ts`]: testOf(names, literalOf(draft, "")),
    "konverge.config.ts": `import { defineConfig } from "konverge";
import { ${names.controller} } from "./src/${file}-controller.ts";

export default defineConfig({ controllers: [${names.controller}] });
`,
    "README.md": readmeOf(Kind, names),
  };
}

/** Returns the scripts of package.json that differ; undefined removes one. */
export function foreignScripts({ kind }: ForeignKindChoice): Record<string, string | undefined> {
  const { file, crdFile } = namesOf(kind);
  return {
    dev: "konverge dev --crds crds",
    crds: undefined,
    types: `konverge types ${crdFile} --out src/${file}.ts`,
  };
}

interface Names {
  /** Name of the type, such as `GitRepository`. */
  readonly Kind: string;
  /** Such as `gitRepositoryController`. */
  readonly controller: string;
  /** Such as `git-repository`: name of the controller and of its files. */
  readonly file: string;
  readonly crdFile: string;
}

function namesOf({ kind, resource, group }: CrdKind): Names {
  const Kind = pascalCase(kind);
  const file = Kind.replaceAll(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$3-$2").toLowerCase();
  const controller = `${file.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())}Controller`;
  return { Kind, file, controller, crdFile: `crds/${resource}.${group}.yaml` };
}

function controllerOf({ scope }: CrdKind, { Kind, controller, file }: Names): string {
  const namespace = scope === "Cluster" ? '\n      namespace: "default",' : "";
  return `import { defineController } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { ${Kind} } from "./${file}.ts";

/** Keeps a ConfigMap for each ${Kind}. The status of a ${Kind} belongs to the project that defines the kind. */
export const ${controller} = defineController({
  name: ${JSON.stringify(file)},
  for: ${Kind},
  owns: [ConfigMap],
  async reconcile({ object, kube }) {
    const { name, generation = 0 } = object.metadata;
    await kube.apply(ConfigMap, {
      name: \`\${name}-${file}\`,${namespace}
      ownedBy: object,
      data: { generation: String(generation) },
    });
  },
});
`;
}

function testOf({ Kind, controller, file }: Names, example: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "konverge/kinds";
import { startTestCluster, type TestCluster } from "konverge/testing";
import { ${controller} } from "./${file}-controller.ts";
import { ${Kind} } from "./${file}.ts";

const start = () => startTestCluster({ controllers: [${controller}], crds: ["crds"] });

/** Applies an object with the required fields. The API server checks it against the CRD. */
const applyExample = (k: TestCluster) =>
  k.apply(${Kind}, ${example.replaceAll("\n", "\n  ")});

test("creates one ConfigMap per ${Kind}", async () => {
  await using k = await start();
  const { metadata } = await k.reconciled(await applyExample(k));
  const configMap = await k.kube.get(ConfigMap, "example-${file}");
  assert.deepEqual(configMap.data, { generation: String(metadata.generation) });
});

test("recreates a deleted ConfigMap", async () => {
  await using k = await start();
  await k.reconciled(await applyExample(k));
  const configMap = await k.kube.get(ConfigMap, "example-${file}");
  await k.kube.delete(configMap);
  await k.until("the ConfigMap is recreated", async () => {
    const found = await k.kube.find(ConfigMap, "example-${file}");
    return found !== undefined && found.metadata.uid !== configMap.metadata.uid;
  });
});
`;
}

function readmeOf(kind: string, { file, crdFile }: Names): string {
  return `# my-operator

A Kubernetes operator built with [Konverge](https://www.npmjs.com/package/konverge), for objects of the kind ${kind},
which another project defines. The controller is in \`src/${file}-controller.ts\`, and the worker's configuration in
\`konverge.config.ts\`. \`src/${file}.ts\` is generated from \`${crdFile}\`.

\`\`\`sh
npm test         # run the tests with their own API server and Redis
npm run dev      # run a local stack with the CRD that reloads on save
npm run check    # check the types
npm run types    # generate the types again, after you replaced the CRD with a newer one
npm start        # run a worker with KUBECONFIG and KONVERGE_REDIS_URL; start as many as you like
\`\`\`

Tests and \`npm run dev\` start a \`redis-server\`. Set \`REDIS_URL\` to use an existing Redis instead. The cluster of
\`npm start\` must have the CRD. Install it with its project.

\`${file}.yaml\` is an object with the required fields. Rules in CEL may require more: change it and the test's object
if the API server rejects it.

To deploy, build the image, create a Secret \`konverge-redis\` with the key \`url\`, and apply the printed manifests. List
API calls to other kinds under \`permissions\` of the controller.

\`\`\`sh
npx konverge manifests --config konverge.config.ts --image registry.example/my-operator:1
\`\`\`
`;
}
