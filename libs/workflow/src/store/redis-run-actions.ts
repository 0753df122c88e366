import { defined } from "@konverge/core";
import type { RedisRuns } from "./redis-runs.ts";
import type { RunRef } from "../define/run-ref.ts";
import { undoName } from "../define/undo-name.ts";
import { followersOf } from "./followers-of.ts";
import {
  MAX_QUEUED,
  type NewRun,
  type RunActions,
  type Started,
  type Reopened,
  type Reopening,
} from "./run-actions.ts";
import { getRun } from "./redis-run-queries.ts";
import { endedRun, PROGRESS_MARK, textOf } from "./run-fields.ts";
import { endingKeys } from "./run-names.ts";
import { MAX_BUFFERED, MAX_BUFFERED_BYTES } from "./signal-limits.ts";
import { cancelScript } from "./scripts/cancel.ts";
import { pauseRunsScript } from "./scripts/pause-runs.ts";
import { resumeRunsScript } from "./scripts/resume-runs.ts";
import { resumeScript } from "./scripts/resume.ts";
import { raiseScript } from "./scripts/raise.ts";
import { signalScript } from "./scripts/signal.ts";
import { skipUndoScript } from "./scripts/skip-undo.ts";
import { startScript } from "./scripts/start.ts";
import { terminateScript } from "./scripts/terminate.ts";
import {
  cancellationOf,
  skippedUndo,
  terminationOf,
  type CancelRequest,
  type Failure,
} from "./run-record.ts";
import { updateSignalId } from "./run-updates.ts";
import { memberOf } from "./wait-names.ts";

/** Field in the steps of a run: the progress of a failed undo. */
const UNDO_PROGRESS = /^undo:[^]*~$/;

export function createRedisRunActions(runs: RedisRuns): RunActions {
  return {
    start: (run) => start(runs, run),

    async signal({ workflow, id }, signal) {
      const { wakes, ...names } = runs.namesOf(workflow);
      return await runs.evaluate(signalScript, {
        keys: {
          run: names.run(id),
          signals: names.signals(id),
          signalNames: names.signalNames(id),
          seen: names.seen(id),
          wakes,
        },
        args: {
          id,
          name: signal.name,
          signalId: signal.id,
          signal: JSON.stringify(signal),
          most: MAX_BUFFERED,
          mostBytes: MAX_BUFFERED_BYTES,
        },
      });
    },

    async cancel({ workflow, id }, request, { resumes = false } = {}) {
      const { wakes, cancelling, statuses, ...names } = runs.namesOf(workflow);
      return await runs.evaluate(cancelScript, {
        keys: { run: names.run(id), wakes, cancelling },
        args: { id, request: JSON.stringify(request), statuses, resumes },
      });
    },

    async pause(workflow, ids, { request, wanted = "" }) {
      const { wakes, rechecks, runRoot, statuses } = runs.namesOf(workflow);
      return await runs.evaluate(pauseRunsScript, {
        keys: { wakes, rechecks },
        args: { request: JSON.stringify(request), wanted, runRoot, statuses },
        each: ids.map((id) => ({ id })),
      });
    },

    async resume(workflow, ids, { wanted = "" } = {}) {
      const { wakes, runRoot, statuses } = runs.namesOf(workflow);
      return await runs.evaluate(resumeRunsScript, {
        keys: { wakes },
        args: { wanted, runRoot, statuses },
        each: ids.map((id) => ({ id })),
      });
    },

    async skipUndo({ workflow, id }, step, request) {
      const { wakes, ...names } = runs.namesOf(workflow);
      return await runs.evaluate(skipUndoScript, {
        keys: { run: names.run(id), steps: names.steps(id), wakes },
        args: { id, undo: undoName(step), record: JSON.stringify(skippedUndo(request)) },
      });
    },

    async raise({ workflow, id }, { steps = "", bytes = "" }) {
      const { wakes, ...names } = runs.namesOf(workflow);
      return await runs.evaluate(raiseScript, {
        keys: { run: names.run(id), wakes },
        args: { id, steps, bytes },
      });
    },

    reopen: (ref, how) => reopen(runs, ref, how),

    async retryUndos({ workflow, id }) {
      const steps = runs.namesOf(workflow).steps(id);
      const fields = await runs.call((redis) => redis.hkeys(steps));
      const failed = fields.filter((field) => UNDO_PROGRESS.test(field));
      if (failed.length > 0) await runs.call((redis) => redis.hdel(steps, ...failed));
    },

    async terminate(ref, request) {
      const ended = await end(runs, ref, {
        request,
        error: terminationOf(request),
        isQueued: false,
      });
      return ended.kind === "active" ? { kind: "missing" } : ended;
    },

    endQueued: (ref, request) =>
      end(runs, ref, { request, error: cancellationOf(request), isQueued: true }),
  };
}

