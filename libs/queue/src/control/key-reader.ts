import { defined, isFinal, KonvergeError, type OutcomeKind } from "@konverge/core";
import type { RedisClient } from "@konverge/redis";
import { decodeAttempt } from "../attempt/attempt-entry.ts";
import { decodePause, pauseFieldsOf } from "../contract/pause-scope.ts";
import type { OperatorAction } from "../contract/pause.ts";
import { decodeTriggers } from "../scripts/begun.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { parseRequestId } from "../keys/request-id.ts";
import type { KeyState } from "../contract/key-state.ts";
import type { RequestState, StoredAttempt } from "../contract/work-queue.ts";

/** Reads what Redis knows about keys, requests and attempts. Changes nothing. */
export interface KeyReader {
  getKey(id: string): Promise<KeyState | undefined>;
  getRequest(requestId: string): Promise<RequestState>;
  listAttempts(id: string, limit: number): Promise<StoredAttempt[]>;
}

type Hash = Readonly<Record<string, string>>;
/** Attempts per round trip; each may carry a record of 16 KiB. */
const PAGE = 8;

/** Lines of the field `run` before its triggers. */
const RUN_LINES = 6;

export function createKeyReader(redis: RedisClient, names: QueueNames): KeyReader {
  const readHash = async (id: string): Promise<Hash | undefined> => {
    const hash = await redis.hgetall(names.keyHash(id));
    return Object.keys(hash).length === 0 ? undefined : hash;
  };

  /** Attempts that began at or after a request, oldest first; read from the newest on. */
  const attemptsSince = async (id: string, number: number): Promise<StoredAttempt[]> => {
    const found: StoredAttempt[] = [];
    for (;;) {
      const page = await readAttempts(id, found.length, PAGE);
      const own = page.filter(({ covered }) => covered >= number);
      found.push(...own);
      if (own.length < PAGE) return found.toReversed();
    }
  };
  const readAttempts = async (id: string, from: number, count: number) => {
    const entries = await redis.lrange(names.attempts(id), from, from + count - 1);
    return entries.map(decodeAttempt);
  };

  /** The narrowest that holds the key back. */
  const readPause = async (id: string): Promise<BesideHash["pause"]> => {
    const fields = pauseFieldsOf(id);
    const notes = await redis.hmget(names.pauses, ...fields);
    const at = notes.findIndex((note) => note !== null);
    return at === -1 ? undefined : [fields[at] ?? "", notes[at] ?? ""];
  };

  return {
    async getKey(id) {
      const [hash, timer, pause] = await Promise.all([
        readHash(id),
        redis.zscore(names.timers, id),
        readPause(id),
      ]);
      if (hash === undefined) return undefined;
      return keyStateOf(id, hash, { timerMs: timer === null ? undefined : Number(timer), pause });
    },

    async getRequest(requestId) {
      const { key, number } = parseRequestId(requestId);
      const hash = await readHash(key);
      if (hash === undefined || number > int(hash["number"])) {
        throw new KonvergeError("not_found", `there is no request "${requestId}"`);
      }
      // Somebody who waits for a request asks often: as long as no attempt has begun, the hash says it all.
      const begun = int(hash["covered"]) >= number;
      const attempts = begun ? await attemptsSince(key, number) : [];
      const state = requestStateOf(requestId, key, number, hash, attempts);
      const note =
        hash["cancels"] === "1" ? await redis.hget(names.cancelled(key), String(number)) : null;
      if (note !== null) return cancelledStateOf(state, note, hash, attempts);
      const pause = state.phase === "waiting" ? await readPause(key) : undefined;
      return pause === undefined ? state : { ...state, paused: decodePause(...pause) };
    },

    listAttempts: (id, limit) => readAttempts(id, 0, limit),
  };
}

/** What of a key's hash a list shows. */
export const HASH_FIELDS: readonly string[] = [
  "owner",
  "dead",
  "death",
  "hold",
  "nextAt",
  "number",
  "covered",
  "finished",
  "epoch",
  "failures",
  "conflicts",
  "outcome",
];

/** What lies beside the hash of a key: its timer, and the pause that holds it back, as field and note. */
interface BesideHash {
  readonly timerMs: number | undefined;
  readonly pause: readonly [field: string, note: string] | undefined;
}

