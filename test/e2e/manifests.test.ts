import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLocalGate, type ApiObject } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import {
  createKubeClient,
  isForbidden,
  loadKubeCredentials,
  type KubeClient,
} from "@konverge/kube";
import { defineController } from "@konverge/engine";
import { createControllerRegistry } from "@konverge/queue";
import { defineConfig, requiredAccess, startWorker } from "@konverge/worker";
import { loadAll } from "js-yaml";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { Autoscaler, Machine, NodePool } from "../../apps/examples/src/resources.ts";
import { accessManifests } from "../../apps/cli/src/manifests/access-manifests.ts";
import { keepLog } from "../../apps/cli/src/testing/kept-log.ts";
import { runCommand } from "./cli-runner.ts";
import { runContainer, type Deployment } from "./deployed-worker.ts";
import { openRbacCluster, type RbacCluster } from "./rbac-cluster.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const MAIN = ["--conditions=@konverge/source", "apps/cli/src/main.ts"];
const CONFIG = "apps/examples/src/konverge.config.ts";
const COMMAND = ["manifests", "--config", CONFIG, "--image", "registry.example/operator:1.2.3"];
const ACCOUNT = { namespace: "konverge", name: "konverge" };

interface Ended {
  readonly code: number;
  readonly stderr: string;
}
interface Role extends ApiObject {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

interface Kinds {
  readonly Deployment: Deployment;
  readonly ClusterRole: Role;
  readonly Role: Role;
}

let manifests: ApiObject[];
const find = <K extends keyof Kinds>(kind: K): Kinds[K] => {
  const found = manifests.find((manifest) => manifest.kind === kind);
  if (found === undefined) throw new Error(`there is no ${kind}`);
  return found as Kinds[K];
};
async function printManifests(...args: readonly string[]): Promise<ApiObject[]> {
  const { stdout } = await runCommand([...COMMAND, ...args], {});
  return args.includes("json")
    ? (JSON.parse(stdout) as { items: ApiObject[] }).items
    : (loadAll(stdout) as ApiObject[]);
}

/** Sends a request with the given Host header, which `fetch` does not support. */
async function statusOf(port: number, path: string, host: string): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    get({ port, path, host: "127.0.0.1", headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on("error", reject);
  });
}

let cluster: RbacCluster | undefined;
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  manifests = await printManifests("--replicas", "3");
  redis = await startRedis();
  if (process.env["KUBEBUILDER_ASSETS"] === undefined) return;
  cluster = await openRbacCluster();
  await cluster.apply(manifests);
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await redis.stop();
});
const NO_SERVER = "no kube-apiserver: only a real one checks permissions";

test("a restricted namespace admits the printed pod, and rejects it without its security settings", async (context) => {
  if (cluster === undefined) {
    context.skip(NO_SERVER);
    return;
  }
  const { template } = find("Deployment").spec;
  const pod = { apiVersion: "v1", kind: "Pod", ...template };
  const dryRun = (spec: object) =>
    cluster?.dryRun({ ...pod, spec, metadata: { ...ACCOUNT, name: "probe" } } as never);
  await dryRun(template.spec);
  const { securityContext: _without, ...unsafe } = template.spec as never as Record<string, object>;
  const refused = await dryRun(unsafe)?.catch((error: unknown) => error);
  expect(isForbidden(refused)).toBe(true);
  expect(String(refused)).toContain('violates PodSecurity "restricted');
});

test("-o grafana prints the dashboard of infra/grafana as a ConfigMap for Grafana's sidecar", async () => {
  expect(await printManifests("-o", "grafana", "--name", "shop")).toMatchObject([
    {
      kind: "ConfigMap",
      metadata: { name: "shop-dashboard", labels: { grafana_dashboard: "1" } },
      data: { "konverge.json": readFileSync("infra/grafana/konverge.json", "utf8") },
    },
  ]);
});

