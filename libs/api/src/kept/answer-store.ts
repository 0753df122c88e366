import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import {
  codecName,
  defined,
  KonvergeError,
  type CodecContext,
  type ComparableText,
  type PayloadCodec,
} from "@konverge/core";
import { runScript, withRedis, type RedisClient } from "@konverge/redis";
import { digest } from "../access/digest.ts";
import { keepAnswerScript } from "./keep-answer.ts";

/** A stored response. */
interface KeptAnswer {
  readonly status: number;
  readonly location?: string;
  readonly body: string;
}

/**
 * Responses by Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header-07). A repeated request of the same caller
 * receives the stored response. Responses are stored for 24 h and within 64 MiB; the oldest are deleted first.
 */
export interface AnswerStore {
  /**
   * Returns the stored response of a repeated request, or the claim of a new one.
   * @param request text that must be equal, including the body; with other keys, only the sizes of encoded values
   * @throws KonvergeError `idempotency_mismatch`, `idempotency_in_flight`, `redis_unavailable`
   */
  begin(
    callerId: string,
    key: string,
    request: ComparableText,
  ): Promise<{ readonly kept: KeptAnswer } | { readonly claim: AnswerClaim }>;
}

/**
 * A new key, which is in flight until one of the methods is called, or for 90 s if this process dies. While Redis is
 * unavailable, a method fails after its first try, and the tries continue in the background for as long as the key is in flight.
 */
interface AnswerClaim {
  keep(answer: KeptAnswer): Promise<void>;
  /** Deletes the key after a failure, so that it can be retried. */
  forget(): Promise<void>;
}

/** The line before a stored body. */
interface KeptHead extends Omit<KeptAnswer, "body"> {
  readonly packed: boolean;
  /** Name of the codec that has encoded the body. */
  readonly codec?: string;
}

const RESPONSE: CodecContext = { workflow: "", kind: "response" };
const KEPT_MS: number = 24 * 3_600_000;
/** Longer than the longest request, a wait of 60 s. */
const IN_FLIGHT_MS = 90_000;
const BUDGET_BYTES: number = 64 * 1_024 * 1_024;
/** Estimated size of a key in Redis, its expiry and its entry in the order. */
const OVERHEAD_BYTES = 350;
/** Compression enlarges smaller bodies. */
const PACKED_FROM_BYTES = 1_024;
/** Time between two tries while Redis is unavailable, in ms. */
const AGAIN_MS = 1_000;

const pack = promisify(gzip);
const unpack = promisify(gunzip);

