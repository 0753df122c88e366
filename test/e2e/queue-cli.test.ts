import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { keyListSchema } from "@konverge/contracts";
import { createControllerRegistry, type WorkQueue } from "@konverge/queue";
import { beforeEach, expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";
import { until } from "../support/until.ts";

const harness = useQueues();
const run = promisify(execFile);
const MAIN = ["--conditions=@konverge/source", "apps/cli/src/main.ts"];
const WHY = ["--reason", "a bad release", "--by", "ada"];
let queue: WorkQueue;

beforeEach(async () => {
  const registry = createControllerRegistry({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
  });
  const type = { cluster: "default", group: "demo.konverge.dev", version: "v1", kind: "NodePool" };
  await registry.announce([
    { ...type, name: "node-pool", resource: "nodepools", scope: "Namespaced" },
  ]);
  await registry.close();
  queue = harness.open();
});

const environment = (redisUrl = harness.apiUrl) => ({
  KONVERGE_REDIS_URL: redisUrl,
  KONVERGE_PREFIX: harness.prefix,
});
const konverge = (args: readonly string[], redisUrl?: string) =>
  runCommand(args, environment(redisUrl));

test("lists, pauses, resumes and cancels keys, and records the actions", async () => {
  const accepted = await queue.request(keyOf("blue"), { kind: "http" });
  const pause = ["node-pool", "-n", "demo", "--name", "blue", ...WHY];
  const paused = await konverge(["queue", "pause", ...pause]);
  expect(paused).toMatchObject({ code: 0, stderr: "" });
  expect(paused.stdout).toMatch(
    /^CONTROLLER +SCOPE.*\nnode-pool .*demo\/blue +ada .*a bad release\n$/,
  );
  const listed = await konverge(["object", "list", "--phase", "paused", "-o", "json"]);
  expect(keyListSchema.parse(JSON.parse(listed.stdout)).items).toMatchObject([
    { key: accepted.key, phase: "paused", paused: { by: "ada" } },
  ]);
  expect((await konverge(["object", "list"])).stdout).toMatch(/paused +0 .*by ada \d+m?s ago/);
  expect((await konverge(["reconcile", "cancel", accepted.id, ...WHY])).stdout).toBe("cancelled\n");
  const resumed = await konverge(["queue", "resume", ...pause]);
  expect(resumed.stdout).toBe("resumed 0 keys with pending requests\n");
  const pauses = await konverge(["queue", "pauses"]);
  expect(pauses).toMatchObject({ code: 0, stdout: "", stderr: "no pauses\n" });
  const actions = await konverge(["queue", "actions", "node-pool"]);
  expect(actions.stdout).toMatch(/resume .*\n.*cancel .*\n.*pause /);
});

test("pause and resume take an object as other commands do: by name, option or key", async () => {
  const { key } = await queue.request(keyOf("blue"), { kind: "http" });
  const forms = [
    ["node-pool", "blue", "-n", "demo"],
    ["node-pool", "-n", "demo", "--name", "blue"],
    [key],
  ];
  for (const form of forms) {
    const paused = await konverge(["queue", "pause", ...form, ...WHY]);
    expect(paused.stdout).toMatch(/\nnode-pool .*demo\/blue +ada /);
    const shown = await konverge(["queue", "pause", ...form, "--dry-run", ...WHY]);
    expect(shown.stdout).toBe("would pause node-pool demo blue\n");
    await konverge(["queue", "resume", ...form, ...WHY]);
    expect((await konverge(["queue", "pauses"])).stderr).toBe("no pauses\n");
    const released = await konverge(["dead-letter", "release", ...form, ...WHY]);
    expect(released.stderr).toContain("is not dead-lettered");
  }
  const twice = await konverge(["queue", "pause", key, "--name", "blue", ...WHY]);
  expect(twice).toMatchObject({ code: 2, stdout: "" });
  expect(twice.stderr).toContain("the object is named twice");
});

test.each([
  [
    ["foo"],
    /^konverge: unknown command 'foo'\nCommands of konverge: demo, init, dev, simulate, worker, .*completion/,
  ],
  [["queue", "foo"], /^konverge: unknown command 'foo'\nCommands of konverge queue: list, pauses/],
])("lists the commands after an unknown one: %j", async (args, expected) => {
  const { code, stderr } = await konverge(args);
  expect(code).toBe(2);
  expect(stderr).toMatch(expected);
});

test("lists, counts and releases dead-lettered keys", async () => {
  const worker = workOn(queue, () => ({ kind: "terminal", error: new Error("cannot") }));
  for (const name of ["a-1", "a-2", "b"]) await queue.request(keyOf(name), { kind: "watch" });
  await until("all are dead-lettered", () => worker.closed.length === 3);
  await worker.stop();
  expect((await konverge(["dead-letter", "list"])).stdout).toMatch(/terminal: cannot\n.*a-2 /);
  const release = ["dead-letter", "release", "node-pool", ...WHY];
  const counted = await konverge([...release, "--contains", "a", "--dry-run"]);
  expect(counted.stdout).toBe("2 would be released\n");
  expect((await konverge([...release, "--all"])).stdout).toBe("3 released\n");
  expect((await konverge(["dead-letter", "list"])).stderr).toBe("no dead-lettered keys\n");
  expect((await queue.counts()).waiting).toBe(3);
});

test.each([
  [
    ["dead-letter", "release", "node-pool", ...WHY],
    2,
    "--all: is required if no other filter is set",
  ],
  [["queue", "pause", ...WHY], 2, "<controller>: a controller or a namespace is required"],
  [["object", "list", "--phase", "ded"], 2, "--phase: must be one of idle, waiting"],
  [["queue", "resume", "node-pool", ...WHY], 3, "the controller is not paused"],
  [["queue", "actions", "other"], 3, 'has no controller "other"; known: node-pool'],
])("%j ends with %i: %s", async (args, code, line) => {
  const ended = await konverge(args);
  expect(ended.code).toBe(code);
  expect(ended.stderr).toContain(`konverge: `);
  expect(ended.stderr).toContain(line);
  expect(ended.stderr.trimEnd()).not.toContain("\n");
});

test("reports missing Redis in one line and exits with 6", async () => {
  const ended = await konverge(["queue", "list"], "redis://127.0.0.1:1");
  expect(ended.code).toBe(6);
  expect(ended.stderr).toMatch(/^konverge: Redis at redis:\/\/127.0.0.1:1 cannot be used: .*\n$/);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("a wait ended by %s exits with %i", async (signal, code) => {
  await queue.request(keyOf("blue"), { kind: "http" });
  const args = ["reconcile", "enqueue", "node-pool", "blue", "-n", "demo", "--wait"];
  const child = spawn(process.execPath, [...MAIN, ...args], {
    env: { ...process.env, ...environment() },
    stdio: "ignore",
  });
  const closed = once(child, "close");
  await until(
    "the request is stored",
    async () => (await queue.getKey(keyOf("blue")))?.requested === 2,
  );
  child.kill(signal);
  expect(await closed).toEqual([code, null]);
});

test("ignores a closed pipe and completes commands", async () => {
  const cli = [process.execPath, ...MAIN].join(" ");
  const shell = (script: string) => run("bash", ["-o", "pipefail", "-c", script]);
  expect(await shell(`${cli} config schema -o json | head -n 1`)).toEqual({
    stdout: "{\n",
    stderr: "",
  });
  const completed = (line: string) =>
    shell(
      `source <(${cli} completion bash); COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _konverge; echo "\${COMPREPLY[@]}"`,
    );
  expect((await completed("konverge queue pa")).stdout).toBe("pauses pause\n");
  expect((await completed("konverge queue list -o js")).stdout).toBe("json jsonl\n");
  expect((await completed("konverge dead-letter release node-pool --dr")).stdout).toBe(
    "--dry-run\n",
  );
});
