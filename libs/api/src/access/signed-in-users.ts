import type { GroupRole } from "@konverge/contracts";
import type { Caller } from "./caller.ts";
import { digest } from "./digest.ts";
import { ShortCache } from "./short-cache.ts";
import { grantOf } from "./group-grant.ts";
import type { SignedInUser, UserSessions } from "./user-sessions.ts";

/** Longest time that an ended session remains valid in another process. */
const REMEMBERED_MS = 1_000;
const MOST_REMEMBERED = 1_000;

/** The callers with a session of an OIDC provider. */
export interface SignedInUsers {
  /** Undefined without a valid session, and for a user whose groups have no role. */
  resume(session: string): Promise<Caller | undefined>;
  end(session: string): Promise<void>;
}

export function createSignedInUsers(
  sessions: UserSessions,
  roles: readonly GroupRole[],
): SignedInUsers {
  const known = new ShortCache<SignedInUser | undefined>({
    keptMs: REMEMBERED_MS,
    most: MOST_REMEMBERED,
  });
  const read = async (session: string): Promise<Caller | undefined> => {
    const id = digest(session).toString("base64url");
    const user = await known.get(id, () => sessions.find(session));
    return user === undefined ? undefined : callerOf(user, roles);
  };
  return {
    async resume(session) {
      const caller = await read(session);
      if (caller === undefined) return undefined;
      const rights = rightsOf(caller);
      const isStillValid = async () => {
        const now = await read(session);
        return now !== undefined && rightsOf(now) === rights;
      };
      return { ...caller, isStillValid };
    },
    async end(session) {
      known.delete(digest(session).toString("base64url"));
      await sessions.end(session);
      // A read may have begun before the end.
      known.delete(digest(session).toString("base64url"));
    },
  };
}

/** Undefined if the groups of the user have no role. */
export function callerOf(
  { id, name, groups }: SignedInUser,
  roles: readonly GroupRole[],
): Caller | undefined {
  const grant = grantOf(roles, groups);
  // No token has such a name.
  return grant === undefined ? undefined : { id, name: `oidc:${name}`, ...grant, via: "oidc" };
}

function rightsOf({ name, role, scope, classes }: Caller): string {
  return JSON.stringify([name, role, scope, classes]);
}
