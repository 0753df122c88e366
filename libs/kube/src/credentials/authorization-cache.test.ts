import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { AuthorizationCache } from "./authorization-cache.ts";

/** A source that runs a plugin for each authorization, on a clock that only the test moves. */
class PluginSource {
  nowMs = 0;
  runs = 0;
  isBroken = false;
  readonly cache: AuthorizationCache = new AuthorizationCache(
    {
      authorize: async () => {
        this.runs += 1;
        this.cache.noteRun();
        if (this.isBroken) throw new KonvergeError("kube_unreachable", "no credentials");
        return { headers: { Authorization: `Bearer ${this.runs}` }, tls: {} };
      },
      renew: () => undefined,
      steadyMs: () => 0,
    },
    () => this.nowMs,
  );

  /** 20 concurrent calls every 10 ms. */
  async load(ms: number, onCall: () => void = () => undefined): Promise<void> {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += 10) {
      await Promise.all(
        Array.from({ length: 20 }, () => this.cache.get().then(onCall, () => undefined)),
      );
    }
  }
}

test("starts a broken plugin with growing pauses, however many calls there are", async () => {
  const source = new PluginSource();
  source.isBroken = true;
  await source.load(60_000);
  // After 0, 1, 3, 7, 15 and 31 s.
  expect(source.runs).toBe(6);
  const failed = await source.cache.get().catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: "kube_unreachable", retryAfterMs: 1_000 });
});

test("uses a repaired plugin after the pause, and forgets the earlier failures", async () => {
  const source = new PluginSource();
  source.isBroken = true;
  await source.load(10_000);
  source.isBroken = false;
  await source.load(10_000);
  await expect(source.cache.get()).resolves.toMatchObject({ tls: {} });
  source.isBroken = true;
  source.nowMs += 1_000;
  const runs = source.runs;
  await source.load(1_000);
  expect(source.runs).toBe(runs + 1);
});

test("starts a plugin whose credentials are rejected with growing pauses", async () => {
  const source = new PluginSource();
  await source.load(60_000, () => source.cache.noteRejected());
  expect(source.runs).toBe(6);
});

test("starts a plugin whose credentials are expired at most once per second", async () => {
  const source = new PluginSource();
  await source.load(10_000);
  expect(source.runs).toBe(10);
});

test("replaces credentials that were accepted for long at the first rejection", async () => {
  const source = new PluginSource();
  await source.load(30_000, () => source.cache.noteRejected());
  const long = new PluginSource();
  await long.cache.get();
  for (let n = 1; n < 4; n++) {
    long.nowMs += 120_000;
    long.cache.noteRejected();
    await long.cache.get();
    expect(long.runs).toBe(n + 1);
  }
});
