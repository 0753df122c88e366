import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalGate, type ApiObject } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import { startRedis } from "@konverge/infra-redis";
import { createControllerRegistry } from "@konverge/queue";
import { createApiServer } from "@konverge/apiserver";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { startWorker, type Config } from "@konverge/worker";
import { openWorkflows } from "@konverge/workflow";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keepLog } from "../../apps/cli/src/testing/kept-log.ts";
import { until } from "../support/until.ts";
import { runCommand, type Ended } from "./cli-runner.ts";
import { openRbacCluster, type RbacCluster } from "./rbac-cluster.ts";

const CONFIG = "apps/examples/src/konverge.config.ts";
const ACCOUNT = { namespace: "konverge", name: "konverge" };
const NOWHERE = { KUBECONFIG: "/dev/null/none" };

interface Check {
  readonly check: string;
  readonly level: string;
  readonly detail: string;
}
const checksOf = ({ stdout }: Ended) =>
  (JSON.parse(stdout) as { readonly items: readonly Check[] }).items;
const doctor = async (env: Readonly<Record<string, string>>, ...args: readonly string[]) => {
  const ended = await runCommand(["doctor", "-o", "json", ...args], { ...NOWHERE, ...env });
  return { code: ended.code, checks: checksOf(ended), ended };
};

test("fails for eviction, warns without persistence, and accepts a good Redis", async () => {
  await using evicting = await startRedis({
    appendonly: false,
    extraArgs: ["--maxmemory-policy", "allkeys-lru"],
  });
  const bad = await doctor({ KONVERGE_REDIS_URL: evicting.url });
  expect(bad.code).toBe(2);
  expect(bad.checks).toContainEqual({
    check: "redis eviction",
    level: "fail",
    detail: expect.stringContaining("set maxmemory-policy noeviction") as string,
    exitCode: 2,
  });
  expect(bad.checks).toContainEqual({
    check: "redis persistence",
    level: "warn",
    detail: expect.stringContaining("set appendonly yes") as string,
  });
  await using good = await startRedis();
  const fine = await doctor({ KONVERGE_REDIS_URL: good.url });
  expect(fine.code).toBe(0);
  const redis = fine.checks.filter(({ check }) => check.startsWith("redis"));
  expect(redis.map(({ level }) => level)).toEqual(redis.map(() => "ok"));
  expect(redis).toHaveLength(10);
  expect(fine.checks).toContainEqual(expect.objectContaining({ check: "workers", level: "warn" }));
});

test("exits with 6 without Redis and hides secrets of the URL", async () => {
  const url = "redis://ada:s3cret@127.0.0.1:1";
  const { code, checks, ended } = await doctor({ KONVERGE_REDIS_URL: url });
  expect(code).toBe(6);
  expect(checks.filter(({ level }) => level === "fail")).toMatchObject([
    { check: "redis", detail: expect.stringContaining("Redis at redis://127.0.0.1:1 ") as string },
  ]);
  expect(ended.stdout + ended.stderr).not.toContain("s3cret");
});

test("checks each cluster of workflows and names unavailable ones", async () => {
  await using redisServer = await startRedis();
  const [east, west] = [await createApiServer({}), await createApiServer({})];
  const folder = await mkdtemp(join(tmpdir(), "konverge-doctor-"));
  const kubeconfig = join(folder, "kubeconfig");
  const clusters = Object.entries({ east, west });
  const text = JSON.stringify({
    clusters: clusters.map(([name, { url }]) => ({ name, cluster: { server: url } })),
    users: [{ name: "anybody", user: {} }],
    contexts: clusters.map(([name]) => ({ name, context: { cluster: name, user: "anybody" } })),
  });
  await writeFile(kubeconfig, text);
  const env = { KONVERGE_REDIS_URL: redisServer.url, KUBECONFIG: kubeconfig };
  const config = ["--config", "apps/examples/src/fleet-rollout.config.ts"];
  try {
    await using registry = new AsyncDisposableStack();
    const redisUrl = { url: redisServer.url };
    const workers = createControllerRegistry({ redis: redisUrl, cluster: "east" });
    registry.defer(() => workers.close());
    await workers.announce([], [{ name: "fleet-rollout", version: 1 }]);
    workers.heartbeat({
      workerId: "w",
      controllers: [],
      definitions: {},
      role: "all",
      version: "1",
      startedAt: new Date().toISOString(),
      host: "h",
    });
    await expect.poll(async () => (await workers.listWorkers()).length).toBe(1);
    const fine = await doctor(env, ...config);
    expect(
      fine.checks.find(({ check }) => check === "workers")?.detail,
      "of the cluster that the configuration serves",
    ).toMatch(/^1 /);
    const levels = new Map(fine.checks.map(({ check, level }) => [check, level]));
    expect(levels.get("kubernetes")).toBe("ok");
    expect(levels.get("cluster west")).toBe("ok");
    expect(levels.get("permissions on west"), "the embedded server allows all").toBe("ok");
    expect(levels.has("cluster east"), "that is the worker's own").toBe(false);
    await west.close();
    const bad = await doctor(env, ...config);
    expect(bad.code).toBe(6);
    expect(bad.checks.filter(({ level }) => level === "fail")).toMatchObject([
      { check: "cluster west", detail: expect.stringContaining("127.0.0.1") as string },
    ]);
  } finally {
    await Promise.all([east.close(), west.close()]);
    await rm(folder, { recursive: true });
  }
});

