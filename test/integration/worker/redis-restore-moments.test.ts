import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { ignoreNotFound } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { openMutations } from "@konverge/mutations";
import { createRestoreControl } from "@konverge/queue";
import { defineConfig } from "@konverge/worker";
import { defineSchedule, defineWorkflow, openWorkflows } from "@konverge/workflow";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { until } from "../../support/until.ts";
import { useWorkers } from "./worker-harness.ts";
import { seed } from "../../support/test-run.ts";

/** Redis is restored from a copy of a random moment, under running workflows, schedules and mutations. */

const workers = useWorkers("moments.test.konverge.dev");
const CLUSTER = "default";
const TOLERANCE_MS = 1_000;
const STEPS = 6;
let cleanup = new AsyncDisposableStack();
// Before the hook of the workers, which kills them, and before their Redis ends.
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});

/** Counts the effects of steps by name, each of which has its own. */
class Effects {
  readonly counts = new Map<string, number>();
  add(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
  moreThan(most: number): string[] {
    return [...this.counts].filter(([, count]) => count > most).map(([name]) => name);
  }
}

function definitions(effects: Effects, random: () => number) {
  const chain = defineWorkflow(
    "chain",
    { version: 1, concurrency: { runs: 3 } },
    async (w, name: string) => {
      for (let at = 0; at < STEPS; at += 1) {
        await w.step(`s${at}`, async () => {
          effects.add(`${name}/${at}`);
          await sleep(random() * 60);
        });
        if (at % 2 === 1) await w.sleep(`pause${at}`, Math.ceil(random() * 100));
      }
    },
  );
  const tick = defineWorkflow("tick", { version: 1 }, async (w) => {
    await w.step("tick", () => effects.add(`tick/${w.scheduledAtMs}`));
  });
  const everySecond = defineSchedule("every-second", {
    every: "1s",
    workflow: tick,
    input: undefined,
  });
  return { chain, tick, everySecond };
}

/** A Redis whose data can be copied and restored, as a snapshot or with its append-only file. */
async function openRedis(isSnapshot: boolean) {
  const folder = mkdtempSync(join(tmpdir(), "konverge-moments-"));
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
  const [dir, copy] = [join(folder, "data"), join(folder, "copy")];
  let redis: RunningRedis = await startRedis({ dir, appendonly: !isSnapshot });
  cleanup.defer(() => redis.stop());
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  connection.on("error", () => undefined);
  cleanup.defer(() => connection.disconnect());
  return {
    url: redis.url,
    connection,
    async copy() {
      if (isSnapshot) await connection.save();
      // An append-only file may end within a command; Redis then omits it.
      cpSync(dir, copy, { recursive: true });
    },
    async restore() {
      await redis.kill();
      rmSync(dir, { recursive: true });
      cpSync(copy, dir, { recursive: true });
      redis = await startRedis({ dir, port: redis.port, appendonly: !isSnapshot });
    },
  };
}

test.each([
  { form: "a snapshot", isSnapshot: true },
  { form: "an append-only file", isSnapshot: false },
])(
  `restored from $form of a random moment, nothing is repeated until an operator accepts it (seed ${seed})`,
  async ({ isSnapshot }) => {
    const random = seededRandom(seed);
    const effects = new Effects();
    const { chain, tick, everySecond } = definitions(effects, random);
    const redis = await openRedis(isSnapshot);
    const { prefix } = workers.queues;
    const place = { redis: { url: redis.url }, prefix };
    const control = createRestoreControl(redis.connection, prefix);
    const progressMs = async () => (await control.read(CLUSTER)).progressMs ?? 0;
    /** Waits for several checks of the worker. */
    const untilChecked = async (fromMs: number) =>
      await until(
        "the worker has checked Redis",
        async () => (await progressMs().catch(() => 0)) > fromMs + 4 * TOLERANCE_MS,
      );
    const runs = openWorkflows(place);
    cleanup.defer(() => runs.close());
    const mutations = openMutations({ ...place, cluster: CLUSTER });
    cleanup.defer(() => mutations.close());
    const worker = await workers.start([], {
      redis: redis.url,
      config: defineConfig({
        workflows: [chain, tick],
        schedules: [everySecond],
        mutations: { kinds: [{ type: ConfigMap, paths: ["/data"] }] },
        settings: {
          prefix,
          restoreTolerance: `${TOLERANCE_MS}ms`,
          leaseDuration: "3s",
          runSweep: "1s",
        },
      }),
    });
    cleanup.defer(() => worker.kill());

    const object = `moments-${isSnapshot}`;
    const counted = async () => {
      const ref = { namespace: "default", name: object };
      const found = await workers.client.get(ConfigMap, ref).catch(ignoreNotFound);
      return Number(found?.data?.["n"] ?? 0);
    };
    let submitted = 0;
    let isLoaded = true;
    const load = (async () => {
      for (let n = 0; isLoaded; n += 1) {
        await runs.start(chain, `r${n}`, { id: `r${n}` });
        submitted += 1;
        await mutations.submit([
          {
            id: crypto.randomUUID(),
            object: {
              group: "",
              version: "v1",
              kind: "ConfigMap",
              resource: "configmaps",
              namespace: "default",
              name: object,
            },
            changes: [{ kind: "increment", path: "/data/n", by: 1 }],
            createIfMissing: true,
          },
        ]);
        await sleep(random() * 200);
      }
    })();
    const moment = 5 + Math.floor(random() * 40);
    await until("the moment of the copy", () => effects.counts.size > moment);
    await redis.copy();
    await untilChecked(await progressMs());
    isLoaded = false;
    await load;
    expect(effects.moreThan(1)).toEqual([]);

    await redis.restore();
    const held = await until("the restore is held", async () => {
      const state = await control.read(CLUSTER).catch(() => undefined);
      return (state?.held.length ?? 0) > 0 ? state : undefined;
    });
    expect(held.held).toEqual(["keys", "runs", "pauses", "guard"]);
    await untilChecked(await progressMs());
    expect(effects.moreThan(1)).toEqual([]);
    expect(await counted()).toBeLessThanOrEqual(submitted);

    const acceptedMs = Date.now();
    await control.accept(CLUSTER, ["pauses", "guard", "keys", "runs"], "ann");
    await until("all runs of the copy have ended", async () => {
      const { runs: listed } = await runs.list("chain", { limit: 500 });
      return listed.every(({ status }) => status === "done");
    });
    await until("the schedule continues", () =>
      [...effects.counts.keys()].some((name) => Number(name.split("tick/")[1]) > acceptedMs),
    );
    // Only what ran between the copy and the restore is repeated, and once.
    expect(effects.moreThan(2)).toEqual([]);
  },
  240_000,
);