async function reopen(
  runs: RedisRuns,
  { workflow, id }: RunRef,
  { epoch, drop, kept, author, key = "" }: Reopening,
): Promise<Reopened> {
  const { wakes, ended, fences, runRoot, statuses, ...names } = runs.namesOf(workflow);
  const fields = await runs.call((redis) => redis.hkeys(names.steps(id)));
  const dropped = [...drop, ...fields.filter((field) => field.endsWith(PROGRESS_MARK))];
  const updates = await updatesOf(runs, { workflow, id });
  return await runs.evaluate(resumeScript, {
    keys: {
      run: names.run(id),
      steps: names.steps(id),
      signals: names.signals(id),
      signalNames: names.signalNames(id),
      refusals: names.refusals(id),
      answers: names.answers(id),
      seen: names.seen(id),
      wakes,
      endedRuns: ended,
      holder: names.holder(key),
      fences,
    },
    args: { id, epoch, runRoot, statuses, author: JSON.stringify(author), kept },
    each: dropped.map((field) => {
      const update = updates.get(field);
      return {
        field,
        update: update ?? "",
        signal: update === undefined ? "" : updateSignalId(update),
      };
    }),
  });
}

/** Returns the ids of the accepted updates, by the step that has accepted them. */
async function updatesOf(
  runs: RedisRuns,
  { workflow, id }: RunRef,
): Promise<ReadonlyMap<string, string>> {
  const answers = await runs.call((redis) => redis.hgetall(runs.namesOf(workflow).answers(id)));
  const accepted = Object.entries(answers).flatMap(([update, text]) => {
    const { step, record } = JSON.parse(text) as Readonly<
      Record<"step" | "record", string | undefined>
    >;
    // With a record it is of an earlier round, whose steps had names of their own.
    return step === undefined || record !== undefined ? [] : [[step, update] as const];
  });
  return new Map(accepted);
}

async function end(
  runs: RedisRuns,
  { workflow, id }: RunRef,
  {
    request,
    error,
    isQueued,
  }: { readonly request: CancelRequest; readonly error: Failure; readonly isQueued: boolean },
): ReturnType<RunActions["endQueued"]> {
  const { retentionMs } = runs.keptOf(workflow);
  const names = runs.namesOf(workflow);
  const key = await runs.call((redis) => redis.hget(names.run(id), "key"));
  const answer = await runs.evaluate(terminateScript, {
    keys: { ...endingKeys(names, id, key ?? ""), fences: names.fences },
    args: {
      id,
      request: JSON.stringify(request),
      error: JSON.stringify(error),
      isQueued,
      retentionMs,
      runRoot: names.runRoot,
      statuses: names.statuses,
      member: memberOf({ workflow, id }),
      waitRoot: names.waitRoot,
    },
  });
  return answer.kind === "missing" || answer.kind === "active"
    ? { kind: answer.kind }
    : { kind: answer.kind, ...followersOf(workflow, answer) };
}

async function start(runs: RedisRuns, created: NewRun): Promise<Started> {
  const { workflow, id, version, input, key = "", onExisting = "attach", parent } = created;
  const { wakes, index, cancelling, lastChecks, runRoot, statuses, ...names } =
    runs.namesOf(workflow);
  const answer = await runs.evaluate(startScript, {
    keys: {
      run: names.run(id),
      answers: names.answers(id),
      answeredIds: names.answeredIds(id),
      logs: names.logs(id),
      wakes,
      index,
      endedRuns: names.ended,
      cancelling,
      fences: names.fences,
      holder: names.holder(key),
      last: names.last(key),
      lastChecks,
    },
    args: {
      id,
      version,
      input: textOf(input),
      key,
      onExisting,
      maxQueued: created.maxQueued ?? MAX_QUEUED,
      parentWorkflow: parent?.workflow ?? "",
      parent: parent?.id ?? "",
      parentStep: parent?.step ?? "",
      parentRound: parent?.round === undefined ? "" : String(parent.round),
      parentRun: parent === undefined ? "" : runs.namesOf(parent.workflow).run(parent.id),
      parentSteps: parent === undefined ? "" : runs.namesOf(parent.workflow).steps(parent.id),
      runRoot,
      statuses,
      by: created.by ?? "",
      retry: textOf(created.retry),
      scheduledAt: created.scheduledAtMs ?? "",
      uid: created.origin?.uid ?? "",
      generation: created.origin?.generation ?? "",
      object: created.origin?.object ?? "",
      notify: created.notify ?? "",
      labels: textOf(created.labels),
    },
  });
  switch (answer.kind) {
    case "created":
      return { kind: "created", ...(answer.replaces === "" ? {} : { replaces: answer.replaces }) };
    case "full":
      return { kind: "full", id: answer.holder };
    case "attached":
    case "rejected":
      return {
        kind: answer.kind,
        id: answer.holder,
        ...defined({ end: answer.end && endedRun(answer.end) }),
      };
    case "exists": {
      const known = await getRun(runs, created);
      // It expired between the two calls.
      return known === undefined ? await start(runs, created) : { kind: "exists", run: known };
    }
  }
}
