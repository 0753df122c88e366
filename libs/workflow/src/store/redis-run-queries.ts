import { defined } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { compareIds, fits } from "./list-runs.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { unpackRecord } from "./packed-record.ts";
import { overviewOf, readHistory, readRun, readSteps, readSummary } from "./run-fields.ts";
import type { KeptEnd, RunCounts, RunFilter, RunPlace, RunQueries } from "./run-queries.ts";
import {
  RUN_STATUSES,
  withoutPayload,
  type NumberedCancel,
  type BufferedSignal,
  type LogLine,
  type RefusedSignal,
  type RunStatus,
  type RunSummary,
  type RunView,
  type StepRecord,
} from "./run-record.ts";
import type { UpdateAnswer, UpdateRefusal } from "./run-updates.ts";
import { sweepScript } from "./scripts/sweep.ts";

/** Most unconsumed signals of a response. */
const MOST_UNCONSUMED = 20;
const SWEPT_AT_ONCE = 100;
/** Most runs that a filtered list reads, in total and at a time. */
const MOST_READ = 10_000;
const READ_AT_ONCE = 500;

type Place = Required<RunPlace>;

export function createRedisRunQueries(runs: RedisRuns): RunQueries {
  const { call } = runs;
  return {
    get: (ref) => getRun(runs, ref),

    async peek({ workflow, id }) {
      const run = runs.namesOf(workflow).run(id);
      const [status, seq, round] = await call((redis) =>
        redis.hmget(run, "status", "seq", "round"),
      );
      if (status == null) return undefined;
      return overviewOf(status as RunStatus, Number(seq), round ? Number(round) : undefined);
    },

    list: (workflow, page) => listRuns(runs, workflow, page),

    async steps({ workflow, id }) {
      const fields = await call((redis) => redis.hgetall(runs.namesOf(workflow).steps(id)));
      return readSteps(Object.entries(fields).flat()).steps;
    },

    async history(ref) {
      const names = runs.namesOf(ref.workflow);
      // In this order: a run that ends in between has more records than its status shows, not fewer.
      const [fields, steps] = await Promise.all([
        call((redis) => redis.hgetall(names.run(ref.id))),
        call((redis) => redis.hgetall(names.steps(ref.id))),
      ]);
      if (fields["status"] === undefined) return undefined;
      return readHistory(ref, fields, Object.entries(steps).flat());
    },

    async unconsumedSignals({ workflow, id }) {
      const signals = runs.namesOf(workflow).signals(id);
      const all = await call((redis) => redis.hkeys(signals));
      const oldest = all.toSorted((a, b) => Number(a) - Number(b)).slice(0, MOST_UNCONSUMED);
      if (oldest.length === 0) return [];
      const texts = await call((redis) => redis.hmget(signals, ...oldest));
      return texts.flatMap((text) =>
        text === null ? [] : [withoutPayload(JSON.parse(text) as BufferedSignal)],
      );
    },

    async refusedSignals({ workflow, id }) {
      const names = runs.namesOf(workflow);
      const [count, last] = await Promise.all([
        call((redis) => redis.hget(names.run(id), "refusedCount")),
        call((redis) => redis.lrange(names.refusals(id), 0, -1)),
      ]);
      return {
        count: Number(count ?? 0),
        last: last.map((text) => JSON.parse(text) as RefusedSignal),
      };
    },

    async logs({ workflow, id }) {
      const texts = await call((redis) => redis.lrange(runs.namesOf(workflow).logs(id), 0, -1));
      return texts.map((text) => JSON.parse(text) as LogLine);
    },

    answerTo: (ref, updateId) => answerTo(runs, ref, updateId),

    async counts(workflow) {
      const { statuses } = runs.namesOf(workflow);
      const counted = await Promise.all(
        RUN_STATUSES.map(async (status): Promise<[RunStatus, number]> => {
          return [status, await call((redis) => redis.zcard(`${statuses}${status}`))];
        }),
      );
      return Object.fromEntries(counted) as RunCounts;
    },

    async overdue(workflow) {
      const { wakes, ended, index, statuses, rechecks, recheckGap, lastChecks, lastRoot } =
        runs.namesOf(workflow);
      const due = await runs.evaluate(sweepScript, {
        keys: { wakes, endedRuns: ended, index, rechecks, recheckGap, lastChecks },
        args: { most: SWEPT_AT_ONCE, retentionMs: runs.retentionMs, statuses, lastRoot },
      });
      return { runs: due.runs, ends: endsOf(due.checks) };
    },

    async fences(workflow) {
      const epochs = await call((redis) => redis.hgetall(runs.namesOf(workflow).fences));
      return new Map(Object.entries(epochs).map(([id, epoch]) => [id, Number(epoch)]));
    },

    async pausing(workflow) {
      const { statuses } = runs.namesOf(workflow);
      return new Set(await call((redis) => redis.zrange(`${statuses}pausing`, "0", "-1")));
    },

    async cancelling(workflow) {
      const texts = await call((redis) => redis.hgetall(runs.namesOf(workflow).cancelling));
      return new Map(
        Object.entries(texts).map(([id, text]) => [id, JSON.parse(text) as NumberedCancel]),
      );
    },
  };
}

