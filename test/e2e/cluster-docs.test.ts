import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test, type TestContext } from "vitest";
import { findHelm } from "../../infra/helm/find-helm.js";
import { isOnPath } from "../../infra/host/run.js";
import { runCommand } from "./cli-runner.ts";
import { BACKLOG_AGE_QUERY } from "../../apps/cli/src/manifests/alert-rules.ts";
import { openReadersShell, type ReadersShell } from "../support/readers-shell.ts";
import { openRbacCluster, type RbacCluster } from "./rbac-cluster.ts";

/** Returns the first `sh` block below a heading of docs/cluster.md. */
function blockBelow(heading: string): string {
  const text = readFileSync("docs/cluster.md", "utf8");
  const below = text.slice(text.indexOf(`${heading}\n`));
  return /```sh\n(.*?)```/s.exec(below)?.[1] ?? "";
}

/** Creates a reader's shell with a project, the command line and a kubeconfig. */
async function readersShell(
  { kubeconfigPath }: RbacCluster,
  programs: Readonly<Record<string, string>> = {},
): Promise<ReadersShell["type"]> {
  const { folder, bin, type } = await openReadersShell({ KUBECONFIG: kubeconfigPath });
  for (const [name, path] of Object.entries(programs)) await symlink(path, join(bin, name));
  await symlink(resolve("infra"), join(folder, "infra"));
  const config = JSON.stringify(resolve("apps/examples/src/konverge.config.ts"));
  await writeFile(join(folder, "konverge.config.ts"), `export { default } from ${config};\n`);
  await writeFile(join(folder, "redis-url.txt"), "redis://redis.example:6379");
  return type;
}

/** @param missing why a program is missing, if it is */
async function open(context: TestContext, missing: string | undefined): Promise<RbacCluster> {
  if (process.env["KUBEBUILDER_ASSETS"] === undefined) context.skip("no kube-apiserver");
  if (missing !== undefined) context.skip(missing);
  const cluster = await openRbacCluster();
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  return cluster;
}

test("docs/cluster.md: the commands install the printed manifests and are idempotent", async (context) => {
  const cluster = await open(context, isOnPath("kubectl") ? undefined : "no kubectl on PATH");
  const type = await readersShell(cluster);
  const said = await type(blockBelow("# Run it on a cluster"));
  expect(said).toContain("deployment.apps/konverge-worker serverside-applied");
  expect(said).toContain("secret/konverge-redis created");
  const where = { namespace: "konverge", name: "konverge-worker" };
  const deployments = await cluster.admin.resolveType("apps/v1", "Deployment");
  const { metadata } = await cluster.admin.get(deployments, where);
  await type("kubectl apply --server-side -f konverge.yaml");
  const after = await cluster.admin.get(deployments, where);
  expect(after.metadata.resourceVersion).toBe(metadata.resourceVersion);
  const missing = await type(
    "kubectl auth can-i list secrets --as system:serviceaccount:konverge:konverge || true; kubectl auth can-i watch nodepools.demo.konverge.dev --as system:serviceaccount:konverge:konverge",
  );
  expect(missing.trim().split("\n")).toEqual(["no", "yes"]);
});

test("docs/cluster.md: the commands install the chart", async (context) => {
  const helm = await findHelm();
  const path = "path" in helm ? helm.path : undefined;
  const cluster = await open(context, "missing" in helm ? helm.missing : undefined);
  const type = await readersShell(cluster, path?.includes("/") === true ? { helm: path } : {});
  const said = await type(blockBelow("## Helm"));
  expect(said).toContain("STATUS: deployed");
  const deployments = await cluster.admin.resolveType("apps/v1", "Deployment");
  await cluster.admin.get(deployments, { namespace: "konverge", name: "konverge-worker" });
});

test("docs/cluster.md: shows the query of the chart", () => {
  const text = readFileSync("docs/cluster.md", "utf8").replaceAll(/\s+/g, " ");
  const query = BACKLOG_AGE_QUERY.replaceAll("INSTALLATION", "konverge");
  expect(text.split(query)).toHaveLength(3);
});

test("docs/cluster.md: the manifests grant the permissions that a controller names", async () => {
  const [, block = ""] = /```ts\n(.*?)```/s.exec(readFileSync("docs/cluster.md", "utf8")) ?? [];
  // Inside the checkout, where its imports resolve.
  const folder = await mkdtemp(join(import.meta.dirname, "cluster-docs-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const config = join(folder, "konverge.config.ts");
  const kinds = JSON.stringify(resolve("apps/examples/src/resources.ts"));
  await writeFile(
    config,
    `import { defineConfig, defineController } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { Machine, NodePool } from ${kinds};
const controller = ${block}
export default defineConfig({ controllers: [controller] });\n`,
  );
  const args = ["manifests", "--config", config, "--config-in-image", "c.ts", "--image", "i:1"];
  const { stdout } = await runCommand([...args, "-o", "json"], {});
  const { items } = JSON.parse(stdout) as {
    readonly items: readonly {
      readonly kind: string;
      readonly rules?: readonly { readonly resources: string[]; readonly verbs: string[] }[];
    }[];
  };
  const rules = items.find(({ kind }) => kind === "ClusterRole")?.rules ?? [];
  const verbsOf = (resource: string) =>
    rules.flatMap(({ resources, verbs }) => (resources.includes(resource) ? verbs : [])).toSorted();
  expect(verbsOf("configmaps")).toEqual(["get"]);
  expect(verbsOf("machines")).toEqual(["create", "delete", "get", "list", "watch"]);
});
