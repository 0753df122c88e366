import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "@konverge/apiserver";
import { defineController } from "@konverge/engine";
import { defineConfig } from "@konverge/worker";
import { expect, onTestFinished, test } from "vitest";
import { useWorkers } from "../integration/worker/worker-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const workers = useWorkers("plan-failover.test.konverge.dev");
const namespace = "default";
const OBJECTS = 60;

test("plan --all ends with every object although Redis restarts twice meanwhile", async () => {
  const { Widgets, client, queues } = workers;
  const dir = mkdtempSync(join(tmpdir(), "konverge-plan-failover-"));
  let redis = await startRedis({ dir });
  onTestFinished(async () => {
    await redis.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  const { url, port } = redis;
  const planned = new Set<string>();
  const reconciled = new Set<string>();
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    reconcile: async ({ object, plan }) => {
      (plan ? planned : reconciled).add(object.metadata.name);
    },
  });
  const worker = await workers.start([], {
    redis: url,
    config: defineConfig({ controllers: [widgets], settings: { prefix: queues.prefix } }),
  });
  onTestFinished(() => worker.kill());
  for (let at = 0; at < OBJECTS; at += 1) {
    await client.create(Widgets, { metadata: { namespace, name: `widget-${at}` }, spec: {} });
  }
  await until("all widgets are reconciled", () => reconciled.size === OBJECTS);

  const command = runCommand(["plan", "--all", "-o", "json"], {
    KONVERGE_REDIS_URL: url,
    KONVERGE_PREFIX: queues.prefix,
  });
  await until("some plans have started", () => planned.size >= 5);
  await redis.stop();
  redis = await startRedis({ dir, port });
  await until("more plans have started", () => planned.size >= 25);
  // Loses the writes of up to a second.
  await redis.kill();
  redis = await startRedis({ dir, port });
  const { code, stdout, stderr } = await command;
  expect(stderr).not.toContain("konverge:");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ planned: OBJECTS, unchanged: OBJECTS });
});
