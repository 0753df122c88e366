import type { ObjectKey } from "@konverge/core";
import { openQueueAccess } from "@konverge/api";
import { bindCluster, createWorkQueue, type WorkQueue } from "@konverge/queue";
import { defineWorkflow, openWorkflows, type Workflows } from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { PATIENT_MS } from "../../support/patient.ts";

export const CLUSTER = "default";
export const UID = "7c1f0a5e-0000-4000-8000-000000000001";
export const CONTROLLER = "pool";
const OPERATOR = { by: "ada", reason: "a dump" };
/** Longer than the dump takes, and over whenever a test runs. */
const LATER_MS = 60_000;

export function keyNamed(name: string): ObjectKey {
  return {
    controller: CONTROLLER,
    cluster: CLUSTER,
    group: "demo.konverge.dev",
    resource: "nodepools",
    namespace: "shop",
    name,
  };
}

/** A workflow with a step before and after each kind of wait. `ran` receives the executed bodies. */
export function dumpedWorkflow(ran: (step: string) => void) {
  return defineWorkflow("release", { version: 1 }, async (w, input: { readonly by: string }) => {
    await w.step("first", async () => ran("first"), { undo: async () => ran("undo first") });
    if (input.by === "fails") {
      const broken = () => Promise.reject(new Error("broken on purpose"));
      await w.step("broken", broken, { retry: { attempts: 1 } });
    }
    if (input.by === "sleeps") await w.sleep("pause", "60s");
    const payload = input.by === "waits" ? await w.signal("approve") : "none";
    await w.step("last", async () => ran("last"));
    return { by: input.by, payload };
  });
}

interface Place {
  readonly url: string;
  readonly prefix: string;
}

/** The requests that a later version must finish, and the token that it must accept. */
export interface DumpedState {
  readonly requests: Readonly<Record<string, string>>;
  readonly token: string;
}

/** Writes one of each kind of state to an empty installation. */
export async function writeState({ url, prefix }: Place): Promise<DumpedState> {
  const place = { redis: { url, deadlineMs: PATIENT_MS }, prefix, cluster: CLUSTER };
  await bindCluster({ ...place, uid: UID });
  const queue = createWorkQueue({ ...place, controller: CONTROLLER });
  const runs = openWorkflows(place);
  const access = openQueueAccess({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    onError: () => undefined,
  });
  try {
    const requests = await writeKeys(queue);
    await writeRuns(runs);
    const { token } = await access.tokens.create(
      { name: "ci", role: "operator", scope: {} },
      "ada",
    );
    return { requests, token };
  } finally {
    await Promise.all([queue.close(), runs.close(), access.close()]);
  }
}

async function writeKeys(queue: WorkQueue): Promise<Record<string, string>> {
  const requests: Record<string, string> = {};
  const trigger = { kind: "http", by: "ci", reason: "a dump" } as const;
  const request = async (name: string) => {
    requests[name] = (await queue.request(keyNamed(name), trigger)).id;
  };
  await queue.control.pause({ kind: "key", key: keyNamed("paused") }, OPERATOR);
  const worker = queue.work({
    workerId: "old",
    onError: (error) => console.error(error),
    handle: async ({ id }) => {
      if (id.endsWith("/deadLettered")) {
        return { outcome: { kind: "terminal", error: new Error("broken on purpose") } };
      }
      if (id.endsWith("/backoff")) return { outcome: { kind: "requeueAfter", afterMs: LATER_MS } };
      return { outcome: { kind: "done" } };
    },
  });
  for (const name of ["deadLettered", "backoff", "idle"]) await request(name);
  await request("paused");
  await until("the keys have their states", async () => {
    const { deadLettered, paused } = await queue.backlog();
    const idle = await queue.getKey(keyNamed("idle"));
    return deadLettered === 1 && paused === 1 && idle?.phase === "idle";
  });
  await worker.stop();
  await queue.requestAt(keyNamed("timed"), Date.now() + LATER_MS);
  await request("waiting");
  return requests;
}

async function writeRuns(runs: Workflows): Promise<void> {
  const workflow = dumpedWorkflow(() => undefined);
  const worker = runs.work({ workflows: [workflow], workerId: "old" });
  for (const by of ["waits", "sleeps", "fails", "done"]) {
    await runs.start(workflow, { by }, { id: by });
  }
  const has = async (id: string, status: string) =>
    (await runs.get({ workflow: workflow.name, id }))?.status === status;
  await until("the runs have their states", async () => {
    const states = [has("waits", "waiting"), has("sleeps", "waiting")];
    const ends = [has("fails", "failed"), has("done", "done")];
    return (await Promise.all([...states, ...ends])).every(Boolean);
  });
  await worker.stop();
  await runs.start(workflow, { by: "new" }, { id: "new" });
}
