import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Secret } from "@konverge/kube/kinds";
import type { EngineChildConfig } from "./engine-child.ts";
import { LEASE_MS, namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { blockEventLoop } from "../../support/block-event-loop.ts";
import { useChildren } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const CHILD = fileURLToPath(new URL("engine-child.ts", import.meta.url));
const CONTROLLER = "careless";
const CANARY = "canary-that-comes-late";
const SECRET = { namespace, name: "stray-credentials" };

describe.each(testServers())("what a handler does to its process, on $name", (target) => {
  const harness = useEngines(target, "stray.test.konverge.dev", { leaseMs: LEASE_MS });
  const start = useChildren();

  const startChild = async (options: Partial<EngineChildConfig> = {}) => {
    const config: EngineChildConfig = {
      url: harness.queues.url,
      prefix: harness.queues.prefix,
      kubeconfig: harness.kubeconfig,
      controller: CONTROLLER,
      widgets: harness.Widgets,
      leaseMs: LEASE_MS,
      blockMs: 0,
      secret: SECRET.name,
      fatal: false,
      ...options,
    };
    const { process: child, messages: lines } = start([CHILD, JSON.stringify(config)]);
    const logged = (text: string) =>
      until(`the child logs "${text}"`, () =>
        lines.find(({ msg }) => typeof msg === "string" && msg.includes(text)),
      );
    await logged("engine started");
    return { child, lines, logged };
  };

  test("reports late rejections and throwing timers with controller and key, and keeps the process alive", async () => {
    await harness.client.create(Secret, { metadata: SECRET, stringData: { token: CANARY } });
    await harness.make("strays");
    const { child, lines, logged } = await startChild();
    await logged("uncaught exception in a handler's timer or listener");
    const strays = await until("all three are reported", () => {
      const found = lines.filter(({ level }) => level === "error");
      return found.length >= 3 && found;
    });
    for (const line of strays) {
      expect(line).toMatchObject({ controller: CONTROLLER, namespace, name: "strays" });
    }
    const messages = strays.map(({ err }) => (err as { message: string }).message);
    expect(messages.toSorted()).toEqual([
      // P12: values that the attempt read are redacted even after its end.
      "rejected late (redacted)",
      expect.stringContaining("threw undefined"),
      "thrown by a timer",
    ]);
    await harness.make("next");
    await logged("is alive");
    expect(child.exitCode).toBeNull();
    expect(JSON.stringify(lines)).not.toContain(CANARY);
    await harness.client.delete(Secret, SECRET);
  });

  test("logs an exception outside handlers and ends the process", async () => {
    const { child, logged } = await startChild({ fatal: true });
    expect(await logged("uncaught exception, process exiting")).toMatchObject({
      level: "error",
      err: { message: "outside handlers" },
    });
    await until("it has ended", () => child.exitCode !== null);
    expect(child.exitCode).toBe(1);
  });

  test("P8: a handler that blocks the event loop beyond its lease runs again in another worker, and is logged", async () => {
    await harness.make("blocks");
    // Redis may send the wake-up of the released job to the blocked process; the others check within 5 s.
    const { logged } = await startChild({ blockMs: 8 * LEASE_MS });
    await logged("begins to block");
    let runs = 0;
    const { records } = await harness.start({
      name: CONTROLLER,
      reconcile: async () => {
        runs += 1;
      },
    });
    await until("it runs elsewhere", () => runs > 0);
    const line = await logged("event loop blocked");
    expect(line).toMatchObject({
      level: "warn",
      controllers: [CONTROLLER],
      keys: [{ namespace, name: "blocks" }],
    });
    expect(Number(line["eventLoopBlockedMs"])).toBeGreaterThan(2 * LEASE_MS);
    // A busy machine gives the blocked process little CPU time; a frozen one uses none.
    expect(Number(line["cpuMs"])).toBeGreaterThan(LEASE_MS / 10);
    // The blocked process may run it once more afterwards.
    const lost = (await records("blocks")).filter(({ outcome }) => outcome === "lost");
    expect(lost).toContainEqual(expect.objectContaining({ worker: "child" }));
  });

  test("P8: a process stopped beyond its lease writes nothing after its successor, not even immediately", async () => {
    const widget = await harness.make("freezes");
    const { child, lines, logged } = await startChild();
    await logged("may be frozen");
    child.kill("SIGSTOP");
    const { records } = await harness.start({
      name: CONTROLLER,
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, (draft) => {
          draft.spec = { ...draft.spec, by: "the successor" };
        });
      },
    });
    await until("the successor's record", async () =>
      (await records("freezes")).some(({ outcome }) => outcome === "done"),
    );
    child.kill("SIGCONT");
    expect(await logged("has been aborted")).toMatchObject({
      reason: expect.stringMatching(/lease of .* lost/),
    });
    const tried = await until("both tries", () => {
      const found = lines.filter(({ msg }) => msg === "has tried to write");
      return found.length === 2 && found;
    });
    for (const { code } of tried) expect(["cancelled", "attempt_ended"]).toContain(code);
    const { name } = widget.metadata;
    const now = await harness.client.get(harness.Widgets, { name, namespace });
    expect(now.spec).toMatchObject({ by: "the successor" });
    const all = await records("freezes");
    expect(all.at(-1)).toMatchObject({ outcome: "lost", worker: "child" });
    expect(all.filter(({ worker }) => worker === "child")).toHaveLength(1);
  });

  test("records the blocked time of a handler that blocks for less than its lease", async () => {
    const { records } = await harness.start({
      reconcile: async ({ attempt, triggers }) => {
        if (attempt > 1 || triggers.length === 0) return;
        blockEventLoop(2_000);
      },
    });
    await harness.make("short");
    // This process's event loop is blocked too, so a response of Redis may arrive too late.
    const record = await until("it is recorded", async () =>
      (await records("short").catch(() => [])).at(-1),
    );
    expect(Number(record.parsed["eventLoopBlockedMs"])).toBeGreaterThan(1_000);
  });
});
