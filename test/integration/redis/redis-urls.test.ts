import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createGuard, openGuardControl } from "@konverge/guard";
import { checkRedis } from "@konverge/redis";
import { createWorkQueue } from "@konverge/queue";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { CLUSTER, CONTROLLER, keyOf, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

let dir: string;
let redis: RunningRedis;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "konverge-url-"));
  const socket = join(dir, "redis.sock");
  redis = await startRedis({ extraArgs: ["--unixsocket", socket, "--requirepass", ""] });
});
afterEach(async () => {
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

test("unix:// serves queue and guard alike", async () => {
  const target = { url: `unix://${join(dir, "redis.sock")}` };
  await checkRedis(target);
  await using guard = await createGuard({ redis: target, cluster: CLUSTER, workerId: "w" });
  await using control = openGuardControl({ redis: target, prefix: "konverge" });
  expect(await control.read(CLUSTER)).toBeDefined();
  expect(guard.breaker.mode).toBe("closed");
  const queue = createWorkQueue({ redis: target, controller: CONTROLLER, cluster: CLUSTER });
  const worker = workOn(queue, () => ({ kind: "done" }));
  await queue.request(keyOf("a"), { kind: "http" });
  await until("the attempt", () => worker.closed.length === 1);
  await queue.close();
});

test("rejects redis+cluster:// for a single server and names the right form", async () => {
  const target = { url: `redis+cluster://127.0.0.1:${redis.port}` };
  await expect(checkRedis(target)).rejects.toMatchObject({
    code: "redis_unavailable",
    message: expect.stringMatching(
      /cluster support disabled.*; the server is not a Redis Cluster; use/,
    ),
  });
});
