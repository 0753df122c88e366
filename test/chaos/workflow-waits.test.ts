import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { Lease } from "@konverge/kube/kinds";
import { openWorkflows, type ObjectRef, type RunView } from "@konverge/workflow";
import { runNames } from "../../libs/workflow/src/store/run-names.ts";
import { installWidgets, removeWidgets, testServers } from "../integration/kube/kube-servers.ts";
import { makeReadiness, type WaitWorkerConfig } from "./wait-worker.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";
import { PATIENT_MS } from "../support/patient.ts";
import { partsOfRun } from "../support/test-run.ts";

const RUNS = 200;
const WORKERS = 3;
const HEALED_MS = 180_000;
const GROUP = "many-waits.test.konverge.dev";
const CHILD = fileURLToPath(new URL("wait-worker.ts", import.meta.url));
const redisUrl = process.env["REDIS_URL"] ?? "";

let cleanup = new AsyncDisposableStack();
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});

interface Worker {
  readonly child: Child;
  readonly workerId: string;
}

async function startChild(config: WaitWorkerConfig): Promise<Worker> {
  const child = cleanup.use(new Child([CHILD, JSON.stringify(config)], { ipc: true }));
  const { workerId } = (await child.message()) as { workerId: string };
  return { child, workerId };
}

/** The process with the Lease of the watcher. */
async function leaderOf(
  client: KubeClient,
  leaseAt: { readonly namespace: string; readonly name: string },
  workers: readonly Worker[],
): Promise<Worker | undefined> {
  const lease = await client.get(Lease, leaseAt).catch(ignoreNotFound);
  return workers.find(({ workerId }) => workerId === lease?.spec?.holderIdentity);
}

// One of the servers in a short run.
test.each(partsOfRun(testServers(), testServers().length))(
  `${RUNS} runs wait for ${RUNS} objects of the $name in ${WORKERS} processes; the leader of the watch is killed, and all runs end`,
  async (server) => {
    const prefix = `waits-${process.pid}-${Date.now()}`;
    const redis = new Redis(redisUrl);
    cleanup.defer(async () => {
      for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
        if (keys.length > 0) await redis.unlink(...(keys as string[]));
      }
      await redis.quit();
    });
    const opened = await server.open();
    cleanup.defer(() => opened.close());
    const { client, kubeconfig } = opened;
    const widgets = await installWidgets(client, GROUP);
    cleanup.defer(() => removeWidgets(client, GROUP));
    const leaseAt = { namespace: "default", name: `${prefix}-workflow.waits` };
    cleanup.defer(() => client.delete(Lease, leaseAt).catch(ignoreNotFound));
    const nameOf = (at: number) => ({ namespace: "default", name: `${prefix}-${at}` });
    const refs = await Promise.all(
      Array.from({ length: RUNS }, async (_, at): Promise<ObjectRef> => {
        const metadata = nameOf(at);
        const made = await client.create(widgets, { metadata, spec: { at } });
        const { uid = "", resourceVersion = "", generation = 1 } = made.metadata;
        const { apiVersion, kind } = made;
        return { apiVersion, kind, ...metadata, uid, generation, resourceVersion };
      }),
    );
    const makeReady = async (from: number, to: number) => {
      const status = { observedGeneration: 1, conditions: [{ type: "Ready", status: "True" }] };
      const patch = { type: "merge", body: { status } } as const;
      const how = { subresource: "status", unguarded: true };
      for (let at = from; at < to; at++) await client.patch(widgets, nameOf(at), patch, how);
    };

    const config = { redisUrl, prefix, kubeconfig, kind: widgets };
    const workers = await Promise.all(Array.from({ length: WORKERS }, () => startChild(config)));
    const runs = openWorkflows({ redis: { url: redisUrl, deadlineMs: PATIENT_MS }, prefix });
    cleanup.defer(() => runs.close());
    const readiness = makeReadiness(widgets);
    await Promise.all(refs.map((ref, at) => runs.start(readiness, ref, { id: String(at) })));
    const views = async (): Promise<(RunView | undefined)[]> =>
      await Promise.all(refs.map((_, at) => runs.get({ workflow: "readiness", id: String(at) })));
    const countOf = async (status: RunView["status"]) =>
      (await views()).filter((view) => view?.status === status).length;
    await until("all wait", async () => (await countOf("waiting")) === RUNS, HEALED_MS);
    const { apiVersion, kind } = refs[0] ?? { apiVersion: "", kind: "" };
    expect(await runs.waitedKinds()).toEqual([
      { cluster: "default", apiVersion, kind, waits: RUNS },
    ]);
    // From here on, only the watch can wake them.
    const { rechecks, waitRoot, waitKinds } = runNames(prefix, "default", "readiness");
    const never = refs.flatMap((_, at) => [Date.now() + 3_600_000, String(at)]);
    expect(await redis.zadd(rechecks, "XX", ...never)).toBe(0);

    let leader: Worker | undefined;
    await until(
      "a process leads the watch",
      async () => (leader = await leaderOf(client, leaseAt, workers)) !== undefined,
      HEALED_MS,
    );
    await makeReady(0, RUNS / 4);
    await leader?.child.kill();
    // There is no watcher; the next one finds these in its first list.
    await makeReady(RUNS / 4, RUNS / 2);
    const left = workers.filter((worker) => worker !== leader);
    await until(
      "another process leads the watch",
      async () => (await leaderOf(client, leaseAt, left)) !== undefined,
      HEALED_MS,
    );
    await makeReady(RUNS / 2, RUNS);
    await until("all have ended", async () => (await countOf("done")) === RUNS, HEALED_MS);
    expect((await views()).map((view) => view?.result)).toEqual(refs.map(({ uid }) => uid));
    expect(await redis.exists(rechecks, waitKinds)).toBe(0);
    expect(await redis.keys(`${waitRoot}*`)).toEqual([]);
  },
);
