import type { Gate, GateCall, Permit } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import type { ReconcileContext } from "@konverge/engine";
import { describe, expect, test } from "vitest";
import { namespace, useEngines, type StartedEngine } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

/** Grants no patch of a resync, as a guard whose rate is used up by other work. */
function makeGate(): { readonly gate: Gate; readonly patches: string[] } {
  const patches: string[] = [];
  const permit: Permit = { waitedMs: 0, settle: () => undefined };
  const admit = ({ verb, priority }: GateCall, { signal }: { signal?: AbortSignal } = {}) => {
    if (verb === "patch") patches.push(priority);
    if (verb !== "patch" || priority !== "resync") return Promise.resolve(permit);
    return new Promise<Permit>((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  };
  return { gate: { admit }, patches };
}

describe.each(testServers())("the priority of calls in a lane on $name", (server) => {
  const harness = useEngines(server, "urgency.test.konverge.dev");

  test.each([
    { where: "the same process", engines: 1 },
    { where: "another process", engines: 2 },
  ])(
    "a user request does not wait behind a resync of $where that has no token",
    async ({ engines }) => {
      const { gate, patches } = makeGate();
      const client = createKubeClient({
        credentials: loadKubeCredentials(harness.kubeconfig),
        gate,
        userAgent: "konverge-test/1",
      });
      harness.onStopped(() => client.close());
      await harness.make("hot", { n: 0 });
      const reconcile = async ({ triggers, kube }: ReconcileContext<Widget>) => {
        if (!triggers.some(({ kind }) => kind === "http")) return;
        await kube.mutate({ type: harness.Widgets, namespace, name: "hot" }, (draft) => {
          draft.spec = { ...draft.spec, n: Number(draft.spec?.["n"] ?? 0) + 1 };
        });
      };
      // Each engine has its own lanes, as in its own process.
      const started: StartedEngine[] = [];
      for (let count = 0; count < engines; count += 1) {
        started.push(
          await harness.start(
            {
              name: `urgency-${engines}-${count}`,

              reconcile,
              concurrency: 4,
              timeout: "60s",
            },
            { client },
          ),
        );
      }
      const [slow, urgent = slow] = started;
      if (slow === undefined || urgent === undefined) throw new Error("no engine");
      for (const name of ["slow", "urgent"]) await harness.make(name);
      // The attempts for their creation are over.
      for (const { records } of started) {
        for (const name of ["slow", "urgent"]) {
          await until(`${name} is known`, async () => (await records(name)).length > 0);
        }
      }
      const trigger = { kind: "http" } as const;
      await slow.queue.request(slow.key("slow"), trigger, { class: "background" });
      await until("the resync waits for its token", () => patches.includes("resync"));
      await urgent.queue.request(urgent.key("urgent"), trigger, { class: "interactive" });
      await until("both are written", async () => {
        const hot = await harness.client.get(harness.Widgets, { namespace, name: "hot" });
        return hot.spec?.["n"] === 2;
      });
      expect(patches.slice(0, 2)).toEqual(["resync", "interactive"]);
    },
  );
});
