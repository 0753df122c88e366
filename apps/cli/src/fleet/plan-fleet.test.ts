import { createClient } from "@konverge/client";
import { expect, test } from "vitest";
import { planFleet } from "./plan-fleet.ts";

const KEY = "node-pool/default/nodepools.demo.konverge.dev/demo/blue";
const PLAN = {
  complete: true,
  gaps: [],
  externals: [],
  runs: [],
  changes: [],
  summary: { created: 0, changed: 0, deleted: 0, replaced: 0, unchanged: 1 },
};

/** A client whose calls for plans have these responses, the last one from then on. */
function clientOf(responses: readonly (() => Response)[]) {
  let calls = 0;
  const client = createClient({
    server: "http://localhost",
    retry: { retries: 0 },
    fetch: async ({ method }) => {
      if (method === "GET") return Response.json({ items: [{ key: KEY }] });
      calls += 1;
      const answer = responses[Math.min(calls, responses.length) - 1];
      if (answer === undefined) throw new Error("no response");
      return answer();
    },
  });
  const plan = () =>
    planFleet(
      client,
      { cluster: "default" },
      { progress: undefined, timeoutMs: 1_000, onPlanned: () => undefined },
    );
  return { plan, calls: () => calls };
}

const problem = (status: number, code: string, retryAfterMs?: number) => () =>
  Response.json(
    { type: `urn:konverge:problem:${code}`, code, status, title: code, detail: code, retryAfterMs },
    { status, headers: { "content-type": "application/problem+json" } },
  );
const planned = () => Response.json({ id: "1", key: KEY, state: "planned", plan: PLAN });

test.each([
  ["rate_limited", 429, 14],
  ["redis_unavailable", 503, undefined],
  ["idempotency_in_flight", 409, undefined],
])("plans an object again after %s", async (code, status, retryAfterMs) => {
  const { plan, calls } = clientOf([problem(status, code, retryAfterMs), planned]);
  expect((await plan()).planned).toBe(1);
  expect(calls()).toBe(2);
});

test("ends with other errors", async () => {
  const { plan, calls } = clientOf([problem(403, "forbidden")]);
  await expect(plan()).rejects.toMatchObject({ code: "forbidden" });
  expect(calls()).toBe(1);
});
