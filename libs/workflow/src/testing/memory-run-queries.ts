import { defined } from "@konverge/core";
import { fits } from "../store/list-runs.ts";
import { overviewOf } from "../store/run-fields.ts";
import { historyOf } from "../store/run-history.ts";
import type { RunCounts, RunQueries, Silence } from "../store/run-queries.ts";
import { RUN_STATUSES, withoutPayload } from "../store/run-record.ts";
import { AGAIN_MS } from "../store/scripts/silent.ts";
import { hasEnded, type MemoryRuns } from "./memory-runs.ts";
import { passAllSlots, viewOf } from "./memory-slots.ts";

export function createMemoryRunQueries(runs: MemoryRuns): RunQueries {
  return {
    async get(ref) {
      const run = runs.find(ref);
      return run && viewOf(runs, run);
    },
    async peek(ref) {
      const run = runs.find(ref);
      return run === undefined
        ? undefined
        : overviewOf(run.view.status, {
            steps: run.steps.size,
            round: run.view.round,
            beatAtMs: run.view.beatAtMs,
          });
    },
    // One page has all runs.
    list: async (workflow, { filter }) => ({
      runs: runs.of(workflow).flatMap(({ view }) => (fits(view, filter) ? [view] : [])),
    }),
    places: async (workflow, { filter }) => ({
      places: runs.of(workflow).flatMap(({ view }) => (fits(view, filter) ? [view] : [])),
    }),
    count: async (workflow, filter) => ({
      count: runs.of(workflow).filter(({ view }) => fits(view, filter)).length,
    }),
    steps: async (ref) => new Map(runs.find(ref)?.steps),
    async journal(ref) {
      const { steps, progress } = runs.find(ref) ?? {};
      return { steps: new Map(steps), progress: new Map(progress) };
    },
    async history(ref) {
      const run = runs.find(ref);
      return run === undefined ? undefined : historyOf(run.view, run);
    },
    unconsumedSignals: async (ref) => (runs.find(ref)?.signals ?? []).map(withoutPayload),
    refusedSignals: async (ref) => runs.find(ref)?.refused ?? { count: 0, last: [] },
    logs: async (ref) => runs.find(ref)?.logs ?? [],
    async retryFacts(ref) {
      const run = runs.find(ref);
      if (run === undefined) return undefined;
      const { epoch, origin, notify } = run;
      return { epoch, ...defined({ origin, notify }) };
    },
    answerTo: async (ref, updateId) => runs.find(ref)?.answers.get(updateId),
    async counts(workflow) {
      const views = runs.of(workflow).map(({ view }) => view);
      return Object.fromEntries(
        RUN_STATUSES.map((status) => [
          status,
          views.filter((view) => view.status === status).length,
        ]),
      ) as RunCounts;
    },
    // No wake-up is lost between two calls of one process.
    overdue: async (workflow) => ({
      runs: passAllSlots(runs, workflow).map(({ id }) => id),
      ends: [],
      dropped: 0,
    }),
    silent: async (workflow) => findSilent(runs, workflow),
    async fences(workflow) {
      const fenced = runs.of(workflow).filter((run) => run.view.terminated !== undefined);
      return new Map(fenced.map(({ view, epoch }) => [view.id, epoch]));
    },
    async pausing(workflow) {
      const pausing = runs.of(workflow).filter(({ view }) => view.status === "pausing");
      return new Set(pausing.map(({ view }) => view.id));
    },
    async cancelling(workflow) {
      const cancelled = runs
        .of(workflow)
        .filter(
          (run) => run.view.cancel !== undefined && run.cancelledAt === undefined && !hasEnded(run),
        );
      return new Map(
        cancelled.map(({ view, cancels: number }) => [
          view.id,
          { number, request: view.cancel ?? {} },
        ]),
      );
    },
  };
}

/** Statuses of a run with an execution. */
const AT_WORK: readonly string[] = ["running", "compensating", "pausing"];

function findSilent(runs: MemoryRuns, workflow: string): Silence {
  const lost: { readonly id: string; readonly lease: number }[] = [];
  let nextMs = Infinity;
  for (const run of runs.of(workflow)) {
    const { view, lease, silent, progress } = run;
    const isActive = AT_WORK.includes(view.status);
    for (const [step, waits] of silent) {
      let leftMs = waits.atMs - runs.now();
      const isHeld = isActive && waits.lease === lease;
      if (leftMs <= 0 && !(isHeld && progress.get(step)?.running !== undefined)) {
        silent.delete(step);
        continue;
      }
      if (leftMs <= 0) {
        lost.push({ id: view.id, lease });
        leftMs = AGAIN_MS;
        silent.set(step, { atMs: runs.now() + leftMs, lease });
      }
      nextMs = Math.min(nextMs, leftMs);
    }
  }
  return nextMs === Infinity ? { lost } : { lost, nextMs };
}
