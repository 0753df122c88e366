import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadForeignKinds } from "./foreign-kinds.ts";

const schema = { openAPIV3Schema: { type: "object" } };
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: {
    name: "things.example.k8s.io",
    uid: "1",
    resourceVersion: "7",
    annotations: {
      "api-approved.kubernetes.io": "https://example.com",
      "kubectl.kubernetes.io/last-applied-configuration": "{}",
    },
  },
  spec: {
    group: "example.k8s.io",
    scope: "Namespaced",
    names: { kind: "Thing", plural: "things" },
    conversion: { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"] } },
    versions: [{ name: "v1", served: true, storage: true, schema }],
  },
  status: { storedVersions: ["v1"] },
};

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-crds-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test("keeps the annotations of a CRD, without its conversion and the fields of its cluster", async () => {
  const folder = await makeFolder();
  await writeFile(join(folder, "things.json"), JSON.stringify(crd));
  await writeFile(join(folder, "notes.txt"), "no CRD");
  const kinds = await loadForeignKinds([folder]);
  expect(kinds).toMatchObject([{ kind: "Thing", version: "v1", resource: "things" }]);
  const { conversion: _, ...spec } = crd.spec;
  expect(kinds.map((kind) => kind.crd())).toEqual([
    {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: {
        name: "things.example.k8s.io",
        annotations: { "api-approved.kubernetes.io": "https://example.com" },
      },
      spec,
    },
  ]);
});

test("rejects a path that does not exist and a folder without CRD files, with the fix", async () => {
  const folder = await makeFolder();
  await mkdir(join(folder, "empty"));
  await expect(loadForeignKinds([join(folder, "none")])).rejects.toThrow("none cannot be read");
  await expect(loadForeignKinds([join(folder, "empty")])).rejects.toThrow(
    "empty contains no YAML or JSON file; pass a file or a folder with CRDs",
  );
});