test("limits the memory and the disk space of each container", async () => {
  const printed = await printManifests("--watch-replicas", "1", "--api-secret", "api");
  const deployments = printed.filter(({ kind }) => kind === "Deployment") as Deployment[];
  expect(deployments).toHaveLength(3);
  for (const { metadata, spec } of deployments) {
    const memory = metadata.name === "konverge-api" ? "384Mi" : "512Mi";
    expect(spec.template.spec.containers[0]).toHaveProperty("resources", {
      requests: { cpu: "250m", memory, "ephemeral-storage": "128Mi" },
      limits: { memory, "ephemeral-storage": "1Gi" },
    });
  }
});

test.for([
  { what: "two workers", args: [] },
  { what: "a watcher and a worker that only works", args: ["--watch-replicas", "1"] },
])(
  "$what run the demo's load with the account's own token, without a forbidden call",
  async ({ args }, context) => {
    if (cluster === undefined) {
      context.skip(NO_SERVER);
      return;
    }
    const { admin, folder } = cluster;
    const printed = await printManifests(...args);
    const deployments = printed.filter(({ kind }) => kind === "Deployment") as Deployment[];
    const [first = find("Deployment"), second = first] = deployments;
    const host = { redisUrl: redis.url, kubeconfig: await cluster.kubeconfigOf(ACCOUNT), folder };
    const from = cluster.callsOf(ACCOUNT).length;
    const workers = [runContainer(first, host), runContainer(second, host)];
    onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.stop()))));
    await Promise.all(workers.map((worker) => worker.said("worker ready")));
    await playStory(admin, `demo-${deployments.length}`);
    expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual([0, 0]);
    const lines = workers.flatMap((worker) => worker.lines);
    // Warnings of Node, for example, are not JSON.
    expect(lines.filter((line) => !line.startsWith("{"))).toEqual([]);
    const troubles = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ level, msg }) => level === "error" || msg === "watch interrupted");
    expect(troubles).toEqual([]);

    const calls = cluster.callsOf(ACCOUNT).slice(from);
    expect(calls.length).toBeGreaterThan(50);
    expect(calls.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([]);
    // Each granted rule was used, except those that other handlers need.
    const used = new Set(
      calls.map(({ verb, objectRef: { apiGroup = "", resource = "", subresource } = {} }) => {
        return `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}.${apiGroup}`;
      }),
    );
    const granted = [find("ClusterRole"), find("Role")].flatMap(({ rules }) =>
      rules.flatMap(({ apiGroups: [group = ""], resources, verbs }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${group}`)),
      ),
    );
    const unused = granted.filter((verb) => !used.has(verb));
    const needless = [
      // Events report only reconcile loops and contention.
      "create events.events.k8s.io",
      // `kube` offers these for every child and object; these handlers do not use them.
      "get machines.demo.konverge.dev",
      // For the pages of objects, which this test does not open.
      "list events.",
      "patch autoscalers.demo.konverge.dev",
      "patch events.events.k8s.io",
      "patch machines.demo.konverge.dev",
      // Admission checks this when an owner reference is set; no call uses it.
      "update nodepools/finalizers.demo.konverge.dev",
    ];
    const optional = new Set([
      // Created by the first run, found by the second one.
      "create leases.coordination.k8s.io",
      // Sent only if a worker's watch is behind.
      "get autoscalers.demo.konverge.dev",
      "get configmaps.",
      "get nodepools.demo.konverge.dev",
    ]);
    expect(unused.filter((verb) => !optional.has(verb)).toSorted()).toEqual(needless);
  },
);

test("the project of konverge init runs with Roles only, in its namespaces", async (context) => {
  if (cluster === undefined) {
    context.skip(NO_SERVER);
    return;
  }
  const { admin, folder } = cluster;
  const config = "apps/cli/templates/project/konverge.config.ts";
  const account = { namespace: "ops", name: "greeter" };
  const namespaces = "greetings,more-greetings";
  const where = `--namespace ${account.namespace} --name ${account.name} --namespaces ${namespaces}`;
  const what = `--config ${config} --image registry.example/greeter:1 -o json`;
  const { stdout } = await runCommand(["manifests", ...`${what} ${where}`.split(" ")], {});
  const { items } = JSON.parse(stdout) as { readonly items: ApiObject[] };
  expect(items.map(({ kind }) => kind)).not.toContain("ClusterRole");
  for (const name of ["greetings", "more-greetings", "elsewhere"])
    await cluster.ensureNamespace(name);
  await cluster.apply(items);
  const own = await startRedis();
  onTestFinished(() => own.stop());
  const kubeconfig = await cluster.kubeconfigOf(account);
  await untilOwnersAreKnown(kubeconfig, "greetings", {
    apiVersion: "example.com/v1",
    kind: "Greeting",
  });
  const from = cluster.callsOf(account).length;
  const [deployment] = items.filter(({ kind }) => kind === "Deployment") as Deployment[];
  if (deployment === undefined) throw new Error("there is no Deployment");
  const worker = runContainer(deployment, { redisUrl: own.url, kubeconfig, folder });
  onTestFinished(async () => void (await worker.stop()));
  await worker.said("worker ready");

  const Greeting = await admin.resolveType("example.com/v1", "Greeting");
  const greet = (namespace: string) =>
    admin.create(Greeting, {
      metadata: { namespace, name: "world" },
      spec: { name: "World" },
    } as never);
  const textIn = async (namespace: string) => {
    const { items: found } = await admin.list(ConfigMap, { namespace });
    return found.find(({ metadata }) => metadata.name === "world")?.data?.["text"];
  };
  await greet("elsewhere");
  for (const namespace of ["greetings", "more-greetings"]) {
    await greet(namespace);
    await until(
      `a greeting in ${namespace}`,
      async () => (await textIn(namespace)) === "Hello, World!",
    );
  }
  await admin.delete(ConfigMap, { namespace: "greetings", name: "world" });
  await until("it is written again", async () => (await textIn("greetings")) === "Hello, World!");
  expect(await textIn("elsewhere")).toBeUndefined();

  const checks = await runCommand(["doctor", "--config", config, "-o", "json"], {
    KUBECONFIG: kubeconfig,
    KONVERGE_REDIS_URL: own.url,
    KONVERGE_NAMESPACES: namespaces,
    KONVERGE_LEASE_NAMESPACE: account.namespace,
  });
  expect(checks.stdout).not.toContain('"fail"');
  expect(await worker.stop()).toBe(0);
  const calls = cluster.callsOf(account).slice(from);
  const forbidden = calls.filter(({ responseStatus }) => responseStatus?.code === 403);
  // The comparison of the CRD with its definition is left out without this permission.
  const textOf = ({ verb, objectRef: { resource = "", namespace = "" } = {} }: (typeof calls)[0]) =>
    `${verb} ${resource} ${namespace}`.trim();
  expect([...new Set(forbidden.map(textOf))]).toEqual(["get customresourcedefinitions"]);
  const inside = new Set(calls.map(({ objectRef }) => objectRef?.namespace));
  expect([...inside].filter((namespace) => namespace !== undefined).toSorted()).toEqual([
    "greetings",
    "more-greetings",
    "ops",
  ]);
});

test("a worker that follows namespaces by labels runs with the printed roles, and names a missing rule", async (context) => {
  if (cluster === undefined) {
    context.skip(NO_SERVER);
    return;
  }
  const { admin } = cluster;
  const account = { namespace: "followers", name: "follower" };
  const reconciled: string[] = [];
  const namespaces = { labels: "team=follow" };
  const config = defineConfig({
    settings: { leaseNamespace: account.namespace },
    controllers: [
      defineController({
        name: "follower",
        for: { type: ConfigMap, labels: "follow=yes" },
        async reconcile({ object: { metadata } }) {
          reconciled.push(`${metadata.namespace}/${metadata.name}`);
        },
      }),
    ],
    clusters: { default: { namespaces } },
  });
  const access = requiredAccess(config, {
    installation: "konverge",
    leaseNamespace: account.namespace,
    namespaces,
  });
  const installation = { ...account, image: "registry.example/follower:1" };
  await cluster.ensureNamespace(account.namespace);
  await cluster.ensureNamespace("followed");
  const printed = accessManifests(installation, access);
  const poorer = access.cluster.filter(({ resources }) => !resources.includes("namespaces"));
  const identity = access.cluster.filter(({ resourceNames }) => resourceNames !== undefined);
  await cluster.apply(
    accessManifests(installation, { ...access, cluster: [...poorer, ...identity] }),
  );
  const own = await startRedis();
  onTestFinished(() => own.stop());
  const kubeconfig = await cluster.kubeconfigOf(account);
  const start = () => startWorker({ config, redis: own.url, kubeconfig, log: keepLog([]) });
  await expect(start()).rejects.toMatchObject({
    code: "forbidden",
    message: expect.stringContaining(
      'ClusterRole: - { apiGroups: [""], resources: [namespaces], verbs: [get, list, watch] }',
    ) as unknown,
  });
  await cluster.apply(printed);
  const worker = await until("the worker is permitted", () => start().catch(() => undefined));
  onTestFinished(() => worker.kill());
  const labels = { follow: "yes" };
  for (const namespace of ["followed", account.namespace]) {
    await admin.create(ConfigMap, { metadata: { namespace, name: "a", labels } });
  }
  await admin.mutate(Namespace, { name: "followed" }, (draft) => {
    (draft.metadata.labels ??= {})["team"] = "follow";
  });
  await until("it is reconciled", () => reconciled.length > 0);
  expect(reconciled).toEqual(["followed/a"]);
  const calls = cluster.callsOf(account).filter(({ verb }) => verb === "list");
  const listed = calls.map(({ objectRef }) => `${objectRef?.resource} ${objectRef?.namespace}`);
  expect([...new Set(listed)].toSorted()).toEqual(["configmaps followed", "namespaces undefined"]);
});

/** The admission of owner references forbids those to a new CRD until it has learned of the CRD. */
async function untilOwnersAreKnown(
  kubeconfigPath: string,
  namespace: string,
  owner: { readonly apiVersion: string; readonly kind: string },
): Promise<void> {
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 100, burst: 100 }),
    userAgent: "konverge-test/1",
  });
  const ownerReferences = [{ ...owner, name: "any", uid: "any", blockOwnerDeletion: true }];
  await until("owner references to the kind are admitted", async () => {
    const sent = client.raw({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/configmaps`,
      query: { dryRun: "All" },
      body: { metadata: { name: "owned", ownerReferences } },
    });
    return await sent.then(
      () => true,
      (error: unknown) => {
        if (isForbidden(error)) return false;
        throw error;
      },
    );
  });
  await client.close();
}

