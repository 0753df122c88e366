import { ROLES, type Role } from "@konverge/contracts";
import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { Caller } from "../access/caller.ts";
import type {
  AskedRight,
  KubernetesReviews,
  KubernetesUser,
} from "../access/kubernetes-reviews.ts";
import type { AuthorizeUser } from "../http/mount-routes.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { findNeeded, OWN_GROUP, type Needed, type Target } from "./find-needed.ts";
import { INSTALLATION_VERBS, RIGHTS, type NeededRight } from "./rights-table.ts";

export interface UserRightsOptions {
  readonly access: QueueAccess;
  readonly reviews: KubernetesReviews;
  /** The name of the cluster whose API server decides. */
  readonly home: string;
}

export interface UserRights {
  /** Returns the caller with the role and the scope for exactly one request. @throws KonvergeError `forbidden`, `identity_unavailable` */
  readonly authorize: AuthorizeUser;
  /** Returns the caller with its role on the whole installation. @throws as `authorize` */
  widest(caller: Caller): Promise<Caller>;
}

/** The rights of Kubernetes users, by the RBAC of their cluster. */
export function createUserRights({ access, reviews, home }: UserRightsOptions): UserRights {
  const name = access.installation;
  const mayOn = (user: KubernetesUser, role: Role) =>
    reviews.isAllowed(user, {
      verb: INSTALLATION_VERBS[role],
      group: OWN_GROUP,
      resource: "installations",
      name,
    });
  const has = async (user: KubernetesUser, right: AskedRight): Promise<boolean> =>
    (await reviews.isAllowed(user, right)) ||
    (right.verb === "reconcile" && (await reviews.isAllowed(user, { ...right, verb: "patch" })));
  const hasAll = async (user: KubernetesUser, { rights }: Needed) =>
    (await Promise.all(rights.map((right) => has(user, right)))).every(Boolean);
  const roleOf = async (user: KubernetesUser): Promise<Role | undefined> => {
    for (const role of ROLES.toReversed()) if (await mayOn(user, role)) return role;
    return undefined;
  };
  const whoami = async (caller: Caller, user: KubernetesUser): Promise<Caller> => {
    const role = await roleOf(user);
    if (role !== undefined) return { ...caller, role, scope: {} };
    return { ...caller, role: "viewer", scope: { clusters: [home] } };
  };
  return {
    async authorize({ id, role }, caller, input) {
      const user = userOf(caller);
      const right: NeededRight = RIGHTS[id] ?? { on: "installation" };
      if (right.on === "nothing") return await whoami(caller, user);
      const target: Target = {
        ...(input.query as Target),
        ...(input.body as Target),
        ...input.params,
      };
      const needed = await findNeeded(access, right, { target, home }).catch((error: unknown) => {
        throw withoutNames(error);
      });
      const isAllowed = async () =>
        (needed !== undefined && (await hasAll(user, needed))) || (await mayOn(user, role));
      if (needed !== undefined && (await hasAll(user, needed))) {
        const narrow = role === "viewer" ? "viewer" : "operator";
        return withCheck({ ...caller, role: narrow, scope: needed.scope }, isAllowed);
      }
      if (await mayOn(user, role)) return withCheck({ ...caller, role, scope: {} }, isAllowed);
      throw new KonvergeError("forbidden", textOf(user, needed, { role, name }));
    },
    async widest(caller) {
      const user = userOf(caller);
      const role = await roleOf(user);
      if (role !== undefined)
        return withCheck({ ...caller, role, scope: {} }, () => mayOn(user, role));
      throw new KonvergeError("forbidden", textOf(user, undefined, { role: "viewer", name }));
    },
  };
}

function userOf({ user }: Caller): KubernetesUser {
  if (user === undefined) throw new TypeError("the caller is not a Kubernetes user");
  return user;
}

/** A long request ends with the token and with the right. */
function withCheck(caller: Caller, isAllowed: () => Promise<boolean>): Caller {
  const { isStillValid } = caller;
  return {
    ...caller,
    isStillValid: async () => (await isStillValid?.()) !== false && (await isAllowed()),
  };
}

function textOf(
  { username }: KubernetesUser,
  needed: Needed | undefined,
  { role, name }: { readonly role: Role; readonly name: string },
): string {
  const own = `${INSTALLATION_VERBS[role]} installations.${OWN_GROUP} "${name}"`;
  const asked = (needed?.rights ?? []).map(({ verb, resource, group, namespace, ...rest }) => {
    const one = rest.name === undefined ? "" : ` "${rest.name}"`;
    const part = rest.subresource === undefined ? "" : `/${rest.subresource}`;
    const kind = group === "" ? `${resource}${part}` : `${resource}${part}.${group}`;
    const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
    return `${verb} ${kind}${one}${where}`;
  });
  const wanted = [asked.join(" and "), own].filter((text) => text !== "").join(", or ");
  return `Kubernetes user "${username}" needs the right to ${wanted}; docs/identity.md has an example role`;
}

/** The text of the error lists the known controllers. */
function withoutNames(error: unknown): unknown {
  if (!isKonvergeError(error) || error.code !== "unknown_controller") return error;
  const detail = "unknown controller or cluster";
  return new KonvergeError("unknown_controller", detail, { cause: error });
}
