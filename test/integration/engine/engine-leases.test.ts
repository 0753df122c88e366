import { isNotFound } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { LEASE_MS, namespace, useEngines } from "./engine-harness.ts";

describe.each(testServers())("the lease of an attempt, on $name", (target) => {
  const engines = useEngines(target, "leases.test.konverge.dev", { leaseMs: LEASE_MS });

  test("P8: a process that stood still for longer than its lease sends nothing more for the attempt", async () => {
    const { client, Widgets } = engines;
    const errors: unknown[] = [];
    await engines.make("parent");
    await engines.start({
      reconcile: async ({ kube, object }) => {
        if (object.metadata.name !== "parent" || errors.length > 0) return;
        // No timer can run meanwhile.
        const endMs = performance.now() + LEASE_MS;
        while (performance.now() < endMs);
        await kube
          .create(Widgets, { namespace, name: "child", spec: { size: 1 } })
          .catch((error: unknown) => errors.push(error));
      },
    });
    await until("the call is rejected", () => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: "cancelled", reason: "leaseLost" });
    await expect(client.get(Widgets, { namespace, name: "child" })).rejects.toSatisfy(isNotFound);
  });
});
