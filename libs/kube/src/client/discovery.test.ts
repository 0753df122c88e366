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

test.each(["kube_unreachable", "kube_timeout"] as const)(
  "a failure of the server with %s fails all callers that wait for the call",
  async (code) => {
    const discovery = createDiscovery();
    const callers = Array.from({ length: 4 }, pending);
    const results = callers.map(({ fetch }) => discovery.discover("x/v1", fetch));
    callers[0]?.reject(new KonvergeError(code, "no response"));
    for (const result of results) await expect(result).rejects.toThrow("no response");
    expect(callers.map(({ calls }) => calls())).toEqual([1, 0, 0, 0]);
  },
);
