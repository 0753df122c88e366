import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openQueueAccess } from "@konverge/api";
import { createControllerRegistry, createWorkQueue } from "@konverge/queue";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const konverge = (...args: string[]) =>
  runCommand(args, {
    KONVERGE_REDIS_URL: harness.url,
    KONVERGE_PREFIX: harness.prefix,
    KONVERGE_TOKEN: `canary-in-setting-${"x".repeat(40)}`,
  });
const kind = { group: "", version: "v1", kind: "ConfigMap", resource: "configmaps" } as const;

/** An installation with a dead letter, a pause, a failed attempt, a run and a token, all with canaries. */
async function install(): Promise<void> {
  const { target: redis, prefix } = harness;
  const place = { redis, prefix, cluster: "default" };
  const registry = createControllerRegistry(place);
  await registry.announce(
    [{ name: "copy", cluster: "default", ...kind, scope: "Namespaced" }],
    [{ name: "ship", version: 1 }],
  );
  await registry.close();
  const queue = createWorkQueue({ ...place, controller: "copy" });
  const name = "canary-in-name";
  const key = { controller: "copy", cluster: "default", ...kind, namespace: "canary-in-ns", name };
  const worker = queue.work({
    workerId: "canary-in-worker",
    handle: async () => ({ outcome: { kind: "terminal", error: new Error("canary-in-error") } }),
    onError: () => undefined,
  });
  const by = { by: "canary-in-author", reason: "canary-in-reason" };
  await queue.request(key, { kind: "http", by: "canary-in-caller" });
  await until("the key is dead-lettered", async () => (await queue.backlog()).deadLettered === 1);
  await worker.stop();
  await queue.control.pause({ kind: "namespace", namespace: "canary-in-ns" }, by);
  await queue.close();
  const runs = openWorkflows(place);
  const ship = defineWorkflow("ship", { version: 1 }, async () => null);
  await runs.start(ship, "canary-in-input", { id: "canary-in-run" });
  await runs.close();
  const access = openQueueAccess({ redis, prefix, onError: () => undefined });
  await access.tokens.create({ name: "canary-in-token", role: "viewer", scope: {} }, "ann");
  await access.close();
}

test("the support bundle has the state of the installation, and no text of users, objects or errors", async () => {
  await install();
  const dir = mkdtempSync(join(tmpdir(), "konverge-bundle-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "bundle.json");
  const written = await konverge("support-bundle", "--file", file);
  expect(written).toMatchObject({ code: 0, stdout: "", stderr: `wrote ${file}\n` });
  const text = readFileSync(file, "utf8");
  expect(text).not.toMatch(/canary/i);
  expect(text).not.toContain(new URL(harness.url).host);
  expect(statSync(file).mode % 0o1000).toBe(0o600);
  // The search proves something only if the problems are there.
  const bundle = JSON.parse(text) as { overviews: { problems: { code: string }[] }[] };
  expect(bundle.overviews[0]?.problems.map(({ code }) => code)).toEqual(
    expect.arrayContaining(["no_workers", "dead_letters", "paused"]),
  );
  expect(text).toContain('"name": "copy"');
  const again = await konverge("support-bundle", "--file", file);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/^konverge: --file: /) });
});

test("capacity counts keys and runs, and compares the estimate with Redis", async () => {
  expect(await konverge("capacity")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("no clusters"),
  });
  await install();
  const { stdout, code } = await konverge("capacity");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^default +1 +0 +1 +0 +256\.0 MiB +-$/m);
  expect(stdout).toMatch(/^redis used +[\d.]+ MiB$/m);
  expect(stdout).toMatch(/^advice +\S/m);
});
