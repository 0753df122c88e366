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

test("what answers is waited for and not mentioned", async () => {
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

test("what does not answer is named, told by its signal, and the next one has its turn", async () => {
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
    { what: "a lease", reason: "no answer within 5 ms" },
    { what: "a refused one", reason: "refused" },
  ]);
});

test("steps together take no more than the grace and what lies beyond it; a kill brings the end nearer", async () => {
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
    { what: "first", reason: "no answer within 5 ms" },
    { what: "second", reason: "no answer within 3 ms" },
    { what: "third", reason: "no answer within 0 ms" },
  ]);
});
