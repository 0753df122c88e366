import { fits } from "../store/list-runs.ts";
import { overviewOf } from "../store/run-fields.ts";
import { historyOf } from "../store/run-history.ts";
import type { RunCounts, RunQueries } from "../store/run-queries.ts";
import { RUN_STATUSES, withoutPayload } from "../store/run-record.ts";
import { hasEnded, type MemoryRuns } from "./memory-runs.ts";

export function createMemoryRunQueries(runs: MemoryRuns): RunQueries {
  return {
    get: async (ref) => runs.find(ref)?.view,
    async peek(ref) {
      const run = runs.find(ref);
      return run === undefined
        ? undefined
        : overviewOf(run.view.status, run.steps.size, run.view.round);
    },
    // One page has all runs.
    list: async (workflow, { filter }) => ({
      runs: runs.of(workflow).flatMap(({ view }) => (fits(view, filter) ? [view] : [])),
    }),
    places: async (workflow, { filter }) => ({
      places: runs.of(workflow).flatMap(({ view }) => (fits(view, filter) ? [view] : [])),
    }),
    count: async (workflow, filter) =>
      runs.of(workflow).filter(({ view }) => fits(view, filter)).length,
    steps: async (ref) => new Map(runs.find(ref)?.steps),
    async history(ref) {
      const run = runs.find(ref);
      return run === undefined ? undefined : historyOf(run.view, run);
    },
    unconsumedSignals: async (ref) => (runs.find(ref)?.signals ?? []).map(withoutPayload),
    refusedSignals: async (ref) => runs.find(ref)?.refused ?? { count: 0, last: [] },
    logs: async (ref) => runs.find(ref)?.logs ?? [],
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
    overdue: async () => ({ runs: [], ends: [] }),
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
