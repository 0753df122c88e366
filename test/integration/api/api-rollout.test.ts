import { startApi, type RunningApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { expect, onTestFinished, test } from "vitest";
import { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();

/** Starts an API process that drains until the returned function is called, whatever the load of the machine. */
async function start(): Promise<RunningApi & { readonly drained: () => void }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const env = {
    KONVERGE_REDIS_URL: harness.apiUrl,
    KONVERGE_PREFIX: harness.prefix,
    KONVERGE_API_PORT: "0",
    KONVERGE_LOG_LEVEL: "silent",
  };
  const settings = readSettings({ env });
  const api = await startApi({ settings, version: "1", drained: () => promise });
  return { ...api, drained: () => resolve() };
}

test("no call is refused while every API process is replaced", async () => {
  const service = new Service();
  onTestFinished(() => service.close());
  let running = [await start(), await start()];
  for (const { url } of running) service.add(url);
  await until("both are ready", () => running.every(({ url }) => service.isReady(url)));

  const failed: unknown[] = [];
  let answered = 0;
  let isRolling = true;
  const callers = Array.from({ length: 8 }, async () => {
    while (isRolling) {
      try {
        const response = await service.call("/v1/controllers");
        if (response.ok) answered += 1;
        else failed.push(response.status);
      } catch (error) {
        failed.push(error);
      }
    }
  });
  for (const old of running) {
    const next = await start();
    service.add(next.url);
    await until("the new process is ready", () => service.isReady(next.url));
    const stopped = old.stop();
    await until("the old process is not ready", () => !service.isReady(old.url));
    service.remove(old.url);
    await until("its last calls are answered", () => service.callsTo(old.url) === 0);
    old.drained();
    await stopped;
    running = [...running.filter((one) => one !== old), next];
  }
  isRolling = false;
  await Promise.all(callers);
  for (const { drained } of running) drained();
  await Promise.all(running.map((api) => api.stop()));
  expect(failed).toEqual([]);
  expect(answered).toBeGreaterThan(0);
});

test("while it drains, an API process answers calls, ends their connections and is not ready", async () => {
  const api = await start();
  const stopped = api.stop();
  await until("it is not ready", async () => (await fetch(`${api.url}/readyz`)).status === 503);
  const response = await fetch(`${api.url}/v1/controllers`);
  expect(response.status).toBe(200);
  expect(response.headers.get("connection")).toBe("close");
  api.drained();
  await stopped;
});