export function keyStateOf(id: string, hash: Hash, { timerMs, pause }: BesideHash): KeyState {
  const hold = hash["hold"] ?? "";
  const nextMs = hold === "" ? timerMs : int(hash["nextAt"]);
  const outcome = lastOutcomeOf(hash);
  return {
    key: id,
    phase: phaseOf(hash, pause !== undefined),
    requested: int(hash["number"]),
    covered: int(hash["covered"]),
    finished: int(hash["finished"]),
    epoch: int(hash["epoch"]),
    failures: int(hash["failures"]),
    conflicts: int(hash["conflicts"]),
    ...defined({ lastOutcome: outcome }),
    ...(nextMs === undefined || nextMs === 0 ? {} : { nextAt: new Date(nextMs).toISOString() }),
    ...(pause === undefined ? {} : { paused: decodePause(...pause) }),
    ...(hash["dead"] === "1" ? { deadLetter: deathOf(hash["death"] ?? "") } : {}),
    triggers: decodeTriggers(latestTriggers(hash)),
  };
}

/** Of what is asked; else of what runs or ran last. */
function latestTriggers(hash: Hash): string[] {
  const asked = int(hash["pending"]) > 0;
  const lines = (asked ? hash["ask"] : hash["run"])?.split("\n") ?? [];
  return lines.slice(asked ? 1 : RUN_LINES);
}

/** The end of the attempt that the key died of. */
function deathOf(entry: string): NonNullable<KeyState["deadLetter"]> {
  const { endedAtMs, error } = decodeAttempt(`${entry}\n`);
  return { since: new Date(endedAtMs).toISOString(), ...defined({ error }) };
}

/** A pause lets what runs come to its end, and holds back all else. */
function phaseOf(hash: Hash, paused: boolean): KeyState["phase"] {
  if (hash["owner"]) return "running";
  if (hash["dead"] === "1") return "deadLettered";
  if (paused) return "paused";
  if (hash["hold"]) return "backoff";
  return int(hash["finished"]) < int(hash["number"]) ? "waiting" : "idle";
}

/** A lost attempt has no outcome: nobody was left to say one. */
function lastOutcomeOf(hash: Hash): OutcomeKind | undefined {
  const outcome = hash["outcome"];
  return outcome === undefined || outcome === "lost" ? undefined : (outcome as OutcomeKind);
}

function requestStateOf(
  requestId: string,
  key: string,
  number: number,
  hash: Hash,
  attempts: readonly StoredAttempt[],
): RequestState {
  const finished = int(hash["finished"]) >= number;
  const running = Boolean(hash["owner"]) && int(hash["covered"]) >= number;
  const own = attempts.filter(({ covered }) => covered >= number);
  // A request ends with the first final outcome; the last attempt of a dead key may have failed in another way.
  const ending = own.findIndex(({ outcome }) => isFinal(outcome));
  const tried = finished && ending !== -1 ? own.slice(0, ending + 1) : own;
  const last = tried.at(-1);
  const base = {
    id: requestId,
    key,
    phase: phaseOfRequest(finished, running),
    attempts: tried.length + (!finished && running ? 1 : 0),
    ...(last === undefined || last.outcome === "lost" ? {} : { outcome: last.outcome }),
    ...(last?.error === undefined ? {} : { error: last.error }),
  };
  if (!finished) return base;
  const endedAtMs = last?.endedAtMs ?? int(hash["endedAt"]);
  return { ...base, finishedAt: new Date(endedAtMs).toISOString() };
}

/** A request that a person withdrew: over at once, or when the attempt that it was the last reason for has ended. */
function cancelledStateOf(
  state: RequestState,
  note: string,
  hash: Hash,
  attempts: readonly StoredAttempt[],
): RequestState {
  const cancel = JSON.parse(note) as OperatorAction & {
    readonly atMs: number;
    readonly epoch?: number;
  };
  const { atMs, epoch, by, reason } = cancel;
  if (epoch !== undefined && hash["owner"] && int(hash["epoch"]) === epoch) return state;
  const aborted = attempts.find(({ id }) => id === String(epoch));
  const done = aborted !== undefined && isFinal(aborted.outcome);
  const tried = attempts.filter(({ endedAtMs }) => endedAtMs <= (aborted?.endedAtMs ?? atMs));
  return {
    id: state.id,
    key: state.key,
    phase: "finished",
    attempts: tried.length,
    finishedAt: new Date(aborted?.endedAtMs ?? atMs).toISOString(),
    // It was quicker than the cancellation.
    ...(done && aborted.outcome !== "lost"
      ? { outcome: aborted.outcome }
      : { outcome: "cancelled" }),
    ...(done ? {} : { error: { code: "cancelled", message: `by ${by}: ${reason}` } }),
  };
}

function phaseOfRequest(finished: boolean, running: boolean): RequestState["phase"] {
  if (finished) return "finished";
  return running ? "running" : "waiting";
}

function int(text: string | undefined): number {
  return Number(text ?? "") || 0;
}
