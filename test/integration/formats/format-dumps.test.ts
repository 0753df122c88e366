import { globSync, readFileSync } from "node:fs";
import { openQueueAccess } from "@konverge/api";
import { bindCluster } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { FORMATS } from "../../../libs/queue/src/fleet/format.ts";
import { until } from "../../support/until.ts";
import { useWorkflows } from "../workflow/workflow-harness.ts";
import {
  CLUSTER,
  CONTROLLER,
  dumpedWorkflow,
  keyNamed,
  UID,
  type DumpedState,
} from "./dumped-state.ts";
import { loadDump, type DumpedKey } from "./redis-dump.ts";
import { PATIENT_MS } from "../../support/patient.ts";

const harness = useWorkflows();
const OPERATOR = { by: "ada", reason: "a test" };
const paths = globSync("test/integration/formats/dumps/format-*.json").toSorted();

interface Dump {
  readonly format: number;
  readonly madeAtMs: number;
  readonly state: DumpedState;
  readonly keys: readonly DumpedKey[];
}

/** Loads a dump into the installation of the test, and binds its cluster as a worker does. */
async function load(path: string): Promise<Dump> {
  const dump = JSON.parse(readFileSync(path, "utf8")) as Dump;
  await loadDump(harness.redis, harness.prefix, dump.keys);
  const place = { redis: { url: harness.url }, prefix: harness.prefix, cluster: CLUSTER };
  await bindCluster({ ...place, uid: UID });
  return dump;
}

test("there is a dump of each format that this version reads", () => {
  const formats = paths.map((path) => Number(/(\d+)\.json$/.exec(path)?.[1]));
  const read = formats.filter((format) => format >= FORMATS.oldest && format <= FORMATS.newest);
  expect(read).toHaveLength(FORMATS.newest - FORMATS.oldest + 1);
});

const readable = paths.filter((path) => {
  const { format } = JSON.parse(readFileSync(path, "utf8")) as Dump;
  return format >= FORMATS.oldest;
});

test.each(readable)(
  "finishes the requests, timers, dead letters and pauses of %s",
  async (path) => {
    const { state } = await load(path);
    const queue = harness.open({ controller: CONTROLLER, cluster: CLUSTER });
    const started: string[] = [];
    queue.work({
      workerId: "new",
      onError: (error) => console.error(error),
      handle: async ({ id }) => {
        started.push(id.slice(id.lastIndexOf("/") + 1));
        return { outcome: { kind: "done" } };
      },
    });
    const isFinished = async (name: string) =>
      (await queue.getRequest(state.requests[name] ?? "")).phase === "finished";
    await until("the waiting request ends", () => isFinished("waiting"));
    // Due a minute after the dump was made.
    await until(
      "the timers have fired",
      () => started.includes("timed") && started.includes("backoff"),
    );
    expect(await queue.backlog()).toMatchObject({ deadLettered: 1, paused: 1 });
    expect(started.toSorted()).toEqual(["backoff", "timed", "waiting"]);
    expect((await queue.getKey(keyNamed("idle")))?.phase).toBe("idle");
    expect(await queue.listAttempts(keyNamed("idle"))).toHaveLength(1);

    await queue.control.resume({ kind: "key", key: keyNamed("paused") }, OPERATOR);
    await queue.control.release({ key: keyNamed("deadLettered") }, OPERATOR);
    await until("the paused request ends", () => isFinished("paused"));
    await until("the released one ends", () => isFinished("deadLettered"));
    expect(await queue.backlog()).toMatchObject({ deadLettered: 0, paused: 0, headAgeMs: 0 });
  },
);

test.each(readable)("finishes the runs of %s without repeating a step", async (path) => {
  await load(path);
  const ran: string[] = [];
  const workflow = dumpedWorkflow((step) => ran.push(step));
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "new" });
  const ref = (id: string) => ({ workflow: workflow.name, id });
  const end = async (id: string) =>
    await until(`run ${id} ends`, async () => {
      const run = await runs.get(ref(id));
      return run?.endedAtMs === undefined ? undefined : run;
    });
  await runs.signal(ref("waits"), "approve", { payload: "yes" });
  expect(await end("waits")).toMatchObject({
    status: "done",
    result: { by: "waits", payload: "yes" },
  });
  expect(await end("sleeps")).toMatchObject({ status: "done" });
  expect(await end("new")).toMatchObject({ status: "done" });
  expect(await end("done")).toMatchObject({ status: "done", result: { by: "done" } });
  expect(await end("fails")).toMatchObject({ status: "failed" });
  // One first step is that of the run that had not begun.
  expect(ran.toSorted()).toEqual(["first", "last", "last", "last"]);
  expect((await runs.steps(ref("waits"))).map(({ name }) => name)).toEqual([
    "first",
    "approve",
    "last",
  ]);
});

test.each(readable)("accepts the token of %s", async (path) => {
  const { state } = await load(path);
  const { apiUrl: url, prefix } = harness;
  const access = openQueueAccess({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    onError: () => undefined,
  });
  onTestFinished(() => access.close());
  expect(await access.tokens.find(state.token)).toMatchObject({ name: "ci", role: "operator" });
});
