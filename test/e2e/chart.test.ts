import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { ApiObject } from "@konverge/core";
import { isNotFound } from "@konverge/kube";
import { dump, load, loadAll } from "js-yaml";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
import { findHelm, HELM_VERSION } from "../../infra/helm/find-helm.js";
import {
  alertGroups,
  BACKLOG_AGE_QUERY,
  RUNBOOKS,
} from "../../apps/cli/src/manifests/alert-rules.ts";
import { openRbacCluster, type RbacCluster } from "./rbac-cluster.ts";

const run = promisify(execFile);
const CHART = "infra/helm/konverge";
/** Kinds of other operators, which the tests' API server does not serve. */
const FOREIGN = ["PodMonitor", "PrometheusRule", "ScaledObject"];

let helmPath: string | undefined;
let missing = "";
let folder: string;
let cluster: RbacCluster | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "konverge-chart-"));
  const found = await findHelm({ log: (line) => console.error(line) });
  if ("missing" in found) missing = found.missing;
  else helmPath = found.path;
  if (helmPath === undefined || process.env["KUBEBUILDER_ASSETS"] === undefined) return;
  cluster = await openRbacCluster();
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** @returns its stdout; rejects with its stderr */
async function helm(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(helmPath ?? "", args, {
    env: {
      ...process.env,
      HELM_CACHE_HOME: folder,
      HELM_CONFIG_HOME: folder,
      HELM_DATA_HOME: folder,
    },
  });
  return stdout;
}
const isSkipped = (context: TestContext, needsServer = false) => {
  if (helmPath === undefined) context.skip(missing);
  if (needsServer && cluster === undefined) context.skip("no kube-apiserver to check the objects");
};
const template = async (...values: readonly string[]) =>
  (
    loadAll(
      await helm(
        "template",
        "konverge",
        CHART,
        "-n",
        "konverge",
        ...values.flatMap((v) => ["-f", v]),
      ),
    ) as (ApiObject | null)[]
  ).filter((object) => object !== null);
async function konverge(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [
    "--conditions=@konverge/source",
    "apps/cli/src/main.ts",
    "manifests",
    "--config",
    "apps/examples/src/konverge.config.ts",
    "--image",
    "registry.example/operator:1.2.3",
    ...args,
  ]);
  return stdout;
}
async function printedValues(...args: readonly string[]): Promise<string> {
  const path = join(folder, "printed-values.yaml");
  await writeFile(path, await konverge("-o", "values", ...args));
  return path;
}
async function valuesFile(values: object): Promise<string> {
  const path = join(folder, "own-values.yaml");
  await writeFile(path, dump(values));
  return path;
}
/** The examples with a provider. */
async function configWithSecrets(): Promise<string> {
  const path = join(folder, "secrets.config.ts");
  const imports = `import config from "${resolve("apps/examples/src/konverge.config.ts")}";
import { kubeconfigSecrets } from "${resolve("libs/worker/src/index.ts")}";`;
  const clusters = 'kubeconfigSecrets({ namespace: "fleet" })';
  await writeFile(path, `${imports}\nexport default { ...config, clusters: ${clusters} };\n`);
  return path;
}
/** The examples with an API that accepts Kubernetes tokens. */
async function configWithAudiences(): Promise<string> {
  const path = join(folder, "audiences.config.ts");
  const imports = `import config from "${resolve("apps/examples/src/konverge.config.ts")}";`;
  const settings = '{ ...config.settings, kubeAudiences: ["konverge", "https://id.example"] }';
  await writeFile(path, `${imports}\nexport default { ...config, settings: ${settings} };\n`);
  return path;
}
/** The examples with an API at which users sign in. */
async function configWithSignIn(): Promise<string> {
  const path = join(folder, "sign-in.config.ts");
  const imports = `import config from "${resolve("apps/examples/src/konverge.config.ts")}";`;
  const settings = `{
    ...config.settings,
    oidcIssuer: "https://id.example/realms/one",
    oidcClientId: "konverge",
    oidcRedirectUrl: "https://konverge.example/auth/callback",
    oidcRoles: [
      { group: "platform", role: "admin" },
      { group: "shop", role: "operator", scope: { namespaces: ["shop"], clusters: ["default"] }, classes: ["event"] },
    ],
  }`;
  await writeFile(path, `${imports}\nexport default { ...config, settings: ${settings} };\n`);
  return path;
}
const scenarios = globSync(`${CHART}/ci/*-values.yaml`);

