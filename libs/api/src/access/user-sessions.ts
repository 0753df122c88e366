import { randomBytes } from "node:crypto";
import { KonvergeError } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import { z } from "zod";
import { digest } from "./digest.ts";

/** The oldest sessions of a user end beyond this. */
const MOST_OF_USER = 100;
const FORM = /^(oidc\.[\w-]{43})\.([\w-]{43})$/;
const USER = "user";
const HELD =
  "sessions are held because Redis was restored; an operator must accept them with `konverge restore accept tokens`";

const userSchema = z.object({
  name: z.string(),
  /** Only those with a role. */
  groups: z.array(z.string()),
});

/** A user of the OIDC provider. */
export interface SignedInUser extends z.output<typeof userSchema> {
  /** The digest of issuer and subject. */
  readonly id: string;
}

/**
 * The sessions of the users of an OIDC provider. Redis stores the name and the groups of a user, and the digests of its sessions,
 * but no token of the provider. A login replaces name and groups for all sessions of the user.
 */
export interface UserSessions {
  /** Returns the value of the cookie. */
  create(user: SignedInUser, sessionMs: number): Promise<string>;
  /**
   * Undefined for an unknown, ended or expired session.
   * @throws KonvergeError `unauthorized` for a session that a restore of Redis holds
   */
  find(session: string): Promise<SignedInUser | undefined>;
  end(session: string): Promise<void>;
  /** Ends all sessions of a user. */
  endAll(userId: string): Promise<void>;
  /** Returns true for the first completion of a login, by its state. Redis stores a digest until the login expires. */
  complete(state: string, expiresMs: number): Promise<boolean>;
}

/** True for a value of `create`; its session may be over. */
export function isUserSession(session: string): boolean {
  return FORM.test(session);
}

/** Returns the ID of a user, which separates the users of different issuers. */
export function userIdOf(issuer: string, subject: string): string {
  return `oidc.${digest(JSON.stringify([issuer, subject])).toString("base64url")}`;
}

export function createUserSessions(
  redis: RedisClient,
  prefix: string,
  { isHeld }: { readonly isHeld: () => Promise<boolean> },
): UserSessions {
  const keyOf = (userId: string) => `${prefix}:user-sessions/${userId}`;
  const parse = (session: string) => {
    const [, id, secret] = FORM.exec(session) ?? [];
    if (id === undefined || secret === undefined) return undefined;
    const field = digest(secret).toString("base64url");
    return { id, key: keyOf(id), field };
  };
  const removeOld = async (key: string) => {
    const { [USER]: _, ...sessions } = await withRedis(redis, () => redis.hgetall(key));
    const newest = Object.entries(sessions).toSorted(([, one], [, other]) => +other - +one);
    const old = newest
      .filter(([, endMs], at) => at >= MOST_OF_USER || Number(endMs) <= Date.now())
      .map(([field]) => field);
    if (old.length > 0) await withRedis(redis, () => redis.hdel(key, ...old));
  };
  return {
    async create({ id, name, groups }, sessionMs) {
      const session = `${id}.${randomBytes(32).toString("base64url")}`;
      const { key = "", field = "" } = parse(session) ?? {};
      const user = JSON.stringify({ name, groups });
      await withRedis(redis, () =>
        redis
          .multi()
          .hset(key, USER, user, field, String(Date.now() + sessionMs))
          .pexpire(key, sessionMs)
          .exec(),
      );
      await removeOld(key);
      return session;
    },
    async find(session) {
      const parsed = parse(session);
      if (parsed === undefined) return undefined;
      const { id, key, field } = parsed;
      const [[endMs, text], held] = await withRedis(redis, () =>
        Promise.all([redis.hmget(key, field, USER), isHeld()]),
      );
      if (!(Number(endMs ?? 0) > Date.now())) return undefined;
      if (held) throw new KonvergeError("unauthorized", HELD);
      const user = userSchema.safeParse(JSON.parse(text ?? "null")).data;
      return user === undefined ? undefined : { id, ...user };
    },
    async end(session) {
      const parsed = parse(session);
      if (parsed !== undefined) await withRedis(redis, () => redis.hdel(parsed.key, parsed.field));
    },
    async endAll(userId) {
      await withRedis(redis, () => redis.del(keyOf(userId)));
    },
    async complete(state, expiresMs) {
      const key = `${prefix}:user-logins/${digest(state).toString("base64url")}`;
      return (await withRedis(redis, () => redis.set(key, "", "PX", expiresMs, "NX"))) === "OK";
    },
  };
}
