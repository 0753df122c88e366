import { randomBytes, timingSafeEqual } from "node:crypto";
import {
  newTokenSchema,
  tokenViewSchema,
  type NewToken,
  type TokenView,
} from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import { z } from "zod";
import { digest } from "./digest.ts";

export const TOKEN_PREFIX = "kvg_";
const FORM = /^kvg_([0-9a-f]{12})_([\w-]{43})$/;
const MINUTE_MS = 60_000;
const MOST_TOKENS = 1_000;

const HELD =
  "tokens are held because Redis was restored; an operator must accept them with `konverge restore accept tokens`";

const storedSchema = z.object({
  ...tokenViewSchema.omit({ id: true, lastUsedAt: true }).shape,
  hash: z.string(),
});

/**
 * The tokens of an installation. Redis stores only their SHA-256 digests. A secret of 256 random bits cannot be guessed, so
 * a slow password hash would only add latency.
 */
export interface TokenStore {
  /** Returns the token, which is not stored. */
  create(
    token: NewToken,
    by: string,
  ): Promise<{ readonly token: string; readonly view: TokenView }>;
  /** By name. Omits tokens that only another version can read; these are rejected. */
  list(): Promise<TokenView[]>;
  /** The tokens that `list` omits. */
  listUnreadable(): Promise<NamedToken[]>;
  /** Revokes by ID or name, also tokens of another version. @throws KonvergeError `not_found` */
  revoke(idOrName: string): Promise<NamedToken[]>;
  /**
   * Undefined for an unknown, revoked or expired token.
   * @throws KonvergeError `unauthorized` for a token that a restore of Redis holds
   */
  find(token: string): Promise<TokenView | undefined>;
  /** The same by ID. */
  get(id: string): Promise<TokenView | undefined>;
  /** Records the use of a token, at most once a minute. */
  touch(id: string): Promise<void>;
}

type NamedToken = Pick<TokenView, "id" | "name">;

export function createTokenStore(
  redis: RedisClient,
  prefix: string,
  { isHeld }: { readonly isHeld: () => Promise<boolean> },
): TokenStore {
  const tokens = `${prefix}:tokens`;
  const uses = `${prefix}:token-uses`;
  const touched = new Map<string, number>();

  const listAll = () => listTokens(redis, { tokens, uses });
  const read = async (id: string): Promise<string | null> => {
    const [text, held] = await withRedis(redis, () =>
      Promise.all([redis.hget(tokens, id), isHeld()]),
    );
    if (text === null || !held) return text;
    throw new KonvergeError("unauthorized", HELD);
  };
  return {
    async create(input, by) {
      const { name, role, scope, classes, ttlMs } = newTokenSchema.parse(input);
      const known = await listAll();
      if (known.length >= MOST_TOKENS) {
        const fix = "revoke unused tokens";
        throw new KonvergeError(
          "invalid_request",
          `limit of ${MOST_TOKENS} tokens reached; ${fix}`,
        );
      }
      if (known.some((other) => other.name === name)) {
        const detail = `token "${name}" already exists; revoke it or use another name`;
        throw new KonvergeError("invalid_request", detail, {
          issues: [{ pointer: "/name", detail }],
        });
      }
      const id = randomBytes(6).toString("hex");
      const secret = randomBytes(32).toString("base64url");
      const now = Date.now();
      const stored = {
        name,
        role,
        scope,
        ...defined({ classes }),
        createdAt: new Date(now).toISOString(),
        createdBy: by,
        ...(ttlMs === undefined ? {} : { expiresAt: new Date(now + ttlMs).toISOString() }),
        hash: digest(secret).toString("base64url"),
      };
      await withRedis(redis, () => redis.hset(tokens, id, JSON.stringify(stored)));
      return { token: `kvg_${id}_${secret}`, view: viewOf(id, stored, undefined) };
    },
    async list() {
      return (await listAll()).filter((token) => "role" in token);
    },
    async listUnreadable() {
      return (await listAll()).filter((token) => !("role" in token));
    },
    async revoke(idOrName) {
      const found = (await listAll()).filter(
        ({ id, name }) => id === idOrName || name === idOrName,
      );
      if (found.length === 0) {
        throw new KonvergeError("not_found", `no token has the id or name "${idOrName}"`);
      }
      const ids = found.map(({ id }) => id);
      await withRedis(redis, () =>
        Promise.all([redis.hdel(tokens, ...ids), redis.hdel(uses, ...ids)]),
      );
      return found;
    },
    async find(token) {
      const [, id = "", secret = ""] = FORM.exec(token) ?? [];
      if (id === "") return undefined;
      const text = await read(id);
      if (text === null) return undefined;
      const stored = parse(text);
      if (stored === undefined) return undefined;
      const expected = Buffer.from(stored.hash, "base64url");
      if (!timingSafeEqual(digest(secret), expected)) return undefined;
      const view = viewOf(id, stored, undefined);
      return isExpired(view) ? undefined : view;
    },
    async get(id) {
      const text = await read(id);
      const stored = text === null ? undefined : parse(text);
      const view = stored === undefined ? undefined : viewOf(id, stored, undefined);
      return view === undefined || isExpired(view) ? undefined : view;
    },
    async touch(id) {
      const now = Date.now();
      if (now - (touched.get(id) ?? 0) < MINUTE_MS) return;
      touched.set(id, now);
      await withRedis(redis, () => redis.hset(uses, id, now));
    },
  };
}

/** By name. */
async function listTokens(
  redis: RedisClient,
  { tokens, uses }: { readonly tokens: string; readonly uses: string },
): Promise<(TokenView | NamedToken)[]> {
  const [stored, used] = await withRedis(redis, () =>
    Promise.all([redis.hgetall(tokens), redis.hgetall(uses)]),
  );
  return Object.entries(stored)
    .map(([id, text]) => {
      const readable = parse(text);
      return readable === undefined ? { id, name: nameIn(text) } : viewOf(id, readable, used[id]);
    })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Undefined for the format of another version. */
function parse(text: string): z.output<typeof storedSchema> | undefined {
  return storedSchema.safeParse(jsonIn(text)).data;
}

function nameIn(text: string): string {
  const name: unknown = (jsonIn(text) as { readonly name?: unknown } | null)?.name;
  return typeof name === "string" ? name : "unknown";
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function isExpired({ expiresAt }: TokenView): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= Date.now();
}

function viewOf(
  id: string,
  stored: z.output<typeof storedSchema>,
  usedMs: string | undefined,
): TokenView {
  const { hash: _, expiresAt, ...rest } = stored;
  return {
    id,
    ...rest,
    ...defined({ expiresAt }),
    ...(usedMs === undefined ? {} : { lastUsedAt: new Date(Number(usedMs)).toISOString() }),
  };
}
