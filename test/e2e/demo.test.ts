import { expect, test } from "vitest";
import { startDemo } from "./start-demo.ts";

interface Act {
  readonly name: string;
  readonly reconciles: number;
  readonly apiCalls: number;
  readonly writes: number;
  readonly conflicts: number;
  readonly callsPerWrite: number;
  readonly jobRetries: number;
  readonly gaveUp: number;
  readonly lostUpdates: number;
  readonly converged: boolean;
  readonly outage?: {
    readonly seconds: number;
    readonly callsSent: number;
    readonly deferred: number;
    readonly probes: number;
    readonly lost: number;
  };
}
interface DemoDocument {
  readonly cluster: { readonly kind: string; readonly version: string };
  readonly redis: { readonly version: string };
  readonly workers: number;
  readonly acts: readonly Act[];
}

const DEMO_MS = 600_000;
/** Whether a control plane is available; CI has one. */
const real = process.env["KUBEBUILDER_ASSETS"] !== undefined || process.env["CI"] === "true";

function expectGoodStory({ acts }: DemoDocument): void {
  const [lazy, konverge] = acts.slice(-2);
  expect([lazy?.name, konverge?.name]).toEqual(["lazy", "konverge"]);
  for (const act of [lazy, konverge]) {
    expect(act).toMatchObject({ converged: true, lostUpdates: 0, gaveUp: 0 });
  }
  const { conflicts = 0, callsPerWrite = 0 } = lazy ?? {};
  expect(conflicts, "the lazy act has conflicts").toBeGreaterThanOrEqual(10);
  // Far from the figures of an idle machine, so that the test also passes on a busy one.
  expect(konverge?.conflicts).toBeLessThan(conflicts / 2);
  expect(konverge?.callsPerWrite).toBeLessThan(callsPerWrite / 2);
}

test(
  "on the embedded API server, the konverge act has fewer conflicts and calls per write, and loses nothing (P1) although a worker is killed",
  { timeout: DEMO_MS },
  async () => {
    const demo = startDemo<DemoDocument>();
    const [, pids = ""] = await demo.line(/konverge.*pids ([\d, ]+)/);
    await demo.line(/konverge.*load step 3/);
    process.kill(Number(pids.split(",")[0]), "SIGKILL");
    const document = await demo.document();
    expect(await demo.exited).toBe(0);
    expect(document.cluster.kind).toBe("embedded");
    expect(document.acts.map(({ name }) => name)).toEqual(["naive", "lazy", "konverge"]);
    expectGoodStory(document);
  },
);

test(
  "P5, P6: on kube-apiserver, the konverge act has fewer conflicts and calls per write, and defers calls while the server is frozen",
  { timeout: DEMO_MS },
  async ({ skip }) => {
    if (!real)
      skip(
        "no real API server: neither KUBEBUILDER_ASSETS nor CI=true; `npm run envtest -- --build` builds one",
      );
    const demo = startDemo<DemoDocument>(
      "--cluster",
      "envtest",
      "--acts",
      "lazy,konverge",
      "--outage",
    );
    const document = await demo.document();
    expect(await demo.exited).toBe(0);
    expect(document.cluster.kind).toBe("envtest");
    expectGoodStory(document);
    const { outage } = document.acts.at(-1) ?? {};
    expect(outage).toMatchObject({ seconds: 20, lost: 0 });
    const { callsSent = Infinity, deferred = 0, probes = 0 } = outage ?? {};
    expect(probes).toBeGreaterThanOrEqual(1);
    expect(deferred, "calls are deferred").toBeGreaterThan(0);
    // Before the fault there are more than a hundred per second.
    expect(callsSent).toBeLessThan(200);
  },
);
