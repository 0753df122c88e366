import { defined } from "@konverge/core";
import type { RedisClient } from "@konverge/redis";
import type { RunRef } from "../define/run-ref.ts";
import { compareIds, fits } from "./list-runs.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { unpackRecord } from "./packed-record.ts";
import { overviewOf, readHistory, readRun, readSteps, readSummary, number } from "./run-fields.ts";
import type {
  KeptEnd,
  RetryFacts,
  RunCounts,
  RunFilter,
  RunPlace,
  RunQueries,
  StoredJournal,
} from "./run-queries.ts";
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
import { silentScript } from "./scripts/silent.ts";
import { sweepScript } from "./scripts/sweep.ts";

/** Most unconsumed signals of a response. */
const MOST_UNCONSUMED = 20;
const SWEPT_AT_ONCE = 100;
/** Most runs that a filtered list reads, in total and at a time. */
const MOST_READ = 10_000;
const READ_AT_ONCE = 500;
/** Matching runs after which a count looks at its time. */
const COUNTED_AT_ONCE = 2_000;

type Place = Required<RunPlace>;

export function createRedisRunQueries(runs: RedisRuns): RunQueries {
  const { call } = runs;
  return {
    get: (ref) => getRun(runs, ref),

    async peek({ workflow, id }) {
      const run = runs.namesOf(workflow).run(id);
      const [status, seq, round, beatAt] = await call((redis) =>
        redis.hmget(run, "status", "seq", "round", "beatAt"),
      );
      if (status == null) return undefined;
      return overviewOf(status as RunStatus, {
        steps: Number(seq),
        round: number(round),
        beatAtMs: number(beatAt),
      });
    },

    list: (workflow, page) => listRuns(runs, workflow, page),

    places: (workflow, page) => listPlaces(runs, workflow, page),

    count: (workflow, filter, how) => countRuns(runs, workflow, filter, how),

    steps: async (ref) => (await readJournal(runs, ref)).steps,
    journal: (ref) => readJournal(runs, ref),

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

    retryFacts: (ref) => retryFacts(runs, ref),
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

    overdue: (workflow) => sweep(runs, workflow),

    async silent(workflow) {
      const { silent, runRoot, stepsRoot } = runs.namesOf(workflow);
      return await runs.evaluate(silentScript, {
        keys: { silent },
        args: { most: SWEPT_AT_ONCE, runRoot, stepsRoot },
      });
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

async function sweep(
  runs: RedisRuns,
  workflow: string,
): Promise<Awaited<ReturnType<RunQueries["overdue"]>>> {
  const { wakes, ended: endedRuns, index, rechecks, recheckGap, ...names } = runs.namesOf(workflow);
  const { lastChecks, statuses, lastRoot, runRoot } = names;
  const { retentionMs, limitBytes = "" } = runs.keptOf(workflow);
  const due: string[] = [];
  const checks: string[] = [];
  let dropped = 0;
  let isMore = true;
  // A changed number of slots reaches all groups in one sweep, and a burst of ended runs does not outrun the limit.
  while (isMore) {
    const swept = await runs.evaluate(sweepScript, {
      keys: { wakes, endedRuns, index, rechecks, recheckGap, lastChecks },
      args: {
        most: SWEPT_AT_ONCE,
        retentionMs,
        limitBytes: String(limitBytes),
        statuses,
        lastRoot,
        runRoot,
      },
    });
    due.push(...swept.runs);
    checks.push(...swept.checks);
    dropped += swept.dropped;
    isMore = swept.hasRests || swept.dropped === SWEPT_AT_ONCE;
  }
  return { runs: due, ends: endsOf(checks), dropped };
}

async function readJournal(runs: RedisRuns, { workflow, id }: RunRef): Promise<StoredJournal> {
  const { steps } = runs.namesOf(workflow);
  const fields = await runs.call((redis) => redis.hgetall(steps(id)));
  return readSteps(Object.entries(fields).flat());
}

export async function getRun(runs: RedisRuns, ref: RunRef): Promise<RunView | undefined> {
  const { statuses, ...names } = runs.namesOf(ref.workflow);
  const fields = await runs.call((redis) => redis.hgetall(names.run(ref.id)));
  if (fields["status"] === undefined) return undefined;
  const run = readRun(ref, fields);
  if (run.slotWait === undefined) return run;
  const line = `${statuses}slotLine/${run.slotWait.group ?? ""}`;
  const ahead = await runs.call((redis) => redis.zrank(line, ref.id));
  return { ...run, slotWait: { ...run.slotWait, ...(ahead === null ? {} : { ahead }) } };
}

async function retryFacts(
  runs: RedisRuns,
  { workflow, id }: RunRef,
): Promise<RetryFacts | undefined> {
  const run = runs.namesOf(workflow).run(id);
  const [epoch, uid, generation, object, notify] = await runs.call((redis) =>
    redis.hmget(run, "epoch", "uid", "generation", "object", "notify"),
  );
  if (epoch == null) return undefined;
  const origin = uid
    ? {
        uid,
        ...(generation ? { generation: Number(generation) } : {}),
        ...(object ? { object } : {}),
      }
    : undefined;
  return { epoch: Number(epoch), ...defined({ origin }), ...(notify ? { notify } : {}) };
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
  const { sets, isExact } = await indexFor(runs, workflow, filter);
  // One more than requested shows whether there are more.
  const atOnce = isExact ? limit + 1 : READ_AT_ONCE;
  const summary = (id: string) =>
    readSummary({ workflow, id }, (fields) =>
      runs.call((redis) => redis.hmget(names.run(id), ...fields)),
    );
  const found: RunSummary[] = [];
  let place = from;
  for (let read = 0; read < MOST_READ; read += atOnce) {
    const places = await placesIn(runs, sets, { from: place, filter, count: atOnce });
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

async function listPlaces(
  runs: RedisRuns,
  workflow: string,
  page: Parameters<RunQueries["places"]>[1],
): ReturnType<RunQueries["places"]> {
  const { limit, from, filter } = page;
  const { sets, isExact } = await indexFor(runs, workflow, filter);
  if (!isExact) {
    const { runs: places, ...more } = await listRuns(runs, workflow, page);
    return { places, ...more };
  }
  const places = await placesIn(runs, sets, { from, filter, count: limit });
  const next = places.length < limit ? undefined : places.at(-1);
  return { places, ...defined({ next }) };
}

async function countRuns(
  runs: RedisRuns,
  workflow: string,
  filter: RunFilter,
  { from, isOver = () => false }: NonNullable<Parameters<RunQueries["count"]>[2]> = {},
): ReturnType<RunQueries["count"]> {
  const { sets, isExact } = await indexFor(runs, workflow, filter);
  if (isExact && from === undefined) return { count: await sizeOf(runs, sets, filter) };
  let count = 0;
  let place = from;
  do {
    const page = { limit: COUNTED_AT_ONCE, filter, ...defined({ from: place }) };
    const { runs: found, next } = await listRuns(runs, workflow, page);
    count += found.length;
    place = next;
  } while (place !== undefined && !isOver());
  return { count, ...defined({ next: place }) };
}

/** Sorted sets whose union has all matching runs. */
interface Index {
  readonly sets: readonly string[];
  /** True if it has no other runs. */
  readonly isExact: boolean;
}

/** Returns the smallest index that has all matching runs, at the cost of one count per set. */
async function indexFor(runs: RedisRuns, workflow: string, filter: RunFilter): Promise<Index> {
  const { status, labels = {}, sinceMs: _since, untilMs: _until, ...rest } = filter;
  const { statuses: wanted = status === undefined ? undefined : [status], ...others } = rest;
  const { index, statuses } = runs.namesOf(workflow);
  const isExact = Object.values(others).every((each) => each === undefined);
  const indexes = [
    ...(wanted === undefined ? [] : [wanted.map((each) => `${statuses}${each}`)]),
    ...Object.entries(labels).map(([name, value]) => [`${statuses}label/${name}=${value}`]),
  ];
  const [first = [index], ...more] = indexes;
  if (more.length === 0) return { sets: first, isExact };
  const sized = await Promise.all(
    indexes.map(async (sets) => ({ sets, size: await sizeOf(runs, sets, filter) })),
  );
  const [smallest] = sized.toSorted((a, b) => a.size - b.size);
  return { sets: smallest?.sets ?? first, isExact: false };
}

/** Counts the runs of sets that have none in common. */
async function sizeOf(
  { call }: RedisRuns,
  sets: readonly string[],
  { sinceMs = -Infinity, untilMs }: RunFilter,
): Promise<number> {
  const until = untilMs === undefined ? "+inf" : `(${untilMs}`;
  const sizes = await readAtOnce<number>(call, (reads) => {
    for (const set of sets) reads.zcount(set, sinceMs, until);
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Reads at most `count` places after `from` in the union of sorted sets, newest first. A run that moves from one of the sets to
 * another one meanwhile is found once.
 */
async function placesIn(
  { call }: RedisRuns,
  sets: readonly string[],
  {
    from,
    filter: { sinceMs = -Infinity, untilMs = Infinity },
    count,
  }: { readonly from: RunPlace | undefined; readonly filter: RunFilter; readonly count: number },
): Promise<readonly Place[]> {
  const { createdAtMs = Infinity, id } = from ?? {};
  const beforeMs = Math.min(createdAtMs, untilMs);
  const older = beforeMs === Infinity ? "+inf" : `(${beforeMs}`;
  const found = await readAtOnce<string[]>(call, (reads) => {
    for (const set of sets) {
      if (id !== undefined) reads.zrevrangebyscore(set, createdAtMs, createdAtMs, "WITHSCORES");
      reads.zrevrangebyscore(set, older, sinceMs, "WITHSCORES", "LIMIT", 0, count);
    }
  });
  const places = found.flatMap(parsePlaces);
  const isAfter = (place: Place) =>
    place.createdAtMs !== createdAtMs || id === undefined || compareIds(place.id, id) < 0;
  return places
    .filter(isAfter)
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs || compareIds(b.id, a.id))
    .slice(0, count);
}

/** Makes several reads of one moment, in one round trip. */
async function readAtOnce<Reply>(
  call: RedisRuns["call"],
  queue: (reads: ReturnType<RedisClient["multi"]>) => void,
): Promise<Reply[]> {
  const replies = await call((redis) => {
    const reads = redis.multi();
    queue(reads);
    return reads.exec();
  });
  return (replies ?? []).map(([error, reply]) => {
    if (error !== null) throw error;
    return reply as Reply;
  });
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
