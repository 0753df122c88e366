import type { ApiObject } from "@konverge/core";
import {
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  Job,
  Pod,
  Service,
} from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import {
  startTestCluster,
  type TestCluster,
  type TestClusterOptions,
} from "../../../apps/cli/src/testing/index.ts";
import {
  DatabaseBackup,
  databaseBackups,
  databaseDump,
} from "../../../apps/examples/src/database-backup.ts";
import { Memcached, memcached } from "../../../apps/examples/src/memcached.ts";
import { ScheduledJob, scheduledJobs } from "../../../apps/examples/src/scheduled-job.ts";
import { WebApp, webApp } from "../../../apps/examples/src/web-app.ts";

const KUBECONFIG = process.env["KONVERGE_TEST_KUBECONFIG"];
type NamedServer = readonly [string, NonNullable<TestClusterOptions["server"]>];
const SERVERS: readonly NamedServer[] = [
  ["the embedded API server", "embedded"],
  ...(KUBECONFIG === undefined ? [] : [["kube-apiserver", { kubeconfig: KUBECONFIG }] as const]),
];
const start = (options: TestClusterOptions) => startTestCluster({ deadlineMs: 60_000, ...options });
/** The objects stay on a shared server, so each test has names of its own. */
const unique = (base: string) => `${base}-${Date.now().toString(36)}`;

interface Reported extends ApiObject {
  readonly status?: { readonly conditions?: { readonly type: string; readonly status: string }[] };
}
const conditionOf = (object: Reported, wanted: string) =>
  object.status?.conditions?.find(({ type }) => type === wanted)?.status;

/** Acts as the autoscaler and as the controller of Deployments: all replicas of the current version are available. */
async function makeAvailable(k: TestCluster, name: string, replicas: number) {
  const deployment = await k.kube.mutate({ type: Deployment, name }, (draft) => {
    if (draft.spec) draft.spec.replicas = replicas;
  });
  await k.setReady(deployment);
}

test.for(SERVERS)("web app: children, drift and scaling down, on %s", async ([, server]) => {
  await using k = await start({ controllers: [webApp], server });
  const name = unique("shop");
  const apply = (image: string, minReplicas: number) =>
    k.apply(WebApp, { metadata: { name }, spec: { image, minReplicas, maxReplicas: 5 } });
  const isReady = () =>
    k.until("the app is ready", async () => {
      return conditionOf(await k.kube.get(WebApp, name), "Ready") === "True";
    });
  const app = await k.reconciled(await apply("web:1", 3));
  expect(conditionOf(app, "Ready")).toBe("False");
  for (const type of [Deployment, Service, HorizontalPodAutoscaler]) {
    const { metadata } = await k.kube.get<ApiObject>(type, name);
    expect(metadata.ownerReferences).toMatchObject([{ uid: app.metadata.uid, controller: true }]);
  }
  await makeAvailable(k, name, 3);
  await isReady();

  // The autoscaler's field is left alone, and others are taken back.
  await k.kube.mutate({ type: Deployment, name }, (draft) => {
    if (draft.spec) draft.spec.replicas = 4;
    draft.spec?.template.spec?.containers.splice(0, 1, { name: "app", image: "other:1" });
  });
  await k.until("the image is back", async () => {
    const { spec } = await k.kube.get(Deployment, name);
    return spec?.template.spec?.containers[0]?.image === "web:1";
  });
  expect((await k.kube.get(Deployment, name)).spec?.replicas).toBe(4);
  await k.kube.delete(await k.kube.get(Service, name));
  await k.until("the Service is back", () => k.kube.find(Service, name));

  // One replica is enough after the app was scaled down.
  const smaller = await k.reconciled(await apply("web:1", 1));
  expect((await k.kube.get(HorizontalPodAutoscaler, name)).spec?.minReplicas).toBe(1);
  await makeAvailable(k, name, 1);
  await isReady();
  await k.until("the status has the figures", async () => {
    return (await k.kube.get(WebApp, name)).status?.availableReplicas === 1;
  });
  await k.kube.delete(smaller);
  await k.gone(smaller);
});

