import type { KubeCalls } from "@konverge/kube";
import { expect, test } from "vitest";
import type { Attempt } from "./attempt.ts";
import { bindClusters } from "./bind-clusters.ts";

test("rejects a method that another cluster does not have", async () => {
  const attempt: unknown = {
    lease: { key: { cluster: "east" } },
    runtime: { clusters: { reach: async () => ({}) } },
    call: (run: () => unknown) => run(),
    on: () => ({}),
  };
  const own: unknown = {};
  const calls: unknown = { get: async () => "object" };
  const on = bindClusters(
    attempt as Attempt,
    () => own as KubeCalls<"handler">,
    () => calls as KubeCalls<"handler">,
  );
  const there = on("west") as unknown as Record<string, () => Promise<unknown>>;
  expect(await there["get"]?.()).toBe("object");
  for (const method of ["reconcileChildren", "aply"]) {
    await expect(there[method]?.()).rejects.toMatchObject({
      code: "invalid_request",
      message: `kube.on(...) has no method "${method}"; available: get`,
    });
  }
  expect(on("east")).toBe(own);
});
