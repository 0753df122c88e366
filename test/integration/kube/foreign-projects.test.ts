import { globSync } from "node:fs";
import { ensureError, type ApiObject, type JsonObject } from "@konverge/core";
import { isServed } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { load } from "js-yaml";
import { expect, onTestFinished, test } from "vitest";
import { loadForeignKinds } from "../../../apps/cli/src/crd-types/foreign-kinds.ts";
import { readKinds } from "../../../apps/cli/src/crd-types/read-kinds.ts";
import { foreignFiles } from "../../../apps/cli/src/init/foreign-project.ts";
import { until } from "../../support/until.ts";
import { testServers } from "./kube-servers.ts";

const [embedded] = testServers();

test("konverge init makes an object that the API server accepts, for each published CRD", async () => {
  const opened = await embedded?.open();
  if (opened === undefined) throw new Error("no server");
  onTestFinished(() => opened.close());
  const { client } = opened;
  const rejected: string[] = [];
  const types = await loadForeignKinds(globSync("test/integration/kube/published-crds/*.yaml"));
  expect(types.length).toBeGreaterThanOrEqual(30);
  for (const type of types) {
    const crd = type.crd();
    await client.create(CustomResourceDefinition, crd);
    await until(`${type.kind} is served`, () => isServed(client, type));
    const [kind] = readKinds([crd as unknown as JsonObject]);
    if (kind === undefined) throw new Error(`no kind ${type.kind}`);
    const files = Object.entries(foreignFiles({ kind, crd }));
    const [, manifest = ""] =
      files.find(([path, text]) => /^[^/]+\.yaml$/.test(path) && text !== undefined) ?? [];
    const object = load(manifest) as ApiObject;
    if (type.scope === "Namespaced") object.metadata.namespace = "default";
    await client.create(type, object).catch((error: unknown) => {
      rejected.push(`${type.kind}: ${ensureError(error).message}`);
    });
  }
  expect(rejected).toEqual([]);
});