/** Runs a small version of the demo: pools scale with load, while an external writer changes the same objects. */
async function playStory(admin: KubeClient, namespace: string): Promise<void> {
  const pools = ["blue", "green", "red"];
  await admin.create(Namespace, { metadata: { name: namespace } });
  const loadOf = (load: number) => Object.fromEntries(pools.map((name) => [name, String(load)]));
  await admin.create(ConfigMap, { metadata: { namespace, name: "load" }, data: loadOf(20) });
  for (const name of pools) {
    await admin.create(NodePool, { metadata: { namespace, name }, spec: { replicas: 1 } });
    await admin.create(Autoscaler, {
      metadata: { namespace, name },
      spec: { poolRef: name, min: 1, max: 5, targetLoad: 10 },
    });
  }
  const machines = async (perPool: number) => {
    const { items } = await admin.list(Machine, { namespace });
    const listed = (await admin.list(NodePool, { namespace })).items;
    return (
      items.length === perPool * pools.length &&
      listed.every(({ status }) => status?.machines === perPool)
    );
  };
  await until("two machines a pool", () => machines(2));
  for (const [step, load] of [40, 10, 30].entries()) {
    await admin.mutate(ConfigMap, { namespace, name: "load" }, (draft) => {
      draft.data = loadOf(load);
    });
    for (const name of pools) {
      await admin.mutate(NodePool, { namespace, name }, (draft) => {
        (draft.metadata.labels ??= {})["demo.konverge.dev/step"] = String(step);
      });
    }
    await until(`${load / 10} machines a pool`, () => machines(load / 10));
  }
  for (const { metadata } of (await admin.list(Autoscaler, { namespace })).items) {
    await admin.delete(Autoscaler, { namespace, name: metadata.name });
  }
}

