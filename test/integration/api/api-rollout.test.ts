import { startApi, type RunningApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();
const PROBE_EVERY_MS = 50;

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

/** A Service: it sends calls to the processes that were ready at its last probe. */
class Service {
  readonly #processes = new Set<string>();
  #ready: string[] = [];
  #next = 0;
  readonly #calls = new Map<string, number>();
  readonly #timer = setInterval(() => void this.probe(), PROBE_EVERY_MS);

  add(url: string): void {
    this.#processes.add(url);
  }

  remove(url: string): void {
    this.#processes.delete(url);
  }

  isReady(url: string): boolean {
    return this.#ready.includes(url);
  }

  async probe(): Promise<void> {
    const probes = [...this.#processes].map(async (url) => {
      const { ok } = await fetch(`${url}/readyz`);
      return ok ? [url] : [];
    });
    // A process that ended during the probe has left the list.
    const answers = await Promise.allSettled(probes);
    this.#ready = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  }

  async call(path: string): Promise<Response> {
    this.#next += 1;
    const url = this.#ready[this.#next % this.#ready.length] ?? "";
    this.#calls.set(url, this.callsTo(url) + 1);
    try {
      const response = await fetch(`${url}${path}`);
      await response.text();
      return response;
    } finally {
      this.#calls.set(url, this.callsTo(url) - 1);
    }
  }

  /** Returns the number of calls that have not been answered. */
  callsTo(url: string): number {
    return this.#calls.get(url) ?? 0;
  }

  close(): void {
    clearInterval(this.#timer);
  }
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