test.for(SERVERS)(
  "memcached: one node per server, also when scaled down, on %s",
  async ([, server]) => {
    await using k = await start({ controllers: [memcached], server });
    const name = unique("cache");
    const apply = (size: number) => k.apply(Memcached, { metadata: { name }, spec: { size } });
    const labels = {
      "app.kubernetes.io/name": "memcached",
      "app.kubernetes.io/instance": name,
    };
    const nodes = (wanted: readonly string[], available: "True" | "False") =>
      k.until(`the status lists ${wanted.length} nodes`, async () => {
        const cache = await k.kube.get(Memcached, name);
        const listed = cache.status?.nodes?.join() === wanted.join();
        return listed && conditionOf(cache, "Available") === available;
      });
    await k.reconciled(await apply(2));
    expect((await k.kube.get(Deployment, name)).spec?.replicas).toBe(2);
    const pods: string[] = [];
    for (const suffix of ["a", "b"]) {
      const containers = [{ name: "memcached", image: "memcached:1.6" }];
      const made = { name: `${name}-${suffix}`, labels, spec: { containers } };
      const pod = await k.kube.create(Pod, made);
      pods.push(pod.metadata.name);
      await k.kube.mutateStatus(pod, (draft) => {
        draft.status.conditions = [{ type: "Ready", status: "True" }];
      });
    }
    await nodes(pods, "True");

    await k.reconciled(await apply(1));
    expect((await k.kube.get(Deployment, name)).spec?.replicas).toBe(1);
    await nodes(pods, "False");
    await k.kube.delete(await k.kube.get(Pod, String(pods[1])));
    await nodes(pods.slice(0, 1), "True");
  },
);

