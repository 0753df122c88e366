import { fileURLToPath } from "node:url";
import type { Script } from "@konverge/redis";
import { expect, test } from "vitest";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { claimScript } from "../../../libs/workflow/src/store/scripts/claim.ts";
import { commitScript } from "../../../libs/workflow/src/store/scripts/commit.ts";
import { commitStepsScript } from "../../../libs/workflow/src/store/scripts/commit-steps.ts";
import { leaveScript } from "../../../libs/workflow/src/store/scripts/leave.ts";
import { startScript } from "../../../libs/workflow/src/store/scripts/start.ts";
import type { DeathPoint } from "./die-at-call.ts";
import { ended, useWorkflows } from "./workflow-harness.ts";
import type { PointsChildConfig } from "./workflow-points-child.ts";
import { begunList, makeTour } from "./workflow-samples.ts";
import { useChildren } from "../../support/child.ts";

/**
 * The named crash points, each hit once: a worker process kills itself at one call, with the real queue and leases.
 * `workflow-crash-points.test.ts` crashes at every call of the store, but without processes and queue. Calls that are never sent,
 * such as a signal's wake-up, are in `workflow-crash.test.ts`.
 */

interface Point extends Pick<DeathPoint, "when" | "having"> {
  readonly name: string;
  readonly script: Script;
  /** The body in flight, which runs again. */
  readonly again?: string;
}

const POINTS: readonly Point[] = [
  { name: "claimed, before the body", script: claimScript, when: "after", having: ["r"] },
  {
    name: "the body has run, before the commit",
    script: commitStepsScript,
    when: "before",
    having: ["a"],
    again: "a",
  },
  { name: "committed, response lost", script: commitStepsScript, when: "after", having: ["a"] },
  {
    name: "sleep committed, run not left",
    script: commitStepsScript,
    when: "after",
    having: ["pause"],
  },
  {
    name: "waiting, timer not added",
    script: leaveScript,
    when: "after",
    having: ["waiting", "r"],
  },
  { name: "signal not consumed", script: commitScript, when: "before", having: ["go"] },
  { name: "signal consumed, response lost", script: commitScript, when: "after", having: ["go"] },
  { name: "child not created", script: startScript, when: "before", having: ["r.child"] },
  {
    name: "child created, not requested, ref not committed",
    script: startScript,
    when: "after",
    having: ["r.child"],
  },
  {
    name: "child done, its job not completed, parent not woken",
    script: leaveScript,
    when: "after",
    having: ["done", "r.child"],
  },
  {
    name: "child's result not committed in the parent",
    script: commitStepsScript,
    when: "before",
    having: ["child"],
  },
  {
    name: "failing, before the first undo",
    script: leaveScript,
    when: "after",
    having: ["compensating"],
  },
  {
    name: "compensation 1 of 2 has run, not committed",
    script: commitStepsScript,
    when: "before",
    having: ["undo:b"],
    again: "undo b",
  },
  {
    name: "compensation 1 of 2 committed",
    script: commitStepsScript,
    when: "after",
    having: ["undo:b"],
  },
  {
    name: "compensation 2 of 2 committed",
    script: commitStepsScript,
    when: "after",
    having: ["undo:a"],
  },
  { name: "ended, job not completed", script: leaveScript, when: "after", having: ["failed"] },
];

const BODIES = ["a", "double", "b", "end", "undo b", "undo a"];
const STEPS = ["a", "pause", "go", "child", "b", "end", "undo:b", "undo:a"];
const LEASE_MS = 1_500;
const CHILD = fileURLToPath(new URL("workflow-points-child.ts", import.meta.url));
const PRELOAD = new URL("die-at-call.ts", import.meta.url).href;

const harness = useWorkflows();
const start = useChildren();

test.each(POINTS)("P9: kill -9 at: $name", async ({ script, when, having, again }) => {
  const { url, prefix, redis } = harness;
  // Redis rejects the first call of an unloaded script; it is repeated with the text, by another command.
  await redis.script("LOAD", script.lua);
  const workflows = harness.openRuns({ leaseMs: LEASE_MS });
  const { tour, child } = makeTour(redis, prefix);
  const ref = { workflow: tour.name, id: "r" };
  await workflows.start(tour, undefined, { id: ref.id });
  await workflows.signal(ref, "go", { payload: 21 });

  const config: PointsChildConfig = { url, prefix, leaseMs: LEASE_MS };
  const point: DeathPoint = { sha: script.sha, when, having };
  const dying = start([`--import=${PRELOAD}`, CHILD, JSON.stringify(config)], {
    DIE_AT_CALL: JSON.stringify(point),
  });
  expect(await dying.exited).toEqual([null, "SIGKILL"]);

  const worker = workflows.work({ workflows: [tour, child], workerId: "second" });
  const run = await ended(workflows, tour, ref.id);
  expect(run).toMatchObject({
    status: "failed",
    error: { message: 'step "end" failed: as planned: 42' },
  });
  expect((await workflows.steps(ref)).map(({ name }) => name)).toEqual(STEPS);
  const expected = BODIES.flatMap((name) => (name === again ? [name, name] : [name]));
  expect(await redis.lrange(begunList(prefix), 0, -1)).toEqual(expected);
  // No run is requested any more.
  for (const { name } of [tour, child]) {
    expect(await redis.zcard(runNames(prefix, "default", name).wakes)).toBe(0);
  }
  await worker.stop();
});
