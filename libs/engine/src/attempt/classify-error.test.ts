import { defined, KonvergeError, type ResourceRef } from "@konverge/core";
import { KubeApiError } from "@konverge/kube";
import { expect, test } from "vitest";
import { classifyError } from "./classify-error.ts";

const ref: ResourceRef = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  name: "a",
};
const api = (status: number, reason: string, retryAfterMs?: number) =>
  new KubeApiError(reason, {
    status,
    reason,
    ...defined({ retryAfterMs }),
  });
const deferred = new KonvergeError("deferred", "breaker open", { retryAfterMs: 8_000 });

/** When the key runs again at the earliest, by the luckiest and the unluckiest draw. */
const cases: readonly [string, unknown, string, earliestMs: number, latestMs: number][] = [
  ["429", api(429, "TooManyRequests", 1_000), "deferred", 1_000, 2_000],
  ["429 for long", api(429, "TooManyRequests", 60_000), "deferred", 60_000, 75_000],
  ["503 with Retry-After", api(503, "ServiceUnavailable", 5_000), "retry", 5_000, 6_250],
  ["401", api(401, "Unauthorized"), "deferred", 5_000, 6_250],
  ["what the guard spreads itself", deferred, "deferred", 8_000, 8_000],
];

test.each(cases)(
  "%s: never early, and not all keys at once",
  (_, error, kind, earliest, latest) => {
    for (const [random, ms] of [
      [0, earliest],
      [1, latest],
    ] as const) {
      const outcome = classifyError(error, ref, () => random);
      expect(outcome.kind).toBe(kind);
      expect(outcome.kind === "deferred" ? outcome.afterMs : outcome).toEqual(
        kind === "deferred" ? ms : expect.objectContaining({ retryAfterMs: ms }),
      );
    }
  },
);
