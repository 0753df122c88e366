import { resourceVersionChanged } from "@konverge/engine";
import type { AttemptRecord } from "@konverge/records";
import type { WorkQueue } from "@konverge/queue";
import { formatKey, type ObjectKey } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { namespace } from "../engine/engine-harness.ts";
import { eventsAbout, useHistory } from "./history-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const QUICK = {
  baseMs: 1,
  factor: 1,
  capMs: 1,
  steps: Infinity,
  jitter: { kind: "none" },
} as const;

async function recordsOf(queue: WorkQueue, key: ObjectKey): Promise<AttemptRecord[]> {
  const stored = await queue.listAttempts(key, { limit: 50 });
  return stored.map(({ record }) => JSON.parse(record) as AttemptRecord);
}

describe.each(testServers())("history on $name", (target) => {
  const harness = useHistory(target, "history.test.konverge.dev");

  test("P11: finds attempts by object and outcome, newest first", async () => {
    // Before the leader lists: an object that is created during the election may be observed twice, by list and watch.
    await harness.make("fails");
    await harness.make("blue-pool");
    const { controller } = await harness.start({
      // The index is in the order of the ends of attempts, which is then that of their starts.
      concurrency: 1,
      backoff: { failure: QUICK },
      reconcile: async ({ object, attempt }) => {
        if (object.metadata.name === "fails" && attempt < 3) throw new Error("not yet");
      },
    });
    const { reader } = harness;
    await until("all attempts are in the index", async () => {
      const { items } = await reader.search({ limit: 50 });
      return items.length >= 4;
    });
    const find = async (query: object) => (await reader.search({ limit: 50, ...query })).items;
    const failed = await find({ outcome: "retry" });
    expect(failed.map(({ key }) => key.split("/").at(-1))).toEqual(["fails", "fails"]);
    expect(await find({ name: "ue-po" })).toMatchObject([{ outcome: "done" }]);
    expect(await find({ errorCode: "Error" })).toHaveLength(2);
    expect(await find({ controller: controller.name, namespace })).toHaveLength(4);
    expect(await find({ resource: "widgets" })).toHaveLength(4);
    expect(await find({ resource: "widgets.history.test.konverge.dev" })).toHaveLength(4);
    expect(await find({ controller: "other" })).toEqual([]);
    expect(await find({ namespace: "other" })).toEqual([]);
    const times = (await find({})).map(({ startedAtMs }) => startedAtMs);
    expect(times).toEqual(times.toSorted((left, right) => right - left));
    const page = await reader.search({ limit: 3 });
    expect(page.items).toHaveLength(3);
    const rest = await reader.search({ limit: 3, cursor: page.next });
    expect(rest.items).toHaveLength(1);
    await expect(reader.search({ limit: 3, cursor: "?" })).rejects.toMatchObject({
      code: "invalid_request",
    });
    // A minute may have ended in between.
    const minutes = await reader.rollups(controller.name, 10);
    const failures = minutes.map(({ counts }) => counts["outcome.retry"] ?? 0);
    expect(failures.reduce((sum, count) => sum + count, 0)).toBe(2);
  });

  test("P11: stores a conflict with its competing writer, by object and by manager", async () => {
    let interfere = true;
    await harness.start({
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, async (draft) => {
          if (interfere) {
            interfere = false;
            await harness.client.mutate(harness.widgets, { namespace, name: "w" }, (other) => {
              other.spec = { ...other.spec, foreign: true };
            });
          }
          draft.metadata.labels = { ours: "true" };
        });
      },
    });
    await harness.make("w");
    const { reader } = harness;
    const object = `widgets.history.test.konverge.dev/${namespace}/w`;
    const [contender] = await until("the fight is stored", async () => {
      const found = await reader.contention(object);
      return found.length > 0 && found;
    });
    expect(contender).toMatchObject({
      kind: "conflict",
      manager: "konverge-test",
      path: "spec.foreign",
      count: 1,
    });
    expect((await reader.contentionReport(1)).contendedObjects).toEqual([{ object, conflicts: 1 }]);
    const { items } = await reader.search({ limit: 5, manager: "konverge-test" });
    expect(items).toMatchObject([{ conflicts: 1 }]);
  });

  test("detects, throttles and reports a controller that is triggered by its own status writes, once", async () => {
    let runs = 0;
    const { queue, key, metrics } = await harness.start({
      predicate: resourceVersionChanged,
      reconcile: async ({ object, kube }) => {
        runs += 1;
        await kube.mutateStatus(object, (draft) => {
          draft.status["seen"] = runs;
        });
      },
    });
    const made = await harness.make("loop");
    const found = await until("the loop is found", () =>
      harness.lines.find(({ message }) => message === "reconcile loop detected"),
    );
    expect(found).toMatchObject({
      level: "warn",
      hint: "own_status_trigger",
      docs: "docs/hints.md#own_status_trigger",
      name: "loop",
    });
    expect(found["paths"]).toEqual(["widgets.history.test.konverge.dev/status status.seen"]);
    await until("starts are deferred, longer each time", async () => {
      const { loops } = await harness.reader.contentionReport(1);
      const state = [...loops.values()].map((text) => JSON.parse(text) as { step: number })[0];
      return (state?.step ?? 0) >= 2;
    });
    const records = await recordsOf(queue, key("loop"));
    const putOff = records.filter(({ cause }) => cause === "loop");
    expect(putOff.length).toBeGreaterThan(0);
    expect(putOff[0]).toMatchObject({
      outcome: "deferred",
      hints: [{ code: "own_status_trigger" }],
      calls: { count: 0 },
    });
    const [event] = await until("the event is recorded", async () => {
      const events = await eventsAbout(harness.client, "loop");
      return events.length > 0 && events;
    });
    expect(event).toMatchObject({
      type: "Warning",
      reason: "ReconcileLoop",
      involvedObject: { uid: made.metadata.uid },
    });
    expect(await metrics.text()).toMatch(
      /konverge_reconcile_loops_total\{[^}]*kind="selfTriggered"[^}]*\} 1/,
    );
    expect(await eventsAbout(harness.client, "loop")).toHaveLength(1);

    // A user request does not wait, and ends the loop.
    const before = runs;
    const asked = await queue.request(key("loop"), { kind: "http" }, { class: "interactive" });
    await until("the person's request is finished", async () => {
      return (await queue.getRequest(asked.id)).phase === "finished";
    });
    expect(runs).toBeGreaterThan(before);
    const asking = (await recordsOf(queue, key("loop"))).find(({ triggers }) =>
      triggers.some(({ kind }) => kind === "http"),
    );
    expect(asking?.outcome).toBe("done");
    await until("the loop is over for now", () =>
      harness.lines.some(({ message }) => message === "reconcile loop ended"),
    );
  });

  test("throttles a loop in all processes after one has detected it", async () => {
    const runs = [0, 0];
    const reconcileIn =
      (at: number): NonNullable<Parameters<typeof harness.start>[0]["reconcile"]> =>
      async ({ object, kube }) => {
        runs[at] = (runs[at] ?? 0) + 1;
        await kube.mutateStatus(object, (draft) => {
          draft.status["seen"] = `${at}/${runs[at]}`;
        });
      };
    const common = { name: "looping", predicate: resourceVersionChanged };
    await harness.start({ ...common, reconcile: reconcileIn(0) });
    await harness.start({ ...common, reconcile: reconcileIn(1) });
    await harness.make("loop");
    const state = async () => {
      const { loops } = await harness.reader.contentionReport(1);
      const [text] = loops.values();
      return text === undefined ? undefined : (JSON.parse(text) as { step: number });
    };
    await until("the loop is found, and goes on slowly", async () => {
      return ((await state())?.step ?? 0) >= 1;
    });
    const before = runs[0]! + runs[1]!;
    const step = (await state())?.step ?? 0;
    await until("another step", async () => ((await state())?.step ?? 0) > step);
    // Each start is one step; the state is shared once a second.
    expect(runs[0]! + runs[1]! - before).toBeLessThanOrEqual(4);
    const found = harness.lines.filter(({ message }) => message === "reconcile loop detected");
    expect(found).toHaveLength(1);
  });

  test("a rejected apply records the owners of its fields", async () => {
    const { queue, key } = await harness.start({
      reconcile: async ({ object, kube }) => {
        const { apiVersion, kind } = object;
        await kube.apply(harness.widgets, {
          apiVersion,
          kind,
          metadata: { name: "applied", namespace },
          spec: { size: 9 },
        });
      },
    });
    await harness.make("applied");
    const record = await until("the refusal is recorded", async () => {
      const [last] = await recordsOf(queue, key("applied"));
      return last;
    });
    expect(record).toMatchObject({
      outcome: "rejected",
      error: { code: "field_conflict" },
      conflicts: [{ competingWriters: [{ manager: "konverge-test", paths: ["spec.size"] }] }],
    });
    expect(record.waits.backoffMs).toBeGreaterThanOrEqual(15_000);
  });

  test("reports a key at its 25th consecutive failure and keeps retrying it", async () => {
    let broken = true;
    const { queue, key } = await harness.start({
      backoff: { failure: QUICK },
      reconcile: async () => {
        if (broken) throw new Error("no such bucket");
      },
    });
    const made = await harness.make("fails");
    const reported = () =>
      harness.lines.filter(({ message }) => message === "repeated reconcile failures");
    await until("it is reported", () => reported().length > 0);
    broken = false;
    await until("it ends well", async () => {
      return (await queue.getKey(key("fails")))?.lastOutcome === "done";
    });
    expect(reported()[0]).toMatchObject({
      level: "warn",
      key: formatKey(key("fails")),
      failures: 25,
      err: { code: "Error" },
    });
    const [event] = await until("the event is recorded", async () => {
      const events = await eventsAbout(harness.client, "fails");
      return events.length > 0 && events;
    });
    expect(event).toMatchObject({
      reason: "RepeatedFailures",
      message: expect.stringContaining("25 consecutive attempts failed, the last one with Error"),
      involvedObject: { uid: made.metadata.uid },
    });
  });

  test("reports repeated conflicts once, with the competing writer", async () => {
    let interfere = true;
    const { queue, key } = await harness.start({
      backoff: { conflict: QUICK, failure: QUICK },
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, async (draft) => {
          if (interfere) {
            await harness.client.mutate(harness.widgets, { namespace, name: "storm" }, (other) => {
              other.metadata.annotations = { at: String(performance.now()) };
            });
          }
          draft.metadata.labels = { ours: "true" };
        });
      },
    });
    const made = await harness.make("storm");
    const reported = () =>
      harness.lines.filter(({ message }) => message === "repeated write conflicts");
    await until("it is reported", () => reported().length > 0);
    interfere = false;
    await until("it wins in the end", async () => {
      return (await queue.getKey(key("storm")))?.lastOutcome === "done";
    });
    expect(reported()).toMatchObject([
      { level: "warn", conflicts: 50, managers: ["konverge-test"] },
    ]);
    const [event] = await until("the event is recorded", async () => {
      const events = await eventsAbout(harness.client, "storm");
      return events.length > 0 && events;
    });
    expect(event).toMatchObject({
      reason: "RepeatedConflicts",
      message: expect.stringContaining("konverge-test"),
      involvedObject: { uid: made.metadata.uid },
    });
  });
});
