import type { CallResult, Gate, GateCall } from "@konverge/core";
import { expect, test } from "vitest";
import { guardFetch } from "./guarded-fetch.ts";

function watchedGate() {
  const calls: GateCall[] = [];
  const results: CallResult[] = [];
  const gate: Gate = {
    admit(call) {
      calls.push(call);
      return Promise.resolve({ waitedMs: 0, settle: (result) => void results.push(result) });
    },
  };
  return { gate, calls, results };
}
const answering = (status: number, headers: Record<string, string> = {}) =>
  (() => Promise.resolve(new Response(null, { status, headers }))) as typeof fetch;

test("reports the request and its result to the gate", async () => {
  const { gate, calls, results } = watchedGate();
  const call = guardFetch(gate, {
    priority: "retry",
    fetch: answering(429, { "retry-after": "7" }),
  });
  expect((await call("http://x/", { method: "post" })).status).toBe(429);
  expect(calls).toEqual([{ verb: "create", resource: "", priority: "retry" }]);
  expect(results).toEqual([{ kind: "response", status: 429, retryAfterMs: 7_000 }]);
});
test.each([
  [new DOMException("late", "TimeoutError"), "timeout"],
  [new DOMException("never mind", "AbortError"), "aborted"],
  [new TypeError("fetch failed"), "network"],
])("reports %s as %s", async (error, kind) => {
  const { gate, results } = watchedGate();
  const failing = async () => {
    throw error;
  };
  const call = guardFetch(gate, { fetch: failing });
  await expect(call(new Request("http://x/"))).rejects.toBe(error);
  expect(results).toEqual([{ kind }]);
});
test("does not send rejected requests", async () => {
  const refusal = new Error("not now");
  let sent = 0;
  const call = guardFetch(
    { admit: () => Promise.reject(refusal) },
    {
      fetch: () => {
        sent += 1;
        return Promise.resolve(new Response());
      },
    },
  );
  await expect(call("http://x/")).rejects.toBe(refusal);
  expect(sent).toBe(0);
});

test("returns a redirect unless the caller follows them", async () => {
  const modes: (string | undefined)[] = [];
  const redirecting = ((_input: unknown, init?: RequestInit) => {
    modes.push(init?.redirect);
    return Promise.resolve(new Response(null, { status: 302, headers: { location: "/there" } }));
  }) as typeof fetch;
  const { gate, calls, results } = watchedGate();
  const call = guardFetch(gate, { fetch: redirecting });
  expect((await call("http://x/")).status).toBe(302);
  await call("http://x/", { redirect: "follow" });
  expect(modes).toEqual(["manual", "follow"]);
  expect(calls).toHaveLength(2);
  expect(results).toEqual([
    { kind: "response", status: 302 },
    { kind: "response", status: 302 },
  ]);
});
