import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { createDiscovery } from "./discovery.ts";

const POOLS = { resources: [{ name: "pools", kind: "Pool", namespaced: true, verbs: ["get"] }] };

/** A call whose response the test gives. */
function pending() {
  const { promise, resolve, reject } = Promise.withResolvers<typeof POOLS>();
  let calls = 0;
  const fetch = () => {
    calls += 1;
    return promise;
  };
  return { fetch, resolve, reject, calls: () => calls };
}

test.each([1, 2, 5])(
  "the abort of the first caller does not fail %i others that wait for its response",
  async (count) => {
    const discovery = createDiscovery();
    const first = pending();
    const others = Array.from({ length: count }, pending);
    const aborted = discovery.resolveType("x/v1", "Pool", first.fetch);
    const found = others.map(({ fetch }) => discovery.resolveType("x/v1", "Pool", fetch));
    for (const { resolve } of others) resolve(POOLS);
    first.reject(new KonvergeError("cancelled", "the lease is lost"));
    await expect(aborted).rejects.toThrow("the lease is lost");
    for (const { kind } of await Promise.all(found)) expect(kind).toBe("Pool");
    // The next caller repeats the call for all of them.
    expect(others.map(({ calls }) => calls())).toEqual([1, ...Array<number>(count - 1).fill(0)]);
  },
);

test("each caller fails after a call of its own during an outage", async () => {
  const discovery = createDiscovery();
  const callers = Array.from({ length: 4 }, pending);
  const results = callers.map(({ fetch }) => discovery.discover("x/v1", fetch));
  for (const [index, { reject }] of callers.entries()) {
    reject(new KonvergeError("kube_unreachable", `call ${index}`));
  }
  const ended = await Promise.allSettled(results);
  expect(ended.map((result) => result.status === "rejected" && String(result.reason))).toEqual(
    callers.map((_, index) => `KonvergeError: call ${index}`),
  );
  expect(callers.map(({ calls }) => calls())).toEqual([1, 1, 1, 1]);
});