test.for([
  {
    missing: "watch machines",
    rule: "{ apiGroups: [demo.konverge.dev], resources: [machines], verbs: [get, list, watch, create, patch, delete] }",
    without: (resources: readonly string[]) => resources.includes("machines"),
  },
  {
    missing: "check the identity of the API server",
    rule: '{ apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get] }',
    without: (resources: readonly string[]) => resources.includes("namespaces"),
  },
])(
  "a worker without permission to $missing exits at once and names the rule",
  async ({ rule, without }, context) => {
    if (cluster === undefined) {
      context.skip(NO_SERVER);
      return;
    }
    const role = find("ClusterRole");
    const account = { namespace: "konverge", name: "konverge" };
    await cluster.apply([
      { ...role, rules: role.rules.filter(({ resources }) => !without(resources)) } as never,
    ]);
    onTestFinished(() => cluster?.apply([role]));
    const worker = runContainer(find("Deployment"), {
      redisUrl: redis.url,
      kubeconfig: await cluster.kubeconfigOf(account),
      folder: cluster.folder,
    });
    const code = await worker.exitCode;
    expect(worker.lines.join("\n")).toContain(`ClusterRole: - ${rule}`);
    expect(code).toBe(7);
  },
);

test("an undeclared call of a handler is rejected and named in the log", async (context) => {
  if (cluster === undefined) {
    context.skip(NO_SERVER);
    return;
  }
  const { admin, folder } = cluster;
  const role = find("ClusterRole");
  const rest = role.rules.map((rule) =>
    rule.resources.includes("nodepools")
      ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== "patch") }
      : rule,
  );
  await cluster.apply([{ ...role, rules: rest } as never]);
  onTestFinished(() => cluster?.apply([role]));
  const kubeconfig = await cluster.kubeconfigOf(ACCOUNT);
  const host = { redisUrl: redis.url, kubeconfig, folder };
  const worker = runContainer(find("Deployment"), host);
  onTestFinished(async () => void (await worker.stop()));
  await worker.said("worker ready");
  const target = { namespace: "default", name: "unsaid" };
  await admin.create(NodePool, { metadata: target, spec: { replicas: 1 } });
  onTestFinished(() => admin.delete(NodePool, target));
  const spec = { poolRef: target.name, min: 2, max: 3, targetLoad: 10 };
  await admin.create(Autoscaler, { metadata: target, spec });
  onTestFinished(() => admin.delete(Autoscaler, target));
  // Other tests have left pools.
  const logged = () =>
    worker.lines.filter(
      (line) => line.includes("cannot patch resource") && line.includes("/default/unsaid"),
    );
  await until("it is logged", () => logged().length > 0);
  expect(JSON.parse(logged()[0] ?? "")).toMatchObject({
    outcome: "rejected",
    err: {
      message: expect.stringMatching(
        /"nodepools" in API group "demo.konverge.dev" in the namespace "default"/,
      ),
    },
  });
});