test.for([
  { what: "alone", args: ["--replicas", "3"] },
  { what: "with Roles only", args: ["--namespaces", "shop,staging"] },
  {
    what: "with Kubernetes tokens for the API",
    args: ["--api-secret", "api", "--config-in-image", "x.ts"],
    config: configWithAudiences,
  },
  {
    what: "with users of an OIDC provider",
    args: ["--api-secret", "api", "--config-in-image", "x.ts"],
    config: configWithSignIn,
  },
  {
    what: "with kubeconfigs in Secrets",
    args: ["--config-in-image", "x.ts"],
    config: configWithSecrets,
  },
  { what: "with watchers and the API", args: ["--watch-replicas", "2", "--api-secret", "api"] },
])(
  "with printed values, $what, the chart renders the objects of konverge manifests",
  async ({ args: given, config }, context) => {
    isSkipped(context);
    const args = config === undefined ? given : [...given, "--config", await config()];
    const fromChart = (await template(await printedValues(...args))).map(comparable);
    const printed = (loadAll(await konverge(...args)) as ApiObject[])
      // Helm creates the namespace itself, with --create-namespace.
      .filter(({ kind }) => kind !== "Namespace")
      .map(comparable);
    const nameOf = ({ kind, metadata }: ApiObject) =>
      `${kind} ${metadata.namespace} ${metadata.name}`;
    const sorted = (objects: readonly ApiObject[]) =>
      objects.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));
    expect(sorted(fromChart)).toEqual(sorted(printed));
  },
);

test.for(scenarios)(
  "%s: passes the linter, and a real API server accepts every object",
  async (path, context) => {
    isSkipped(context, true);
    const linted = await helm("lint", "--strict", CHART, "-f", path);
    expect(linted).toContain("0 chart(s) failed");
    const objects = await template(path);
    expect(objects.length).toBeGreaterThan(3);
    await cluster?.ensureNamespace("konverge");
    for (const object of objects) {
      if (!FOREIGN.includes(object.kind)) await cluster?.dryRun(object);
    }
  },
);

test("renders objects of other operators in their documented form", async (context) => {
  isSkipped(context);
  const objects = await template(`${CHART}/ci/operators-values.yaml`);
  const query = BACKLOG_AGE_QUERY.replaceAll("INSTALLATION", "konverge");
  const find = (kind: string) => objects.find((object) => object.kind === kind) as never as object;
  expect(find("ScaledObject")).toMatchObject({
    apiVersion: "keda.sh/v1alpha1",
    spec: {
      scaleTargetRef: { name: "konverge-worker" },
      triggers: [
        {
          type: "prometheus",
          metricType: "Value",
          metadata: { query, threshold: "10", ignoreNullValues: "false" },
        },
      ],
    },
  });
  expect(find("PodMonitor")).toMatchObject({
    metadata: { labels: { release: "prometheus" } },
    spec: {
      podMetricsEndpoints: [
        { port: "metrics", interval: "30s" },
        {
          port: "http",
          path: "/metrics",
          interval: "30s",
          authorization: { credentials: { name: "konverge-scrape", key: "token" } },
        },
      ],
    },
  });
  const { spec } = find("PrometheusRule") as { spec: object };
  const target = { installation: "konverge", clusters: ["default"], runbooks: RUNBOOKS };
  expect(spec).toEqual({ groups: alertGroups(target) });
  // A number of replicas in the Deployment would conflict with the autoscaler.
  expect(find("Deployment")).not.toHaveProperty("spec.replicas");
});

test("with a digest, Pods run this image and report it as their build", async (context) => {
  isSkipped(context);
  const least = `${CHART}/ci/least-values.yaml`;
  const { image } = load(readFileSync(least, "utf8")) as { readonly image: string };
  const imageDigest = `sha256:${"ab".repeat(32)}`;
  const objects = await template(least, await valuesFile({ imageDigest }));
  const pinned = `${image}@${imageDigest}`;
  const container = expect.objectContaining({
    image: pinned,
    env: expect.arrayContaining([{ name: "KONVERGE_BUILD_ID", value: pinned }]) as unknown,
  }) as unknown;
  expect(objects.find(({ kind }) => kind === "Deployment")).toMatchObject({
    spec: { template: { spec: { containers: [container] } } },
  });
  await expect(template(least, await valuesFile({ imageDigest: "latest" }))).rejects.toThrow(
    /imageDigest/,
  );
  await expect(template(least, await valuesFile({ image: pinned, imageDigest }))).rejects.toThrow(
    /imageDigest: image already has a digest/,
  );
});

