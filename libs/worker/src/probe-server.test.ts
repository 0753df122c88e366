import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished, test } from "vitest";
import { startProbeServer } from "./probe-server.ts";

async function start(port?: number): Promise<string> {
  const server = await startProbeServer({
    settings: { metricsHost: "127.0.0.1", metricsPort: port },
    metrics: createMetrics({ version: "1" }),
    isReady: () => true,
  });
  onTestFinished(() => server.close());
  return server.url;
}

test("further workers on a machine select a free port if none is set", async () => {
  const urls = [await start(), await start(), await start()];
  expect(new Set(urls).size).toBe(3);
  for (const url of urls) expect((await fetch(`${url}/readyz`)).status).toBe(200);
});

test("rejects a port that was set and is in use", async () => {
  const port = Number(new URL(await start(0)).port);
  await expect(start(port)).rejects.toMatchObject({
    code: "invalid_config",
    message: `KONVERGE_METRICS_PORT: port ${port} is in use; set another port, or 0 for a free one`,
  });
});
