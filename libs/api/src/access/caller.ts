import {
  ROLES,
  type Role,
  type Scope,
  REQUEST_CLASSES,
  type RequestedClass,
  type Whoami,
} from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { KubernetesUser } from "./kubernetes-reviews.ts";

/** The sender of a request and its permissions. */
export interface Caller {
  /** ID of the token. Separates the limits and stored responses of callers. */
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly scope: Scope;
  /** The classes of requests that the caller may make. Default: all. */
  readonly classes?: readonly RequestedClass[] | undefined;
  /** `local`: over loopback without a token. `process`: from the process itself. */
  readonly via: Whoami["via"];
  /** Set for a user of a Kubernetes cluster. Its role and scope are those of one request, after the API server was asked. */
  readonly user?: KubernetesUser;
  /** Checks a user again, during a long request. Others are checked by their ID. */
  readonly isStillValid?: (() => Promise<boolean>) | undefined;
}

/** A place in the fleet. An omitted field means all; `_` is the namespace of cluster-scoped objects. */
export interface Place {
  readonly cluster?: string | undefined;
  readonly controller?: string | undefined;
  readonly namespace?: string | undefined;
}

const DIMENSIONS = [
  ["cluster", "clusters"],
  ["controller", "controllers"],
  ["namespace", "namespaces"],
] as const satisfies readonly (readonly [keyof Place, keyof Scope])[];

export function allows(caller: Caller, role: Role): boolean {
  return ROLES.indexOf(caller.role) >= ROLES.indexOf(role);
}

/** True if the whole place is within the scope. */
export function covers(scope: Scope, place: Place): boolean {
  return DIMENSIONS.every(([one, many]) => isWithin(scope[many], place[one], false));
}

/** True if a part of the place is within the scope. */
export function touches(scope: Scope, place: Place): boolean {
  return DIMENSIONS.every(([one, many]) => isWithin(scope[many], place[one], true));
}

/** @throws KonvergeError `forbidden` unless the whole place is within the scope of the caller */
export function demand(caller: Caller, place: Place): void {
  if (!covers(caller.scope, place)) throw outside(caller, place);
}

/** For lists, which omit items outside the scope. @throws KonvergeError `forbidden` if all would be omitted */
export function demandSome(caller: Caller, place: Place): void {
  if (!touches(caller.scope, place)) throw outside(caller, place);
}

/**
 * Returns the class of a request: `asked`, else `standard`, else the most urgent one that the caller may request.
 * @throws KonvergeError `forbidden` if the caller may not make requests of the class that it asked for
 */
export function classFor(
  { classes }: Caller,
  asked: RequestedClass | undefined,
  standard: RequestedClass,
): RequestedClass {
  const wanted = asked ?? standard;
  if (classes === undefined || classes.includes(wanted)) return wanted;
  const allowed = REQUEST_CLASSES.filter((each) => classes.includes(each));
  const [most] = allowed;
  if (asked === undefined && most !== undefined) return most;
  throw new KonvergeError(
    "forbidden",
    `class "${wanted}", but the token is limited to ${allowed.join(", ")}`,
  );
}

export function isUnrestricted({ scope }: Caller): boolean {
  return covers(scope, {});
}

function isWithin(
  allowed: readonly string[] | undefined,
  value: string | undefined,
  some: boolean,
) {
  if (allowed === undefined) return true;
  return value === undefined ? some : allowed.includes(value);
}

function outside(caller: Caller, place: Place): KonvergeError {
  const limits = DIMENSIONS.flatMap(([one, many]) => {
    const allowed = caller.scope[many];
    if (allowed === undefined || isWithin(allowed, place[one], false)) return [];
    const given = place[one] === undefined ? `no ${one} given` : `${one} "${place[one]}"`;
    return [`${given}, but the token is limited to ${allowed.join(", ")}`];
  });
  return new KonvergeError("forbidden", limits.join("; "));
}