export async function getRun(runs: RedisRuns, ref: RunRef): Promise<RunView | undefined> {
  const fields = await runs.call((redis) => redis.hgetall(runs.namesOf(ref.workflow).run(ref.id)));
  return fields["status"] === undefined ? undefined : readRun(ref, fields);
}

async function answerTo(
  runs: RedisRuns,
  { workflow, id }: RunRef,
  updateId: string,
): Promise<UpdateAnswer | undefined> {
  const { call } = runs;
  const { answers, steps } = runs.namesOf(workflow);
  const text = await call((redis) => redis.hget(answers(id), updateId));
  if (text === null) return undefined;
  const answer = JSON.parse(text) as {
    readonly step?: string;
    readonly record?: string;
    readonly refusal?: UpdateRefusal;
  };
  const { step = "", refusal } = answer;
  if (refusal !== undefined) return { kind: "refused", refusal };
  // The record of an earlier round is kept with the answer.
  const record = answer.record ?? (await call((redis) => redis.hget(steps(id), step)));
  if (record === null) return undefined;
  const { value } = unpackRecord(JSON.parse(record) as StepRecord).record;
  return { kind: "accepted", step, ...defined({ value }) };
}

async function listRuns(
  runs: RedisRuns,
  workflow: string,
  { limit, from, filter }: Parameters<RunQueries["list"]>[1],
): ReturnType<RunQueries["list"]> {
  const names = runs.namesOf(workflow);
  const { index, isExact } = await indexFor(runs, workflow, filter);
  // One more than requested shows whether there are more.
  const atOnce = isExact ? limit + 1 : READ_AT_ONCE;
  const summary = (id: string) =>
    readSummary({ workflow, id }, (fields) =>
      runs.call((redis) => redis.hmget(names.run(id), ...fields)),
    );
  const found: RunSummary[] = [];
  let place = from;
  for (let read = 0; read < MOST_READ; read += atOnce) {
    const places = await placesIn(runs, index, { from: place, filter, count: atOnce });
    const summaries = await Promise.all(places.map(({ id }) => summary(id)));
    for (const [at, run] of summaries.entries()) {
      place = places[at];
      // The index keeps a run slightly longer than its data, and the run may have changed since.
      if (run !== undefined && fits(run, filter)) found.push(run);
      if (found.length < limit) continue;
      const isLast = at + 1 === places.length && places.length < atOnce;
      return { runs: found, ...(isLast || place === undefined ? {} : { next: place }) };
    }
    if (places.length < atOnce) return { runs: found };
  }
  return { runs: found, ...defined({ next: place }) };
}

/**
 * Returns the smallest of the sorted sets that have all matching runs, at the cost of one count per set. `isExact`: it has no
 * other runs.
 */
async function indexFor(
  runs: RedisRuns,
  workflow: string,
  { status, labels = {}, sinceMs = -Infinity, untilMs, ...others }: RunFilter,
): Promise<{ readonly index: string; readonly isExact: boolean }> {
  const { index, statuses } = runs.namesOf(workflow);
  const isExact = Object.values(others).every((wanted) => wanted === undefined);
  const sets = [
    ...(status === undefined ? [] : [`${statuses}${status}`]),
    ...Object.entries(labels).map(([name, value]) => `${statuses}label/${name}=${value}`),
  ];
  const [first = index, ...more] = sets;
  if (more.length === 0) return { index: first, isExact };
  const until = untilMs === undefined ? "+inf" : `(${untilMs}`;
  const sized = await Promise.all(
    sets.map(async (set) => ({
      set,
      size: await runs.call((redis) => redis.zcount(set, sinceMs, until)),
    })),
  );
  const [smallest] = sized.toSorted((a, b) => a.size - b.size);
  return { index: smallest?.set ?? first, isExact: false };
}

/** Reads at most `count` places after `from` in the sorted set `index`, newest first. */
async function placesIn(
  { call }: RedisRuns,
  index: string,
  {
    from,
    filter: { sinceMs = -Infinity, untilMs = Infinity },
    count,
  }: { readonly from: RunPlace | undefined; readonly filter: RunFilter; readonly count: number },
): Promise<readonly Place[]> {
  const { createdAtMs = Infinity, id } = from ?? {};
  const beforeMs = Math.min(createdAtMs, untilMs);
  const older = beforeMs === Infinity ? "+inf" : `(${beforeMs}`;
  const [same, next] = await Promise.all([
    id === undefined
      ? []
      : call((redis) => redis.zrevrangebyscore(index, createdAtMs, createdAtMs, "WITHSCORES")),
    call((redis) => redis.zrevrangebyscore(index, older, sinceMs, "WITHSCORES", "LIMIT", 0, count)),
  ]);
  const ties = parsePlaces(same).filter((place) => compareIds(place.id, id ?? "") < 0);
  return [...ties, ...parsePlaces(next)].slice(0, count);
}

function endsOf(flat: readonly string[]): readonly KeptEnd[] {
  return flat.flatMap((key, at) => (at % 2 === 0 ? [{ key, object: flat[at + 1] ?? "" }] : []));
}

/** Parses a WITHSCORES reply. */
function parsePlaces(flat: readonly string[]): readonly Place[] {
  return flat.flatMap((id, at) =>
    at % 2 === 0 ? [{ id, createdAtMs: Number(flat[at + 1]) }] : [],
  );
}
