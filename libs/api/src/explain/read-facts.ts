import { formatKey, parseKey, type ObjectKey } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import { parseRunId } from "@konverge/workflow";
import { covers, type Caller } from "../access/caller.ts";
import { sourceViews } from "../inbound/source-list.ts";
import { keyItem } from "../queues/key-item.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readRecord } from "../queues/read-record.ts";
import { placeIn } from "../runs/find-run.ts";
import { runItem } from "../runs/run-view.ts";
import { readContention } from "../views/history-view.ts";
import { readLiveObject } from "../views/live-object.ts";
import { findKey, type Target } from "../views/object-view.ts";
import { visibleWorker } from "../views/visible-worker.ts";
import type { ObjectFacts } from "./object-facts.ts";

/** The attempts that an explanation considers. */
const ATTEMPTS = 10;
/** Each run is one read. */
const MOST_RUNS = 5;

export interface FactsInput {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly caller: Caller;
  /** Ends the read of the object. */
  readonly signal: AbortSignal;
}

/** Reads the facts about an object with a bounded number of calls of Redis, and one read by a worker. */
export async function readFacts(input: FactsInput, target: Target): Promise<ObjectFacts> {
  const { access, guards, caller, signal } = input;
  const { queue, key } = await findKey(access, target);
  const { cluster } = key;
  // In this order: an attempt that handles this object, or has ended since, is then in the state or the list of attempts.
  const live = await readLiveObject(access, caller, key, signal);
  const state = await queue.getKey(key);
  const [stored, contention, workers, counts, guard, restore, sources] = await Promise.all([
    queue.listAttempts(key, { limit: ATTEMPTS }),
    readContention(access, key),
    access.workers(cluster),
    queue.counts(),
    guards.read(cluster),
    access.restore.read(cluster),
    readSources(access, key),
  ]);
  const attempts = stored.map((attempt) => readRecord(formatKey(key), queue.controller, attempt));
  return {
    nowMs: Date.now(),
    key: parseKey(formatKey(key)),
    state: state === undefined ? undefined : keyItem(state),
    attempts,
    contention,
    workers: workers.map((worker) => visibleWorker(worker, caller, cluster)),
    queue: counts,
    guard,
    restore,
    sources,
    runs: await readRuns(input, key, attempts),
    live,
  };
}

async function readSources(access: QueueAccess, key: ObjectKey): Promise<ObjectFacts["sources"]> {
  const found = await access.sources(key.cluster);
  const own = found.controllers.filter(({ name }) => name === key.controller);
  return own.length === 0 ? [] : sourceViews(own, await found.store.reports());
}

/** Reads the runs of the newest attempt that has any, in the scope of the caller. */
async function readRuns(
  { access, caller }: FactsInput,
  { cluster }: ObjectKey,
  attempts: ObjectFacts["attempts"],
): Promise<ObjectFacts["runs"]> {
  const started = attempts.find(({ runs = [] }) => runs.length > 0)?.runs ?? [];
  const refs = [...new Set(started.map(({ id }) => id))]
    .map(parseRunId)
    .filter(
      (ref) => ref.cluster === cluster && covers(caller.scope, placeIn(cluster, ref.workflow)),
    );
  if (refs.length === 0) return [];
  const { workflows } = await access.runs(cluster);
  const found = await Promise.all(refs.slice(0, MOST_RUNS).map((ref) => workflows.get(ref)));
  return found.flatMap((run) => (run === undefined ? [] : [runItem(run, cluster)]));
}
