import { defined } from "@konverge/core";
import {
  runScript,
  type ScriptCall,
  type ScriptSignature,
  type Script,
} from "@konverge/redis";
import { compareIds, fits } from "./list-runs.ts";
import type { RunPlace } from "./run-store.ts";
import { createRedisRunHold } from "./redis-run-hold.ts";
import { glanceOf, readHeld, readRun, readSteps, readSummary, refOf } from "./run-fields.ts";
import type { RedisRunStoreOptions } from "./redis-run-store-options.ts";
import { runNames, type RunNames } from "./run-names.ts";
import type { RunRef } from "../define/run-ref.ts";
import {
  FencedError,
  RUN_STATUSES,
  withoutPayload,
  type BufferedSignal,
  type Claimed,
  type Followers,
  type Leave,
  type StepProgress,
  type RunCounts,
  type RunStatus,
  type RunStore,
  type RunSummary,
  type RunView,
  type Started,
  type StepRecord,
} from "./run-store.ts";
import { cancelScript } from "./scripts/cancel.ts";
import { claimScript } from "./scripts/claim.ts";
import { commitScript } from "./scripts/commit.ts";
import type { FollowerNames } from "./scripts/followers.ts";
import { leaveScript } from "./scripts/leave.ts";
import { noteScript } from "./scripts/note.ts";
import { signalScript } from "./scripts/signal.ts";
import { startScript } from "./scripts/start.ts";
import { sweepScript } from "./scripts/sweep.ts";
import { watchScript } from "./scripts/watch.ts";
import { memberOf } from "./wait-names.ts";

/** Signals that may wait in one run. */
const MAX_BUFFERED = 1_000;
/** Told of those that nobody has taken: each is up to 64 KiB to read. */
const MOST_UNCONSUMED = 20;
const SWEPT_AT_ONCE = 100;
/** Runs that one list looks at, and that it asks for at a time, when not all of them fit. */
const MOST_LOOKED_AT = 10_000;
const LOOKED_AT_ONCE = 500;

