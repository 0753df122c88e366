import type { Client } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import { pollUntil } from "../stage/poll-until.ts";

/** The stories of runs, and their number in the full and in the reduced incident. */
const STORIES = {
  published: [8, 1],
  awaited: [6, 1],
  "no-quota": [3, 1],
  "no-image": [2, 1],
  cancelled: [3, 1],
  "kept-pool": [2, 1],
  paused: [3, 1],
  billing: [5, 1],
  copy: [8, 4],
} as const;
type Story = keyof typeof STORIES;

const INPUTS: Partial<Record<Story, object>> = {
  "no-quota": { fails: "quota" },
  "no-image": { fails: "image" },
  "kept-pool": { fails: "quota", keepsPool: true },
};
const APPROVED: readonly Story[] = ["published", "no-quota", "no-image", "kept-pool"];

export interface RunsOptions {
  /** The operators of the incident, as authors of their actions. */
  readonly mia: Client;
  readonly noah: Client;
  readonly reduced: boolean;
  readonly signal: AbortSignal;
}

/** Starts the runs that begin before the release, and waits until each is in the state of its story. */
export async function startRuns({ mia, noah, reduced, signal }: RunsOptions): Promise<void> {
  const ids = (story: Story) => idsOf(story, reduced);
  for (const story of ["published", "awaited", "no-quota", "no-image", "cancelled"] as const) {
    for (const id of ids(story)) await startRollout(mia, story, id);
  }
  for (const story of ["kept-pool", "paused"] as const) {
    for (const id of ids(story)) await startRollout(noah, story, id);
  }
  for (const id of ids("billing")) await mia.runs.start({ workflow: "billing", id, input: id });
  const waiting = [...ids("awaited"), ...ids("cancelled"), ...ids("paused")];
  await Promise.all(
    waiting.map((id) => untilStatus(mia, `rollout/default/${id}`, "waiting", signal)),
  );
  await Promise.all(
    ids("billing").map((id) => untilStatus(mia, `billing/default/${id}`, "waiting", signal)),
  );
  for (const story of APPROVED) {
    for (const id of ids(story)) {
      await noah.runs.signal(`rollout/default/${id}`, {
        name: "approve",
        payload: { by: "noah" },
        by: "noah",
      });
    }
  }
  for (const id of ids("cancelled")) {
    await noah.runs.cancel(`rollout/default/${id}`, { by: "noah", reason: "wrong region" });
  }
  for (const id of ids("paused")) {
    const reason = "waits for the change window";
    await noah.runs.pause(`rollout/default/${id}`, { by: "noah", reason });
  }
}

/** Starts the runs that need the new release: blocked, running, pausing and queued ones. */
export async function startLateRuns({ mia, noah, reduced, signal }: RunsOptions): Promise<void> {
  for (const id of idsOf("billing", reduced)) {
    await mia.runs.signal(`billing/default/${id}`, { name: "close-month", by: "mia" });
  }
  const copies = idsOf("copy", reduced);
  for (const [shard, id] of copies.entries()) {
    await mia.runs.start({ workflow: "copy-data", id, input: shard + 1 });
  }
  const running = await untilSome(mia, "copy-data", "running", signal);
  await noah.runs.pause(running, { by: "noah", reason: "the disk of the target is nearly full" });
  const settled = [
    ...idsOf("published", reduced).map((id) => [`rollout/default/${id}`, "done"] as const),
    ...idsOf("no-quota", reduced).map((id) => [`rollout/default/${id}`, "failed"] as const),
    ...idsOf("no-image", reduced).map((id) => [`rollout/default/${id}`, "failed"] as const),
    ...idsOf("cancelled", reduced).map((id) => [`rollout/default/${id}`, "cancelled"] as const),
    ...idsOf("kept-pool", reduced).map(
      (id) => [`rollout/default/${id}`, "compensating or blocked"] as const,
    ),
    ...idsOf("billing", reduced).map((id) => [`billing/default/${id}`, "blocked"] as const),
    // A run without an execution at that moment is paused at once.
    [running, "pausing or paused"] as const,
  ];
  await Promise.all(settled.map(([id, status]) => untilStatus(mia, id, status, signal)));
}

function idsOf(story: Story, reduced: boolean): string[] {
  const count = STORIES[story][reduced ? 1 : 0];
  return Array.from({ length: count }, (_, index) => `${story}-${index + 1}`);
}

async function startRollout(client: Client, story: Story, id: string): Promise<void> {
  await client.runs.start({ workflow: "rollout", id, input: { name: id, ...INPUTS[story] } });
}

async function untilStatus(
  client: Client,
  id: string,
  statuses: string,
  signal: AbortSignal,
): Promise<void> {
  const wanted = statuses.split(" or ");
  const check = async () => wanted.includes((await client.runs.get(id)).status);
  await pollUntil(`${id} is ${statuses}`, check, { signal, everyMs: 250 });
}

/** Returns the ID of a run of the workflow in this status. */
async function untilSome(
  client: Client,
  workflow: string,
  status: "running",
  signal: AbortSignal,
): Promise<string> {
  let found: string | undefined;
  await pollUntil(
    `a run of ${workflow} is ${status}`,
    async () => {
      const { items } = await client.runs.list({ workflow, status }).page();
      found = items[0]?.id;
      return found !== undefined;
    },
    { signal, everyMs: 250 },
  );
  if (found === undefined) throw new KonvergeError("demo_failed", `no run of ${workflow}`);
  return found;
}
