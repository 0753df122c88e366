import { openQueueAccess } from "@konverge/api";
import { createControllerRegistry, createWorkQueue, openRestoreWatch } from "@konverge/queue";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { blocksOf, nameOf } from "../integration/docs/load-block.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";

const PAGE = "docs/restore.md";
const HOUR_MS = 3_600_000;
const harness = useQueues();
const konverge = (...args: string[]) =>
  runCommand(args, { KONVERGE_REDIS_URL: harness.url, KONVERGE_PREFIX: harness.prefix });

/** An installation with work, whose Redis was restored to the state of an hour ago. */
async function restored() {
  const { target: redis, prefix } = harness;
  const place = { redis, prefix, cluster: "default" };
  const registry = createControllerRegistry(place);
  const kind = { group: "", version: "v1", kind: "ConfigMap", resource: "configmaps" };
  await registry.announce(
    [{ name: "copy", cluster: "default", ...kind, scope: "Namespaced" }],
    [{ name: "ship", version: 1 }],
  );
  await registry.close();
  const queue = createWorkQueue({ ...place, controller: "copy" });
  await queue.request(
    {
      controller: "copy",
      cluster: "default",
      resource: "configmaps",
      group: "",
      namespace: "shop",
      name: "a",
    },
    { kind: "http" },
  );
  await queue.control.pause(
    { kind: "namespace", namespace: "shop" },
    { by: "ann", reason: "full" },
  );
  await queue.close();
  const runs = openWorkflows(place);
  await runs.start(
    defineWorkflow("ship", { version: 1 }, async () => null),
    undefined,
    {
      id: "order-7",
    },
  );
  await runs.close();
  const access = openQueueAccess({ redis, prefix, onError: () => undefined });
  onTestFinished(() => access.close());
  const { token } = await access.tokens.create({ name: "ci", role: "operator", scope: {} }, "ann");
  const watch = openRestoreWatch({
    ...place,
    shards: 1,
    workerId: "w-1",
    onError: () => undefined,
    onChanged: () => undefined,
  });
  onTestFinished(() => watch.close());
  await watch.start(undefined);
  expect(await watch.mayStart("runs")).toBe(true);
  for (const key of [`${prefix}:{default}/restore`, `${prefix}:restore`]) {
    await harness.redis.hincrby(key, "progress", -HOUR_MS);
  }
  watch.fence("runs").onHeld();
  return { access, token, watch };
}

const commandsOf = (name: string) =>
  (blocksOf(PAGE).find((block) => nameOf(block) === `${PAGE} ${name}`)?.text ?? "")
    .trim()
    .split("\n")
    .map((line) => line.trim().split(" ").slice(1));

test("reports the work of a restored Redis, and accepts it kind by kind", async () => {
  expect(await konverge("restore", "check")).toMatchObject({ code: 0 });
  const { access, token, watch } = await restored();
  await expect.poll(() => watch.held).toEqual(["keys", "runs", "pauses", "guard"]);
  await expect(access.tokens.find(token)).rejects.toMatchObject({ code: "unauthorized" });

  const [check = []] = commandsOf("sh 1");
  const checked = await konverge(...check);
  expect(checked.code).toBe(4);
  expect(checked.stdout).toMatch(/^held +keys, runs, pauses, guard$/m);
  expect(checked.stdout).toMatch(/^lost writes .* \(1h\)$/m);
  expect(checked.stdout).toMatch(/^keys +copy: 1 requested, 0 dead-lettered$/m);
  expect(checked.stdout).toMatch(/^run +ship\/order-7: queued, continues after 0 recorded steps$/m);
  expect(checked.stdout).toMatch(/^pause +copy \(namespace\) by ann at .*: full$/m);
  expect(checked.stdout).toMatch(/^tokens +held; valid: ci \(operator, .*\)$/m);
  expect(checked.stdout).not.toContain(token);

  const accepts = commandsOf("sh 3");
  expect(accepts).toHaveLength(4);
  const held = [];
  for (const words of accepts) held.push((await konverge(...words, "--by", "bob")).stdout.trim());
  expect(held).toEqual([
    "still held: keys, runs, tokens",
    "still held: runs, tokens",
    "still held: tokens",
    "",
  ]);
  expect(await access.tokens.find(token)).toMatchObject({ name: "ci" });
  await expect.poll(() => watch.mayStart("runs")).toBe(true);
  expect(await konverge("restore", "check")).toMatchObject({ code: 0 });
  expect(await konverge("restore", "accept", "keys")).toMatchObject({ code: 2 });
  const { items } = await access.audit.read({ limit: 10 }, () => true);
  expect(items.filter(({ action }) => action === "restore.accept").map(({ by }) => by)).toEqual(
    Array.from({ length: 4 }, () => "bob"),
  );
});

test("names the kinds for an unknown one", async () => {
  const wrong = await konverge("restore", "accept", "everything");
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("keys, runs, pauses, guard, tokens");
});
