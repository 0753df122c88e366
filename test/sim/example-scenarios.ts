import { ConfigMap, Deployment, Job } from "@konverge/kube/kinds";
import type { Scenario, SimulatedConfig } from "../../apps/cli/src/testing/index.ts";
import { autoscaler } from "../../apps/examples/src/autoscaler.ts";
import {
  DatabaseBackup,
  databaseBackups,
  databaseDump,
} from "../../apps/examples/src/database-backup.ts";
import { Memcached, memcached } from "../../apps/examples/src/memcached.ts";
import { nodePool } from "../../apps/examples/src/node-pool.ts";
import { Autoscaler, NodePool } from "../../apps/examples/src/resources.ts";
import { ScheduledJob, scheduledJobs } from "../../apps/examples/src/scheduled-job.ts";
import { WebApp, webApp } from "../../apps/examples/src/web-app.ts";

type ScheduledJobSpec = NonNullable<typeof ScheduledJob.objectType>["spec"];

/** The examples that are simulated, with their scenarios. */
export const EXAMPLES: readonly (readonly [string, SimulatedConfig, Scenario])[] = [
  [
    "memcached",
    { controllers: [memcached] },
    {
      async run(user) {
        const cache = (size: number) => ({ metadata: { name: "cache" }, spec: { size } });
        const first = await user.apply(Memcached, cache(2));
        await user.settled();
        await user.apply(Memcached, cache(4));
        await user.settled();
        await user.delete(first);
        await user.apply(Memcached, { metadata: { name: "other" }, spec: { size: 1 } });
        await user.settled();
      },
    },
  ],
  [
    "web-app",
    { controllers: [webApp] },
    {
      reactions: [{ type: Deployment, change: (deployment, user) => user.setReady(deployment) }],
      async run(user) {
        const shop = { metadata: { name: "shop" }, spec: { image: "shop:1" } };
        await user.apply(WebApp, shop);
        await user.settled();
        await user.apply(WebApp, { ...shop, spec: { image: "shop:2", port: 9000 } });
        await user.settled();
      },
    },
  ],
  [
    "autoscaler and node-pool",
    { controllers: [autoscaler, nodePool] },
    {
      async run(user) {
        const load = (blue: string) => ({ metadata: { name: "load" }, data: { blue } });
        await user.apply(NodePool, { metadata: { name: "blue" }, spec: { replicas: 1 } });
        await user.apply(Autoscaler, {
          metadata: { name: "blue" },
          spec: { poolRef: "blue", min: 1, max: 4, targetLoad: 10 },
        });
        await user.settled();
        await user.apply(ConfigMap, load("35"));
        await user.settled();
        await user.apply(ConfigMap, load("15"));
        await user.settled();
      },
    },
  ],
  [
    "database-backup",
    { controllers: [databaseBackups], workflows: [databaseDump] },
    {
      reactions: [{ type: Job, change: (job, user) => user.completeJob(job) }],
      // The id of the run has a hash of a uid, and the location has a time.
      compare: (object) => {
        const { status, ...rest } = object as { status?: { run?: string; location?: string } };
        const { run: _run, location: _location, ...others } = status ?? {};
        return { ...rest, status: others };
      },
      compareRun: ({ status, steps }) => ({ status, steps }),
      async run(user) {
        await user.apply(DatabaseBackup, {
          metadata: { name: "shop" },
          spec: { database: "shop" },
        });
        await user.settled();
        while (user.runs(databaseDump).length === 0) await user.sleep(1_000);
        const [{ workflow, id } = { workflow: "", id: "" }] = user.runs(databaseDump);
        await user.signal({ workflow, id }, "approve", { by: "ann", ok: true });
        await user.settled();
      },
      finally: {
        "the dump is stored": (objects) =>
          objects.get(DatabaseBackup, "shop")?.status?.location === undefined
            ? "it has no location"
            : undefined,
      },
    },
  ],
  ["scheduled-job", { controllers: [scheduledJobs] }, scheduledScenario({})],
  [
    "scheduled-job that keeps no Jobs",
    { controllers: [scheduledJobs] },
    scheduledScenario({ keepSucceeded: 0, concurrency: "Forbid" }),
  ],
  [
    "scheduled-job that replaces Jobs",
    { controllers: [scheduledJobs] },
    scheduledScenario({ concurrency: "Replace" }),
  ],
];

/** Starts Jobs for a quarter of an hour. Each time has one Job, also if the Job was deleted meanwhile. */
function scheduledScenario(spec: Partial<ScheduledJobSpec>): Scenario {
  // The uids of the Jobs of a run by their time.
  let created = new Map<string, Set<string>>();
  return {
    reactions: [
      {
        type: Job,
        change: async (job, user) => {
          await user.sleep(2_000);
          await user.completeJob(job);
        },
      },
    ],
    // The number of Jobs depends on the time at the end.
    periodic: true,
    compare: () => undefined,
    async run(user) {
      created = new Map();
      await user.apply(ScheduledJob, {
        metadata: { name: "report" },
        spec: { schedule: "*/5 * * * *", image: "report", ...spec },
      });
      await user.settled();
      await user.sleep(900_000);
      await user.settled();
    },
    always: {
      "one Job per time": (objects) => {
        for (const { metadata } of objects.list(Job)) {
          const at = metadata.annotations?.["demo.konverge.dev/scheduled-at"] ?? "";
          const uids = created.get(at) ?? new Set();
          created.set(at, uids.add(metadata.uid ?? ""));
          if (uids.size > 1) return `${at} was started ${uids.size} times`;
        }
        return undefined;
      },
    },
  };
}
