import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineController, type Controller } from "@konverge/engine";
import { ignoreNotFound } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import {
  defineConfig,
  kubeconfigDirectory,
  kubeconfigSecrets,
  type ClusterProvider,
  type RunningWorker,
} from "@konverge/worker";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readSettings } from "@konverge/contracts";
import { openGuardControl } from "@konverge/guard";
import { checkProvidedClusters } from "../../../apps/cli/src/doctor/check-provided-clusters.ts";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { blocksOf, importText } from "../docs/load-block.ts";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import {
  KubeconfigFolder,
  startFleetCluster,
  startFleetWorker,
  type FleetCluster,
} from "./fleet-harness.ts";

const queues = useQueues();
const namespace = "default";
let east: FleetCluster;
let west: FleetCluster;
beforeAll(async () => {
  [east, west] = await Promise.all([startFleetCluster(), startFleetCluster()]);
});
afterAll(async () => {
  await east[Symbol.asyncDispose]();
  await west[Symbol.asyncDispose]();
});

/** The controllers and configurations of docs/several-clusters.md. */
let stamp: Controller;
let onlyProd: Controller;
let mirror: Controller;
beforeAll(async () => {
  const blocks = blocksOf("docs/several-clusters.md").filter(({ language }) => language === "ts");
  const modules = blocks.map(({ text }) =>
    importText(text.replace(/^import .*stamp\.ts";$/m, "const stamp: any = { name: 'stamp' };")),
  );
  const all = Object.assign({}, ...(await Promise.all(modules))) as Record<string, Controller>;
  ({ stamp, onlyProd, mirror } = all as {
    readonly [Name in "stamp" | "onlyProd" | "mirror"]: Controller;
  });
});

type State = "engaged" | "disengaged" | "failing" | "credentials rotated";
interface Started extends RunningWorker {
  readonly lines: LogLine[];
  /** Waits until the latest state of a cluster that was logged is this one. */
  reaches(cluster: string, state: State): Promise<void>;
}

async function start(
  clusters: ClusterProvider,
  controllers: readonly Controller[] = [stamp],
  settings: object = {},
): Promise<Started> {
  const lines: LogLine[] = [];
  const log = keepLog(lines);
  const worker = await startFleetWorker(queues, {
    home: east,
    clusters,
    controllers,
    settings,
    log,
  });
  const stateOf = (cluster: string) => {
    const all = lines.flatMap(({ message, fields }) => {
      if (fields["cluster"] !== cluster) return [];
      const [, state] = /^cluster (engaged|disengaged|credentials rotated)$/.exec(message) ?? [];
      if (message === "cluster not usable as provided") return [String(fields["state"])];
      return state === undefined ? [] : [state];
    });
    return all.at(-1);
  };
  return Object.assign(worker, {
    lines,
    async reaches(cluster: string, state: State) {
      await until(`${cluster} is ${state}`, () => stateOf(cluster) === state);
    },
  });
}

/** All keys of the test, with their values. */
async function textOfRedis(): Promise<string> {
  const { redis, prefix } = queues;
  const read: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, "0", "-1"),
    stream: (key) => redis.xrange(key, "-", "+"),
  };
  const keys = await redis.keys(`${prefix}*`);
  const values = keys.map(async (key) => [key, await read[await redis.type(key)]?.(key)]);
  return JSON.stringify(await Promise.all(values));
}

const want = async ({ client }: FleetCluster, name: string, wanted: string) => {
  const metadata = { namespace, name };
  const found = await client.list(ConfigMap, { namespace });
  if (found.items.some((each) => each.metadata.name === name)) {
    await client.mutate(ConfigMap, metadata, (draft) => {
      draft.data = { ...draft.data, wanted };
    });
  } else {
    await client.create(ConfigMap, { metadata, data: { wanted } });
  }
};
const seen = ({ client }: FleetCluster, name: string, expected: string) =>
  until(`${name} has ${expected}`, async () => {
    const { data } = await client.get(ConfigMap, { namespace, name });
    return data?.["seen"] === expected;
  });

