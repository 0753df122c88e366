import type { Overview } from "@konverge/contracts";
import { expect, test } from "vitest";
import { statusKey } from "./status-text.ts";

const OUTAGE = {
  code: "api_server_outage",
  level: "error",
  message: "API server of default is failing for 1 of 2 workers",
  since: "2026-01-01T00:00:00Z",
  cause: "timeout",
  consequence: "7 requests queued, none lost.",
} as const;

function overview(problem: Partial<Overview["problems"][number]> = {}): Overview {
  return {
    cluster: "default",
    clusters: ["default"],
    at: new Date().toISOString(),
    summary: "1 error.",
    problems: [{ ...OUTAGE, ...problem }],
    controllers: [],
    workflows: [],
    workers: 2,
    activity: [],
  };
}

test("a status with other numbers only is not printed again", () => {
  const later = overview({
    message: "API server of default is failing for 2 of 2 workers",
    consequence: "12 requests queued, none lost.",
    symptoms: [{ code: "failing", message: "node-pool: 14 of 26 attempts failed in 5 minutes" }],
  });
  expect(statusKey({ ...later, at: "2026-01-01T00:01:00Z" })).toBe(statusKey(overview()));
});

test.each([
  { level: "warning" },
  { since: "2026-01-01T00:00:01Z" },
  { cause: "HTTP 503" },
  { code: "no_workers" },
] as const)("a status with another problem is printed: %o", (problem) => {
  expect(statusKey(overview(problem))).not.toBe(statusKey(overview()));
});
