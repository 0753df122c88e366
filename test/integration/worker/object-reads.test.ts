import type { LiveObject } from "@konverge/contracts";
import { child, defineController } from "@konverge/engine";
import { recordEvent, type NewObject } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { defineConfig } from "@konverge/worker";
import { expect, test } from "vitest";
import type { Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { openApi } from "./open-api.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("reads.test.konverge.dev");
const namespace = "default";

/** Returns a function that reads an object over the HTTP API. */
function openReader() {
  const { fetch, guards } = openApi(workers.queues);
  const read = async (controller: string, name: string): Promise<LiveObject> => {
    const path = `/v1/objects/default/${controller}/${namespace}/${name}/live`;
    const response = await fetch(new Request(`http://localhost:7070${path}`));
    expect(response.status).toBe(200);
    return (await response.json()) as LiveObject;
  };
  return { read, guards };
}

const widgets = () =>
  defineController({
    name: "widgets",
    for: workers.Widgets,
    owns: [ConfigMap],
    reconcile: async ({ object, kube }) => {
      const data = { color: "blue" };
      const { name } = object.metadata;
      await kube.reconcileChildren(object, [child(ConfigMap, { name, data })]);
    },
  });
const make = (name: string, more: Partial<NewObject<Widget>> = {}) =>
  workers.client.create(workers.Widgets, { metadata: { namespace, name }, spec: {}, ...more });

test("a worker reads an object with the owners of its fields, its events and its children", async () => {
  await workers.start([widgets()]);
  const { read } = openReader();
  const { metadata } = await make("blue", { spec: { size: 3 } });
  const { group, version, kind, resource } = workers.Widgets;
  await recordEvent(workers.client, {
    regarding: { group, version, kind, resource, namespace, name: "blue", uid: metadata.uid ?? "" },
    type: "Warning",
    reason: "Late",
    message: "the widget is late",
    component: "konverge/widgets",
  });
  let found: LiveObject | undefined;
  await until("the child is cached", async () => {
    found = await read("widgets", "blue");
    return found.kind === "found" && found.children.length > 0;
  });
  expect(found).toMatchObject({
    kind: "found",
    isRedacted: false,
    object: { kind: "Widget", metadata: { name: "blue" }, spec: { size: 3 } },
    fieldOwners: [{ path: "spec.size", manager: "konverge-test" }],
    owners: [],
    children: [{ kind: "ConfigMap", name: "blue", namespace, status: "current" }],
    events: [{ type: "Warning", reason: "Late", message: "the widget is late", count: 1 }],
  });
  expect(await read("widgets", "red")).toMatchObject({ kind: "missing" });
});

test("objects outside of the namespaces and selectors of the controller are missing", async () => {
  const { Widgets } = workers;
  const reconcile = async () => undefined;
  await workers.start([
    defineController({
      name: "blue",
      for: { type: Widgets, labels: "team=blue", namespaces: [namespace] },
      reconcile,
    }),
    defineController({ name: "other", for: { type: Widgets, namespaces: ["other"] }, reconcile }),
  ]);
  const { read } = openReader();
  await make("in", { metadata: { namespace, name: "in", labels: { team: "blue" } } });
  await make("out");
  expect(await read("blue", "in")).toMatchObject({ kind: "found" });
  expect(await read("blue", "out")).toMatchObject({ kind: "missing" });
  expect(await read("other", "in")).toMatchObject({ kind: "missing" });
});

test("P12: a Secret is shown without its values, events included", async () => {
  const reads = { name: "secrets", for: Secret, reconcile: async () => undefined };
  await workers.start([defineController(reads)]);
  const { read } = openReader();
  const canary = "canary-7d1f";
  const { metadata } = await workers.client.create(Secret, {
    metadata: { namespace, name: "db", labels: { token: canary }, annotations: { note: canary } },
    stringData: { password: canary },
  });
  const regarding = { group: "", version: "v1", kind: "Secret", resource: "secrets", namespace };
  await recordEvent(workers.client, {
    regarding: { ...regarding, name: "db", uid: metadata.uid ?? "" },
    type: "Normal",
    reason: "Read",
    message: `the password is ${canary}`,
    component: "konverge/secrets",
  });
  const found = await read("secrets", "db");
  expect(JSON.stringify(found)).not.toContain(canary);
  expect(JSON.stringify(found)).not.toContain(Buffer.from(canary).toString("base64"));
  expect(found).toMatchObject({
    isRedacted: true,
    object: { metadata: { name: "db" }, data: { password: "(redacted)" } },
    events: [{ reason: "Read", message: "(redacted)" }],
  });
  await workers.client.delete(Secret, { namespace, name: "db" });
});

test("reads pass the guard: none is sent while the API server is isolated", async () => {
  await workers.start([widgets()]);
  await make("blue");
  const { read, guards } = openReader();
  await guards.isolate("default", { by: "test", reason: "maintenance" });
  let answer: LiveObject | undefined;
  await until("the guard is isolated", async () => {
    answer = await read("widgets", "blue");
    return answer.kind === "unavailable";
  });
  expect(answer).toMatchObject({ code: "deferred" });
  await guards.reset("default", { by: "test", reason: "done" });
  await until("it is read again", async () => (await read("widgets", "blue")).kind === "found");
});

test("names the reason why no object can be read", async () => {
  const { read } = openReader();
  const config = defineConfig({
    controllers: [widgets()],
    settings: { prefix: workers.queues.prefix, objectReads: "off" },
  });
  const worker = await workers.start([], { config });
  expect(await read("widgets", "blue")).toMatchObject({
    kind: "unavailable",
    message: expect.stringContaining("KONVERGE_OBJECT_READS"),
  });
  await worker.stop();
  expect(await read("widgets", "blue")).toMatchObject({
    kind: "unavailable",
    message: 'no worker runs controller "widgets"',
  });
});