test("with network policies, only listed peers reach the metrics and the API", async (context) => {
  isSkipped(context);
  const scenario = `${CHART}/ci/split-values.yaml`;
  const { networkPolicy } = load(readFileSync(scenario, "utf8")) as {
    readonly networkPolicy: { readonly metricsFrom: object; readonly apiFrom: object };
  };
  const policies = async (...values: readonly string[]) =>
    (await template(...values))
      .filter(({ kind }) => kind === "NetworkPolicy")
      .toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  const on = async (values: object = {}) =>
    await policies(scenario, await valuesFile({ networkPolicy: { enabled: true, ...values } }));
  const expected = (component: string, ingress: object) => ({
    metadata: { name: `konverge-${component}` },
    spec: {
      podSelector: { matchLabels: { "app.kubernetes.io/component": component } },
      policyTypes: ["Ingress"],
      ingress,
    },
  });
  const to = (port: string, from: object) => [{ from, ports: [{ protocol: "TCP", port }] }];
  expect(await on()).toMatchObject([
    expected("api", to("http", networkPolicy.apiFrom)),
    expected("watcher", to("metrics", networkPolicy.metricsFrom)),
    expected("worker", to("metrics", networkPolicy.metricsFrom)),
  ]);
  // A rule without peers would admit everyone.
  expect(await on({ metricsFrom: [], apiFrom: [] })).toMatchObject([
    expected("api", []),
    expected("watcher", []),
    expected("worker", []),
  ]);
  expect(await policies(`${CHART}/ci/least-values.yaml`)).toEqual([]);
});

test("with printed values, the rules are those of konverge manifests -o alerts", async (context) => {
  isSkipped(context);
  const runbooks = "https://wiki.example/konverge";
  const own = { monitoring: { prometheusRule: true, runbooks } };
  const objects = await template(await printedValues(), await valuesFile(own));
  const rule = objects.find(({ kind }) => kind === "PrometheusRule") as never as { spec: object };
  expect(rule.spec).toEqual(load(await konverge("-o", "alerts", "--runbooks", `${runbooks}/`)));
});

const image = "registry.example/operator:1.2.3";
test.for([
  { wrong: { image, worker: {} }, error: "additional properties 'worker' not allowed" },
  {
    wrong: { image, workers: { replica: 3 } },
    error: "additional properties 'replica' not allowed",
  },
  { wrong: {}, error: "at '/image'" },
  {
    wrong: { image },
    error: "rbac.clusterRules: is empty; copy it from konverge manifests -o values",
  },
  {
    wrong: { image, rbac: { create: false }, api: { enabled: true } },
    error: "at '/api/existingSecret'",
  },
  { wrong: { image, autoscaling: { hpa: true, keda: true } }, error: "at '/autoscaling'" },
  {
    wrong: {
      image,
      workers: { extraEnv: [{ name: "KONVERGE_REDIS_URL", value: "redis://pw@r" }] },
    },
    error: "at '/workers/extraEnv/0'",
  },
  { wrong: { image, api: { ingress: { enabled: true } } }, error: "at '/api/ingress/host'" },
  {
    wrong: { image, networkPolicy: { enabled: true, metricsFrom: [{}] } },
    error: "at '/networkPolicy/metricsFrom/0'",
  },
])("rejects invalid values with their path: $error", async ({ wrong, error }, context) => {
  isSkipped(context);
  const failed = (await template(await valuesFile(wrong)).catch((thrown: unknown) => thrown)) as {
    readonly stderr: string;
  };
  expect(failed.stderr).toContain(error);
});

test("installs and upgrades; uninstalling keeps the CRDs and their objects", async (context) => {
  isSkipped(context, true);
  if (cluster === undefined) return;
  const { admin } = cluster;
  const at = ["-n", "shop", "--kubeconfig", cluster.kubeconfigPath];
  const values = await printedValues();
  const notes = await helm("install", "konverge", CHART, ...at, "--create-namespace", "-f", values);
  expect(notes).toContain(`konverge runs ${image} in shop.`);
  const deployments = await admin.resolveType("apps/v1", "Deployment");
  const worker = { namespace: "shop", name: "konverge-worker" };
  await admin.get(deployments, worker);
  await helm("upgrade", "konverge", CHART, ...at, "-f", values, "--set", "workers.replicas=5");
  expect(await admin.get(deployments, worker)).toMatchObject({ spec: { replicas: 5 } });
  await helm("uninstall", "konverge", ...at);
  const gone = await admin.get(deployments, worker).catch((error: unknown) => error);
  expect(isNotFound(gone)).toBe(true);
  const crds = await admin.resolveType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  await admin.get(crds, { name: "nodepools.demo.konverge.dev" });
});

test("Helm's module has the version that the build reports", () => {
  expect(readFileSync("infra/helm/tool/go.mod", "utf8")).toContain(
    `helm.sh/helm/v3 ${HELM_VERSION} `,
  );
});

/** Removes the labels and annotations that name the tool. */
function comparable(object: ApiObject): ApiObject {
  const text = JSON.stringify(object, (key, value: unknown) => {
    if (key === "app.kubernetes.io/managed-by") return undefined;
    if (key === "helm.sh/resource-policy") return undefined;
    return value;
  });
  const copy = JSON.parse(text) as ApiObject;
  if (Object.keys(copy.metadata.annotations ?? { kept: "" }).length === 0)
    delete copy.metadata.annotations;
  return copy;
}
