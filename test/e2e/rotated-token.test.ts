import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ApiObject } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import { loadAll } from "js-yaml";
import { expect, onTestFinished, test } from "vitest";
import { Secret } from "@konverge/kube/kinds";
import { NodePool } from "../../apps/examples/src/resources.ts";
import { runContainer, type Deployment } from "./deployed-worker.ts";
import { openRbacCluster } from "./rbac-cluster.ts";
import { parseScrape } from "../support/promql.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const ACCOUNT = { namespace: "konverge", name: "konverge" };
const MANIFESTS = [
  "--conditions=@konverge/source",
  "apps/cli/src/main.ts",
  "manifests",
  "--config",
  "apps/examples/src/node-pool.config.ts",
  "--image",
  "registry.example/a:1",
];

test("a revoked token is replaced from its file, and the worker continues", async (context) => {
  if (process.env["KUBEBUILDER_ASSETS"] === undefined) {
    context.skip("no kube-apiserver: only a real one revokes tokens");
    return;
  }
  await using cluster = await openRbacCluster();
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const { admin, folder } = cluster;
  const { stdout } = await run(process.execPath, MANIFESTS);
  const manifests = loadAll(stdout) as ApiObject[];
  await cluster.apply(manifests);
  const token = join(folder, "token");
  const rotate = async (name: string) => {
    await admin.create(Secret, { metadata: { namespace: ACCOUNT.namespace, name } });
    await writeFile(token, await cluster.tokenOf(ACCOUNT, name));
  };
  await rotate("first");
  const kubeconfig = join(folder, "worker.kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfigWith({ tokenFile: token }));
  const deployment = manifests.find(({ kind }) => kind === "Deployment") as Deployment;
  const worker = runContainer(deployment, { redisUrl: redis.url, kubeconfig, folder });
  onTestFinished(async () => void (await worker.stop()));
  const { metricsUrl } = await worker.said("worker ready");
  const metrics = async () => await (await fetch(String(metricsUrl))).text();
  const isRefused = async () => /requests_total\{[^}]*code="401"/.test(await metrics());

  const target = { namespace: "default", name: "blue" };
  await admin.create(NodePool, { metadata: target, spec: { replicas: 1 } });
  const machines = async () => (await admin.get(NodePool, target)).status?.machines;
  await until("one machine", async () => (await machines()) === 1);
  await rotate("second");
  await admin.delete(Secret, { namespace: ACCOUNT.namespace, name: "first" });
  // The API server caches a token for some seconds before it rejects it.
  let replicas = 1;
  const scale = async () => {
    replicas = 1 + (replicas % 3);
    await admin.mutate(NodePool, target, (draft) => {
      draft.spec.replicas = replicas;
    });
  };
  await until("a call was rejected", async () => {
    if ((await machines()) === replicas) await scale();
    return await isRefused();
  });
  await scale();
  await until("the later change is reconciled", async () => (await machines()) === replicas);
  const failures = [...parseScrape(await metrics())].filter(([series]) =>
    series.startsWith("konverge_reconcile_errors_total"),
  );
  expect(failures.map(([, count]) => count)).toEqual([0]);
  expect(await worker.stop()).toBe(0);
});
