import { spawn } from "node:child_process";
import { once } from "node:events";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { expect, onTestFinished, test } from "vitest";
import { announce } from "../integration/queue/announce.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();

async function startServer(port: string) {
  return await startApi({
    settings: readSettings({
      env: {
        KONVERGE_REDIS_URL: harness.apiUrl,
        KONVERGE_PREFIX: harness.prefix,
        KONVERGE_API_PORT: port,
        KONVERGE_LOG_LEVEL: "silent",
      },
    }),
    version: "test",
  });
}

/** Starts a command as a user does. */
function start(args: readonly string[]) {
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "apps/cli/src/main.ts", ...args],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  const text = { out: "", err: "" };
  child.stdout.on("data", (chunk: Buffer) => (text.out += String(chunk)));
  child.stderr.on("data", (chunk: Buffer) => (text.err += String(chunk)));
  return { child, text };
}

test("a list with --watch prints changes, and continues when the server is back", async () => {
  await announce(harness);
  const first = await startServer("0");
  const { port } = new URL(first.url);
  const { child, text } = start(["queue", "pauses", "--watch", "--server", first.url]);
  await until("the empty list", () => text.err.includes("no pauses"));
  const queue = harness.open();
  const pause = (namespace: string) =>
    queue.control.pause({ kind: "namespace", namespace }, { by: "ada", reason: "a bad release" });
  await pause("demo");
  await until("the pause is printed", () => text.out.includes("namespace demo"));
  await first.stop();
  await until("the failure is reported", () => text.err.includes("; trying again"));
  await pause("shop");
  const second = await startServer(port);
  onTestFinished(() => second.stop());
  await until("the second pause is printed", () => text.out.includes("namespace shop"));
  expect(text.err.match(/trying again/g), "one line per failure").toHaveLength(1);
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([130, null]);
});

test("a watch that cannot begin ends as without --watch", async () => {
  const ended = await runCommand(["queue", "pauses", "--watch"], {
    KONVERGE_SERVER: "http://127.0.0.1:1",
  });
  expect(ended.code).toBe(6);
  expect(ended.stderr).toMatch(/^konverge: no response from http:\/\/127\.0\.0\.1:1/);
});

test("top needs a terminal", async () => {
  const ended = await runCommand(["top"], { KONVERGE_SERVER: "http://127.0.0.1:1" });
  expect(ended.code).toBe(2);
  expect(ended.stderr).toContain("konverge top needs a terminal; use konverge status");
});

test.each([
  [[], ""],
  [["node-pool"], "controllers/node-pool"],
  [["node-pool", "blue", "-n", "demo"], "objects/default/node-pool/demo/blue"],
  [["node-pool", "blue"], "objects/default/node-pool/_/blue"],
  [["node-pool/east/pools.shop.dev/demo/blue"], "objects/east/node-pool/demo/blue"],
  [["release/default/web/4711"], "runs/release/default/web%2F4711"],
])("open %j prints the address of its page", async (args, path) => {
  const opened = (server: string) => runCommand(["open", ...args], { KONVERGE_SERVER: server });
  for (const base of ["http://127.0.0.1:1/", "http://127.0.0.1:1/ops/"]) {
    expect(await opened(base)).toMatchObject({ code: 0, stdout: `${base}${path}\n` });
  }
});

test("open needs the address of a server", async () => {
  const ended = await runCommand(["open"], { KONVERGE_REDIS_URL: harness.apiUrl });
  expect(ended.code).toBe(2);
  expect(ended.stderr).toMatch(/^konverge: --server: is required/);
});
