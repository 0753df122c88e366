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
  /** The highest role of a user who has the role of an operation. */
  const highestFrom = async (user: KubernetesUser, role: Role): Promise<Role | undefined> =>
    (await mayOn(user, role)) ? ((await roleOf(user)) ?? role) : undefined;
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
      // Some requests depend on the role, such as a mutation of a kind for admins.
      const highest = await highestFrom(user, role);
      if (highest !== undefined) {
        const isAllowed = async () => (await mayOn(user, role)) && (await mayOn(user, highest));
        return withCheck({ ...caller, role: highest, scope: {} }, isAllowed);
      }
      const target: Target = {
        ...(input.query as Target),
        ...(input.body as Target),
        ...input.params,
      };
      const needed = await findNeeded(access, right, { target, home }).catch((error: unknown) => {
        throw withoutNames(error, input.params);
      });
      input.charge(needed?.rights.length ?? 0);
      if (needed !== undefined && (await hasAll(user, needed))) {
        const narrow = role === "viewer" ? "viewer" : "operator";
        const isAllowed = () => hasAll(user, needed);
        return withCheck({ ...caller, role: narrow, scope: needed.scope }, isAllowed);
      }
      // A message about the missing right would name the object of the mutation.
      if (isOfMutationId(right, input.params)) throw noMutation(input.params);
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

type Params = Readonly<Record<string, string>>;

function isOfMutationId({ on }: NeededRight, params: Params): boolean {
  return on === "mutation" && params["id"] !== undefined;
}

/**
 * Returns the same error for a mutation of another user and for a missing one: users choose IDs, which can be guessed.
 */
function noMutation({ id }: Params): KonvergeError {
  const detail = `mutation ${id} does not exist or was deleted, or you lack the right on its object`;
  return new KonvergeError("not_found", detail);
}

/** The texts of these errors list the known controllers and the open kinds. */
function withoutNames(error: unknown, params: Params): unknown {
  if (!isKonvergeError(error)) return error;
  switch (error.code) {
    case "unknown_controller":
      return new KonvergeError(error.code, "unknown controller or cluster", { cause: error });
    case "kind_not_open": {
      const detail = "the kind is not open for mutations in this cluster";
      return new KonvergeError(error.code, detail, { cause: error });
    }
    case "not_found":
      return params["id"] === undefined ? error : noMutation(params);
    default:
      return error;
  }
}
