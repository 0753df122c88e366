import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { openQueueAccess, startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { defineController } from "@konverge/engine";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createRestoreControl, type RestoreControl } from "@konverge/queue";
import { defineConfig } from "@konverge/worker";
import { defineWorkflow, openWorkflows, type Workflows } from "@konverge/workflow";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { ended } from "../workflow/workflow-harness.ts";
import type { Widget } from "../kube/kube-servers.ts";
import { hold } from "../queue/queue-harness.ts";
import { useWorkers } from "./worker-harness.ts";

/** Redis is restored from a snapshot: no work starts until an operator accepts it. */

const workers = useWorkers("restore.test.konverge.dev");
const CLUSTER = "default";
const TOLERANCE_MS = 1_000;
let cleanup = new AsyncDisposableStack();
let dir: string;
let redis: RunningRedis;
let prefix: string;
let connection: Redis;
let control: RestoreControl;
let runs: Workflows;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "konverge-restore-"));
  cleanup.defer(() => rmSync(dir, { recursive: true, force: true }));
  redis = await startRedis({ dir, appendonly: false });
  cleanup.defer(() => redis.stop());
  connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  connection.on("error", () => undefined);
  cleanup.defer(() => connection.disconnect());
  ({ prefix } = workers.queues);
  control = createRestoreControl(connection, prefix);
  runs = openWorkflows({ redis: { url: redis.url }, prefix });
  cleanup.defer(() => runs.close());
});
// Before the hook of the workers, which kills them, and before their Redis ends.
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});

/** Executed steps of runs and reconciled objects, in order. */
const effects: string[] = [];
const count = (effect: string) => effects.filter((one) => one === effect).length;
let sending = hold();
/** Bodies that run with a permit of the limit `mail`, now and at most. */
let [mailing, mostMailing] = [0, 0];
beforeEach(() => {
  effects.length = 0;
  mailing = mostMailing = 0;
  sending = hold();
});

const ship = defineWorkflow("ship", { version: 1 }, async (w, name: string) => {
  await w.step("charge", () => void effects.push(`charge ${name}`));
  await w.step("send", async () => {
    effects.push(`send ${name}`);
    await sending.wait();
  });
  return name;
});

const mail = defineWorkflow("mail", { version: 1 }, async (w, name: string) => {
  await w.step(
    "mail",
    async () => {
      effects.push(`mail ${name}`);
      mailing += 1;
      mostMailing = Math.max(mostMailing, mailing);
      await sending.wait();
      mailing -= 1;
    },
    { limit: "mail" },
  );
});

async function startWorker(restoreTolerance = `${TOLERANCE_MS}ms`) {
  const widgets = defineController<Widget>({
    name: "restored-widgets",
    for: workers.Widgets,
    reconcile: async ({ object }) => {
      effects.push(`reconcile ${object.metadata.name}`);
    },
  });
  const worker = await workers.start([], {
    redis: redis.url,
    config: defineConfig({
      controllers: [widgets],
      workflows: [ship, mail],
      limits: { mail: { concurrency: 1 } },
      settings: { prefix, restoreTolerance, leaseDuration: "3s", runSweep: "1s" },
    }),
  });
  // Before its Redis ends.
  cleanup.defer(() => worker.kill());
  return worker;
}

/** Stores a snapshot. Returns a function that waits until its age exceeds the tolerance, and restores it. */
async function takeSnapshot(): Promise<{ restore(end?: () => Promise<void>): Promise<void> }> {
  await connection.save();
  const file = join(dir, "backup.rdb");
  copyFileSync(join(dir, "dump.rdb"), file);
  const { progressMs = 0 } = await control.read(CLUSTER);
  return {
    async restore(end = () => Promise.resolve()) {
      await until("the progress is beyond the tolerance", async () => {
        const now = await control.read(CLUSTER);
        // A worker knows the progress of its last complete check.
        return (now.progressMs ?? 0) > progressMs + 3 * TOLERANCE_MS;
      });
      await end();
      await redis.kill();
      copyFileSync(file, join(dir, "dump.rdb"));
      redis = await startRedis({ dir, port: redis.port, appendonly: false });
    },
  };
}

const untilHeld = () =>
  until("the restore is held", async () => {
    const state = await control.read(CLUSTER).catch(() => undefined);
    return (state?.held.length ?? 0) > 0 ? state : undefined;
  });

/** Waits for more checks of the workers than any of them needs to notice a change. */
async function untilNoticed(): Promise<void> {
  const { progressMs: before = 0 } = await control.read(CLUSTER);
  await until("the workers have checked Redis", async () => {
    const { progressMs: now = 0 } = await control.read(CLUSTER);
    return now > before + 4 * TOLERANCE_MS;
  });
}

async function makeWidget(name: string): Promise<void> {
  await workers.client.create(workers.Widgets, { metadata: { namespace: "default", name } });
  await until("the widget is reconciled", () => count(`reconcile ${name}`) > 0);
}

/** Starts a run whose last step runs at the snapshot and ends after it. */
async function runBeyondSnapshot(name: string) {
  const { id } = await runs.start(ship, name);
  await until("the last step runs", () => count(`send ${name}`) === 1);
  const snapshot = await takeSnapshot();
  sending.release();
  await ended(runs, ship, id);
  return { id, snapshot };
}

