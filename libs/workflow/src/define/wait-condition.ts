import type { ApiObject } from "@konverge/core";
import { invalidCondition, type WaitTarget } from "./wait-target.ts";

/** The result of a check. Messages are for users, and contain nothing of a sensitive object. */
export type Verdict =
  | { readonly kind: "met"; readonly value: unknown }
  | { readonly kind: "pending"; readonly message: string; readonly againAtMs?: number }
  /** May recover, so it fails the wait only if it lasts. */
  | { readonly kind: "failing"; readonly code: WaitFailureCode; readonly message: string }
  | { readonly kind: "failed"; readonly code: WaitFailureCode; readonly message: string };

type WaitFailureCode = "object_failed" | "object_deleted" | "object_replaced" | "superseded";

/** An object as it was read for a wait. */
export interface Sighting {
  /** Undefined if it does not exist. */
  readonly object: ApiObject | undefined;
  /** True if its texts must not be recorded (P12). */
  readonly isSensitive: boolean;
  readonly nowMs: number;
}

declare const waitValue: unique symbol;

/** A condition of `w.waitFor`, from `ready`, `condition`, `field`, `gone`, `complete`, `all` or `any`. `T`: result of the wait. */
export interface WaitCondition<T = unknown> {
  readonly [waitValue]?: T;
  readonly kind: "object" | "all" | "any";
}

/** A condition of one object. */
export interface ObjectCondition {
  readonly kind: "object";
  readonly target: WaitTarget;
  /** Returns the verdict for the object, or for its absence. */
  readonly judge: (sighting: Sighting) => Verdict;
}

interface ConditionGroup {
  readonly kind: "all" | "any";
  readonly conditions: readonly AnyCondition[];
}

export type AnyCondition = ObjectCondition | ConditionGroup;

/** Most members that the message of a group names. */
const MAX_NAMED = 3;

type Values<C extends readonly WaitCondition[]> = {
  -readonly [K in keyof C]: C[K] extends WaitCondition<infer T> ? T : never;
};

/** The result of `any`: the index of the met condition, from 0, and its value. */
export type AnyResult<C extends readonly WaitCondition[]> = {
  [K in keyof C]: C[K] extends WaitCondition<infer T>
    ? { readonly index: number; readonly value: T }
    : never;
}[number];

/** Met when all conditions are met at the same time; fails when one fails. Returns their values in order. */
export function all<const C extends readonly WaitCondition[]>(
  ...conditions: C
): WaitCondition<Values<C>> {
  return group("all", conditions);
}

/** Met when one condition is met, the first one if several are; fails when all have failed. */
export function any<const C extends readonly WaitCondition[]>(
  ...conditions: C
): WaitCondition<AnyResult<C>> {
  return group("any", conditions);
}

function group(kind: "all" | "any", conditions: readonly WaitCondition[]): ConditionGroup {
  if (conditions.length === 0)
    throw invalidCondition(`${kind}(...) has no condition; pass at least one`);
  return { kind, conditions: conditions.map((condition) => asCondition(condition, kind)) };
}

/** @throws KonvergeError `invalid_workflow` */
export function asCondition(given: unknown, where: string): AnyCondition {
  if (typeof given === "object" && given !== null && "kind" in given) {
    const { kind } = given as AnyCondition;
    if (kind === "object" || kind === "all" || kind === "any") return given as AnyCondition;
  }
  throw invalidCondition(
    `${where} got ${typeof given} as a condition; pass a result of ready, condition, field, gone, complete, all or any`,
  );
}

/** Returns the objects of a condition. */
export function targetsOf(condition: AnyCondition): WaitTarget[] {
  return condition.kind === "object"
    ? [condition.target]
    : condition.conditions.flatMap((member) => targetsOf(member));
}

/** @param see returns the verdict for one object */
export function judge(
  condition: AnyCondition,
  see: (condition: ObjectCondition) => Verdict,
): Verdict {
  if (condition.kind === "object") return see(condition);
  const verdicts = condition.conditions.map((member) => judge(member, see));
  return condition.kind === "all" ? judgeAll(verdicts) : judgeAny(verdicts);
}

function judgeAll(verdicts: readonly Verdict[]): Verdict {
  for (const kind of ["failed", "failing"] as const) {
    const found = verdicts.find((verdict) => verdict.kind === kind);
    if (found !== undefined) return found;
  }
  const pending = verdicts.filter((verdict) => verdict.kind === "pending");
  if (pending.length > 0) return joinPending(pending);
  return {
    kind: "met",
    value: verdicts.map((verdict) => (verdict.kind === "met" ? verdict.value : undefined)),
  };
}

function judgeAny(verdicts: readonly Verdict[]): Verdict {
  const index = verdicts.findIndex(({ kind }) => kind === "met");
  const met = verdicts[index];
  if (met?.kind === "met") return { kind: "met", value: { index, value: met.value } };
  const pending = verdicts.filter((verdict) => verdict.kind === "pending");
  if (pending.length > 0) return joinPending(pending);
  const failures = verdicts.filter(
    (verdict) => verdict.kind === "failed" || verdict.kind === "failing",
  );
  const [first] = failures;
  if (first === undefined) return { kind: "pending", message: "" };
  const kind = failures.every((failure) => failure.kind === "failed") ? "failed" : "failing";
  return { kind, code: first.code, message: joinMessages(failures) };
}

function joinPending(pending: readonly Extract<Verdict, { kind: "pending" }>[]): Verdict {
  const times = pending.map(({ againAtMs }) => againAtMs).filter((time) => time !== undefined);
  return {
    kind: "pending",
    message: joinMessages(pending),
    ...(times.length === 0 ? {} : { againAtMs: Math.min(...times) }),
  };
}

function joinMessages(verdicts: readonly { readonly message: string }[]): string {
  const messages = verdicts.slice(0, MAX_NAMED).map(({ message }) => message);
  const more = verdicts.length - messages.length;
  return `${messages.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