test("checks the workers of all clusters of a directory, and the kinds and permissions on each", async () => {
  await using redisServer = await startRedis();
  const servers = { east: await createApiServer({}), west: await createApiServer({}) };
  const folder = await mkdtemp(join(import.meta.dirname, "doctor-"));
  const config = join(folder, "konverge.config.ts");
  const clusters = join(folder, "clusters");
  try {
    await mkdir(clusters);
    for (const [name, { kubeconfig }] of Object.entries(servers)) {
      await writeFile(join(clusters, `${name}.kubeconfig`), kubeconfig);
    }
    await writeFile(
      config,
      `
import { defineConfig, defineController, kubeconfigDirectory } from "konverge";
import { ConfigMap } from "konverge/kinds";
const reconcile = async () => undefined;
export const seen = defineController({ name: "seen", for: ConfigMap, reconcile });
const Missing = { group: "doctor.test.konverge.dev", version: "v1", kind: "Missing", resource: "missings", scope: "Namespaced" };
export const west = defineController({ name: "west", for: Missing, clusters: { names: ["nowhere"] }, reconcile });
export default defineConfig({
  controllers: [seen, west],
  clusters: kubeconfigDirectory({ path: ${JSON.stringify(clusters)} }),
});
`,
    );
    const env = { KONVERGE_REDIS_URL: redisServer.url };
    const { default: loaded } = (await import(config)) as { readonly default: Config };
    const worker = await startWorker({
      config: loaded,
      redis: redisServer.url,
      log: keepLog([]),
    });
    try {
      const fine = await until("both clusters are engaged", async () => {
        const { checks } = await doctor(env, "--config", config);
        const found = new Map(checks.map(({ check, level }) => [check, level]));
        return found.get("workers on east") === "ok" && found.has("workers on west") && checks;
      });
      const unfit = fine.filter(({ level }) => level === "warn" || level === "fail");
      // The version of an embedded worker differs from that of the CLI.
      expect(unfit.map(({ check }) => check)).toEqual(["versions on east", "versions on west"]);
      const needs = ["redis data", "kind ConfigMap", "permissions", "leader seen"];
      expect(
        fine.filter(({ check }) => / on (east|west)$/.test(check)).map(({ check }) => check),
        "of the controllers that run on a cluster",
      ).toEqual(
        expect.arrayContaining(
          ["east", "west"].flatMap((name) => needs.map((need) => `${need} on ${name}`)),
        ),
      );
      expect(fine.map(({ check }) => check)).not.toContain("kind Missing on west");
      const { checks } = await doctor(env);
      expect(checks).toContainEqual({
        check: "workers",
        level: "warn",
        detail:
          'no live workers for cluster "default"; select one of the served clusters with --cluster: east, west',
      });
    } finally {
      await worker.stop();
    }
  } finally {
    for (const server of Object.values(servers)) await server.close();
    await rm(folder, { recursive: true });
  }
});

