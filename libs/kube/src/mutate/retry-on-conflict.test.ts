import { defaultBackoff, defaultRetry } from "@konverge/core";
import { expect, test } from "vitest";
import { KubeApiError } from "../errors/kube-api-error.ts";
import { retryOnConflict } from "./retry-on-conflict.ts";

const conflict = (message: string) =>
  new KubeApiError(message, { status: 409, reason: "Conflict" });
const recordSleeps = () => {
  const slept: number[] = [];
  return { slept, sleep: (ms: number) => Promise.resolve(void slept.push(ms)), random: () => 0 };
};

test("returns the result of the first success", async () => {
  let tries = 0;
  const { slept, ...injected } = recordSleeps();
  const attempt = () => (++tries < 3 ? Promise.reject(conflict("no")) : Promise.resolve("yes"));
  expect(await retryOnConflict(defaultRetry, attempt, injected)).toBe("yes");
  expect(slept).toEqual([10, 10]);
});
test("throws the last conflict when the retries are used up, after client-go's number of attempts", async () => {
  let tries = 0;
  const { slept, ...injected } = recordSleeps();
  const attempt = () => Promise.reject(conflict(`try ${++tries}`));
  await expect(retryOnConflict(defaultBackoff, attempt, injected)).rejects.toThrow("try 4");
  expect(slept).toEqual([10, 50, 250]);
});
test("detects a conflict inside another error", async () => {
  let tries = 0;
  const attempt = () =>
    ++tries === 1
      ? Promise.reject(new Error("wrapped", { cause: conflict("no") }))
      : Promise.resolve(tries);
  expect(await retryOnConflict(defaultRetry, attempt, recordSleeps())).toBe(2);
});
test.each([
  ["any other error", new Error("other")],
  ["a name taken", new KubeApiError("taken", { status: 409, reason: "AlreadyExists" })],
  [
    "a field of another manager",
    new KubeApiError("owned", {
      status: 409,
      reason: "Conflict",
      causes: [{ type: "FieldManagerConflict", field: ".spec", message: "" }],
    }),
  ],
  [
    "a replaced object",
    new KubeApiError("uid", { status: 409, reason: "Conflict", trait: "replaced" }),
  ],
])("does not try again after %s", async (_title, error) => {
  let tries = 0;
  const attempt = () => Promise.reject((tries++, error));
  await expect(retryOnConflict(defaultRetry, attempt, recordSleeps())).rejects.toBe(error);
  expect(tries).toBe(1);
});
test("throws the conflict, not the abort, if aborted during the wait", async () => {
  const abort = new AbortController();
  const sleep = (_ms: number, signal?: AbortSignal) => {
    abort.abort(new Error("stop"));
    return Promise.reject(signal?.reason as Error);
  };
  const lost = conflict("lost");
  const retrying = retryOnConflict(defaultRetry, () => Promise.reject(lost), {
    signal: abort.signal,
    sleep,
  });
  await expect(retrying).rejects.toBe(lost);
});
