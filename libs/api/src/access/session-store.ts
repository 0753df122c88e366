import { randomBytes } from "node:crypto";
import { withRedis, type RedisClient } from "@konverge/redis";
import { digest } from "./digest.ts";

/** A working day. The token can expire earlier. */
export const SESSION_MS: number = 12 * 3_600_000;
/** The oldest sessions of a token end beyond this. */
const MOST_OF_TOKEN = 100;
const FORM = /^([0-9a-f]{12}|admin)\.([\w-]{43})$/;

/** The logins of browsers. A session is not a token: it works as a cookie only, and ends with the logout. */
export interface SessionStore {
  /** Returns the value of the cookie. Redis stores only its SHA-256 digest. */
  create(tokenId: string): Promise<string>;
  /** Returns the ID of the token; undefined for an unknown or ended session. */
  find(session: string): Promise<string | undefined>;
  end(session: string): Promise<void>;
}

/** @param salt of the sessions of the configured token, so that they end when it changes */
export function createSessionStore(redis: RedisClient, prefix: string, salt: string): SessionStore {
  const setOf = (tokenId: string) => `${prefix}:sessions/${tokenId}`;
  const parse = (session: string) => {
    const [, tokenId, secret] = FORM.exec(session) ?? [];
    if (tokenId === undefined || secret === undefined) return undefined;
    const salted = tokenId === "admin" ? `${secret}${salt}` : secret;
    return { tokenId, set: setOf(tokenId), member: digest(salted).toString("base64url") };
  };
  return {
    async create(tokenId) {
      const session = `${tokenId}.${randomBytes(32).toString("base64url")}`;
      const { set = "", member = "" } = parse(session) ?? {};
      await withRedis(redis, () =>
        Promise.all([
          redis.zadd(set, Date.now() + SESSION_MS, member),
          redis.zremrangebyrank(set, 0, -MOST_OF_TOKEN - 1),
          redis.pexpire(set, SESSION_MS),
        ]),
      );
      return session;
    },
    async find(session) {
      const parsed = parse(session);
      if (parsed === undefined) return undefined;
      const endMs = await withRedis(redis, () => redis.zscore(parsed.set, parsed.member));
      return Number(endMs ?? 0) > Date.now() ? parsed.tokenId : undefined;
    },
    async end(session) {
      const parsed = parse(session);
      if (parsed !== undefined) await withRedis(redis, () => redis.zrem(parsed.set, parsed.member));
    },
  };
}
