import { defined } from "@konverge/core";
import { runScript, type RedisClient, type Script, type ScriptArgument } from "@konverge/redis";
import { compareIds, fits, type RunPlace } from "./list-runs.ts";
import { createRedisRunHold } from "./redis-run-hold.ts";
import { glanceOf, readHeld, readRun, readSteps, readSummary, refOf } from "./run-fields.ts";
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
  type Progress,
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
const MOST_UNTAKEN = 20;
const SWEPT_AT_ONCE = 100;
/** Runs that one list looks at, and that it asks for at a time, when not all of them fit. */
const MOST_LOOKED_AT = 10_000;
const LOOKED_AT_ONCE = 500;

export interface RedisRunStoreOptions {
  /** Makes a call, by the rules of who waits for it. */
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly prefix: string;
  readonly cluster: string;
  /** How long a run is kept after its end, in ms. */
  readonly retentionMs: number;
}

export function createRedisRunStore(options: RedisRunStoreOptions): RunStore {
  const { call, prefix, cluster, retentionMs } = options;
  const namesOf = new Map<string, RunNames>();
  const of = (workflow: string): RunNames => {
    const names = namesOf.get(workflow) ?? runNames(prefix, cluster, workflow);
    namesOf.set(workflow, names);
    return names;
  };
  const script = async <T>(
    what: Script,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<T> => (await call((redis) => runScript(redis, what, keys, args))) as T;

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

    async start(run): Promise<Started> {
      const { workflow, id, version, input, key = "", onExisting = "attach", parent } = run;
      const names = of(workflow);
      const [kind, other = ""] = await script<[string, string?]>(
        startScript,
        [names.run(id), names.wakes, names.index, names.cancelling, names.holder(key)],
        [
          id,
          version,
          textOf(input),
          key,
          onExisting,
          parent?.workflow ?? "",
          parent?.id ?? "",
          names.runRoot,
          names.statuses,
          run.by ?? "",
          run.retry === undefined ? "" : JSON.stringify(run.retry),
          run.origin?.uid ?? "",
          run.origin?.generation ?? "",
          run.notify ?? "",
        ],
      );
      if (kind === "created") return { kind, ...(other === "" ? {} : { replaces: other }) };
      if (kind === "attached" || kind === "rejected") return { kind, id: other };
      const known = await get(run);
      // Its time was over between the two calls.
      return known === undefined ? await this.start(run) : { kind: "exists", run: known };
    },

    async claim(ref, { lease, owner, anew = false }): Promise<Claimed> {
      const { workflow, id } = ref;
      const names = of(workflow);
      const answer = await script<string[]>(
        claimScript,
        [names.run(id), names.steps(id), names.signals(id), names.wakes],
        [lease, owner, anew ? 1 : 0, id, names.runRoot, names.statuses],
      );
      const [kind, ...others] = answer;
      const [first = "", second = ""] = others;
      switch (kind) {
        case "missing":
        case "fenced":
        case "waiting":
          return { kind };
        case "ended":
          return { kind, ...followersOf(workflow, others) };
        default: {
          const [, , , run, steps, signals] = answer as unknown as string[][];
          const lists = { run: run ?? [], steps: steps ?? [], signals: signals ?? [] };
          return { kind: "held", ...readHeld(ref, { epoch: first, now: second, ...lists }) };
        }
      }
    },

    async commit(held, step, record, { sleepMs, taken, cancels = false, warnings } = {}) {
      const { workflow, id, epoch } = held;
      const names = of(workflow);
      const [kind, text = ""] = await script<[string, string?]>(
        commitScript,
        [names.run(id), names.steps(id), names.signals(id), names.cancelling],
        [
          epoch,
          step,
          JSON.stringify(record),
          sleepMs === undefined ? "" : Math.ceil(sleepMs),
          taken === undefined ? "" : JSON.stringify(taken),
          cancels ? id : "",
          warnings === undefined ? "" : JSON.stringify(warnings),
        ],
      );
      // A signal that is gone was taken by who holds the run now.
      if (kind === "fenced" || kind === "taken") throw fenced(held);
      return JSON.parse(text) as StepRecord;
    },

    async note(held, step, { attempts, delayMs, keep = false, ...more }) {
      const names = of(held.workflow);
      const [kind, text = ""] = await script<[string, string?]>(
        noteScript,
        [names.run(held.id), names.steps(held.id)],
        [
          held.epoch,
          step,
          attempts,
          Math.ceil(delayMs),
          keep ? 1 : 0,
          Object.keys(more).length === 0 ? "" : JSON.stringify(more),
        ],
      );
      if (kind === "fenced") throw fenced(held);
      return JSON.parse(text) as Progress;
    },

    async watch(held, objects) {
      const { workflow, id, epoch } = held;
      const names = of(workflow);
      const kind = await script<string>(
        watchScript,
        [names.run(id), names.waitKinds, names.rechecks],
        [epoch, memberOf(held), id, names.waitRoot, objects.join(" ")],
      );
      if (kind === "fenced") throw fenced(held);
    },

    async leave(held, leave) {
      const { workflow, id, epoch, wakeSeq, run } = held;
      const names = of(workflow);
      const [kind, ...others] = await script<string[]>(
        leaveScript,
        [
          names.run(id),
          names.steps(id),
          names.signals(id),
          names.seen(id),
          names.wakes,
          names.ended,
          names.cancelling,
          names.holder(run.key ?? ""),
          names.index,
          names.waitKinds,
          names.rechecks,
        ],
        [
          epoch,
          leave.kind,
          untilOf(leave),
          detailOf(leave),
          id,
          wakeSeq,
          retentionMs,
          names.statuses,
          leave.kind === "parked" ? (leave.objects ?? []).join(" ") : "",
          memberOf(held),
          names.waitRoot,
        ],
      );
      if (kind === "fenced") throw fenced(held);
      return followersOf(workflow, others);
    },

    async signal({ workflow, id }, signal) {
      const names = of(workflow);
      return await script(
        signalScript,
        [names.run(id), names.signals(id), names.seen(id), names.wakes],
        [id, signal.id, JSON.stringify(signal), MAX_BUFFERED],
      );
    },

    async cancel({ workflow, id }, order) {
      const names = of(workflow);
      const keys = [names.run(id), names.wakes, names.cancelling];
      return await script(cancelScript, keys, [id, JSON.stringify(order)]);
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

    async untaken({ workflow, id }) {
      const texts = await call((redis) =>
        redis.lrange(of(workflow).signals(id), 0, MOST_UNTAKEN - 1),
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
      const keys = [wakes, ended, index, rechecks, recheckGap];
      return await script(sweepScript, keys, [SWEPT_AT_ONCE, retentionMs, statuses]);
    },

    async cancelling(workflow) {
      return new Set(await call((redis) => redis.smembers(of(workflow).cancelling)));
    },
  };
}

function fenced({ workflow, id }: RunRef): FencedError {
  return new FencedError(`another activation holds the run ${workflow}/${id}`);
}

function followersOf(
  workflow: string,
  [parentWorkflow, parentId, nextId, notify = ""]: readonly string[],
): Followers {
  const parent = refOf(parentWorkflow, parentId);
  const next = refOf(workflow, nextId);
  return {
    ...defined({ parent, next }),
    ...(notify === "" ? {} : { notify }),
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
    case "parked":
      return leave.waits === undefined ? "" : JSON.stringify(leave.waits);
    case "stuck":
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
