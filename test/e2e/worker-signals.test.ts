import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";

const harness = useQueues();

interface Line {
  readonly msg?: string;
  readonly metricsUrl?: string;
}

function startWorker(env: Readonly<Record<string, string>>) {
  const command = ["apps/cli/src/main.ts", "worker", "--role", "all"];
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", ...command, "--config", "test/e2e/patient.config.ts"],
    {
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...process.env,
        KONVERGE_REDIS_URL: harness.url,
        KONVERGE_PREFIX: harness.prefix,
        KONVERGE_METRICS_PORT: "0",
        ...env,
      },
    },
  );
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const said: Line[] = [];
  createInterface({ input: child.stdout }).on("line", (line) =>
    said.push(JSON.parse(line) as Line),
  );
  return {
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    ended,
    said,
    line: (message: string) => until(message, () => said.find(({ msg }) => msg === message)),
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}

test("SIGTERM ends a worker that waits for Redis", async () => {
  using worker = startWorker({ KONVERGE_REDIS_URL: "redis://127.0.0.1:1" });
  await worker.line("waiting for Redis");
  worker.kill("SIGTERM");
  // By itself: without a listener, PID 1 of a container would ignore the signal.
  expect(await worker.ended).toBe(143);
});

test("SIGTERM drains, live and not ready; a second one aborts attempts, and the process exits with 0", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const { kill, ended, said, line } = cleanup.use(startWorker({ KUBECONFIG: kubeconfig }));
  const { metricsUrl = "" } = await line("worker ready");
  const status = async (path: string) => (await fetch(new URL(path, metricsUrl))).status;
  expect(await status("/readyz")).toBe(200);
  await client.create(ConfigMap, { metadata: { namespace: "default", name: "one" } });
  await line("the handler waits");

  kill("SIGTERM");
  await line("worker stopping");
  expect([await status("/readyz"), await status("/livez"), await status("/metrics")]).toEqual([
    503, 200, 200,
  ]);
  expect(said.some(({ msg }) => msg === "the handler was aborted")).toBe(false);
  kill("SIGTERM");
  await line("the handler was aborted");
  expect(await ended).toBe(0);
});
