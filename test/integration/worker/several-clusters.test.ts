import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { defineController, type Controller } from "@konverge/engine";
import type { KubeCalls } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import {
  defineConfig,
  kubeconfigDirectory,
  kubeconfigSecrets,
  startWorker,
  type ClusterProvider,
  type RunningWorker,
} from "@konverge/worker";
import { CoreV1Api } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { readSettings } from "@konverge/contracts";
import { openGuardControl } from "@konverge/guard";
import { checkProvidedClusters } from "../../../apps/cli/src/doctor/check-provided-clusters.ts";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { blocksOf, importText } from "../docs/load-block.ts";
import { captureSpans } from "../engine/trace-capture.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { KubeconfigFolder, startFleetCluster, type FleetCluster } from "./fleet-harness.ts";

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
  const worker = await startWorker({
    config: defineConfig({
      controllers,
      clusters,
      settings: { leaseDuration: "3s", prefix: queues.prefix, ...settings },
    }),
    redis: queues.url,
    kubeconfig: { text: east.server.kubeconfig },
    log: keepLog(lines),
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
  expect(await worker.metrics()).not.toContain('konverge_cluster_state{cluster="west"');
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

test("a handler writes to another cluster, recorded and traced there", async () => {
  const spans = captureSpans();
  onTestFinished(spans.stop);
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const errors: unknown[] = [];
  const mirrorTo = defineController({
    name: "mirror",
    for: ConfigMap,
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      const to = object.data?.["to"];
      if (to === undefined) return;
      const there = kube.on(to);
      const name = `${object.metadata.name}-copy`;
      try {
        await there.apply(ConfigMap, { metadata: { name }, data: { from: "east" } });
        await there.mutate(await there.get(ConfigMap, name), (draft) => {
          draft.data = { ...draft.data, changed: "yes" };
        });
        const copies = await there.list(ConfigMap);
        expect(copies.map(({ metadata }) => metadata.name)).toContain(name);
        expect(await kube.find(ConfigMap, name)).toBeUndefined();
        await there.create(ConfigMap, { name: "owned", ownedBy: object });
      } catch (error) {
        errors.push(error);
      }
    },
  });
  await using worker = await start(kubeconfigDirectory({ path: folder.path }), [mirrorTo]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "m" }, data: { to: "west" } });
  const copy = await until("the copy has changed", async () => {
    const found = await west.client.list(ConfigMap, { namespace });
    return found.items.find(({ data }) => data?.["changed"] === "yes");
  });
  expect(copy).toMatchObject({ metadata: { name: "m-copy" }, data: { from: "east" } });
  await until("the handler has returned", () => errors.length > 0);
  expect(errors[0]).toMatchObject({ code: "invalid_owner" });

  const queue = queues.open({ controller: "mirror", cluster: "east" });
  const key = { controller: "mirror", cluster: "east", group: "", resource: "configmaps" };
  const records = await until("the attempt is recorded", async () => {
    const found = await queue.listAttempts({ ...key, namespace, name: "m" });
    return found.length > 0 && found;
  });
  const { writes } = JSON.parse(String(records[0]?.record)) as { readonly writes: object[] };
  expect(writes).toMatchObject([
    { cluster: "west", verb: "apply", name: "m-copy" },
    { cluster: "west", verb: "patch", name: "m-copy" },
  ]);
  const traced = await until("the attempt is traced", () => {
    const all = spans.ended();
    const attempt = all.find(({ attributes }) => attributes["konverge.name"] === "m");
    return attempt && all.filter(({ traceId }) => traceId === attempt.traceId);
  });
  const port = Number(new URL(west.server.url).port);
  expect(
    traced
      .filter(({ attributes }) => attributes["server.port"] === port)
      .map(({ name }) => name)
      .filter((name) => name.startsWith("PATCH")),
  ).toHaveLength(2);

  await east.client.create(ConfigMap, {
    metadata: { namespace, name: "u" },
    data: { to: "north" },
  });
  await until("the unknown cluster is rejected", () => errors.length > 1);
  expect(errors.at(-1)).toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(/"north" is not among the clusters .*: east, west/) as string,
  });
  expect(worker.ready).toBe(true);
});

test.each([
  ["get", (there, name) => there.get(ConfigMap, name)],
  ["mutate", (there, name) => there.mutate({ type: ConfigMap, name }, () => undefined)],
  ["api", (there, name) => there.api(CoreV1Api).readNamespacedConfigMap({ namespace, name })],
  [
    "raw",
    (there, name) =>
      there.raw({ method: "GET", path: `/api/v1/namespaces/${namespace}/configmaps/${name}` }),
  ],
] satisfies [string, (there: KubeCalls<"handler">, name: string) => Promise<unknown>][])(
  "a missing object of the same name in another cluster is retried (%s)",
  async (how, read) => {
    using folder = new KubeconfigFolder();
    folder.put("east", east.server.kubeconfig);
    folder.put("west", west.server.kubeconfig);
    const lost = `lost-${how}`;
    let attempts = 0;
    let isDone = false;
    const follower = defineController({
      name: "follower",
      for: ConfigMap,
      clusters: { names: ["east"] },
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name !== lost) return;
        attempts += 1;
        await read(kube.on("west"), lost);
        isDone = true;
      },
    });
    await using worker = await start(kubeconfigDirectory({ path: folder.path }), [follower]);
    await east.client.create(ConfigMap, { metadata: { namespace, name: lost } });
    await until("it is retried", () => attempts > 1);
    await west.client.create(ConfigMap, { metadata: { namespace, name: lost } });
    await until("the object is found", () => isDone);
    expect(worker.ready).toBe(true);
  },
);

