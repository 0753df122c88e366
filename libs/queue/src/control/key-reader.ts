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

/** Reads the state of keys, requests and attempts. */
export interface KeyReader {
  getKey(id: string): Promise<KeyState | undefined>;
  getRequest(requestId: string): Promise<RequestState>;
  listAttempts(id: string, limit: number): Promise<StoredAttempt[]>;
}

type Hash = Readonly<Record<string, string>>;
/** Attempts per round trip; each may have a record of 16 KiB. */
const PAGE = 8;

/** Lines of the field `run` before its triggers. */
const RUN_LINES = 6;

export function createKeyReader(redis: RedisClient, names: QueueNames): KeyReader {
  const readHash = async (id: string): Promise<Hash | undefined> => {
    const hash = await redis.hgetall(names.keyHash(id));
    return Object.keys(hash).length === 0 ? undefined : hash;
  };

  /** Returns the attempts that began at or after a request, oldest first. Reads from the newest on. */
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
    return entries.map((entry) => decodeAttempt(id, entry));
  };

  /** Returns the note of a cancelled request. */
  const readCancellation = async (id: string, number: number): Promise<string | undefined> => {
    const [member] = await redis.zrangebyscore(names.cancelled(id), number, number);
    return member?.slice(member.indexOf(" ") + 1);
  };

  /** Returns the narrowest pause of the key. */
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
        throw new KonvergeError("not_found", `request "${requestId}" does not exist`);
      }
      // Waiting callers poll often; until an attempt begins, the hash is sufficient.
      const begun = int(hash["covered"]) >= number;
      const attempts = begun ? await attemptsSince(key, number) : [];
      const state = requestStateOf(requestId, key, number, hash, attempts);
      const note = hash["cancels"] === "1" ? await readCancellation(key, number) : undefined;
      if (note !== undefined) return cancelledStateOf(state, note, hash, attempts);
      const pause = state.phase === "waiting" ? await readPause(key) : undefined;
      return pause === undefined ? state : { ...state, paused: decodePause(...pause) };
    },

    listAttempts: (id, limit) => readAttempts(id, 0, limit),
  };
}

/** The fields of a key's hash that a list needs. */
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

/** State outside of a key's hash: its timer, and its pause as field and note. */
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

/** Returns the triggers of pending requests, else those of the attempt. A key at rest has none. */
function latestTriggers(hash: Hash): string[] {
  const asked = int(hash["pending"]) > 0;
  const lines = (asked ? hash["ask"] : hash["run"])?.split("\n") ?? [];
  return lines.slice(asked ? 1 : RUN_LINES);
}

/** Returns the start and cause of the dead-lettering from the entry of its attempt. */
function deathOf(entry: string): NonNullable<KeyState["deadLetter"]> {
  const { endedAtMs, error } = decodeAttempt("", `${entry}\n`);
  return { since: new Date(endedAtMs).toISOString(), ...defined({ error }) };
}

/** Running and dead-lettered keys have precedence over a pause. */
function phaseOf(hash: Hash, paused: boolean): KeyState["phase"] {
  if (hash["owner"]) return "running";
  if (hash["dead"] === "1") return "deadLettered";
  if (paused) return "paused";
  if (hash["hold"]) return "backoff";
  return int(hash["finished"]) < int(hash["number"]) ? "waiting" : "idle";
}

/** Returns the last outcome; undefined for a lost attempt, which has none. */
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
  // A request ends with the first final outcome; a dead-lettered key may have a different last outcome.
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

/** Returns the state of a cancelled request: finished immediately, or after its aborted attempt has ended. */
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
    // The attempt ended before the cancellation took effect.
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
