import { expect, test } from "vitest";
import { Heartbeats } from "./heartbeats.ts";
import { runBody, type BodyOptions } from "./run-body.ts";

const open = (more: Partial<BodyOptions> = {}): BodyOptions => {
  const heartbeats = new Heartbeats({
    step: "copy",
    attempt: 1,
    nowMs: () => 0,
    store: async () => undefined,
    check: () => undefined,
  });
  const signal = new AbortController().signal;
  const options = { step: "copy", attempt: 1, timeoutMs: 60_000, signal, heartbeats, ...more };
  return options as BodyOptions;
};

test("the end of a cancelled body is awaited, until the worker stops", async () => {
  for (const stops of [false, true]) {
    const ended: string[] = [];
    const cancel = new AbortController();
    const stop = new AbortController();
    const begun = Promise.withResolvers<void>();
    const body = Promise.withResolvers<void>();
    const options = open({ signal: cancel.signal, awaitsEnd: () => stop.signal });
    const running = runBody(async () => {
      begun.resolve();
      await body.promise;
      ended.push("body");
    }, options).catch(() => ended.push("step"));
    await begun.promise;
    cancel.abort(new Error("cancelled"));
    if (stops) stop.abort();
    else setImmediate(() => body.resolve());
    await running;
    expect(ended).toEqual(stops ? ["step"] : ["body", "step"]);
    body.resolve();
  }
});

test("the end of a cancelled body is awaited no longer than its timeout", async () => {
  const cancel = new AbortController();
  const stopped = new AbortController().signal;
  const options = open({ signal: cancel.signal, timeoutMs: 50, awaitsEnd: () => stopped });
  const running = runBody(() => new Promise<void>(() => cancel.abort(new Error("no"))), options);
  await expect(running).rejects.toThrow("no");
});

test("a body whose signal is aborted is not started", async () => {
  let isStarted = false;
  const options = open({ signal: AbortSignal.abort(new Error("the branch has lost")) });
  const body = () => void (isStarted = true);
  await expect(runBody(body, options)).rejects.toThrow("the branch has lost");
  expect(isStarted).toBe(false);
});
