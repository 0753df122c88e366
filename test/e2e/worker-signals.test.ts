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

test("SIGTERM drains, live and not ready; a second one aborts attempts, and the process exits with 0", async () => {
  await using cleanup = new AsyncDisposableStack();
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
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
        KUBECONFIG: kubeconfig,
      },
    },
  );
  cleanup.defer(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const said: Line[] = [];
  createInterface({ input: child.stdout }).on("line", (line) =>
    said.push(JSON.parse(line) as Line),
  );
  const line = (message: string) => until(message, () => said.find(({ msg }) => msg === message));
  const { metricsUrl = "" } = await line("worker ready");
  const status = async (path: string) => (await fetch(new URL(path, metricsUrl))).status;
  expect(await status("/readyz")).toBe(200);
  await client.create(ConfigMap, { metadata: { namespace: "default", name: "one" } });
  await line("the handler waits");

  child.kill("SIGTERM");
  await line("worker stopping");
  expect([await status("/readyz"), await status("/livez"), await status("/metrics")]).toEqual([
    503, 200, 200,
  ]);
  expect(said.some(({ msg }) => msg === "the handler was aborted")).toBe(false);
  child.kill("SIGTERM");
  await line("the handler was aborted");
  expect(await ended).toBe(0);
});
