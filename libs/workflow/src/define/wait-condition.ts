import type { ApiObject } from "@konverge/core";
import { invalidCondition, type WaitTarget } from "./wait-target.ts";

/** What a wait finds when it looks. Messages are for people, and say nothing that a sensitive object holds. */
export type Verdict =
  | { readonly kind: "met"; readonly value: unknown }
  | { readonly kind: "pending"; readonly message: string; readonly againAtMs?: number }
  /** May heal, so it fails the wait only when it lasts. */
  | { readonly kind: "failing"; readonly code: WaitFailureCode; readonly message: string }
  | { readonly kind: "failed"; readonly code: WaitFailureCode; readonly message: string };

type WaitFailureCode = "object_failed" | "object_deleted" | "object_replaced" | "superseded";

/** An object as it was read for a wait. */
export interface Sighting {
  /** Undefined: there is none. */
  readonly object: ApiObject | undefined;
  /** What it says is not for the journal (P12). */
  readonly isSensitive: boolean;
  readonly nowMs: number;
}

declare const waitValue: unique symbol;

/** What `w.waitFor` waits for; made by `ready`, `condition`, `field`, `gone`, `complete`, `all` and `any`. `T`: what the wait answers. */
export interface WaitCondition<T = unknown> {
  readonly [waitValue]?: T;
  readonly kind: "object" | "all" | "any";
}

/** About one object. */
export interface ObjectCondition {
  readonly kind: "object";
  readonly target: WaitTarget;
  /** Told of no object only where its absence may be what is waited for. */
  readonly judge: (sighting: Sighting) => Verdict;
}

interface ConditionGroup {
  readonly kind: "all" | "any";
  readonly conditions: readonly AnyCondition[];
}

export type AnyCondition = ObjectCondition | ConditionGroup;

/** Failures of a group tell of at most so many members. */
const TOLD = 3;

type Values<C extends readonly WaitCondition[]> = {
  -readonly [K in keyof C]: C[K] extends WaitCondition<infer T> ? T : never;
};

/** What `any` answers: which of its conditions was met, counted from 0, and what that answers. */
export type AnyResult<C extends readonly WaitCondition[]> = {
  [K in keyof C]: C[K] extends WaitCondition<infer T>
    ? { readonly index: number; readonly value: T }
    : never;
}[number];

/** Met when all are, at the same time; fails as soon as one has failed. Answers what each answers, in their order. */
export function all<const C extends readonly WaitCondition[]>(
  ...conditions: C
): WaitCondition<Values<C>> {
  return group("all", conditions);
}

/** Met when one is, the first one named if several are; fails when all have failed. */
export function any<const C extends readonly WaitCondition[]>(
  ...conditions: C
): WaitCondition<AnyResult<C>> {
  return group("any", conditions);
}

function group(kind: "all" | "any", conditions: readonly WaitCondition[]): ConditionGroup {
  if (conditions.length === 0)
    throw invalidCondition(`${kind}(...) has no condition; give it some`);
  return { kind, conditions: conditions.map((condition) => asCondition(condition, kind)) };
}

/** @throws KonvergeError `invalid_workflow` */
export function asCondition(given: unknown, where: string): AnyCondition {
  if (typeof given === "object" && given !== null && "kind" in given) {
    const { kind } = given as AnyCondition;
    if (kind === "object" || kind === "all" || kind === "any") return given as AnyCondition;
  }
  throw invalidCondition(
    `${where} got ${typeof given} as a condition; give what ready, condition, field, gone, complete, all or any returned`,
  );
}

/** The objects that a condition is about. */
export function targetsOf(condition: AnyCondition): WaitTarget[] {
  return condition.kind === "object"
    ? [condition.target]
    : condition.conditions.flatMap((member) => targetsOf(member));
}

/** @param see what was read of an object; never throws */
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
  return { kind, code: first.code, message: told(failures) };
}

function joinPending(pending: readonly Extract<Verdict, { kind: "pending" }>[]): Verdict {
  const times = pending.map(({ againAtMs }) => againAtMs).filter((time) => time !== undefined);
  return {
    kind: "pending",
    message: told(pending),
    ...(times.length === 0 ? {} : { againAtMs: Math.min(...times) }),
  };
}

function told(verdicts: readonly { readonly message: string }[]): string {
  const messages = verdicts.slice(0, TOLD).map(({ message }) => message);
  const more = verdicts.length - messages.length;
  return `${messages.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