test.each([
  { engage: false, of: ["permissions in namespace clusters"] },
  {
    engage: true,
    of: ["permissions in namespace clusters", "redis data", "kind ConfigMap", "permissions"],
  },
])(
  "checks the home cluster of Secrets, and the controllers on it with engage: $engage",
  async ({ engage, of }) => {
    await using redisServer = await startRedis();
    const server = await createApiServer({});
    const folder = await mkdtemp(join(import.meta.dirname, "doctor-"));
    const config = join(folder, "konverge.config.ts");
    const kubeconfig = join(folder, "home.kubeconfig");
    try {
      await writeFile(kubeconfig, server.kubeconfig);
      const home = { engage, kubeconfig };
      await writeFile(
        config,
        `
import { defineConfig, defineController, kubeconfigSecrets } from "konverge";
import { ConfigMap } from "konverge/kinds";
export const seen = defineController({ name: "seen", for: ConfigMap, reconcile: async () => undefined });
export default defineConfig({
  controllers: [seen],
  clusters: kubeconfigSecrets({ namespace: "clusters", home: ${JSON.stringify(home)} }),
});
`,
      );
      const { checks } = await doctor({ KONVERGE_REDIS_URL: redisServer.url }, "--config", config);
      const levels = new Map(checks.map(({ check, level }) => [check, level]));
      expect(levels.get("kubernetes"), "with the kubeconfig of home").toBe("ok");
      const perCluster = /^(permissions|kind|redis data)/;
      expect([...levels].filter(([check]) => perCluster.test(check))).toEqual(
        of.map((check) => [check, "ok"]),
      );
      expect(levels.has("leader seen")).toBe(engage);
    } finally {
      await server.close();
      await rm(folder, { recursive: true });
    }
  },
);

test("counts the marks of steps that an earlier Redis or another installation has left", async () => {
  await using earlier = await startRedis();
  await using present = await startRedis();
  const server = await createApiServer({});
  const folder = await mkdtemp(join(import.meta.dirname, "doctor-"));
  const [config, kubeconfig] = [join(folder, "konverge.config.ts"), join(folder, "kubeconfig")];
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 5_000, burst: 5_000 }),
    userAgent: "konverge-test/1",
  });
  const create = async (name: string) =>
    void (await client.create(ConfigMap, { metadata: { namespace: "default", name } }));
  const look = async (url: string) => {
    const env = { KONVERGE_REDIS_URL: url, KUBECONFIG: kubeconfig };
    const { checks } = await doctor(env, "--config", config);
    return checks.find(({ check }) => check === "step marks");
  };
  try {
    await writeFile(kubeconfig, server.kubeconfig);
    await writeFile(
      config,
      `
import { defineConfig, defineWorkflow } from "konverge";
import { ConfigMap } from "konverge/kinds";
export const mark = defineWorkflow("mark", { version: 1, kinds: [ConfigMap] }, async (w) => {
  await w.step("act", (k) =>
    k.mutate({ type: ConfigMap, namespace: "default", name: "marked" }, (draft) => { draft.data = { n: "1" }; }),
  );
});
export default defineConfig({ workflows: [mark] });
`,
    );
    await create("marked");
    await create("unmarked");
    const { default: loaded } = (await import(config)) as { readonly default: Config };
    const worker = await startWorker({
      config: loaded,
      redis: earlier.url,
      kubeconfig: { text: server.kubeconfig },
      log: keepLog([]),
    });
    try {
      const [mark] = loaded.workflows;
      if (mark === undefined) throw new Error("the configuration has no workflow");
      await using cleanup = new AsyncDisposableStack();
      const runs = openWorkflows({ redis: { url: earlier.url } });
      cleanup.defer(() => runs.close());
      const run = { workflow: mark.name, id: "r" };
      await runs.start(mark, undefined, { id: run.id });
      await until("the run ends", async () => (await runs.peek(run))?.status === "done");
    } finally {
      await worker.stop();
    }
    expect(await look(earlier.url), "its own mark").toEqual({
      check: "step marks",
      level: "ok",
      detail: "none of another installation on 2 configmaps",
    });
    const found = await look(present.url);
    expect(found?.level, "it is harmless").toBe("ok");
    expect(found?.detail).toMatch(
      /^of other installations: [-0-9a-f]{36} on 1 configmaps \(read 2 configmaps\); .*docs\/restore\.md/,
    );
    await Promise.all(Array.from({ length: 2_000 }, (_, at) => create(`more-${at}`)));
    expect((await look(present.url))?.detail, "a large kind costs 4 calls").toContain(
      "(read the first 2000 configmaps)",
    );
  } finally {
    await client.close();
    await server.close();
    await rm(folder, { recursive: true });
  }
});

