import { defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig, kubeconfigDirectory, startWorker } from "@konverge/worker";
import { expect, test } from "vitest";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { untilDone } from "../../support/until-done.ts";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { KubeconfigFolder, startFleetCluster, type FleetCluster } from "./fleet-harness.ts";

const queues = useQueues();
const namespace = "default";
const CLUSTERS = 20;
/** More than the slots of the controller. */
const OBJECTS = 12;
const SLOTS = 4;

const names = Array.from({ length: OBJECTS }, (_, n) => `o${n}`);
const put = async ({ client }: FleetCluster, n: string) => {
  await Promise.all(
    names.map((name) => client.apply(ConfigMap, { metadata: { namespace, name }, data: { n } })),
  );
};
const isDone = async ({ client }: FleetCluster, n: string) => {
  const { items } = await client.list(ConfigMap, { namespace });
  const found = items.filter(({ metadata }) => names.includes(metadata.name));
  return found.length === OBJECTS && found.every(({ data }) => data?.["seen"] === n);
};

test("the slots, queues and calls of 19 clusters do not wait for one that hangs", async () => {
  await using cleanup = new AsyncDisposableStack();
  const clusters = await Promise.all(Array.from({ length: CLUSTERS }, () => startFleetCluster()));
  for (const cluster of clusters) cleanup.use(cluster);
  const [dead, ...others] = clusters;
  if (dead === undefined) throw new Error("no clusters");
  const proxy = cleanup.use(await startTcpProxy(Number(new URL(dead.server.url).port)));
  const folder = cleanup.use(new KubeconfigFolder());
  const throughProxy = dead.server.kubeconfig.replace(
    dead.server.url,
    `http://127.0.0.1:${proxy.port}`,
  );
  folder.put("c0", throughProxy);
  others.slice(1).forEach(({ server }, n) => folder.put(`c${n + 1}`, server.kubeconfig));

  const ended = new Map<string, number>();
  const copy = defineController({
    name: "copy",
    for: ConfigMap,
    concurrency: SLOTS,
    reconcile: async ({ object, key, kube }) => {
      if (!names.includes(key.name)) return;
      try {
        // One read from the API server for each attempt.
        const { data } = await kube.get(ConfigMap, key.name);
        await kube.mutate(object, (draft) => {
          draft.data = { ...draft.data, seen: data?.["n"] ?? "" };
        });
      } finally {
        ended.set(key.cluster, (ended.get(key.cluster) ?? 0) + 1);
      }
    },
  });
  const lines: LogLine[] = [];
  const settings = { prefix: queues.prefix, shutdownGrace: "1s", requestTimeout: "1h" } as const;
  const worker = await startWorker({
    config: defineConfig({
      controllers: [copy],
      clusters: kubeconfigDirectory({ path: folder.path }),
      settings,
    }),
    redis: queues.url,
    log: keepLog(lines),
  });
  cleanup.defer(() => worker.kill());
  await Promise.all(clusters.map((cluster) => put(cluster, "1")));
  const [late, ...present] = others;
  if (late === undefined) throw new Error("no clusters");
  const progress = () => [...ended.values()].reduce((sum, each) => sum + each, 0);
  const untilReconciled = (cluster: FleetCluster, n: string) =>
    untilDone("all objects are reconciled", () => isDone(cluster, n), { progress });
  for (const cluster of [dead, ...present]) await untilReconciled(cluster, "1");

  // The keys of the hanging cluster fill its slots, and no call of it ends.
  proxy.hold();
  const queue = queues.open({ controller: "copy", cluster: "c0" });
  for (const name of names) {
    const key = { controller: "copy", cluster: "c0", group: "", resource: "configmaps", namespace };
    await queue.request({ ...key, name }, { kind: "cli", reason: "test" });
  }
  await until("its slots are full", async () => (await queue.counts()).active === SLOTS);
  const endedBefore = ended.get("c0");
  await Promise.all(present.map((cluster) => put(cluster, "2")));
  for (const cluster of present) await untilReconciled(cluster, "2");
  // A cluster that is added in the meantime.
  folder.put("late", late.server.kubeconfig);
  await untilReconciled(late, "1");
  expect(ended.get("c0")).toBe(endedBefore);
  expect(await queue.counts()).toMatchObject({ active: SLOTS, waiting: OBJECTS - SLOTS });

  // Removed while it hangs: its keys stay in Redis until it is back.
  folder.remove("c0");
  await until("it is disengaged", () =>
    lines.some(({ message, fields }) => {
      return message === "cluster disengaged" && fields["cluster"] === "c0";
    }),
  );
  const { waiting, active, delayed } = await queue.counts();
  expect(waiting + active + delayed).toBe(OBJECTS);
  await put(dead, "3");
  // Drops the requests from before the removal, which are still on their way.
  proxy.cut();
  proxy.heal();
  const seen = dead.calls().length;
  await put(present[0] ?? late, "3");
  await untilReconciled(present[0] ?? late, "3");
  expect(dead.calls()).toHaveLength(seen);
  folder.put("c0", throughProxy);
  await untilReconciled(dead, "3");
  expect(worker.ready).toBe(true);
});
