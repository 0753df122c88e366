import { isJsonObject, type JsonObject } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
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
}, 240_000);
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

async function resourcesOf({ api }: TestedServer, path: string): Promise<JsonObject[]> {
  const { text } = await api.send({ method: "GET", path });
  const { resources } = JSON.parse(text) as JsonObject;
  return Array.isArray(resources) ? resources.filter(isJsonObject) : [];
}