test("one worker reconciles all clusters of a directory, also those added and removed later", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  await using worker = await start(kubeconfigDirectory({ path: folder.path }));
  await want(east, "a", "1");
  await seen(east, "a", "east 1");

  await want(west, "a", "1");
  folder.put("west", west.server.kubeconfig);
  await seen(west, "a", "west 1");

  folder.remove("west");
  await worker.reaches("west", "disengaged");
  const before = west.calls().length;
  await want(west, "a", "2");
  await want(east, "a", "2");
  await seen(east, "a", "east 2");
  expect(west.calls()).toHaveLength(before);

  folder.put("west", west.server.kubeconfig);
  await seen(west, "a", "west 2");
});

test.each(testServers())(
  "serves a cluster of $name beside another one, which its handlers reach",
  async (target) => {
    const server = await target.open();
    const { client, kubeconfig } = server;
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => server.close());
    const { kubeconfigText, kubeconfigPath = "" } = kubeconfig;
    const text = kubeconfigText ?? readFileSync(kubeconfigPath, "utf8");
    const name = `fleet-${process.pid}`;
    const own = { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name } };
    cleanup.defer(() => client.delete(ConfigMap, own.metadata).catch(ignoreNotFound));
    const copy = defineController({
      name: `copy-${process.pid}`,
      for: { type: ConfigMap, namespaces: [namespace], fields: `metadata.name=${name}` },
      clusters: { names: ["tested"] },
      async reconcile({ object, key, kube }) {
        const copied = `${key.cluster} ${object.data?.["wanted"] ?? ""}`;
        await kube.on("west").apply(ConfigMap, { metadata: { namespace, name }, data: { copied } });
      },
    });
    using folder = new KubeconfigFolder();
    folder.put("west", west.server.kubeconfig);
    folder.put("tested", text);
    await using worker = await start(kubeconfigDirectory({ path: folder.path }), [copy], {
      leaseNamespace: namespace,
    });
    const copyOf = async () => {
      const { items } = await west.client.list(ConfigMap, { namespace });
      return items.find(({ metadata }) => metadata.name === name)?.data?.["copied"];
    };
    const copied = (expected: string) =>
      until(`the copy is ${expected}`, async () => (await copyOf()) === expected);
    await client.apply(ConfigMap, { ...own, data: { wanted: "1" } });
    await copied("tested 1");
    folder.remove("tested");
    await worker.reaches("tested", "disengaged");
    await client.apply(ConfigMap, { ...own, data: { wanted: "2" } });
    expect(await copyOf(), "nothing runs for a removed cluster").toBe("tested 1");
    folder.put("tested", text);
    await copied("tested 2");
    await west.client.delete(ConfigMap, own.metadata);
  },
);

test("rotated credentials keep the watches, and bad ones keep the previous", async () => {
  using folder = new KubeconfigFolder();
  folder.put("west", west.server.kubeconfig);
  await using worker = await start(kubeconfigDirectory({ path: folder.path }));
  await want(west, "r", "1");
  await seen(west, "r", "west 1");
  const lists = () => west.calls().filter((call) => call.startsWith("list ")).length;
  const before = lists();

  folder.put("west", `${west.server.kubeconfig}\n# rotated\n`);
  await worker.reaches("west", "credentials rotated");
  folder.put("west", "apiVersion: v1\nkind: [");
  await until("the file is rejected", () =>
    worker.lines.some(
      ({ message, fields }) =>
        message === "cluster not usable as provided" && fields["state"] === "engaged",
    ),
  );
  await want(west, "r", "2");
  await seen(west, "r", "west 2");
  expect(lists()).toBe(before);
});

test("a removed cluster leaves the worker's states and metrics, and returns", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  await using worker = await start(kubeconfigDirectory({ path: folder.path }));
  await worker.reaches("west", "engaged");
  folder.remove("west");
  await worker.reaches("west", "disengaged");
  expect(worker.clusters.map(({ name }) => name)).toEqual(["east"]);
  await until("its series are removed", async () =>
    (await worker.metrics()).split("\n").every((line) => !line.includes('cluster="west"')),
  );
  folder.put("west", west.server.kubeconfig);
  await worker.reaches("west", "engaged");
});

