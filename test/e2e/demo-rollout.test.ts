import { expect, test } from "vitest";
import { startDemo, type RolloutDocument } from "./start-demo.ts";

const DEMO_MS = 600_000;
const startRollout = (...args: string[]) =>
  startDemo<RolloutDocument>("--scenario", "rollout", ...args);

test(
  "a cancelled rollout restores the old version, and the demo exits with 1",
  { timeout: DEMO_MS },
  async () => {
    const demo = startRollout();
    const [, api = ""] = await demo.line(/dashboard until the demo ends: (\S+) /);
    await demo.line(/recorded: upgrade east/);
    const id = encodeURIComponent("fleet-rollout/east/web-2");
    const answer = await fetch(`${api}/v1/runs/${id}/cancel`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ by: "ann", reason: "the wrong version" }),
    });
    expect(answer.status, await answer.text()).toBe(200);
    const { run, checks } = await demo.document();
    expect(await demo.exited).toBe(1);
    expect(run).toMatchObject({ status: "cancelled", cancel: { by: "ann" } });
    expect(run.steps.map(({ name }) => name)).toContain("undo:upgrade east");
    const found = new Map(checks.map((check) => [check.what, check]));
    expect(found.get("east runs the new image")).toMatchObject({
      ok: false,
      found: expect.stringContaining("web:1"),
    });
    expect(found.get("west runs the new image")?.ok).toBe(false);
  },
);

test(
  "Ctrl-C during the rollout leaves no process and exits with 130",
  { timeout: DEMO_MS },
  async () => {
    const demo = startRollout();
    await demo.line(/was killed with -9/);
    demo.interrupt();
    expect(await demo.exited).toBe(130);
  },
);

test("rejects options of the other scenario by name", { timeout: DEMO_MS }, async () => {
  const demo = startRollout("--outage", "--workers", "3");
  const [message] = await demo.line(/.*not an option of --scenario rollout/);
  expect(message).toContain("--workers, --outage");
  expect(await demo.exited).toBe(2);
});
