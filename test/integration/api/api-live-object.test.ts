import { liveObjectSchema, type LiveObject } from "@konverge/contracts";
import { createControllerRegistry, serveObjectReads } from "@konverge/queue";
import { clusterRoot } from "@konverge/redis";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { useApi } from "./api-harness.ts";
import { PATIENT_MS } from "../../support/patient.ts";

const api = useApi();
const { queues: harness } = api;

const child = (namespace: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  namespace,
  name: "c",
});
const ANSWER: LiveObject = {
  kind: "found",
  readAt: "2026-01-01T00:00:00Z",
  isRedacted: false,
  object: { apiVersion: "demo.konverge.dev/v1", kind: "Node", metadata: { name: "n" } },
  fieldOwners: [],
  owners: [],
  children: [child("a"), child("b")],
  moreChildren: 0,
  events: [],
};

/** Serves reads as a worker of the controller `nodes` does. Returns the errors that it reports. */
async function serveReads(): Promise<Error[]> {
  const { url, prefix } = harness;
  const errors: Error[] = [];
  const stop = serveObjectReads({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    cluster: "default",
    controllers: ["nodes"],
    read: async () => JSON.stringify(ANSWER),
    onError: (error) => errors.push(error),
  });
  onTestFinished(stop);
  const registry = createControllerRegistry({
    redis: { url, deadlineMs: PATIENT_MS },
    cluster: "default",
    prefix,
  });
  onTestFinished(() => registry.close());
  registry.heartbeat({
    workerId: "w-1",
    controllers: ["nodes"],
    definitions: {},
    role: "all",
    version: "test",
    startedAt: "2026-01-01T00:00:00Z",
    host: "here",
    readsObjects: true,
  });
  await until("the worker lives", async () => (await api.access.workers("default")).length === 1);
  return errors;
}

async function childrenFor(namespaces: readonly string[] | undefined): Promise<unknown[]> {
  const scope = namespaces === undefined ? {} : { namespaces: [...namespaces] };
  const token = await api.token(`t-${namespaces?.join("-") ?? "all"}`, { scope });
  const response = await api.serve()("/v1/objects/default/nodes/_/n/live", { token });
  const live = liveObjectSchema.parse(await response.json());
  return live.kind === "found" ? live.children.map(({ namespace }) => namespace) : [live];
}

test("children of a cluster-scoped object in namespaces outside of the scope are omitted", async () => {
  await serveReads();
  expect(await childrenFor(undefined)).toEqual(["a", "b"]);
  expect(await childrenFor(["_", "b"])).toEqual(["b"]);
  expect(await childrenFor(["_"])).toEqual([]);
});

test("a read that cannot be parsed is reported, and does not affect later ones", async () => {
  const errors = await serveReads();
  await harness.redis.rpush(`${clusterRoot(harness.prefix, "default")}/reads/nodes`, "{");
  await until("it is reported", () => errors.length > 0);
  expect(await childrenFor(undefined)).toEqual(["a", "b"]);
});
