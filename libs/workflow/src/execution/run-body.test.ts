import { expect, test } from "vitest";
import { Heartbeats } from "./heartbeats.ts";
import { runBody, type BodyOptions } from "./run-body.ts";

test("a body whose signal is aborted is not started", async () => {
  const heartbeats = new Heartbeats({
    step: "copy",
    attempt: 1,
    nowMs: () => 0,
    store: async () => undefined,
    check: () => undefined,
  });
  let isStarted = false;
  const options: Pick<BodyOptions, "step" | "attempt" | "timeoutMs" | "signal" | "heartbeats"> = {
    step: "copy",
    attempt: 1,
    timeoutMs: 60_000,
    signal: AbortSignal.abort(new Error("the branch has lost")),
    heartbeats,
  };
  const body = () => void (isStarted = true);
  await expect(runBody(body, options as BodyOptions)).rejects.toThrow("the branch has lost");
  expect(isStarted).toBe(false);
});
