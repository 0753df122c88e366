import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineController } from "@konverge/engine";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import {
  defineConfig,
  kubeconfigSecrets,
  startWorker,
  type ClusterProvider,
} from "@konverge/worker";
import { expect, test } from "vitest";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { keepChanging } from "../../chaos/changing-fleet.ts";
import { parseScrape } from "../../support/promql.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { CredentialFront } from "./credential-front.ts";
import { startFleetCluster, type FleetCluster } from "./fleet-harness.ts";

/** Credentials of the API server are replaced, and the old ones rejected at once, while users change objects. */

const queues = useQueues();
const namespace = "default";
const names = Array.from({ length: 8 }, (_, n) => `c${n}`);

const copier = defineController({
  name: "copier",
  for: ConfigMap,
  reconcile: async ({ object, kube }) => {
    await kube.mutate(object, (draft) => {
      draft.data = { ...draft.data, seen: draft.data?.["wanted"] ?? "" };
    });
  },
});

interface Stage {
  readonly cluster: FleetCluster;
  readonly front: CredentialFront;
  /** The entry of the front in a kubeconfig. */
  readonly entry: object;
  readonly folder: string;
}

/** How a worker gets its credentials. */
interface Way {
  /** Publishes the credentials of this identity where the worker reads them. */
  publish(identity: string): Promise<void>;
  readonly kubeconfig: string;
  readonly clusters?: ClusterProvider;
}

const kubeconfigOf = (cluster: object, user: object) =>
  JSON.stringify({
    "current-context": "main",
    clusters: [{ name: "main", cluster }],
    users: [{ name: "main", user }],
    contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
  });

const WAYS: Readonly<Record<string, (stage: Stage) => Way>> = {
  "token file": ({ entry, folder }) => {
    const file = join(folder, "token");
    return {
      kubeconfig: kubeconfigOf(entry, { tokenFile: file }),
      async publish(identity) {
        writeFileSync(`${file}.part`, identity);
        renameSync(`${file}.part`, file);
      },
    };
  },
  "client certificate": ({ front, entry, folder }) => {
    const [cert, key] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    return {
      kubeconfig: kubeconfigOf(entry, { "client-certificate": cert, "client-key": key }),
      async publish(identity) {
        const pair = front.authority.issue(identity);
        writeFileSync(cert, pair.cert);
        writeFileSync(key, pair.key);
      },
    };
  },
  "kubeconfig in a Secret": ({ cluster, entry }) => ({
    kubeconfig: cluster.server.kubeconfig,
    clusters: kubeconfigSecrets({ namespace }),
    async publish(token) {
      const kubeconfig = Buffer.from(kubeconfigOf(entry, { token })).toString("base64");
      await cluster.client.apply(Secret, {
        metadata: { namespace, name: "west", labels: { "konverge.dev/cluster": "true" } },
        data: { kubeconfig },
      });
    },
  }),
};

test.for(Object.keys(WAYS))(
  "a rotated %s fails no reconcile and stops no worker, under load",
  async (name) => {
    await using cleanup = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), "konverge-rotated-"));
    cleanup.defer(() => rmSync(folder, { recursive: true }));
    const cluster = cleanup.use(await startFleetCluster());
    const front = cleanup.use(new CredentialFront(cluster.server.url));
    const way = WAYS[name]?.({ cluster, front, entry: await front.listen(), folder });
    if (way === undefined) throw new Error(name);
    await way.publish("first");
    front.identity = "first";
    for (const each of names) {
      await cluster.client.create(ConfigMap, { metadata: { namespace, name: each } });
    }
    const lines: LogLine[] = [];
    const { clusters } = way;
    const worker = await startWorker({
      config: defineConfig({
        controllers: [copier],
        settings: { leaseDuration: "3s", prefix: queues.prefix },
        ...(clusters === undefined ? {} : { clusters }),
      }),
      redis: queues.url,
      kubeconfig: { text: way.kubeconfig },
      log: keepLog(lines),
    });
    cleanup.defer(() => worker.kill());
    let serial = 0;
    const stopChanging = await keepChanging(async (next) => {
      serial = next;
      for (const each of names) {
        await cluster.client.mutate(ConfigMap, { namespace, name: each }, (draft) => {
          draft.data = { ...draft.data, wanted: String(next) };
        });
      }
    }, 2);
    cleanup.defer(stopChanging);
    const untilSeen = async (change: number) =>
      await until(`all objects have change ${change}`, async () => {
        const { items } = await cluster.client.list(ConfigMap, { namespace });
        const copies = items.filter(({ metadata }) => names.includes(metadata.name));
        return copies.every(({ data }) => Number(data?.["seen"] ?? 0) >= change);
      });
    await untilSeen(2);

    await way.publish("second");
    front.identity = "second";
    await until("a call with the old credentials is rejected", () => front.rejected > 0);
    await untilSeen(serial + 1);
    const rejected = front.rejected;
    await untilSeen(serial + 1);
    expect(front.rejected).toBe(rejected);

    const messages = lines.map(({ message }) => message);
    expect(messages).not.toContain("reconcile failed");
    expect(messages).not.toContain("worker stopped");
    expect(messages).not.toContain("cluster disengaged");
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
    expect(worker.ready).toBe(true);
    const counted = [...parseScrape(await worker.metrics())].filter(([series]) =>
      /^konverge_reconcile_(?:errors|lost|timeouts)_total/.test(series),
    );
    expect(counted.length).toBeGreaterThanOrEqual(3);
    expect(counted.filter(([, value]) => value !== 0)).toEqual([]);
    await stopChanging();
    await untilSeen(serial);
  },
);
