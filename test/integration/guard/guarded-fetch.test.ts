import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const EXAMPLE = fileURLToPath(
  new URL("../../../apps/examples/src/guarded-fetch.ts", import.meta.url),
);
/** As the example sets them. */
const RATE = 50;
const BURST = 60;

/** An API that answers 503 to some calls in the middle. */
async function startApi(isBroken: (call: number) => boolean) {
  const arrivedMs: number[] = [];
  let good = 0;
  const server = createServer((_request, response) => {
    arrivedMs.push(performance.now());
    const broken = isBroken(arrivedMs.length);
    if (!broken) good += 1;
    response.writeHead(broken ? 503 : 200).end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, arrivedMs, good: () => good };
}

async function runExample(
  url: string,
  count: number,
): Promise<{ permits: number; breaker: string }> {
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", EXAMPLE, url, String(count)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let out = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  const code = await new Promise((resolve) => {
    child.once("close", resolve);
  });
  expect(code).toBe(0);
  return JSON.parse(out) as { permits: number; breaker: string };
}

test(
  "P5, P6: three processes that fetch share one rate and one breaker",
  { timeout: 60_000 },
  async () => {
    const api = await startApi((call) => call > 60 && call <= 78);
    const reports = await Promise.all([1, 2, 3].map(() => runExample(api.url, 40)));
    expect(reports.reduce((sum, { permits }) => sum + permits, 0)).toBe(api.arrivedMs.length);
    // fetch does not throw for a 503, so each of the 120 was sent once, and the breaker let through little in between.
    expect(api.arrivedMs).toHaveLength(120);
    expect(reports.map(({ breaker }) => breaker)).toEqual(["closed", "closed", "closed"]);
    let most = 0;
    for (const [first, fromMs] of api.arrivedMs.entries()) {
      for (const [last, toMs] of api.arrivedMs.entries()) {
        if (last >= first)
          most = Math.max(most, last - first + 1 - (RATE * (toMs - fromMs)) / 1_000);
      }
    }
    expect(most, "calls above the rate, in any window").toBeLessThanOrEqual(BURST);
  },
);
