import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiObject } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import { createControllerRegistry } from "@konverge/queue";
import { createApiServer } from "@konverge/apiserver";
import { afterAll, beforeAll, expect, test } from "vitest";
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
  expect(redis).toHaveLength(6);
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
    expect(levels.get("permissions on west"), "the embedded server has none").toBe("skip");
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
