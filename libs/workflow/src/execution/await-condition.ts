import {
  defined,
  ensureError,
  isKonvergeError,
  KonvergeError,
  type ApiObject,
} from "@konverge/core";
import { ignoreNotFound } from "@konverge/kube";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { Advance } from "./advance.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import {
  judge,
  targetsOf,
  type AnyCondition,
  type Sighting,
  type Verdict,
} from "../define/wait-condition.ts";
import { invalidCondition, nameOf, type WaitTarget } from "../define/wait-target.ts";
import { objectKeyOf } from "../store/wait-names.ts";

/** Most objects of one wait. Each wake-up reads all of them. */
const MAX_OBJECTS = 100;
const READ_AT_ONCE = 16;
/** Delay before unreadable objects are read again, in ms. */
const UNREADABLE_AGAIN_MS = 10_000;
const MAX_MESSAGE = 300;

export interface AwaitOptions {
  readonly clusters: ClusterAccess;
  readonly condition: AnyCondition;
  readonly timeoutMs: number | undefined;
  /** How long a failure must last before the wait fails; `Infinity` waits for its end. */
  readonly failFastMs: number;
  /** Fails if the spec of an object has changed since the step. */
  readonly failsOnNewSpec: boolean;
}

/**
 * Checks the condition once. The run is registered in the index of waits before the objects are read, so that every later
 * change wakes it.
 */
export async function awaitCondition(
  journal: RunJournal,
  key: string,
  options: AwaitOptions,
): Promise<Advance> {
  const { clusters, condition, timeoutMs, failFastMs } = options;
  const cancelled = await journal.throwCancel(key, "wait");
  if (cancelled !== undefined) return cancelled;
  const targets = distinctTargets(condition, clusters.home);
  const objects = [...targets.keys()];
  await journal.watch(objects);
  const sightings = await readAll(journal, targets, clusters);
  const found = judge(condition, ({ target, judge: judgeObject }) => {
    const sighting = sightings.get(objectKeyOf(target, clusters.home));
    if (sighting === undefined) return { kind: "pending", message: `${nameOf(target)}: not read` };
    if ("error" in sighting) return unreadable(target, sighting.error, journal.nowMs());
    if (options.failsOnNewSpec && isSuperseded(target, sighting.object)) {
      const message = `${nameOf(target)}: the spec was changed after the step, to generation ${sighting.object?.metadata.generation}`;
      return { kind: "failed", code: "superseded", message };
    }
    return judgeObject(sighting);
  });
  const verdict = await hold(journal, key, found, failFastMs);
  switch (verdict.kind) {
    case "met":
      return await journal.commit(key, { kind: "wait", value: verdict.value });
    case "failing":
    case "failed": {
      const error = { code: verdict.code, message: clip(verdict.message) };
      return await journal.commit(key, { kind: "wait", error });
    }
    case "pending":
      break;
  }
  const message = clip(verdict.message);
  const { againAtMs } = verdict;
  if (timeoutMs === undefined) return { waitUntilMs: againAtMs, message, objects };
  // The first check sets the deadline, also for executions after a crash.
  const { untilMs } =
    journal.progressOf(key) ??
    (await journal.note(key, { attempts: 0, delayMs: timeoutMs, keep: true }));
  if (untilMs > journal.nowMs()) {
    return { waitUntilMs: Math.min(untilMs, againAtMs ?? Infinity), message, objects };
  }
  const error = { code: "wait_timeout", message: `not within ${timeoutMs / 1_000} s: ${message}` };
  return await journal.commit(key, { kind: "wait", error });
}

function distinctTargets(condition: AnyCondition, home: string): Map<string, WaitTarget> {
  const targets = new Map(
    targetsOf(condition).map((target) => [objectKeyOf(target, home), target] as const),
  );
  if (targets.size <= MAX_OBJECTS) return targets;
  throw invalidCondition(
    `one wait has ${targets.size} objects, the limit is ${MAX_OBJECTS}; split the wait into child workflows`,
  );
}

/** Turns a failure that has not lasted long enough into a recheck. The journal has the time at which it began. */
async function hold(
  journal: RunJournal,
  key: string,
  verdict: Verdict,
  failFastMs: number,
): Promise<Verdict> {
  const note = `${key}!failing`;
  const noted = journal.progressOf(note);
  const isNoted = noted?.attempts === 1;
  if (verdict.kind !== "failing") {
    if (isNoted && verdict.kind === "pending") {
      await journal.note(note, { attempts: 0, delayMs: 0 });
    }
    return verdict;
  }
  if (failFastMs === 0) return verdict;
  const { message } = verdict;
  if (failFastMs === Infinity) return { kind: "pending", message };
  const { untilMs } = isNoted
    ? noted
    : await journal.note(note, { attempts: 1, delayMs: failFastMs });
  if (untilMs <= journal.nowMs()) {
    // A retry of the step starts the time again.
    await journal.note(note, { attempts: 0, delayMs: 0 });
    return verdict;
  }
  return { kind: "pending", message, againAtMs: untilMs };
}

type Read = Sighting | { readonly error: Error };

async function readAll(
  journal: RunJournal,
  targets: ReadonlyMap<string, WaitTarget>,
  clusters: ClusterAccess,
): Promise<ReadonlyMap<string, Read>> {
  const reads = new Map<string, Read>();
  const left = targets.entries();
  const reader = async (): Promise<void> => {
    for (const [key, target] of left) {
      reads.set(key, await read(journal, target, clusters));
    }
  };
  await Promise.all(Array.from({ length: READ_AT_ONCE }, reader));
  return reads;
}

async function read(
  journal: RunJournal,
  target: WaitTarget,
  clusters: ClusterAccess,
): Promise<Read> {
  const { cluster = clusters.home, apiVersion, kind, namespace, name } = target;
  try {
    const client = (await clusters.client(cluster)).scoped({ signal: journal.stopped });
    const type = await client.resolveType(apiVersion, kind);
    const where = { name, ...defined({ namespace }) };
    const object = await client.get(type, where).catch(ignoreNotFound);
    return { object, isSensitive: client.isSensitive(type), nowMs: journal.nowMs() };
  } catch (thrown) {
    if (journal.stopped.aborted) throw thrown;
    return { error: ensureError(thrown) };
  }
}

/** A failed read is not a failure of the object; it is repeated. */
function unreadable(target: WaitTarget, error: Error, nowMs: number): Verdict {
  const retryAfterMs = isKonvergeError(error) ? (error.retryAfterMs ?? 0) : 0;
  return {
    kind: "pending",
    message: `${nameOf(target)}: cannot be read: ${error.message}`,
    againAtMs: nowMs + Math.max(UNREADABLE_AGAIN_MS, retryAfterMs),
  };
}

/** Ignores a replaced object, which has its own verdict, and a deletion, which raises the generation too. */
function isSuperseded({ uid, generation }: WaitTarget, object: ApiObject | undefined): boolean {
  if (generation === undefined || object === undefined) return false;
  const { metadata } = object;
  if (uid !== undefined && metadata.uid !== uid) return false;
  return metadata.deletionTimestamp === undefined && (metadata.generation ?? 0) > generation;
}

function clip(message: string): string {
  return message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 1)}…`;
}

/** @throws KonvergeError `invalid_workflow` without access to an API server */
export function assertAccess(
  name: string,
  clusters: ClusterAccess | undefined,
): asserts clusters is ClusterAccess {
  if (clusters !== undefined) return;
  throw new KonvergeError(
    "invalid_workflow",
    `"${name}" waits for objects, but this process has no API server; configure one, in testWorkflow as kube`,
  );
}
