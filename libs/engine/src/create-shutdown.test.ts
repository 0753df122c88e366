import { expect, test } from "vitest";
import { createShutdown } from "./create-shutdown.ts";
import type { Log } from "./define/log.ts";

const logged: object[] = [];
const ignore = () => undefined;
const log: Log = {
  debug: ignore,
  info: ignore,
  warn: (fields) => logged.push(fields),
  error: ignore,
  child: () => log,
};
const never = () => new Promise<void>(() => undefined);

test("waits for steps that respond, without a log line", async () => {
  logged.length = 0;
  const release = createShutdown(log);
  release.begin(0);
  let released = false;
  await release.step("a lease", async () => {
    await new Promise(setImmediate);
    released = true;
  });
  expect(released).toBe(true);
  expect(logged).toEqual([]);
});

test("logs and aborts a step that does not respond, and starts the next one", async () => {
  logged.length = 0;
  const release = createShutdown(log, { stepMs: 5 });
  const signals: AbortSignal[] = [];
  const turns: string[] = [];
  await release.step("a lease", (signal) => {
    signals.push(signal);
    return never();
  });
  await release.step("a refused one", () => Promise.reject(new Error("refused")));
  await release.step("the last", async () => void turns.push("last"));
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(turns).toEqual(["last"]);
  expect(logged).toEqual([
    { what: "a lease", reason: "no response within 5 ms" },
    { what: "a refused one", reason: "refused" },
  ]);
});

test("limits all steps to the grace plus the extra time; a kill shortens it", async () => {
  logged.length = 0;
  let nowMs = 0;
  const release = createShutdown(log, { beyondGraceMs: 7, stepMs: 5, clock: () => nowMs });
  release.begin(1_000);
  release.begin(0);
  release.begin(2_000);
  await release.step("first", never);
  nowMs = 4;
  await release.step("second", never);
  nowMs = 9;
  await release.step("third", never);
  expect(logged).toEqual([
    { what: "first", reason: "no response within 5 ms" },
    { what: "second", reason: "no response within 3 ms" },
    { what: "third", reason: "no response within 0 ms" },
  ]);
});
