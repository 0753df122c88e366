import type { ResourceType } from "@konverge/core";
import { defineController } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createDriftStore } from "@konverge/queue";
import { defineConfig, startWorker } from "@konverge/worker";
import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import {
  AUDITED_SERVERS,
  startAuditedServer,
  type AuditedCall,
  type AuditedServer,
} from "../kube/audited-servers.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { checkProgram } from "./plan-check.ts";
import { randomProgram, randomWorld } from "./plan-programs.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const queues = useQueues();
const PROGRAMS = isLongRun ? 10 : 4;
const READS = new Set(["get", "list", "watch"]);

describe.each(AUDITED_SERVERS)("the audit log of the %s", (name) => {
  test(`has no write of a plan without dryRun=All (KONVERGE_TEST_SEED=${seed})`, async (ctx) => {
    const server = await startAuditedServer(name, ctx);
    const client = server.connect("konverge-test/1");
    const planner = server.connect("konverge-planner/1");
    const Widgets = await installWidgets(client, "audit.test.konverge.dev");
    const random = seededRandom(seed);
    for (let round = 0; round < PROGRAMS; round += 1) {
      const steps = randomProgram(random);
      const program = { history: randomProgram(random), steps, objects: randomWorld(random) };
      await checkProgram(client, Widgets, { namespace: `audit-${round}`, planner, ...program });
    }
    const writes = callsOf(server, "konverge-planner/").filter(({ verb }) => !READS.has(verb));
    expect(writes.length).toBeGreaterThan(0);
    expect(writes.filter(({ requestURI }) => !requestURI.includes("dryRun=All"))).toEqual([]);
    await observeWidget(server.kubeconfig, Widgets, client);
    const observed = callsOf(server, "konverge-worker/").filter(
      ({ verb, requestURI }) => !READS.has(verb) && !requestURI.includes("/leases"),
    );
    expect(observed.length).toBeGreaterThan(0);
    expect(observed.filter(({ requestURI }) => !requestURI.includes("dryRun=All"))).toEqual([]);
  });
});

const callsOf = (server: AuditedServer, agent: string): AuditedCall[] =>
  server.calls().filter(({ userAgent }) => userAgent?.startsWith(agent));

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