export function createAnswerStore(
  redis: RedisClient,
  prefix: string,
  {
    budgetBytes = BUDGET_BYTES,
    codec,
  }: { readonly budgetBytes?: number | undefined; readonly codec?: PayloadCodec | undefined } = {},
): AnswerStore {
  // One slot of a Redis Cluster, so that a script can access all keys.
  const home = `${prefix}:{answers}`;
  const root = `${home}/answer/`;
  const keptOf = async (stored: string, digests: string): Promise<KeptAnswer> => {
    const [before = "", head, body] = stored.split("\n");
    if (!isRepeated(before, digests)) {
      throw new KonvergeError(
        "idempotency_mismatch",
        "Idempotency-Key was used for a different request; use a new key per request",
      );
    }
    if (head === undefined || body === undefined) throw inFlight();
    const { packed, codec: encodedBy, ...rest } = JSON.parse(head) as KeptHead;
    const bytes = await decode(Buffer.from(body, "base64"), { encodedBy, codec });
    return { ...rest, body: Buffer.from(packed ? await unpack(bytes) : bytes).toString() };
  };
  const valueOf = async (digests: string, { body, ...rest }: KeptAnswer): Promise<string> => {
    const bytes = Buffer.from(body);
    const packed = bytes.length >= PACKED_FROM_BYTES;
    const head: KeptHead = { ...rest, packed, ...defined({ codec: codec && codecName(codec) }) };
    const plain = packed ? await pack(bytes) : bytes;
    const encoded = codec === undefined ? plain : await codec.encode(plain, RESPONSE);
    return `${digests}\n${JSON.stringify(head)}\n${Buffer.from(encoded).toString("base64")}`;
  };
  /** Replaces the mark of a claim by a value, or deletes it without one. Another claim of the key is not changed. */
  const settle = (name: string, { mark, value }: { mark: string; value: string }) =>
    withRedis(redis, () =>
      runScript(redis, keepAnswerScript, {
        keys: { answer: `${root}${name}`, order: `${home}/order`, kept: `${home}/bytes` },
        args: {
          root,
          name,
          mark,
          value,
          size: value.length + OVERHEAD_BYTES,
          keptMs: KEPT_MS,
          budget: budgetBytes,
        },
      }),
    );
  return {
    async begin(callerId, key, request) {
      const name = hash(JSON.stringify([callerId, key]));
      const digests = digestOf(key, request);
      // Tells this call from others, also if the connection breaks and the client sends the command again.
      const mark = `${digests}\n${randomUUID()}`;
      const endMs = performance.now() + IN_FLIGHT_MS;
      const forget = () => untilSettled(redis, () => settle(name, { mark, value: "" }), endMs);
      let stored: string | null;
      try {
        const set = () => redis.set(`${root}${name}`, mark, "PX", IN_FLIGHT_MS, "NX");
        const mine = await withRedis(redis, set);
        stored = mine === "OK" ? mark : await withRedis(redis, () => redis.get(`${root}${name}`));
      } catch (error) {
        // Redis may have stored the mark, or may still do so.
        forget().catch(() => undefined);
        throw error;
      }
      // The key expired between the two calls.
      if (stored === null) throw inFlight();
      if (stored !== mark) return { kept: await keptOf(stored, digests) };
      const keep = async (answer: KeptAnswer) => {
        const value = await valueOf(digests, answer);
        await untilSettled(redis, () => settle(name, { mark, value }), endMs);
      };
      return { claim: { keep, forget } };
    },
  };
}

/** Fails with the error of the first try. Further tries follow in the background, because only this process has the result. */
async function untilSettled(
  redis: RedisClient,
  settle: () => Promise<unknown>,
  endMs: number,
): Promise<void> {
  try {
    await settle();
  } catch (error) {
    const again = () => {
      if (redis.status === "end" || performance.now() >= endMs) return;
      untilSettled(redis, settle, endMs).catch(() => undefined);
    };
    // A command that ends does not wait for it.
    setTimeout(again, AGAIN_MS).unref();
    throw error;
  }
}

/** Digests of the comparable parts. Not of the request alone, whose content could be guessed from it: keys should be random. */
function digestOf(key: string, { exact, sizes, keys }: ComparableText): string {
  return [exact, sizes, keys].map((part) => hash(JSON.stringify([key, part]))).join(" ");
}

/** Fingerprints of other keys cannot be compared. */
function isRepeated(before: string, now: string): boolean {
  const [exact, sizes, keys] = before.split(" ");
  const [nowExact, nowSizes, nowKeys] = now.split(" ");
  return exact === nowExact || (sizes === nowSizes && keys !== nowKeys);
}

async function decode(
  bytes: Buffer,
  {
    encodedBy,
    codec,
  }: { readonly encodedBy: string | undefined; readonly codec: PayloadCodec | undefined },
): Promise<Uint8Array> {
  if (encodedBy === undefined) return bytes;
  if (codec !== undefined && codecName(codec) === encodedBy)
    return await codec.decode(bytes, RESPONSE);
  throw new KonvergeError(
    "codec_missing",
    `the stored response was encoded by codec "${encodedBy}"; set KONVERGE_CODEC for this process`,
  );
}

function inFlight(): KonvergeError {
  const detail = "the first request with this Idempotency-Key is still in progress; retry later";
  return new KonvergeError("idempotency_in_flight", detail, { retryAfterMs: AGAIN_MS });
}

function hash(text: string): string {
  return digest(text).toString("base64url");
}