test.for(SERVERS)("database backup: a Job, an approval, a result, on %s", async ([, server]) => {
  await using k = await start({
    controllers: [databaseBackups],
    workflows: [databaseDump],
    server,
  });
  const name = unique("db");
  const backup = await k.reconciled(
    await k.apply(DatabaseBackup, { metadata: { name }, spec: { database: "shop" } }),
  );
  const id = String(backup.status?.run);
  const job = await k.until("the Job exists", async () => {
    const jobs = await k.kube.list(Job);
    return jobs.find(({ metadata }) => metadata.name.startsWith(`${name}-dump-`));
  });
  expect(await k.kube.find(ConfigMap, `${name}-lock`)).toBeDefined();
  await complete(k, job.metadata.name);
  await k.until("the run waits for approval", async () => {
    const run = await k.run(id);
    return run?.status === "waiting" && run.waits?.some(({ step }) => step === "approve");
  });
  await k.signal(id, "approve", { by: "ada", ok: true });
  const done = await k.until("the backup is ready", async () => {
    const found = await k.kube.get(DatabaseBackup, name);
    return conditionOf(found, "Ready") === "True" && found;
  });
  expect(done.status?.location).toMatch(/^s3:\/\/backups\/shop\//);
  expect(await k.kube.find(Job, job.metadata.name)).toBeUndefined();
  expect(await k.kube.find(ConfigMap, `${name}-lock`)).toBeUndefined();
});

test.for(SERVERS)(
  "database backup: a rejection deletes the Job and the lock, on %s",
  async ([, server]) => {
    await using k = await start({
      controllers: [databaseBackups],
      workflows: [databaseDump],
      server,
    });
    const name = unique("rejected");
    // The lock of another run is not deleted.
    const stranger = `${name}-2`;
    await k.kube.create(ConfigMap, { name: `${stranger}-lock`, data: { database: "theirs" } });
    const spec = { database: "shop" };
    await k.apply(DatabaseBackup, { metadata: { name: stranger }, spec });
    const backup = await k.reconciled(await k.apply(DatabaseBackup, { metadata: { name }, spec }));
    const job = await k.until("the Job exists", async () => {
      const jobs = await k.kube.list(Job);
      return jobs.find(({ metadata }) => metadata.name.startsWith(`${name}-dump-`));
    });
    await complete(k, job.metadata.name);
    await k.signal(String(backup.status?.run), "approve", { by: "ada", ok: false });
    for (const stalled of [name, stranger]) {
      await k.until(`${stalled} is stalled`, async () => {
        return conditionOf(await k.kube.get(DatabaseBackup, stalled), "Stalled") === "True";
      });
    }
    expect(await k.kube.find(Job, job.metadata.name)).toBeUndefined();
    expect(await k.kube.find(ConfigMap, `${name}-lock`)).toBeUndefined();
    expect(await k.kube.get(ConfigMap, `${stranger}-lock`)).toMatchObject({
      data: { database: "theirs" },
    });
  },
);

test.for(SERVERS)(
  "scheduled job: one Job per time, old ones deleted, on %s",
  async ([, server]) => {
    await using k = await start({ controllers: [scheduledJobs], server });
    const name = unique("report");
    const apply = (spec: { concurrency: "Forbid" | "Replace"; suspend?: boolean }) =>
      k.apply(ScheduledJob, {
        metadata: { name },
        // Each second.
        spec: { schedule: "* * * * * *", image: "report:1", keepSucceeded: 1, ...spec },
      });
    const names = async () => {
      const jobs = await k.kube.list(Job);
      const own = jobs.filter(({ metadata }) => metadata.name.startsWith(`${name}-`));
      return own.map(({ metadata }) => metadata.name);
    };
    const other = (known: readonly string[]) =>
      k.until("another Job starts", async () => {
        return (await names()).find((job) => !known.includes(job));
      });
    const scheduled = await apply({ concurrency: "Forbid" });
    const first = await other([]);
    await k.until("the status lists the Job", async () => {
      return (await k.kube.get(ScheduledJob, name)).status?.active?.includes(first);
    });
    // The next one starts only after the end of the first.
    expect(await names()).toEqual([first]);
    await complete(k, first);
    const second = await other([first]);
    await complete(k, second);
    await k.until("the first Job is deleted", async () => !(await names()).includes(first));

    await apply({ concurrency: "Replace" });
    const third = await other([first, second]);
    await k.until("the third Job is replaced", async () => !(await names()).includes(third));
    await apply({ concurrency: "Replace", suspend: true });
    await k.until("it is suspended", async () => {
      const { status } = await k.kube.get(ScheduledJob, name);
      return status?.conditions?.some(({ reason }) => reason === "Suspended");
    });
    await k.delete(scheduled);
    await k.gone(scheduled);
  },
);

test.for(SERVERS)(
  "scheduled job: keeps failed Jobs apart, and starts none after the deadline, on %s",
  async ([, server]) => {
    await using k = await start({ controllers: [scheduledJobs], server });
    const name = unique("late");
    const made = await k.reconciled(
      await k.apply(ScheduledJob, {
        metadata: { name },
        // Each second, so a Job that is due was due within this second.
        spec: { schedule: "* * * * * *", image: "x:1", concurrency: "Forbid", keepFailed: 0 },
      }),
    );
    const jobs = () => k.kube.list(Job, { ownedBy: made });
    const first = await k.until("a Job starts", async () => (await jobs())[0]);
    await k.failJob(first, "no");
    await k.until("the failed Job is deleted", async () => {
      return !(await k.kube.find(Job, first.metadata.name));
    });
    const rare = { schedule: "0 0 29 2 *", image: "x:1" };
    const apply = (spec: { suspend?: boolean; startingDeadlineSeconds?: number }) =>
      k.apply(ScheduledJob, { metadata: { name }, spec: { ...rare, ...spec } });
    await k.reconciled(await apply({ suspend: true }));
    for (const job of await jobs()) await k.kube.delete(job);
    await k.kube.mutateStatus({ type: ScheduledJob, name }, (draft) => {
      draft.status.lastScheduledAt = "2000-01-01T00:00:00.000Z";
    });
    await k.reconciled(await apply({ startingDeadlineSeconds: 60 }));
    expect(await jobs()).toEqual([]);
    await apply({});
    await k.until("the missed Job starts", async () => (await jobs()).length === 1);
    await k.delete(made);
    await k.gone(made);
  },
);

test("scheduled job: reports an invalid schedule", async () => {
  await using k = await start({ controllers: [scheduledJobs] });
  const bad = await k.reconciled(
    await k.apply(ScheduledJob, {
      metadata: { name: "bad" },
      spec: { schedule: "whenever", image: "report:1" },
    }),
  );
  expect(bad.status?.conditions).toContainEqual(
    expect.objectContaining({ type: "Stalled", reason: "InvalidSchedule" }),
  );
});

/** Acts as the controller of Jobs. */
async function complete(k: TestCluster, name: string) {
  const at = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  await k.kube.mutateStatus({ type: Job, name }, (draft) => {
    Object.assign(draft.status, {
      startTime: at,
      completionTime: at,
      succeeded: 1,
      conditions: ["SuccessCriteriaMet", "Complete"].map((type) => ({
        type,
        status: "True",
        lastTransitionTime: at,
      })),
    });
  });
}
