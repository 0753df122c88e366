import { defined, isKonvergeError, KonvergeError, type ScheduleOverlap } from "@konverge/core";
import { startReplacing, startRun } from "../store/start-run.ts";
import type { CancelRequest } from "../store/run-record.ts";
import type { NewRun, RunActions } from "../store/run-actions.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { Schedule } from "./define-schedule.ts";
import type { ScheduleBook } from "./schedule-book.ts";
import type { ScheduleSpec } from "./schedule-view.ts";
import { startOf } from "./schedule-overlap.ts";
import { timesOf } from "./schedule-times.ts";
import type { BackfilledTime, BackfillOptions, Schedules, TriggeredRun } from "./schedules.ts";
import { runIdAt } from "./start-scheduler.ts";

const NEXT_TIMES = 5;
const MAX_TIMES = 1_000;

export interface ScheduleStarts {
  readonly store: RunActions;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
  /** Ends a run without its undo, and wakes what continues. */
  readonly terminate: (ref: RunRef, request: CancelRequest) => Promise<void>;
}

export function openSchedules(book: ScheduleBook, starts: ScheduleStarts): Schedules {
  const find = async (name: string) => {
    const known = await book.list();
    const found = known.find((each) => each.name === name);
    if (found !== undefined) return found;
    const names = known.map((each) => each.name).join(", ") || "none";
    throw new KonvergeError("not_found", `schedule "${name}" does not exist; known: ${names}`);
  };
  return {
    list: () => book.list(),
    async get(name) {
      const found = await find(name);
      const nextTimesMs: number[] = [];
      const times = timesOf(found.rule);
      let atMs = await book.now();
      while (found.isLive && found.paused === undefined && nextTimesMs.length < NEXT_TIMES) {
        atMs = times.next(atMs);
        nextTimesMs.push(atMs);
      }
      return { ...found, nextTimesMs };
    },
    async pause(name, request = {}) {
      await find(name);
      await book.pause(name, { ...request, atMs: await book.now() });
    },
    async resume(name) {
      await find(name);
      await book.resume(name, await book.now());
    },
    async trigger(name, options = {}) {
      const { id = `${name}.${crypto.randomUUID()}`, overlap, by } = options;
      const spec = await find(name);
      const scheduledAtMs = await book.now();
      const run = { id, scheduledAtMs, ...defined({ by }) };
      const started = await startScheduled(starts, name, overlapping(spec, overlap), run);
      return { workflow: spec.workflow, ...started };
    },
    async backfill(name, { overlap = "buffer-all", by, dryRun = false, ...range }) {
      const spec = overlapping(await find(name), overlap);
      const times: BackfilledTime[] = [];
      for (const atMs of timesIn(spec, { ...range, nowMs: await book.now() })) {
        const id = runIdAt(name, atMs);
        if (dryRun) {
          times.push({ atMs, run: id, created: false });
          continue;
        }
        const run = { id, scheduledAtMs: atMs, ...defined({ by }) };
        const { id: started, created } = await startScheduled(starts, name, spec, run);
        times.push({ atMs, run: started, created });
      }
      return { workflow: spec.workflow, times };
    },
  };
}

function overlapping(spec: ScheduleSpec, overlap: ScheduleOverlap | undefined): ScheduleSpec {
  return { ...spec, ...defined({ overlap }) };
}

/** @throws KonvergeError `invalid_request` */
function timesIn(
  { rule }: ScheduleSpec,
  { fromMs, toMs, nowMs }: Pick<BackfillOptions, "fromMs" | "toMs"> & { readonly nowMs: number },
): readonly number[] {
  if (!(fromMs <= toMs && toMs <= nowMs)) {
    throw new KonvergeError(
      "invalid_request",
      "from must be before to, and to must be in the past",
    );
  }
  const all = timesOf(rule);
  const times: number[] = [];
  for (let atMs = all.next(fromMs - 1); atMs <= toMs; atMs = all.next(atMs)) {
    if (times.length === MAX_TIMES) {
      const until = new Date(times.at(-1) ?? fromMs).toISOString();
      const detail = `the range has more than ${MAX_TIMES} times; backfill up to ${until} first`;
      throw new KonvergeError("invalid_request", detail);
    }
    times.push(atMs);
  }
  return times;
}

/** Starts the run of a time, unless it exists. A run that is active instead is returned. @throws KonvergeError `queue_full` */
async function startScheduled(
  { store, wake, terminate }: ScheduleStarts,
  name: string,
  { workflow, version, input, overlap }: Omit<ScheduleSpec, "rule">,
  { by = `schedule ${name}`, ...run }: Pick<NewRun, "id" | "scheduledAtMs" | "by">,
): Promise<Omit<TriggeredRun, "workflow">> {
  const how = { workflow, version, input, by, ...run, ...startOf(name, overlap) };
  const started =
    overlap === "terminate-other"
      ? await startReplacing(store, wake, terminate, how)
      : await startRun(store, wake, how);
  return "status" in started ? { id: started.id, created: false } : started;
}

/** Starts the run for a time that is due. Returns the id of the run that covers the time; undefined if it is skipped. */
export async function startDueRun(
  starts: ScheduleStarts,
  { name, workflow, input, overlap }: Schedule,
  run: Pick<NewRun, "id" | "scheduledAtMs">,
): Promise<string | undefined> {
  const spec = { workflow: workflow.name, version: workflow.version, input, overlap };
  try {
    return (await startScheduled(starts, name, spec, run)).id;
  } catch (error) {
    if (isKonvergeError(error) && error.code === "queue_full") return undefined;
    throw error;
  }
}