let cluster: RbacCluster | undefined;
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
  if (process.env["KUBEBUILDER_ASSETS"] !== undefined) cluster = await openRbacCluster();
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await redis.stop();
});

test("names kinds that are not served and missing permissions until all checks pass", async (context) => {
  if (cluster === undefined) {
    context.skip("no kube-apiserver: only a real one asks for permissions");
    return;
  }
  const real = cluster;
  const apply = (objects: readonly ApiObject[]) => real.apply(objects);
  const args = ["--config", CONFIG, "--image", "registry.example/operator:1", "-o", "json"];
  const printed = await runCommand(["manifests", ...args], {});
  const { items: manifests } = JSON.parse(printed.stdout) as { readonly items: ApiObject[] };
  const isBasic = ({ kind }: ApiObject) => kind === "Namespace" || kind === "ServiceAccount";
  await apply(manifests.filter(isBasic));
  const env = { KONVERGE_REDIS_URL: redis.url, KUBECONFIG: await real.kubeconfigOf(ACCOUNT) };
  const look = () =>
    doctor({ ...env, KONVERGE_LEASE_NAMESPACE: ACCOUNT.namespace }, "--config", CONFIG);

  const bare = await look();
  expect(bare.code).toBe(2);
  expect(bare.checks).toContainEqual(
    expect.objectContaining({
      check: "kind NodePool",
      level: "fail",
      detail: expect.stringContaining("konverge crds --config") as string,
    }),
  );
  const folder = await mkdtemp(join(import.meta.dirname, "doctor-"));
  try {
    await writeFile(join(folder, "west.kubeconfig"), await readFile(env.KUBECONFIG));
    const provided = join(folder, "provided.config.ts");
    await writeFile(
      provided,
      `
import { defineConfig, kubeconfigDirectory } from "konverge";
import { nodePool } from "../../../apps/examples/src/node-pool.ts";
const clusters = kubeconfigDirectory({ path: ${JSON.stringify(folder)} });
export default defineConfig({ controllers: [nodePool], clusters });
`,
    );
    const { code, checks } = await doctor(env, "--config", provided);
    expect(code).toBe(2);
    const failed = checks.filter(({ level }) => level === "fail").map(({ check }) => check);
    expect(failed, "of a cluster that a provider found").toEqual(
      expect.arrayContaining(["kind NodePool on west", "permissions on west"]),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
  await apply(manifests.filter(({ kind }) => kind === "CustomResourceDefinition"));
  const served = await look();
  expect(served.checks).toContainEqual(
    expect.objectContaining({ check: "kind NodePool", level: "ok" }),
  );
  expect(served.code).toBe(7);
  const missing = served.checks.filter(({ level }) => level === "fail");
  expect(missing.map(({ check }) => check)).toEqual(missing.map(() => "permissions"));
  expect(missing.map(({ detail }) => detail)).toContainEqual(
    expect.stringMatching(
      /^.*watch.* of .*machines\.demo\.konverge\.dev.* is forbidden; .*manifests/,
    ),
  );
  await apply(manifests.filter(({ kind }) => /Role/.test(kind)));
  const allowed = await look();
  expect(allowed.checks.filter(({ level }) => level === "fail")).toEqual([]);
  expect(allowed.code).toBe(0);
});

test("fails for what stops a worker, and warns about current problems, each with a fix", async () => {
  await using redisServer = await startRedis();
  const [server, other] = [await createApiServer({}), await createApiServer({})];
  const folder = await mkdtemp(join(import.meta.dirname, "doctor-"));
  const controller = (fields: string, shards = 1) => `
import { defineConfig, defineController, defineResource, TerminalError } from "konverge";
import { z } from "zod";
const Job = defineResource({ group: "doctor.test.konverge.dev", version: "v1", kind: "Task", spec: z.object(${fields}) });
export const task = defineController({
  name: "task", for: Job, reconcile: async () => { throw new TerminalError("as planned"); },
});
export default defineConfig({ controllers: [task], clusters: { default: { shards: ${shards} } } });
`;
  const config = join(folder, "konverge.config.ts");
  const changed = join(folder, "changed.config.ts");
  const sharded = join(folder, "sharded.config.ts");
  const kubeconfig = join(folder, "kubeconfig");
  const elsewhere = join(folder, "elsewhere");
  try {
    await writeFile(config, controller("{ size: z.int() }"));
    await writeFile(changed, controller("{ size: z.int(), color: z.string().optional() }"));
    await writeFile(sharded, controller("{ size: z.int() }", 4));
    await writeFile(kubeconfig, server.kubeconfig);
    await writeFile(elsewhere, other.kubeconfig);
    const env = { KONVERGE_REDIS_URL: redisServer.url, KUBECONFIG: kubeconfig };
    const look = async (more: Readonly<Record<string, string>> = {}, file = config) => {
      const { code, checks } = await doctor({ ...env, ...more }, "--config", file);
      const of = (level: string) =>
        new Map(
          checks
            .filter((check) => check.level === level)
            .map(({ check, detail }) => [check, detail] as const),
        );
      return { code, failed: of("fail"), warned: of("warn"), fine: of("ok") };
    };

    const bare = await look();
    expect(bare.code).toBe(2);
    expect(bare.failed.get("kind Task")).toContain("crds --config <file> --apply");
    await runCommand(["crds", "--config", config, "--apply"], env);
    const installed = await look();
    expect(installed.failed).toEqual(new Map());
    expect(installed.code).toBe(0);
    expect(installed.warned.get("leader task")).toContain("start a worker");
    expect((await look({}, changed)).warned.get("kind Task")).toMatch(
      /differs .* spec\.color; run/,
    );

    const { default: loaded } = (await import(config)) as { readonly default: Config };
    const worker = await startWorker({
      config: loaded,
      redis: redisServer.url,
      kubeconfig: { text: server.kubeconfig },
      log: keepLog([]),
    });
    try {
      const client = createKubeClient({
        credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
        gate: createLocalGate({ ratePerSecond: 100, burst: 100 }),
        userAgent: "konverge-test/1",
      });
      const task = loaded.controllers[0]?.for;
      if (task === undefined) throw new Error("the configuration has no controller");
      await client.create(task, {
        metadata: { namespace: "default", name: "a" },
        spec: { size: 1 },
      } as object as ApiObject);
      await client.close();
      const cached = await until("the worker has announced its cache", async () =>
        (await look()).fine.get("cache tasks.doctor.test.konverge.dev"),
      );
      expect(cached).toMatch(/^up to 1 objects, 0\.0 MiB as JSON, in 1 of 1 workers$/);
      const dead = await until("the key is dead-lettered", async () => {
        const seen = await look();
        return seen.warned.has("dead letters") ? seen : undefined;
      });
      expect(dead.code).toBe(0);
      expect(dead.warned.get("dead letters")).toContain("konverge dead-letter release task");
      expect(dead.fine.get("leader task")).toBe(worker.workerId);
      await using guards = openGuardControl({
        redis: { url: redisServer.url },
        prefix: "konverge",
      });
      await guards.isolate("default", { by: "test", reason: "maintenance" });
      await guards.setRate("default", 7, { by: "mia", reason: "slow server" });
      const stopped = (await look()).warned;
      expect(stopped.get("guard default")).toContain("konverge guard reset default");
      expect(stopped.get("rate default")).toMatch(
        /^mia set 7 calls\/s instead of \d+ at .*slow server/,
      );
    } finally {
      await worker.kill();
    }

    const split = await look({}, sharded);
    expect(split.code).toBe(2);
    expect(split.failed.get("redis data")).toContain("set shards to 1");
    await runCommand(["crds", "--config", config, "--apply"], { ...env, KUBECONFIG: elsewhere });
    const foreign = await look({ KUBECONFIG: elsewhere });
    expect(foreign.code).toBe(2);
    expect(foreign.failed.get("redis data")).toContain(
      "redis-cli --scan --pattern 'konverge:{default[}/]*' | xargs -r redis-cli unlink",
    );
  } finally {
    await Promise.all([server.close(), other.close()]);
    await rm(folder, { recursive: true });
  }
});