test("P12: a kind marked as sensitive is sensitive in other clusters too", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const messages: string[] = [];
  const hidden = defineController({
    name: "hidden",
    for: { ...ConfigMap, sensitive: true },
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      if (object.metadata.name !== "hidden") return;
      try {
        // The API server quotes the label in its error.
        const labels = { pin: "canary 4711" };
        await kube.on("west").raw({
          method: "POST",
          path: `/api/v1/namespaces/${namespace}/configmaps`,
          body: { metadata: { name: "hidden", labels } },
        });
      } catch (error) {
        messages.push(String(error));
        throw error;
      }
    },
  });
  await using worker = await start(kubeconfigDirectory({ path: folder.path }), [hidden]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "hidden" } });
  const queue = queues.open({ controller: "hidden", cluster: "east" });
  const key = { controller: "hidden", cluster: "east", group: "", resource: "configmaps" };
  const records = await until("the attempt is recorded", async () => {
    const found = await queue.listAttempts({ ...key, namespace, name: "hidden" });
    return found.length > 0 && found;
  });
  expect(messages[0]).toMatch(/configmaps.* 422 Invalid \(metadata\.labels\)/);
  expect(JSON.stringify(records)).toContain("422 Invalid");
  expect(JSON.stringify([messages, records])).not.toContain("canary");
  expect(worker.ready).toBe(true);
});

test("no write to another cluster makes the reconciled object an owner", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const codes = new Map<string, unknown>();
  const adopt = defineController({
    name: "adopt",
    for: ConfigMap,
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      if (object.metadata.name !== "owner") return;
      const there = kube.on("west");
      const { name, uid = "" } = object.metadata;
      const owner = { apiVersion: "v1", kind: "ConfigMap", name, uid };
      const metadata = { name: "adopted", ownerReferences: [owner] };
      const existing = await there.get(ConfigMap, "existing");
      const tries: Readonly<Record<string, () => Promise<unknown>>> = {
        create: () => there.create(ConfigMap, { name: "adopted", ownedBy: object }),
        apply: () => there.apply(ConfigMap, { metadata }),
        change: () =>
          there.mutate(existing, (draft) => {
            draft.metadata.ownerReferences = [owner];
          }),
        createOrUpdate: () =>
          there.createOrUpdate(ConfigMap, "adopted", (draft) => {
            draft.metadata.ownerReferences = [owner];
          }),
        merge: () => there.patch(existing, { metadata }, { type: "merge" }),
        operation: () =>
          there.patch(
            existing,
            [{ op: "add", path: "/metadata/ownerReferences", value: [owner] }],
            { type: "json" },
          ),
        raw: () =>
          there.raw({
            method: "POST",
            path: `/api/v1/namespaces/${namespace}/configmaps`,
            body: { metadata },
          }),
        api: () =>
          there.api(CoreV1Api).createNamespacedConfigMap({ namespace, body: { metadata } }),
        label: () =>
          there.apply(ConfigMap, { metadata: { name: "existing", labels: { source: uid } } }),
      };
      for (const [what, run] of Object.entries(tries)) {
        const error: unknown = await run().catch((thrown: unknown) => thrown);
        codes.set(what, error instanceof Error ? (error as { code?: unknown }).code : "none");
      }
    },
  });
  await west.client.create(ConfigMap, { metadata: { namespace, name: "existing" } });
  await using worker = await start(kubeconfigDirectory({ path: folder.path }), [adopt]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "owner" } });
  await until("the handler has returned", () => codes.size === 9);
  const { label, ...owners } = Object.fromEntries(codes);
  expect(label).toBe("none");
  expect([...new Set(Object.values(owners))]).toEqual(["invalid_owner"]);
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
  await using control = openGuardControl({ redis: { url: queues.url }, prefix: queues.prefix });
  await control.isolate("west", { by: "ann", reason: "maintenance" });
  await until("west is failing", () => stateOf("west") === "failing");
  expect(await worker.metrics()).toContain(
    'konverge_cluster_state{cluster="west",state="failing"} 1',
  );
  await control.reset("west", { by: "ann", reason: "done" });
  await until("west is engaged again", () => stateOf("west") === "engaged");

  const settings = readSettings({ file: {}, env: {} });
  const checks = await checkProvidedClusters(settings, { clusters });
  expect(checks.map(({ check, level }) => [check, level])).toEqual([
    ["clusters", "ok"],
    ["cluster broken", "fail"],
    ["cluster west", "ok"],
  ]);
});