test("a FIFO with the name of a kubeconfig fails alone", async () => {
  using folder = new KubeconfigFolder();
  execFileSync("mkfifo", [join(folder.path, "fifo.yaml")]);
  folder.put("east", east.server.kubeconfig);
  await using worker = await start(kubeconfigDirectory({ path: folder.path }));
  const states = new Map(worker.clusters.map((each) => [each.name, each]));
  expect(states.get("fifo")?.reason).toContain("fifo.yaml is not a regular file");
  expect(states.get("east")?.state).toBe("engaged");
  folder.put("west", west.server.kubeconfig);
  await worker.reaches("west", "engaged");
});

test("a Secret with the name of the home cluster is not engaged", async () => {
  await east.client.apply(Secret, {
    metadata: { namespace, name: "default", labels: { "konverge.dev/cluster": "true" } },
    data: { kubeconfig: Buffer.from(west.server.kubeconfig).toString("base64") },
  });
  const before = west.calls().length;
  await using worker = await start(kubeconfigSecrets({ namespace }));
  expect(worker.clusters).toMatchObject([
    {
      name: "default",
      state: "failing",
      reason: expect.stringContaining('name of the home cluster "default"') as string,
    },
  ]);
  expect(west.calls()).toHaveLength(before);
  await east.client.delete(Secret, { namespace, name: "default" });
});

test("another cluster under a name is not touched", async () => {
  using folder = new KubeconfigFolder();
  folder.put("world", west.server.kubeconfig);
  await using worker = await start(kubeconfigDirectory({ path: folder.path }));
  await want(west, "w", "1");
  await seen(west, "w", "world 1");
  const before = east.calls().filter((call) => !call.startsWith("get ")).length;
  folder.put("world", east.server.kubeconfig);
  await worker.reaches("world", "failing");
  const refusal = worker.lines.findLast(({ message }) => message.startsWith("cluster not"));
  expect(refusal?.fields["err"]).toMatchObject({ code: "cluster_mismatch" });
  expect(east.calls().filter((call) => !call.startsWith("get "))).toHaveLength(before);
  folder.put("world", west.server.kubeconfig);
  await want(west, "w", "2");
  await seen(west, "w", "world 2");
});

test("P12: Secrets provide clusters, and their kubeconfigs reach neither logs nor Redis", async () => {
  const put = (name: string, kubeconfig: string, labels: Record<string, string> = {}) =>
    east.client.apply(Secret, {
      metadata: { namespace, name, labels: { "konverge.dev/cluster": "true", ...labels } },
      data: { value: Buffer.from(kubeconfig).toString("base64") },
    });
  const canary = "canary-of-a-token";
  const withUser = (user: object) =>
    JSON.stringify({
      "current-context": "main",
      clusters: [{ name: "main", cluster: { server: west.server.url } }],
      users: [{ name: "main", user }],
      contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
    });
  await put("west-kubeconfig", withUser({ token: canary }), { tier: "prod" });
  await put("evil-kubeconfig", withUser({ exec: { command: "touch", args: [canary] } }));
  await put("other", withUser({ token: canary }));
  await using worker = await start(
    kubeconfigSecrets({
      namespace,
      key: "value",
      suffix: "-kubeconfig",
      home: { engage: true },
    }),
    [stamp, onlyProd],
  );
  await worker.reaches("evil", "failing");
  const refusal = worker.lines.find(({ fields }) => fields["cluster"] === "evil");
  expect(refusal?.fields["err"]).toMatchObject({
    message: expect.stringContaining("user.exec runs a command") as string,
  });
  await want(east, "s", "1");
  await want(west, "s", "1");
  await seen(east, "s", "default 1");
  await seen(west, "s", "west 1");
  await until("the controller for labels runs", () =>
    worker.lines.some(({ message }) => message === "seen"),
  );
  const prodIn = worker.lines.filter(({ message }) => message === "seen");
  expect(new Set(prodIn.map(({ fields }) => fields["cluster"]))).toEqual(new Set(["west"]));

  await east.client.delete(Secret, { namespace, name: "west-kubeconfig" });
  await worker.reaches("west", "disengaged");
  await want(west, "s", "2");
  await put("west-kubeconfig", withUser({ token: canary }));
  await seen(west, "s", "west 2");

  const known = worker.lines.map(({ fields }) => fields["cluster"]);
  expect(known).not.toContain("other");
  const encoded = Buffer.from(canary).toString("base64").slice(0, -4);
  const texts = [
    JSON.stringify(worker.lines, (_, value: unknown) =>
      value instanceof Error ? { ...value, text: String(value), stack: value.stack } : value,
    ),
    await worker.metrics(),
    await textOfRedis(),
  ];
  for (const text of texts) {
    expect(text.length).toBeGreaterThan(500);
    expect(text).not.toContain(canary);
    expect(text).not.toContain(encoded);
  }
  for (const name of ["west-kubeconfig", "evil-kubeconfig", "other"]) {
    await east.client.delete(Secret, { namespace, name });
  }
});

