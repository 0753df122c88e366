import { KonvergeError } from "@konverge/core";
import { expect, test, vi } from "vitest";
import { onceReachable } from "./once-reachable.ts";

function createLog() {
  const warned: string[] = [];
  const log = {
    trace: () => undefined,
    debug: () => undefined,
    info: () => undefined,
    warn: (_: object, message: string) => warned.push(message),
    error: () => undefined,
    child: () => log,
  };
  return { log: log as never, warned };
}
const failing = (...codes: ("redis_unavailable" | "kube_unreachable" | "cluster_mismatch")[]) => {
  let calls = 0;
  return async () => {
    const code = codes[calls];
    calls += 1;
    if (code !== undefined) throw new KonvergeError(code, "away");
    return calls;
  };
};

test("waits for Redis, then for the API server, and logs each once", async () => {
  vi.useFakeTimers();
  try {
    const { log, warned } = createLog();
    const start = failing("redis_unavailable", "redis_unavailable", "kube_unreachable");
    const started = onceReachable(start, { limitMs: 600_000, log });
    await vi.runAllTimersAsync();
    expect(await started).toBe(4);
    expect(warned).toEqual(["waiting for Redis", "waiting for the API server"]);
  } finally {
    vi.useRealTimers();
  }
});

test("ends with its signal while it waits", async () => {
  const { log } = createLog();
  const ending = new AbortController();
  const start = async () => {
    ending.abort(new Error("SIGTERM"));
    throw new KonvergeError("redis_unavailable", "away");
  };
  const waiting = onceReachable(start, { limitMs: 600_000, log, stopping: ending.signal });
  await expect(waiting).rejects.toThrow("SIGTERM");
});

test.each([
  ["redis_unavailable", 0],
  ["cluster_mismatch", 600_000],
] as const)("fails at once with %s if it may wait %i ms", async (code, limitMs) => {
  const { log, warned } = createLog();
  await expect(onceReachable(failing(code), { limitMs, log })).rejects.toMatchObject({ code });
  expect(warned).toEqual([]);
});