test("nothing is repeated under a running worker until an operator accepts the restored state", async () => {
  const worker = await startWorker();
  await makeWidget("one");
  const { id, snapshot } = await runBeyondSnapshot("one");
  const before = [...effects];
  await snapshot.restore();
  const state = await untilHeld();
  expect(state.held).toEqual(["keys", "runs", "pauses", "guard"]);
  expect(state.last?.lostToMs).toBeGreaterThan((state.last?.lostFromMs ?? 0) + TOLERANCE_MS);
  await until("the tokens are held", async () => (await control.readTokens()).held.length > 0);
  // The run of the snapshot is due, and the restart of Redis enqueues all objects.
  await untilNoticed();
  expect(effects).toEqual(before);
  expect(worker.lines.map(({ message }) => message)).toContain("Redis was restored, work is held");

  await control.accept(CLUSTER, ["runs"], "ann");
  await untilNoticed();
  expect(effects).toEqual(before);
  expect(await control.accept(CLUSTER, ["pauses", "guard"], "ann")).toEqual(["keys"]);
  await ended(runs, ship, id);
  expect(count("send one")).toBe(2);
  expect(count("charge one")).toBe(1);
  expect(count("reconcile one")).toBe(1);

  expect(await control.accept(CLUSTER, ["keys"], "ann")).toEqual([]);
  await until("the widget is reconciled again", () => count("reconcile one") > 1);
  await control.acceptTokens("ann");
  await expect(control.accept(CLUSTER, ["keys"], "ann")).rejects.toThrow("nothing is held");
  await untilNoticed();
  expect((await control.read(CLUSTER)).held).toEqual([]);
});

test("a worker that starts after a restore holds its work, since the cluster remembers the progress", async () => {
  const first = await startWorker();
  await makeWidget("two");
  const { id, snapshot } = await runBeyondSnapshot("two");
  await snapshot.restore(() => first.stop({ graceMs: 0 }));
  const before = [...effects];
  await startWorker();
  expect((await control.read(CLUSTER)).held).toEqual(["keys", "runs", "pauses", "guard"]);
  await untilNoticed();
  expect(effects).toEqual(before);
  await control.accept(CLUSTER, ["keys", "runs", "pauses", "guard"], "ann");
  await ended(runs, ship, id);
  await until("the widget is reconciled again", () => count("reconcile two") > 1);
});

test("an empty Redis is not held, and neither is a loss within the tolerance", async () => {
  const worker = await startWorker("1m");
  await makeWidget("three");
  const { snapshot } = await runBeyondSnapshot("three");
  await snapshot.restore();
  await until("the widget is reconciled again", () => count("reconcile three") > 1);
  await until("the run of the snapshot is repeated", () => count("send three") > 1);
  await connection.flushall();
  const seen = count("reconcile three");
  await until("the widget is requested again", () => count("reconcile three") > seen);
  expect(worker.lines.map(({ message }) => message)).not.toContain(
    "Redis was restored, work is held",
  );
});

test("tokens of a restored Redis are rejected until they are accepted, and permits are never exceeded", async () => {
  await startWorker();
  const access = openQueueAccess({
    redis: { url: redis.url },
    prefix,
    onError: () => undefined,
  });
  cleanup.defer(() => access.close());
  const { token } = await access.tokens.create({ name: "ci", role: "viewer", scope: {} }, "ann");
  const env = {
    KONVERGE_REDIS_URL: redis.url,
    KONVERGE_PREFIX: prefix,
    KONVERGE_RESTORE_TOLERANCE: `${TOLERANCE_MS}ms`,
    KONVERGE_API_PORT: "0",
    // Without any token, loopback needs none.
    KONVERGE_TOKEN: "the-token-of-the-installation-0123456789",
    KONVERGE_LOG_LEVEL: "silent",
  };
  const api = await startApi({ settings: readSettings({ env }), version: "1" });
  cleanup.defer(() => api.stop());
  const statusOf = async () =>
    (
      await fetch(`${api.url}/v1/runs?workflow=mail`, {
        headers: { authorization: `Bearer ${token}` },
      })
    ).status;
  expect(await statusOf()).toBe(200);

  const ids = ["one", "two"];
  for (const name of ids) await runs.start(mail, name, { id: name });
  await until("one of both has the permit", () => mailing === 1);
  const snapshot = await takeSnapshot();
  sending.release();
  for (const id of ids) await ended(runs, mail, id);
  await access.tokens.revoke("ci");
  // The API remembers a valid token for a few seconds.
  await until("the token is rejected", async () => (await statusOf()) === 401);
  const before = [...effects];
  await snapshot.restore();
  await untilHeld();
  await untilNoticed();
  expect(await statusOf()).toBe(401);
  expect(effects).toEqual(before);

  sending = hold();
  await control.accept(CLUSTER, ["keys", "runs", "pauses", "guard"], "ann");
  await until("the permit of the snapshot is free again", () => mailing === 1);
  await untilNoticed();
  expect(effects.length).toBe(before.length + 1);
  sending.release();
  for (const id of ids) await ended(runs, mail, id);
  expect(mostMailing).toBe(1);
  expect(await statusOf()).toBe(401);
  await control.acceptTokens("ann");
  // The snapshot does not know that it was revoked.
  await until("the token is valid", async () => (await statusOf()) === 200);
});