export function createRedisRunStore(options: RedisRunStoreOptions): RunStore {
  const { call, prefix, cluster, retentionMs } = options;
  const namesOf = new Map<string, RunNames>();
  const of = (workflow: string): RunNames => {
    const names = namesOf.get(workflow) ?? runNames(prefix, cluster, workflow);
    namesOf.set(workflow, names);
    return names;
  };
  const evaluate = async <Signature extends ScriptSignature, Answer>(
    script: Script<Signature, Answer>,
    inputs: ScriptCall<Signature>,
  ): Promise<Answer> => await call((redis) => runScript(redis, script, inputs));

  const get = async (ref: RunRef): Promise<RunView | undefined> => {
    const fields = await call((redis) => redis.hgetall(of(ref.workflow).run(ref.id)));
    return fields["status"] === undefined ? undefined : readRun(ref, fields);
  };

  /** At most `count` places in the sorted set `index` behind `from`, newest first. */
  const placesIn = async (
    index: string,
    from: RunPlace | undefined,
    count: number,
  ): Promise<{ readonly createdAtMs: number; readonly id: string }[]> => {
    const { createdAtMs = "+inf", id } = from ?? {};
    const older = from === undefined ? "+inf" : `(${createdAtMs}`;
    const [same, behind] = await Promise.all([
      id === undefined
        ? []
        : call((redis) => redis.zrevrangebyscore(index, createdAtMs, createdAtMs, "WITHSCORES")),
      call((redis) =>
        redis.zrevrangebyscore(index, older, "-inf", "WITHSCORES", "LIMIT", 0, count),
      ),
    ]);
    const ties = placesOf(same).filter((place) => compareIds(place.id, id ?? "") < 0);
    return [...ties, ...placesOf(behind)].slice(0, count);
  };
  return {
    ...createRedisRunHold(options, of),

    async start(created): Promise<Started> {
      const { workflow, id, version, input, key = "", onExisting = "attach", parent } = created;
      const { wakes, index, cancelling, runRoot, statuses, ...names } = of(workflow);
      const answer = await evaluate(startScript, {
        keys: { run: names.run(id), wakes, index, cancelling, holder: names.holder(key) },
        args: {
          id,
          version,
          input: textOf(input),
          key,
          onExisting,
          parentWorkflow: parent?.workflow ?? "",
          parent: parent?.id ?? "",
          runRoot,
          statuses,
          by: created.by ?? "",
          retry: created.retry === undefined ? "" : JSON.stringify(created.retry),
          uid: created.origin?.uid ?? "",
          generation: created.origin?.generation ?? "",
          notify: created.notify ?? "",
        },
      });
      if (answer.kind === "created") {
        const { kind, replaces } = answer;
        return { kind, ...(replaces === "" ? {} : { replaces }) };
      }
      if (answer.kind !== "exists") return { kind: answer.kind, id: answer.holder };
      const known = await get(created);
      // It expired between the two calls.
      return known === undefined ? await this.start(created) : { kind: "exists", run: known };
    },

    async claim(ref, { lease, owner, anew = false }): Promise<Claimed> {
      const { workflow, id } = ref;
      const { wakes, runRoot, statuses, ...names } = of(workflow);
      const answer = await evaluate(claimScript, {
        keys: { run: names.run(id), steps: names.steps(id), signals: names.signals(id), wakes },
        args: { lease, owner, anew, id, runRoot, statuses },
      });
      if (answer.kind === "held") return { kind: "held", ...readHeld(ref, answer) };
      if (answer.kind === "ended") return { kind: "ended", ...followersOf(workflow, answer) };
      return { kind: answer.kind };
    },

    async commit(held, step, record, { sleepMs, taken, cancels = false, warnings } = {}) {
      const { workflow, id, epoch } = held;
      const { cancelling, ...names } = of(workflow);
      const answer = await evaluate(commitScript, {
        keys: {
          run: names.run(id),
          steps: names.steps(id),
          signals: names.signals(id),
          cancelling,
        },
        args: {
          epoch,
          step,
          record: JSON.stringify(record),
          sleepMs: sleepMs === undefined ? "" : Math.ceil(sleepMs),
          taken: taken === undefined ? "" : JSON.stringify(taken),
          cancels: cancels ? id : "",
          warnings: warnings === undefined ? "" : JSON.stringify(warnings),
        },
      });
      // A signal that is gone was consumed by the execution that holds the run now.
      if (!("record" in answer)) throw fenced(held);
      return JSON.parse(answer.record) as StepRecord;
    },

    async note(held, step, { attempts, delayMs, keep = false, ...more }) {
      const names = of(held.workflow);
      const answer = await evaluate(noteScript, {
        keys: { run: names.run(held.id), steps: names.steps(held.id) },
        args: {
          epoch: held.epoch,
          step,
          attempts,
          delayMs: Math.ceil(delayMs),
          keep,
          more: Object.keys(more).length === 0 ? "" : JSON.stringify(more),
        },
      });
      if (answer.kind === "fenced") throw fenced(held);
      return JSON.parse(answer.progress) as StepProgress;
    },

    async watch(held, objects) {
      const { workflow, id, epoch } = held;
      const { waitKinds, rechecks, waitRoot, ...names } = of(workflow);
      const kind = await evaluate(watchScript, {
        keys: { run: names.run(id), waitKinds, rechecks },
        args: { epoch, member: memberOf(held), id, waitRoot, objects: objects.join(" ") },
      });
      if (kind === "fenced") throw fenced(held);
    },

    async leave(held, leave) {
      const { workflow, id, epoch, wakeSeq, run: view } = held;
      const { wakes, ended, cancelling, index, waitKinds, rechecks, ...names } = of(workflow);
      const answer = await evaluate(leaveScript, {
        keys: {
          run: names.run(id),
          steps: names.steps(id),
          signals: names.signals(id),
          seen: names.seen(id),
          wakes,
          endedRuns: ended,
          cancelling,
          holder: names.holder(view.key ?? ""),
          index,
          waitKinds,
          rechecks,
        },
        args: {
          epoch,
          kind: leave.kind,
          untilMs: untilOf(leave),
          text: detailOf(leave),
          id,
          wakeSeq,
          retentionMs,
          statuses: names.statuses,
          objects: leave.kind === "waiting" ? (leave.objects ?? []).join(" ") : "",
          member: memberOf(held),
          waitRoot: names.waitRoot,
        },
      });
      if (answer.kind === "fenced") throw fenced(held);
      return followersOf(workflow, answer);
    },

    async signal({ workflow, id }, signal) {
      const { wakes, ...names } = of(workflow);
      return await evaluate(signalScript, {
        keys: { run: names.run(id), signals: names.signals(id), seen: names.seen(id), wakes },
        args: { id, signalId: signal.id, signal: JSON.stringify(signal), most: MAX_BUFFERED },
      });
    },

    async cancel({ workflow, id }, request) {
      const { wakes, cancelling, ...names } = of(workflow);
      return await evaluate(cancelScript, {
        keys: { run: names.run(id), wakes, cancelling },
        args: { id, request: JSON.stringify(request) },
      });
    },

    get,

    async peek({ workflow, id }) {
      const [status, seq] = await call((redis) =>
        redis.hmget(of(workflow).run(id), "status", "seq"),
      );
      return status == null ? undefined : glanceOf(status as RunStatus, Number(seq));
    },

    async list(workflow, { limit, from, filter }) {
      const names = of(workflow);
      const { status, key, by, text } = filter;
      const index = status === undefined ? names.index : `${names.statuses}${status}`;
      const isSearch = key !== undefined || by !== undefined || text !== undefined;
      // One more than wanted tells whether there are more.
      const atOnce = isSearch ? LOOKED_AT_ONCE : limit + 1;
      const summary = (id: string) =>
        readSummary({ workflow, id }, (fields) =>
          call((redis) => redis.hmget(names.run(id), ...fields)),
        );
      const found: RunSummary[] = [];
      let place = from;
      for (let looked = 0; looked < MOST_LOOKED_AT; looked += atOnce) {
        const places = await placesIn(index, place, atOnce);
        const runs = await Promise.all(places.map(({ id }) => summary(id)));
        for (const [at, run] of runs.entries()) {
          place = places[at];
          // A run is in the index for a moment longer than it is kept, and may have changed since.
          if (run !== undefined && fits(run, filter)) found.push(run);
          if (found.length < limit) continue;
          const isLast = at + 1 === places.length && places.length < atOnce;
          return { runs: found, ...(isLast || place === undefined ? {} : { next: place }) };
        }
        if (places.length < atOnce) return { runs: found };
      }
      return { runs: found, ...defined({ next: place }) };
    },

    async steps({ workflow, id }) {
      const fields = await call((redis) => redis.hgetall(of(workflow).steps(id)));
      return readSteps(Object.entries(fields).flat()).steps;
    },

    async unconsumedSignals({ workflow, id }) {
      const texts = await call((redis) =>
        redis.lrange(of(workflow).signals(id), 0, MOST_UNCONSUMED - 1),
      );
      return texts.map((text) => withoutPayload(JSON.parse(text) as BufferedSignal));
    },

    async counts(workflow) {
      const { statuses } = of(workflow);
      const counted = await Promise.all(
        RUN_STATUSES.map(async (status): Promise<[RunStatus, number]> => {
          return [status, await call((redis) => redis.zcard(`${statuses}${status}`))];
        }),
      );
      return Object.fromEntries(counted) as RunCounts;
    },

    async overdue(workflow) {
      const { wakes, ended, index, statuses, rechecks, recheckGap } = of(workflow);
      return await evaluate(sweepScript, {
        keys: { wakes, endedRuns: ended, index, rechecks, recheckGap },
        args: { most: SWEPT_AT_ONCE, retentionMs, statuses },
      });
    },

    async cancelling(workflow) {
      return new Set(await call((redis) => redis.smembers(of(workflow).cancelling)));
    },
  };
}