test("a worker without permission for its Lease names the rule, and is elected once permitted", async (context) => {
  if (cluster === undefined) {
    context.skip(NO_SERVER);
    return;
  }
  const role = find("Role");
  await cluster.apply([{ ...role, rules: [] } as never]);
  onTestFinished(() => cluster?.apply([role]));
  const worker = runContainer(find("Deployment"), {
    redisUrl: redis.url,
    kubeconfig: await cluster.kubeconfigOf(ACCOUNT),
    folder: cluster.folder,
  });
  onTestFinished(async () => void (await worker.stop()));
  await worker.said("Kubernetes permissions missing");
  expect(worker.lines.join("\n")).toContain(
    "Role in konverge: - { apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [konverge-autoscaler, konverge-node-pool, konverge-redis.progress], verbs: [get, update] }",
  );
  await cluster.apply([role]);
  await worker.said("leadership acquired");
});

test("the printed API responds to a kubelet's probes and KEDA's trigger", async () => {
  const registry = createControllerRegistry({ redis: { url: redis.url }, cluster: "default" });
  await registry.announce([{ ...NodePool, cluster: "default", name: "node-pool" }]);
  await registry.close();
  const printed = await printManifests("--api-secret", "konverge-api");
  const isApi = ({ kind, metadata }: ApiObject) =>
    kind === "Deployment" && metadata.name === "konverge-api";
  const folder = await mkdtemp(join(tmpdir(), "konverge-api-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const token = "a-token-of-the-tests-0123456789abcdef";
  const deployment = printed.find(isApi) as Deployment;
  const api = runContainer(deployment, { redisUrl: redis.url, folder, token });
  onTestFinished(async () => void (await api.stop()));
  const { url } = await api.said("api listening");
  const { startupProbe, livenessProbe, readinessProbe } = deployment.spec.template.spec
    .containers[0] as never as Record<string, { httpGet: { path: string } }>;
  for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
    // A kubelet connects to the pod's address without a token.
    const port = new URL(String(url)).port;
    const answer = await statusOf(Number(port), probe?.httpGet.path ?? "", "10.1.2.3:7070");
    expect(answer).toBe(200);
  }

  const blocks = readFileSync("docs/cluster.md", "utf8").matchAll(/```yaml\n(.*?)```/gs);
  const documents = [...blocks].flatMap(([, text = ""]) => loadAll(text)) as (ApiObject & {
    readonly spec?: {
      readonly triggers?: readonly { readonly metadata: Record<string, string> }[];
    };
  })[];
  const scaled = documents.find(({ kind }) => kind === "ScaledObject");
  const { url: asked = "", valueLocation = "" } = scaled?.spec?.triggers?.[0]?.metadata ?? {};
  expect(new URL(asked).host).toBe("konverge-api.konverge:7070");
  const answered = await fetch(`${String(url)}${new URL(asked).pathname}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { items } = (await answered.json()) as { items: Record<string, unknown>[] };
  const [, field = "", value = "", wanted = ""] =
    /^items\.#\((\w+)=="([\w-]+)"\)\.(\w+)$/.exec(valueLocation) ?? [];
  expect(items.find((item) => item[field] === value)?.[wanted]).toEqual(expect.any(Number));
});

test("rejects invalid options and reports a missing secret by name", async () => {
  const wrong = [
    "--namespace",
    "No",
    "--redis-secret",
    "redis://:pw@redis:6379",
    "--runbooks",
    "wiki",
  ];
  // As a process: main.ts prints this error and chooses the exit code.
  const printed = run(process.execPath, [...MAIN, ...COMMAND, ...wrong]);
  const { code, stderr } = (await printed.catch((error: unknown) => error)) as Ended;
  expect(code).toBe(2);
  expect(stderr).toContain(
    '--namespace "No": must consist of lower-case letters, digits and dashes',
  );
  expect(stderr).toContain('--runbooks "wiki": must be an http or https URL');
  expect(stderr).toContain("--redis-secret: must be the name of a Secret, not its value");
  expect(stderr).not.toContain("pw@");
});

test("separates watchers, workers and an API without an account for the cluster", async () => {
  const apart = await printManifests("--watch-replicas", "2", "--api-secret", "api", "-o", "json");
  const deployments = apart.filter(({ kind }) => kind === "Deployment") as Deployment[];
  const shown = deployments.map(({ metadata: { name }, spec: { replicas, template } }) => {
    const { serviceAccountName: account, automountServiceAccountToken: token } = template.spec as {
      serviceAccountName?: string;
      automountServiceAccountToken?: boolean;
    };
    const role = template.spec.containers[0]?.env.find((entry) => entry.name === "KONVERGE_ROLE");
    return [name, replicas, role?.value, account, token];
  });
  expect(shown).toEqual([
    ["konverge-watcher", 2, "watch", "konverge", true],
    ["konverge-worker", 2, "work", "konverge", true],
    ["konverge-api", 2, undefined, "konverge-api", false],
  ]);
  const bindings = apart.filter(({ kind }) => kind.endsWith("RoleBinding"));
  expect(JSON.stringify(bindings)).not.toContain("konverge-api");
  await cluster?.apply(apart);
});
