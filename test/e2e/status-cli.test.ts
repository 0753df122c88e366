import { spawn } from "node:child_process";
import { once } from "node:events";
import { overviewSchema } from "@konverge/contracts";
import { TerminalError } from "@konverge/core";
import { createControllerRegistry } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../integration/queue/announce.ts";
import { keyOf, useQueues, workOn } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const environment = () => ({ KONVERGE_REDIS_URL: harness.apiUrl, KONVERGE_PREFIX: harness.prefix });

async function announce(): Promise<void> {
  const registry = createControllerRegistry({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
  });
  await registry.announce([NODE_POOL]);
  const stop = registry.heartbeat({
    workerId: "w-1",
    controllers: ["node-pool"],
    definitions: {},
    role: "all",
    version: "test",
    startedAt: "2026-01-01T00:00:00Z",
    host: "here",
  });
  onTestFinished(async () => {
    await stop();
    await registry.close();
  });
}

test("prints the problems with cause, effect and next step, and exits with 1 for errors", async () => {
  await announce();
  const well = await until("the worker lives", async () => {
    const ended = await runCommand(["status"], environment());
    return ended.code === 0 ? ended : undefined;
  });
  expect(well.stdout).toBe("No problems: 1 controller on 1 worker.\n");

  const queue = harness.open();
  const worker = workOn(queue, () => ({
    kind: "terminal",
    error: new TerminalError("quota is 0"),
  }));
  await queue.request(keyOf("blue"), { kind: "http" });
  await until("it is dead-lettered", () => worker.closed.length === 1);
  const bad = await runCommand(["status"], environment());
  expect(bad.code).toBe(1);
  expect(bad.stdout).toMatch(
    /^1 error\.\n\nerror +node-pool: 1 dead-lettered key \(began \d+m?s ago\)\n +cause: 1x quota is 0\n +effect: .+\n +next step: .*dead-letter release/,
  );
  const json = await runCommand(["status", "-o", "json"], environment());
  expect(overviewSchema.parse(JSON.parse(json.stdout)).problems).toMatchObject([
    { code: "dead_letters", cause: "1x quota is 0" },
  ]);
  expect(json.code).toBe(1);
  expect((await runCommand(["status", "-o", "name"], environment())).stdout).toBe("dead_letters\n");
});

test("--watch prints the problems again when they change", async () => {
  await announce();
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "apps/cli/src/main.ts", "status", "--watch"],
    { env: { ...process.env, ...environment() }, stdio: ["ignore", "pipe", "ignore"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += String(chunk);
  });
  await until("the first status", () => text.includes("No problems"));
  const queue = harness.open();
  await queue.control.pause(
    { kind: "namespace", namespace: "demo" },
    { by: "ada", reason: "a bad release" },
  );
  await until("the pause is printed", () => text.includes("demo is paused by ada"));
  expect(text.match(/No problems/g)?.length, "each state is printed once").toBeLessThanOrEqual(2);
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([130, null]);
});
