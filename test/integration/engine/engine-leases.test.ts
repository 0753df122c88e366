import { isNotFound, type KubeClient } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { LEASE_MS, namespace, useEngines } from "./engine-harness.ts";

/** The process stands still for longer than a lease: no timer can run meanwhile. */
function standStill(): void {
  const endMs = performance.now() + LEASE_MS;
  while (performance.now() < endMs);
}

/** Calls `then` between the response to a GET and its caller. */
function afterGet(client: KubeClient, then: (name: string) => void): KubeClient {
  return new Proxy(client, {
    get(target, property) {
      if (property === "scoped") {
        return (...options: Parameters<KubeClient["scoped"]>) =>
          afterGet(target.scoped(...options), then);
      }
      if (property === "get") {
        return async (...call: Parameters<KubeClient["get"]>) => {
          const object = await target.get(...call);
          then(call[1].name);
          return object;
        };
      }
      return Reflect.get(target, property) as unknown;
    },
  });
}

describe.each(testServers())("the lease of an attempt, on $name", (target) => {
  const engines = useEngines(target, "leases.test.konverge.dev", { leaseMs: LEASE_MS });

  test("P8: a process that stood still for longer than its lease sends nothing more for the attempt", async () => {
    const { client, Widgets } = engines;
    const errors: unknown[] = [];
    await engines.make("parent");
    await engines.start({
      reconcile: async ({ kube, object }) => {
        if (object.metadata.name !== "parent" || errors.length > 0) return;
        standStill();
        await kube
          .create(Widgets, { namespace, name: "child", spec: { size: 1 } })
          .catch((error: unknown) => errors.push(error));
      },
    });
    await until("the call is rejected", () => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: "cancelled", reason: "leaseLost" });
    await expect(client.get(Widgets, { namespace, name: "child" })).rejects.toSatisfy(isNotFound);
  });

  test("P8: a process that was suspended after it read the object does not begin the handler", async () => {
    const begun: string[] = [];
    let isLate = false;
    let stalls = 0;
    await engines.make("read");
    const client = afterGet(engines.client, (name) => {
      if (name !== "read" || stalls > 0) return;
      stalls += 1;
      standStill();
      isLate = true;
      // The handler would begin before any timer runs.
      setImmediate(() => (isLate = false));
    });
    const { queue, key } = await engines.start(
      { reconcile: async () => void begun.push(isLate ? "late" : "in time") },
      { client },
    );
    // A user's request reads from the API server, not from the watch.
    await queue.request(key("read"), { kind: "http", by: "test" }, { class: "interactive" });
    await until("an attempt after the stall", () => stalls > 0 && begun.length > 0);
    expect(begun).not.toContain("late");
  });

  test("P8: a process that stood still in a middleware does not begin the handler", async () => {
    const begun: string[] = [];
    let isLate = false;
    let stalls = 0;
    await engines.make("between");
    await engines.start({
      use: [
        async (_context, next) => {
          if (stalls++ === 0) {
            standStill();
            isLate = true;
            // The handler would begin before any timer runs.
            setImmediate(() => (isLate = false));
          }
          return await next();
        },
      ],
      reconcile: async () => void begun.push(isLate ? "late" : "in time"),
    });
    await until("an attempt after the stall", () => begun.length > 0);
    expect(begun).not.toContain("late");
  });
});
