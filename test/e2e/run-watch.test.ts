import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";
import { until } from "../support/until.ts";

const harness = useQueues();

test("retry --from-failed-step continues a cancelled run, the token's name is recorded, and watch prints each step", async () => {
  const cleanup = new AsyncDisposableStack();
  onTestFinished(() => cleanup.disposeAsync());
  const folder = await mkdtemp(join(tmpdir(), "konverge-watch-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const { kubeconfig } = cleanup.use(await startEmbeddedServer());
  const env = {
    KONVERGE_REDIS_URL: harness.apiUrl,
    KONVERGE_PREFIX: harness.prefix,
    KONVERGE_METRICS_PORT: "0",
    KONVERGE_API_PORT: "0",
    KUBECONFIG: kubeconfig,
    HELD_RELEASE_FOLDER: folder,
  };
  const konverge = (...args: readonly string[]) => runCommand(args, env);
  const created = await konverge("token", "create", "ann", "--role", "operator", "-o", "json");
  const { token } = JSON.parse(created.stdout) as { readonly token: string };
  const begin = (...args: readonly string[]) => {
    const command = ["--conditions=@konverge/source", "apps/cli/src/main.ts", ...args];
    const child = spawn(process.execPath, command, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    const exited = once(child, "close");
    cleanup.defer(async () => {
      child.kill("SIGKILL");
      await exited;
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    return { lines, exited };
  };
  const worker = begin("worker", "--config", "test/e2e/held-release.config.ts");
  await until("it is ready", () => worker.lines.some((line) => /worker ready/.test(line)));

  const id = "release/default/r1";
  await konverge("run", "start", "release", "--input", '"1.4.0"', "--id", "r1", "--by", "ann");
  const parked = () =>
    konverge("run", "list", "--status", "waiting", "--search", "R1", "-o", "name");
  await until("it waits", async () => (await parked()).stdout === `${id}\n`);
  const why = ["--reason", "the wrong day", "--by", "ann"];
  await konverge("run", "cancel", id, ...why);
  const cancelled = await konverge("run", "watch", id);
  expect([cancelled.code, cancelled.stdout.split("\n").at(-2)]).toEqual([
    1,
    "cancelled: cancelled: the run was cancelled by ann: the wrong day",
  ]);

  const dry = await konverge("run", "retry", id, "--from-failed-step", ...why, "--dry-run");
  expect(dry.stderr).toMatch(/nothing was retried/);
  const action = ["--reason", "the right day", "--by", "bob"];
  const retried = await konverge("run", "retry", id, "--from-failed-step", ...action, "-o", "name");
  expect(retried).toEqual({ code: 0, stdout: `${id}\n`, stderr: "" });
  const shown = await konverge("run", "get", id);
  expect(shown.stdout).toMatch(/^started by +ann$/m);
  expect(shown.stdout).toMatch(/^retry +from the failed step, by bob: the right day$/m);
  const watch = begin("run", "watch", id, "--timeout", "2m");
  await until("it prints the signal that the run waits for", () =>
    watch.lines.includes('waiting: waits for signal "approve"'),
  );
  expect(watch.lines[0]).toMatch(/^\d\d:\d\d:\d\d {2}step draft {2}\{"draft":"1\.4\.0"\}$/);
  const api = begin("api");
  const listening = await until("the API listens", () =>
    api.lines.find((line) => line.includes("api listening")),
  );
  const { url } = JSON.parse(listening) as { readonly url: string };
  // A token's owner cannot approve under another name.
  const approve = ["run", "signal", id, "approve", "--by", "eve", "--server", url];
  const approved = await runCommand(approve, { ...env, KONVERGE_TOKEN: token });
  expect([approved.code, approved.stderr]).toEqual([0, ""]);
  expect(await watch.exited).toEqual([0, null]);
  expect(watch.lines.filter((line) => !/^(queued|running)$/.test(line)).slice(2)).toEqual([
    expect.stringMatching(/^[\d:]+ {2}signal approve {2}.*by ann\)?$/),
    expect.stringMatching(/^[\d:]+ {2}step publish/),
    'done: "published 1.4.0"',
  ]);
  expect((await konverge("run", "get", id)).stdout).toMatch(/^approve +signal .* ann *$/m);
  expect((await konverge("audit", "list")).stdout).toMatch(/ ann +token +run\.signal .*r1/);
  const late = await konverge("run", "watch", id, "-o", "jsonl");
  expect(
    late.stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => (JSON.parse(line) as { type: string }).type),
  ).toEqual(["step", "step", "step", "run"]);
  const nothing = await konverge("run", "retry", id, ...action);
  expect([nothing.code, nothing.stderr]).toEqual([
    4,
    expect.stringMatching(/succeeded and cannot be retried/),
  ]);
});
