import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished, test } from "vitest";
import { createAuditLog } from "../../../libs/api/src/audit/audit-log.ts";
import { until } from "../../support/until.ts";
import { withoutHome } from "../../support/without-home.ts";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();

/** A receiver that a test takes away. */
async function startReceiver() {
  const receiver = { url: "", isAway: true, refused: 0, lines: 0 };
  const server = createServer((request, response) => {
    if (receiver.isAway) {
      receiver.refused += 1;
      return response.writeHead(503).end();
    }
    return request
      .on("data", (chunk: Buffer) => {
        receiver.lines += chunk.toString().split("\n").length - 1;
      })
      .on("end", () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/audit`;
  return receiver;
}

async function startProcess(auditUrl: string) {
  const { prefix } = harness;
  const env = {
    KONVERGE_PREFIX: prefix,
    KONVERGE_LOG_LEVEL: "silent",
    KONVERGE_AUDIT_URL: auditUrl,
    KONVERGE_API_DRAIN: "0s",
  };
  const settings = readSettings({ env });
  const api = await startApi({
    settings: { ...settings, redisUrl: harness.apiUrl, apiPort: 0 },
    version: "1.2.3",
  });
  onTestFinished(() => api.stop());
  return async () => {
    const text = withoutHome(await (await fetch(`${api.url}/metrics`)).text());
    const [, lag] = /^konverge_audit_stream_lag_seconds\{sink="http"\} (\S+)$/m.exec(text) ?? [];
    return lag === undefined ? undefined : Number(lag);
  };
}

test("each API process reports the lag while the receiver is away, and 0 after it has recovered", async () => {
  const receiver = await startReceiver();
  const lags = [await startProcess(receiver.url), await startProcess(receiver.url)];
  const log = createAuditLog(harness.redis, harness.prefix, {
    onError: (error) => expect.unreachable(error.message),
  });
  onTestFinished(() => log.close());
  for (const lag of lags) expect(await lag()).toBe(0);
  await log.write({ by: "ada", action: "pause" });
  await until("a delivery is refused", () => receiver.refused > 0);
  for (const lag of lags) await until("it grows", async () => ((await lag()) ?? 0) > 0.1);
  receiver.isAway = false;
  for (const lag of lags) await until("nothing waits", async () => (await lag()) === 0);
  expect(receiver.lines).toBe(1);
  await log.write({ by: "ada", action: "resume" });
  await until("the next one is delivered", () => receiver.lines === 2);
});

test("a lag that cannot be read has no series, and another sink's remains", async () => {
  const metrics = createMetrics({ version: "1" });
  let isAway = false;
  metrics.observeAuditStream("file", async () => ({ lagMs: 1_500, lost: 2 }));
  const stop = metrics.observeAuditStream("http", async () => {
    if (isAway) throw new Error("away");
    return { lagMs: 0, lost: 0 };
  });
  const read = async () =>
    [...withoutHome(await metrics.text()).matchAll(/^konverge_audit_(\w+\{.*)$/gm)].map(
      ([, series]) => series,
    );
  const ofFile = ['stream_lag_seconds{sink="file"} 1.5', 'entries_lost_total{sink="file"} 2'];
  const ofHttp = ['stream_lag_seconds{sink="http"} 0', 'entries_lost_total{sink="http"} 0'];
  expect((await read()).toSorted()).toEqual([...ofFile, ...ofHttp].toSorted());
  isAway = true;
  expect(await read()).toEqual(ofFile);
  isAway = false;
  stop();
  expect(await read()).toEqual(ofFile);
});