function fenced({ workflow, id }: RunRef): FencedError {
  return new FencedError(`another execution holds the run ${workflow}/${id}`);
}

function followersOf(workflow: string, names: FollowerNames): Followers {
  const parent = refOf(names.parentWorkflow, names.parent);
  const next = refOf(workflow, names.next);
  return {
    ...defined({ parent, next }),
    ...(names.notify === "" ? {} : { notify: names.notify }),
  };
}

/** Of what a sorted set answers with scores. */
function placesOf(
  flat: readonly string[],
): { readonly createdAtMs: number; readonly id: string }[] {
  return flat.flatMap((id, at) =>
    at % 2 === 0 ? [{ id, createdAtMs: Number(flat[at + 1]) }] : [],
  );
}

function untilOf(leave: Leave): number | "" {
  const untilMs = "untilMs" in leave ? leave.untilMs : undefined;
  return untilMs === undefined ? "" : Math.ceil(untilMs);
}

function detailOf(leave: Leave): string {
  switch (leave.kind) {
    case "waiting":
      return leave.waits === undefined ? "" : JSON.stringify(leave.waits);
    case "blocked":
      return leave.reason;
    case "compensating":
      return JSON.stringify(leave.failing);
    case "done":
      return textOf(leave.result);
    case "failed":
    case "cancelled":
      return JSON.stringify(leave.error);
  }
}

/** Nothing is empty text. */
function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "";
}
