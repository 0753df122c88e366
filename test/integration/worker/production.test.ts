import { readFileSync } from "node:fs";
import { createLocalGate, type ApiObject, type ResourceType } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { defineConfig, startWorker } from "@konverge/worker";
import {
  createKubeClient,
  isForbidden,
  isServed,
  loadKubeCredentials,
  recordEvent,
} from "@konverge/kube";
import { load } from "js-yaml";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { nodePool } from "../../../apps/examples/src/node-pool.ts";
import { Machine, NodePool } from "../../../apps/examples/src/resources.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";

const queues = useQueues();
const NAME = "konverge-node-pool";
const namespace = "default";

const kind = (
  name: string,
  resource: string,
  group: string,
  scope: ResourceType["scope"] = "Cluster",
): ResourceType => ({ group, version: "v1", kind: name, resource, scope });
const CRD = kind("CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io");
const RBAC = "rbac.authorization.k8s.io";
const ROLE = kind("ClusterRole", "clusterroles", RBAC);
const BINDING = kind("ClusterRoleBinding", "clusterrolebindings", RBAC);

let role: ApiObject;
beforeAll(() => {
  const blocks = readFileSync("docs/production.md", "utf8").matchAll(/```yaml\n(.*?)```/gs);
  const documents = [...blocks].map(([, text = ""]) => load(text) as ApiObject);
  role = documents.find((document) => document.kind === "ClusterRole") as ApiObject;
});

test("docs/production.md: its role is sufficient for a worker", async (context) => {
  if (process.env["KUBEBUILDER_ASSETS"] === undefined) {
    context.skip("no kube-apiserver: only a real one asks for permissions");
    return;
  }
  // A separate server, because other tests also use the cluster-wide kinds of the examples.
  const plane = await startControlPlane({ log: () => undefined, env: process.env });
  onTestFinished(() => plane.stop());
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: plane.kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent: "konverge-test/1",
  });
  onTestFinished(() => client.close());
  expect(role.metadata.name).toBe(NAME);
  const made: [ResourceType, ApiObject | { readonly metadata: { readonly name: string } }][] = [
    [CRD, NodePool.crd()],
    [CRD, Machine.crd()],
    [ROLE, role],
    [
      BINDING,
      {
        metadata: { name: NAME },
        roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: NAME },
        subjects: [{ kind: "User", apiGroup: RBAC, name: NAME }],
      } as never,
    ],
  ];
  for (const [type, object] of made) await client.create(type, object);
  await until("the kinds are served", async () => {
    const types: readonly ResourceType[] = [NodePool, Machine];
    return (await Promise.all(types.map((type) => isServed(client, type)))).every(Boolean);
  });
  const { kubeconfig: text } = await plane.addUser(NAME);

  const lines: LogLine[] = [];
  const worker = await startWorker({
    config: defineConfig({ controllers: [nodePool], settings: { prefix: queues.prefix } }),
    redis: queues.url,
    kubeconfig: { text },
    log: keepLog(lines),
  });
  onTestFinished(() => worker.kill());
  await client.create(NodePool, { metadata: { namespace, name: "blue" }, spec: { replicas: 2 } });
  const machines = async () => (await client.list(Machine, { namespace })).items.length;
  const shown = async () =>
    (await client.get(NodePool, { namespace, name: "blue" })).status?.machines;
  await until("two machines", async () => (await machines()) === 2 && (await shown()) === 2);
  await client.mutate(NodePool, { namespace, name: "blue" }, (draft) => {
    draft.spec.replicas = 1;
  });
  await until("one machine", async () => (await machines()) === 1 && (await shown()) === 1);
  const troubles = (...ofRedis: readonly string[]) =>
    lines.filter(
      ({ level, message }) => ["error", "warn"].includes(level) && !ofRedis.includes(message),
    );
  // Only the Redis of the tests and its clock cause warnings.
  expect(troubles("redis warning")).toEqual([]);
  await worker.stop();
  // On a busy machine, Redis can be late when the worker stops.
  expect(troubles("redis warning", "queue error")).toEqual([]);

  // Handler problems are reported by an Event, and nothing beyond the page is allowed.
  const own = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: text }),
    gate: createLocalGate({ ratePerSecond: 100, burst: 100 }),
    userAgent: "konverge-test/1",
  });
  onTestFinished(() => own.close());
  await recordEvent(own, {
    regarding: { ...NodePool, namespace, name: "blue" },
    type: "Normal",
    reason: "Tested",
    message: "allowed",
    component: "konverge/node-pool",
  });
  await own.mutate(NodePool, { namespace, name: "blue" }, (draft) => {
    draft.metadata.finalizers = ["konverge.dev/node-pool"];
  });
  await own.mutate(NodePool, { namespace, name: "blue" }, (draft) => {
    delete draft.metadata.finalizers;
  });
  const secrets = kind("Secret", "secrets", "", "Namespaced");
  const refused = await own.list(secrets, { namespace }).catch((error: unknown) => error);
  expect(isForbidden(refused)).toBe(true);
});
