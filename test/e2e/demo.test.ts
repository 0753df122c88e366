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

const DEMO_MS = 240_000;
/** A clean control plane that `npm test` found; CI has one. */
const real = process.env["KUBEBUILDER_ASSETS"] !== undefined || process.env["CI"] === "true";

function expectGoodStory({ acts }: DemoDocument): void {
  expect(acts.map(({ name }) => name)).toEqual(["lazy", "pro"]);
  for (const act of acts) {
    expect(act).toMatchObject({ converged: true, lostUpdates: 0 });
    expect(act.conflicts, "conflicts really happen").toBeGreaterThanOrEqual(50);
    expect(act.conflicts / act.writes, "one conflict per ten writes").toBeGreaterThanOrEqual(0.1);
  }
  const [lazy, pro] = acts;
  expect(pro?.callsPerWrite).toBeLessThan(lazy?.callsPerWrite ?? 0);
}

test(
  "the demo on the embedded API server converges, loses nothing, and pro needs fewer calls per write",
  { timeout: DEMO_MS },
  async () => {
    const demo = startDemo<DemoDocument>();
    const document = await demo.document();
    expect(await demo.exited).toBe(0);
    expect(document.cluster.kind).toBe("embedded");
    expectGoodStory(document);
  },
);

test("the same on a real API server", { timeout: DEMO_MS }, async ({ skip }) => {
  if (!real)
    skip(
      "no real API server: neither KUBEBUILDER_ASSETS nor CI=true; `npm run envtest -- --build` makes one",
    );
  const demo = startDemo<DemoDocument>("--cluster", "envtest");
  const document = await demo.document();
  expect(await demo.exited).toBe(0);
  expect(document.cluster.kind).toBe("envtest");
  expectGoodStory(document);
});

test(
  "P1: kill -9 of a worker in the middle of act 2 loses nothing",
  { timeout: DEMO_MS },
  async () => {
    const demo = startDemo<DemoDocument>("--workers", "2");
    const [, pids = ""] = await demo.line(/act 2.*pids ([\d, ]+)/);
    await demo.line(/act 2.*load step 3/);
    process.kill(Number(pids.split(",")[0]), "SIGKILL");
    const { acts } = await demo.document();
    expect(acts[1]).toMatchObject({ name: "pro", converged: true, lostUpdates: 0 });
    expect(await demo.exited).toBe(0);
  },
);

test(
  "P3: the lost-update check finds what a blind writer overwrites",
  { timeout: DEMO_MS },
  async () => {
    const demo = startDemo<DemoDocument>("--blind-writer");
    const { acts } = await demo.document();
    expect(acts.reduce((sum, { lostUpdates }) => sum + lostUpdates, 0)).toBeGreaterThan(0);
    expect(await demo.exited).toBe(1);
  },
);

test(
  "P5, P6: the API server stands still in the middle of act 2",
  { timeout: DEMO_MS },
  async () => {
    const demo = startDemo<DemoDocument>("--outage");
    const { acts } = await demo.document();
    expect(await demo.exited).toBe(0);
    expect(acts[0]?.outage).toBeUndefined();
    expect(acts[1]).toMatchObject({
      converged: true,
      lostUpdates: 0,
      outage: { seconds: 20, lost: 0 },
    });
    const { callsSent = Infinity, deferred = 0, probes = 0 } = acts[1]?.outage ?? {};
    expect(probes).toBeGreaterThanOrEqual(1);
    expect(deferred, "work was put off").toBeGreaterThan(0);
    // Before the fault it is more than a hundred in each second.
    expect(callsSent).toBeLessThan(200);
  },
);
