import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiServer } from "@konverge/apiserver";
import { createLocalGate, type ResourceType } from "@konverge/core";
import { defineController } from "@konverge/engine";
import { startControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createDriftStore } from "@konverge/queue";
import { defineConfig, startWorker } from "@konverge/worker";
import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { checkProgram } from "./plan-check.ts";
import { randomProgram, randomWorld } from "./plan-programs.ts";

const queues = useQueues();
const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const PROGRAMS = process.env["KONVERGE_TEST_LONG"] === "1" ? 10 : 4;
const READS = new Set(["get", "list", "watch"]);

interface AuditedCall {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
}

type Started = { readonly kubeconfig: string; stop(): Promise<unknown> };
const SERVERS: Readonly<Record<string, (auditLog: string) => Promise<Started>>> = {
  "embedded API server": async (auditLog) => {
    const server = await createApiServer({ auditLog });
    return { kubeconfig: server.kubeconfig, stop: () => server.close() };
  },
  "kube-apiserver": async (auditLog) => {
    const plane = await startControlPlane({ log: () => undefined, env: process.env, auditLog });
    return { kubeconfig: plane.kubeconfig, stop: () => plane.stop() };
  },
};

function connect(kubeconfigText: string, userAgent: string): KubeClient {
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText }),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent,
  });
  onTestFinished(() => client.close());
  return client;
}

describe.each(Object.entries(SERVERS))("the audit log of the %s", (name, start) => {
  test(`has no write of a plan without dryRun=All (KONVERGE_TEST_SEED=${seed})`, async (ctx) => {
    if (name === "kube-apiserver" && process.env["KUBEBUILDER_ASSETS"] === undefined) {
      ctx.skip("no kube-apiserver was started");
    }
    const folder = await mkdtemp(join(tmpdir(), "konverge-plan-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const auditLog = join(folder, "audit.jsonl");
    const server = await start(auditLog);
    onTestFinished(async () => void (await server.stop()));
    const client = connect(server.kubeconfig, "konverge-test/1");
    const planner = connect(server.kubeconfig, "konverge-planner/1");
    const Widgets = await installWidgets(client, "audit.test.konverge.dev");
    const random = seededRandom(seed);
    for (let round = 0; round < PROGRAMS; round += 1) {
      const program = { steps: randomProgram(random), objects: randomWorld(random) };
      await checkProgram(client, Widgets, { namespace: `audit-${round}`, planner, ...program });
    }
    const writes = callsOf(auditLog, "konverge-planner/").filter(({ verb }) => !READS.has(verb));
    expect(writes.length).toBeGreaterThan(0);
    expect(writes.filter(({ requestURI }) => !requestURI.includes("dryRun=All"))).toEqual([]);
    await observeWidget(server.kubeconfig, Widgets, client);
    const observed = callsOf(auditLog, "konverge-worker/").filter(
      ({ verb, requestURI }) => !READS.has(verb) && !requestURI.includes("/leases"),
    );
    expect(observed.length).toBeGreaterThan(0);
    expect(observed.filter(({ requestURI }) => !requestURI.includes("dryRun=All"))).toEqual([]);
  });
});

function callsOf(auditLog: string, userAgent: string): AuditedCall[] {
  return readFileSync(auditLog, "utf8")
    .split("\n")
    .filter((line) => line.includes(`"${userAgent}`))
    .map((line) => JSON.parse(line) as AuditedCall);
}

/** Runs a worker whose controller observes, until it has reported the drift of an object and of its deletion. */
async function observeWidget(
  kubeconfig: string,
  Widgets: ResourceType<Widget>,
  client: KubeClient,
): Promise<void> {
  const name = { namespace: "default", name: "observed" };
  const controller = defineController({
    name: "observer",
    for: Widgets,
    mode: "observe",
    reconcile: async ({ object, kube }) => {
      if (object.metadata.name !== name.name) return;
      await kube.apply(ConfigMap, { metadata: { ...name }, data: { size: "1" } });
      await kube.mutateStatus(object, (draft) => {
        draft["status"] = { phase: "Ready" };
      });
      await kube.event(object, { type: "Normal", reason: "Ready", message: "ready" });
      await kube.raw({
        method: "POST",
        path: "/api/v1/namespaces",
        body: { metadata: { name: "new" } },
      });
    },
    cleanup: async ({ object, kube }) => {
      await kube.delete(object);
    },
  });
  await client.create(Widgets, { metadata: name, spec: {} });
  const { url, prefix, redis } = queues;
  const worker = await startWorker({
    config: defineConfig({ controllers: [controller], settings: { prefix } }),
    redis: url,
    kubeconfig: { text: kubeconfig },
    log: keepLog([]),
  });
  onTestFinished(() => worker.kill());
  const drifts = createDriftStore(redis, { prefix, cluster: "default" });
  await until("the drift is reported", async () =>
    (await drifts.list("observer")).some(({ key }) => key.endsWith("/observed")),
  );
  await worker.stop();
}