test("the example of kube.on copies an object to another cluster", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  await using worker = await start(kubeconfigDirectory({ path: folder.path }), [mirror]);
  const object = { metadata: { namespace, name: "page" }, data: { mirror: "yes" } };
  await east.client.create(ConfigMap, object);
  await until("the copy exists", async () => {
    const { items } = await west.client.list(ConfigMap, { namespace });
    return items.some(({ metadata }) => metadata.name === "page-copy");
  });
  expect(worker.ready).toBe(true);
});

test("a kill during a stop aborts the attempts of a cluster that is being disengaged", async () => {
  using folder = new KubeconfigFolder();
  folder.put("west", west.server.kubeconfig);
  let isRunning = false;
  let isAborted = false;
  const patient = defineController({
    name: "patient",
    for: ConfigMap,
    timeout: "10m",
    reconcile: async ({ object, signal }) => {
      if (object.metadata.name !== "patience") return;
      isRunning = true;
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      isAborted = true;
    },
  });
  const settings = { shutdownGrace: "10m" };
  await using worker = await start(kubeconfigDirectory({ path: folder.path }), [patient], settings);
  await west.client.create(ConfigMap, { metadata: { namespace, name: "patience" } });
  await until("the attempt runs", () => isRunning);
  folder.remove("west");
  await until("west is disengaging", () => worker.clusters[0]?.state === "disengaging");
  const stopping = worker.stop();
  expect(isAborted).toBe(false);
  await worker.kill();
  await stopping;
  expect(isAborted).toBe(true);
});

test("reports a cluster whose API server cannot be used, and the doctor checks each cluster", async () => {
  using folder = new KubeconfigFolder();
  folder.put("west", west.server.kubeconfig);
  folder.put("broken", "kind: [");
  const clusters = kubeconfigDirectory({ path: folder.path });
  await using worker = await start(clusters);
  const stateOf = (name: string) => worker.clusters.find((each) => each.name === name)?.state;
  expect(stateOf("broken")).toBe("failing");
  await until("west is engaged", () => stateOf("west") === "engaged");
  await using control = openGuardControl({ redis: queues.target, prefix: queues.prefix });
  await control.isolate("west", { by: "ann", reason: "maintenance" });
  await until("west is failing", () => stateOf("west") === "failing");
  expect(await worker.metrics()).toContain(
    'konverge_cluster_state{cluster="west",state="failing",',
  );
  await control.reset("west", { by: "ann", reason: "done" });
  await until("west is engaged again", () => stateOf("west") === "engaged");

  const settings = readSettings({ file: {}, env: {} });
  const config = defineConfig({ controllers: [stamp], clusters });
  const checks = await checkProvidedClusters({ settings, config, hasRedis: false });
  expect(checks.map(({ check, level }) => [check, level])).toEqual([
    ["clusters", "ok"],
    ["cluster broken", "fail"],
    ["cluster west", "ok"],
    ["kind ConfigMap on west", "ok"],
    ["permissions on west", "ok"],
    ["leader stamp on west", "warn"],
  ]);
});
