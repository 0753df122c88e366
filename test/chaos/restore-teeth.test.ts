import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startRedis } from "@konverge/apiserver";
import { createRestoreControl } from "@konverge/queue";
import { openWorkflows } from "@konverge/workflow";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { Child } from "../support/child.ts";
import { until } from "../support/until.ts";
import { SHIP, type RestoreWorkerConfig } from "./restore-worker.ts";
import type { RESTORE_PATCHES } from "./teeth/restore-patches.ts";

/** Proves that `redis-restore.test.ts` can fail: a worker without the hold repeats a step of a restored Redis. */

const WORKER = fileURLToPath(new URL("restore-worker.ts", import.meta.url));
const PRELOAD = new URL("teeth/load-patched.ts", import.meta.url).href;
const CLUSTER = "default";
const TOLERANCE_MS = 1_000;
const journalUrl = process.env["REDIS_URL"] ?? "";

/** Restores a snapshot that was taken during the last step of a run, after the run has ended. */
async function restore(cleanup: AsyncDisposableStack, patch?: keyof typeof RESTORE_PATCHES) {
  const dir = mkdtempSync(join(tmpdir(), "konverge-restore-teeth-"));
  cleanup.defer(() => rmSync(dir, { recursive: true, force: true }));
  let redis = await startRedis({ dir, appendonly: false });
  cleanup.defer(() => redis.stop());
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  connection.on("error", () => undefined);
  cleanup.defer(() => connection.disconnect());
  const prefix = `restore-teeth-${process.pid}-${patch ?? "whole"}`;
  const journal = new Redis(journalUrl);
  const [effects, released] = [`${prefix}:effects`, `${prefix}:released`];
  cleanup.defer(async () => {
    await journal.unlink(effects, released);
    journal.disconnect();
  });
  const { kubeconfig } = cleanup.use(await startEmbeddedServer());
  const config: RestoreWorkerConfig = {
    redisUrl: redis.url,
    prefix,
    kubeconfig,
    toleranceMs: TOLERANCE_MS,
    journalUrl,
    effects,
    released,
  };
  const preload = patch === undefined ? [] : [`--import=${PRELOAD}`];
  const worker = new Child([...preload, WORKER, JSON.stringify(config)], {
    env: patch === undefined ? {} : { FLEET_PATCH: patch },
  });
  cleanup.defer(() => worker.end("SIGKILL"));
  expect(await worker.ready).toBe(`up ${patch ?? ""}`);

  const runs = openWorkflows({ redis: { url: redis.url }, prefix });
  cleanup.defer(() => runs.close());
  const ref = { workflow: SHIP, id: "one" };
  await runs.start({ name: SHIP, version: 1 }, undefined, { id: ref.id });
  const effectsNow = async () => await journal.lrange(effects, 0, -1);
  await until("the last step runs", async () => (await effectsNow()).includes("send"));
  await connection.save();
  copyFileSync(join(dir, "dump.rdb"), join(dir, "backup.rdb"));
  const control = createRestoreControl(connection, prefix);
  const { progressMs = 0 } = await control.read(CLUSTER);
  const untilProgress = async (fromMs: number) =>
    await until("the worker has checked Redis several times", async () => {
      const now = await control.read(CLUSTER).catch(() => undefined);
      return (now?.progressMs ?? 0) > fromMs + 4 * TOLERANCE_MS;
    });
  await journal.set(released, "1");
  await until("the run has ended", async () => (await runs.get(ref))?.endedAtMs !== undefined);
  await untilProgress(progressMs);
  expect(await effectsNow()).toEqual(["charge", "send"]);

  await redis.kill();
  copyFileSync(join(dir, "backup.rdb"), join(dir, "dump.rdb"));
  redis = await startRedis({ dir, port: redis.port, appendonly: false });
  return {
    /** The steps that ran again. */
    repeated: async () => (await effectsNow()).slice(2),
    held: async () => (await control.read(CLUSTER)).held.join(" "),
    async untilChecked() {
      const { progressMs: restoredMs = 0 } = await control.read(CLUSTER);
      await untilProgress(restoredMs);
    },
  };
}

test("with the hold, no step of a restored Redis is repeated", async () => {
  await using cleanup = new AsyncDisposableStack();
  const restored = await restore(cleanup);
  await until("it is held", async () => (await restored.held().catch(() => "")).includes("runs"));
  await restored.untilChecked();
  expect(await restored.repeated()).toEqual([]);
});

test("without the hold, a step of a restored Redis is repeated", async () => {
  await using cleanup = new AsyncDisposableStack();
  const restored = await restore(cleanup, "restore-hold");
  await until("a step is repeated", async () => (await restored.repeated()).length > 0);
  expect(await restored.held()).toBe("");
});
