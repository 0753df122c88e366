import type { Verdict } from "./mutation-store.ts";

/** The write of a part of a batch, and what it decides about each mutation of the part. It is journaled before it is sent. */
export interface Plan {
  /** In the mark that the write carries. */
  readonly id: string;
  /** Of the object that the plan is based on, which the write requires; absent if there was none. */
  readonly base?: { readonly uid: string; readonly resourceVersion: string };
  /** In order. A verdict `applied` or `unchanged` still lacks the version. */
  readonly verdicts: readonly (readonly [string, Verdict])[];
}

export function parsePlans(text: string): readonly Plan[] {
  return JSON.parse(text) as Plan[];
}

/** True if the plan was made for these mutations. */
export function isPlanOf(plan: Plan, ids: readonly string[]): boolean {
  return plan.verdicts.length === ids.length && plan.verdicts.every(([id], at) => id === ids[at]);
}
