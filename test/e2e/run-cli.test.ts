import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { runHistorySchema, runSchema, startRunResponseSchema } from "@konverge/contracts";
import { expect, onTestFinished, test } from "vitest";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";
import { until } from "../support/until.ts";

const harness = useQueues();

interface Stage {
  readonly folder: string;
  readonly konverge: (...args: readonly string[]) => ReturnType<typeof runCommand>;
  /** Starts a worker process and returns its ID when it is ready. */
  readonly worker: (config: string) => Promise<number>;
}

async function stage(): Promise<Stage> {
  const cleanup = new AsyncDisposableStack();
  onTestFinished(() => cleanup.disposeAsync());
  const folder = await mkdtemp(join(tmpdir(), "konverge-runs-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const { kubeconfig } = cleanup.use(await startEmbeddedServer());
  const env = {
    KONVERGE_REDIS_URL: harness.apiUrl,
    KONVERGE_PREFIX: harness.prefix,
    KONVERGE_METRICS_PORT: "0",
    KUBECONFIG: kubeconfig,
    HELD_RELEASE_FOLDER: folder,
  };
  return {
    folder,
    konverge: (...args) => runCommand(args, env),
    async worker(config) {
      const command = ["apps/cli/src/main.ts", "worker", "--config", config];
      const child = spawn(process.execPath, ["--conditions=@konverge/source", ...command], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, ...env },
      });
      const ended = new Promise((resolve) => child.once("close", resolve));
      cleanup.defer(async () => {
        child.kill("SIGKILL");
        await ended;
      });
      const said: string[] = [];
      createInterface({ input: child.stdout }).on("line", (line) => said.push(line));
      await until("it is ready", () => said.some((line) => line.includes("worker ready")));
      return child.pid ?? 0;
    },
  };
}

test("a run started by the command line survives a worker killed in a step and shows its steps", async () => {
  const { folder, konverge, worker } = await stage();
  const config = "test/e2e/held-release.config.ts";
  const begun = async () => (await readFile(join(folder, "begun"), "utf8")).split("\n");
  await writeFile(join(folder, "hold"), "");
  const first = await worker(config);
  const start = ["run", "start", "release", "--input", '"1.4.0"', "--id", "r1"];
  const started = await konverge(...start, "-o", "json");
  expect(startRunResponseSchema.parse(JSON.parse(started.stdout))).toEqual({
    id: "release/default/r1",
    created: true,
  });
  const id = "release/default/r1";
  const get = async () =>
    runSchema.parse(JSON.parse((await konverge("run", "get", id, "-o", "json")).stdout));
  await until("it waits for the approval", async () => (await get()).status === "waiting");
  const shown = await konverge("run", "get", id);
  expect(shown.stdout).toMatch(/^why +waits for signal "approve"$/m);

  const file = join(folder, "run.json");
  expect(await konverge("run", "export", id, "--out", file)).toMatchObject({ code: 0 });
  const history = runHistorySchema.parse(JSON.parse(await readFile(file, "utf8")));
  expect(history).toMatchObject({ id: "r1", input: "1.4.0", steps: [{ name: "draft" }] });
  const same = await konverge("deploy", "check", "--config", config);
  expect(same).toEqual({ code: 0, stdout: "1 fit, 0 would block\n", stderr: "" });
  const changed = "test/e2e/changed-release.config.ts";
  expect(await konverge("deploy", "check", "--config", changed)).toEqual({
    code: 1,
    stdout: `0 fit, 1 would block\n  1 of release would block: step "draft" became a signal (${id})\n`,
    stderr: "",
  });

  const signalled = await konverge("run", "signal", id, "approve", "--by", "ann", "-o", "name");
  expect(signalled).toEqual({ code: 0, stdout: `${id}\n`, stderr: "" });
  await until("the last step is running", async () => (await begun()).includes(`publish ${first}`));
  process.kill(first, "SIGKILL");
  await rm(join(folder, "hold"));
  const second = await worker(config);
  const ended = await konverge(...start, "--wait", "--timeout", "2m");
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toMatch(/^status +done$/m);
  expect(ended.stdout).toMatch(/^result +"published 1\.4\.0"$/m);
  // Recorded steps did not run again; the interrupted one did.
  expect(await begun()).toEqual([`draft ${first}`, `publish ${first}`, `publish ${second}`, ""]);
  expect((await get()).steps).toMatchObject([
    { name: "draft", kind: "step", value: { draft: "1.4.0" } },
    { name: "approve", kind: "signal", by: "ann" },
    { name: "publish", kind: "step" },
  ]);
});

test("the example publishes after approval, deletes its draft after cancellation and has exit codes for mistakes", async () => {
  const { folder, konverge, worker } = await stage();
  await worker("apps/examples/src/release.config.ts");
  const start = async (version: string) => {
    const input = JSON.stringify({ version, folder });
    const { stdout } = await konverge("run", "start", "release", "--input", input);
    return stdout.trim();
  };
  const status = async (id: string) => {
    const { stdout } = await konverge("run", "get", id, "-o", "json");
    return runSchema.parse(JSON.parse(stdout)).status;
  };
  const good = await start("1.0.0");
  const payload = join(folder, "payload.json");
  await until("it waits", async () => (await status(good)) === "waiting");
  await writeFile(payload, '{"by":"ann"}');
  await konverge("run", "signal", good, "approve", "--payload", `@${payload}`);
  expect((await konverge("run", "get", good, "--wait")).code).toBe(0);
  expect(await readFile(join(folder, "1.0.0.txt"), "utf8")).toBe("version 1.0.0\n");

  const bad = await start("2.0.0");
  await until("it waits", async () => (await status(bad)) === "waiting");
  expect((await konverge("run", "get", bad, "--wait", "--timeout", "50ms")).code).toBe(5);
  const misspelt = await konverge("run", "signal", bad, "aprove", "--by", "ann");
  expect(misspelt.stdout).toMatch(/^unconsumed +signal "aprove", sent by ann \d+m?s ago$/m);
  const action = ["run", "cancel", bad, "--reason", "wrong", "--by", "ann"];
  expect((await konverge(...action, "--dry-run")).stderr).toMatch(/nothing was cancelled/);
  expect(await status(bad)).toBe("waiting");
  expect((await konverge(...action)).code).toBe(0);
  const cancelled = await konverge("run", "get", bad, "--wait");
  expect(cancelled.code).toBe(1);
  expect(cancelled.stdout).toMatch(/^cancelled +by ann: wrong$/m);
  expect(cancelled.stdout).toMatch(/^undo:draft +undo /m);
  await expect(readFile(join(folder, "2.0.0.draft"))).rejects.toThrow("ENOENT");

  const listed = await konverge("run", "list", "release", "-o", "name");
  expect(listed.stdout).toBe(`${bad}\n${good}\n`);
  const wrong = await konverge("run", "start", "release", "--input", '{"version":7}', "--wait");
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toMatch(/^why +invalid_request: the input of "release" does not fit/m);
  const unknown = await konverge("run", "start", "rollout");
  expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringMatching(/known: release/)]);
  const late = await konverge("run", "signal", good, "approve");
  expect([late.code, late.stderr]).toEqual([4, expect.stringMatching(/has ended/)]);
  const typo = await konverge("run", "start", "release", "--input", "{");
  expect([typo.code, typo.stderr]).toEqual([2, expect.stringMatching(/--input is not valid JSON/)]);
});
