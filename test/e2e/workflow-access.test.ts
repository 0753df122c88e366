import type { ApiObject } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import { openWorkflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { ConfigMap, Deployment as Deployments, Pod } from "konverge/kinds";
import { runCommand } from "./cli-runner.ts";
import { runContainer, type Deployment } from "./deployed-worker.ts";
import { openRbacCluster } from "./rbac-cluster.ts";
import { until } from "../support/until.ts";
import { PATIENT_MS } from "../support/patient.ts";

const CONFIG = "test/e2e/gated-setting.config.ts";
const ACCOUNT = { namespace: "konverge", name: "konverge" };
const NAME = "gated-setting";
const HEALED_MS = 60_000;

interface Role extends ApiObject {
  readonly rules: readonly { readonly resources: readonly string[] }[];
}

async function printManifests(): Promise<ApiObject[]> {
  const args = [
    "--config",
    CONFIG,
    "--image",
    "registry.example/operator:1",
    "--watch-replicas",
    "1",
  ];
  const { stdout } = await runCommand(["manifests", ...args, "-o", "json"], {});
  return (JSON.parse(stdout) as { items: ApiObject[] }).items;
}

test("a workflow's kinds grant its permissions; without them it reports the missing rule and continues once granted", async (context) => {
  if (process.env["KUBEBUILDER_ASSETS"] === undefined) {
    context.skip("no kube-apiserver: only a real one checks permissions");
    return;
  }
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const cluster = await openRbacCluster();
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  const manifests = await printManifests();
  const role = manifests.find(({ kind }) => kind === "ClusterRole") as Role;
  const withRules = (rules: Role["rules"]): Role => ({ ...role, rules });
  const without = role.rules.filter(({ resources }) => !resources.includes(ConfigMap.resource));
  expect(without).toHaveLength(role.rules.length - 1);
  // At first, writes and reads are permitted, and watches are not.
  const verbs = ["get", "create", "patch", "delete"];
  const blind = { apiGroups: [""], resources: [ConfigMap.resource], verbs };
  await cluster.apply(
    manifests.map((one) => (one === role ? withRules([...without, blind]) : one)),
  );
  const deployments = manifests.filter(({ kind }) => kind === "Deployment") as Deployment[];
  expect(deployments).toHaveLength(2);
  const kubeconfig = await cluster.kubeconfigOf(ACCOUNT);
  const host = { redisUrl: redis.url, kubeconfig, folder: cluster.folder };
  const workers = deployments.map((deployment) => runContainer(deployment, host));
  onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.stop()))));
  await Promise.all(workers.map((worker) => worker.said("worker ready")));
  const runs = openWorkflows({ redis: { url: redis.url, deadlineMs: PATIENT_MS } });
  onTestFinished(() => runs.close());
  const ref = { workflow: "gated", id: "first" };
  const gated = { name: "gated", version: 1 };
  const says = async (words: string) =>
    await until(
      `the run reports ${words}`,
      async () => {
        const { waits } = (await runs.get(ref)) ?? {};
        return waits?.[0]?.message?.includes(words) === true;
      },
      HEALED_MS,
    );
  const answer = async () => {
    const body = { data: { answer: "yes" } };
    const target = { namespace: "default", name: NAME };
    await cluster.admin.patch(ConfigMap, target, { type: "merge", body }, { unguarded: true });
  };
  const ended = async () =>
    await until(
      "the run has ended",
      async () => (await runs.get(ref))?.endedAtMs !== undefined,
      HEALED_MS,
    );

  await runs.start(gated, NAME, { id: ref.id });
  await says("does not meet its predicate");
  const logged = () =>
    workers.flatMap(({ lines }) => lines.filter((line) => line.includes("cannot be watched")));
  await until("it is logged", () => logged().length > 0, HEALED_MS);
  expect(logged()[0]).toContain("Add the kind to kinds of the workflow");
  await cluster.apply([withRules(without)]);
  await answer();
  await says("cannot be read");
  await cluster.apply([role]);
  await ended();
  expect(await runs.get(ref)).toMatchObject({ status: "done" });
  // The watch was retried in the meantime.
  expect(logged()).toHaveLength(1);

  const before = cluster.callsOf(ACCOUNT).length;
  ref.id = "second";
  await runs.start(gated, NAME, { id: ref.id });
  await says("does not meet its predicate");
  await answer();
  await ended();
  expect(await runs.get(ref)).toMatchObject({ status: "done" });

  const labels = { app: NAME };
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: "main", image: "main" }], automountServiceAccountToken: false },
  };
  const metadata = { namespace: "default", name: NAME };
  await cluster.admin.create(Pod, { metadata, spec: template.spec });
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await cluster.admin.create(Deployments, { metadata, spec });
  const resized = { workflow: "resized", id: "first" };
  await runs.start({ name: "resized", version: 1 }, NAME, { id: resized.id });
  await until(
    "the other run has ended",
    async () => (await runs.get(resized))?.endedAtMs !== undefined,
    HEALED_MS,
  );
  expect(await runs.get(resized)).toMatchObject({ status: "done" });
  const scaled = await cluster.admin.get(Deployments, metadata);
  expect(scaled.spec).toMatchObject({ replicas: 3 });

  const calls = cluster.callsOf(ACCOUNT).slice(before);
  const through = calls.map(({ objectRef }) => objectRef?.subresource);
  expect(through).toEqual(expect.arrayContaining(["scale", "eviction"]));
  expect(calls.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([]);
});
