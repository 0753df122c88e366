import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { KonvergeError } from "@konverge/core";
import { runScript, withRedis, type RedisClient } from "@konverge/redis";
import { digest } from "../access/digest.ts";
import { keepAnswerScript } from "./keep-answer.ts";

/** An answer as it was given. */
interface KeptAnswer {
  readonly status: number;
  readonly location?: string;
  readonly body: string;
}

/**
 * Answers by Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header-07): the same key and request of one caller is
 * answered again with what was answered before, instead of being done again. Kept for 24 h, and together within 64 MiB, which
 * they share Redis with the queue for; the oldest go first.
 */
export interface AnswerStore {
  /**
   * Undefined for a key that is new: then it is in flight until `keep` or `forget`, or for 90 s if this process dies.
   * @param request what must be the same, body included
   * @throws KonvergeError `idempotency_mismatch`, `idempotency_in_flight`
   */
  begin(callerId: string, key: string, request: string): Promise<KeptAnswer | undefined>;
  keep(callerId: string, key: string, request: string, answer: KeptAnswer): Promise<void>;
  /** Nothing was done: the same key may be tried again. */
  forget(callerId: string, key: string): Promise<void>;
}

const KEPT_MS: number = 24 * 3_600_000;
/** The longest that a request takes is a wait of 60 s. */
const IN_FLIGHT_MS = 90_000;
const BUDGET_BYTES: number = 64 * 1_024 * 1_024;
/** Of a key in Redis, its expiry and its place in the order. */
const OVERHEAD_BYTES = 350;
/** Smaller ones grow by being packed. */
const PACKED_FROM_BYTES = 1_024;
const AGAIN_MS = 1_000;

const pack = promisify(gzip);
const unpack = promisify(gunzip);

export function createAnswerStore(
  redis: RedisClient,
  prefix: string,
  budgetBytes: number = BUDGET_BYTES,
): AnswerStore {
  // One slot of a Redis Cluster, so that a script may touch all.
  const home = `${prefix}:{answers}`;
  const root = `${home}/answer/`;
  const nameOf = (callerId: string, key: string) => hash(JSON.stringify([callerId, key]));
  return {
    async begin(callerId, key, request) {
      const name = nameOf(callerId, key);
      const mine = await withRedis(redis, () =>
        redis.set(`${root}${name}`, hash(request), "PX", IN_FLIGHT_MS, "NX"),
      );
      if (mine === "OK") return undefined;
      const stored = await withRedis(redis, () => redis.get(`${root}${name}`));
      // It expired between the two.
      if (stored === null) throw inFlight();
      const [before, head, body] = stored.split("\n");
      if (before !== hash(request)) {
        throw new KonvergeError(
          "idempotency_mismatch",
          "this Idempotency-Key was sent with another request before; use a new one for each",
        );
      }
      if (head === undefined || body === undefined) throw inFlight();
      const { packed, ...rest } = JSON.parse(head) as Omit<KeptAnswer, "body"> & {
        packed: boolean;
      };
      const bytes = Buffer.from(body, "base64");
      return { ...rest, body: (packed ? await unpack(bytes) : bytes).toString() };
    },
    async keep(callerId, key, request, { body, ...rest }) {
      const bytes = Buffer.from(body);
      const packed = bytes.length >= PACKED_FROM_BYTES;
      const head = JSON.stringify({ ...rest, packed });
      const text = (packed ? await pack(bytes) : bytes).toString("base64");
      const value = `${hash(request)}\n${head}\n${text}`;
      const name = nameOf(callerId, key);
      await withRedis(redis, () =>
        runScript(redis, keepAnswerScript, {
          keys: { answer: `${root}${name}`, order: `${home}/order`, kept: `${home}/bytes` },
          args: {
            root,
            name,
            value,
            size: value.length + OVERHEAD_BYTES,
            keptMs: KEPT_MS,
            budget: budgetBytes,
          },
        }),
      );
    },
    async forget(callerId, key) {
      await withRedis(redis, () => redis.del(`${root}${nameOf(callerId, key)}`));
    },
  };
}

function inFlight(): KonvergeError {
  const detail = "the first request with this Idempotency-Key is not answered yet; come again";
  return new KonvergeError("idempotency_in_flight", detail, { retryAfterMs: AGAIN_MS });
}

function hash(text: string): string {
  return digest(text).toString("base64url");
}
