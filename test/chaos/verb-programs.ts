import type { ApiObject } from "@konverge/core";
import { makeWaitOp, worthOf, type WaitOp } from "./verb-waits.ts";

/** A random workflow whose steps change objects of a cluster, as the input of a run. */
export interface VerbProgram {
  readonly ops: readonly VerbOp[];
  /** Throws at the end, which triggers the undo steps. */
  readonly fails: boolean;
}

interface Act {
  readonly name: string;
  readonly undo: boolean;
  /** Time before and after the verb, in which workers may die. */
  readonly takesMs: number;
}
export type VerbOp =
  /** Adds to a counter that all runs share, with one or two mutations in one step. */
  | ({
      readonly kind: "count";
      readonly counter: number;
      readonly by: readonly number[];
      /** The body may run in another worker than its run. */
      readonly spread?: boolean;
      /** The step fails after them, until the faults are over. */
      readonly breaks?: boolean;
    } & Act)
  /** Applies an object, then optionally changes or deletes it. */
  | ({ readonly kind: "apply"; readonly later: "keep" | "change" | "delete" } & Act)
  | ({ readonly kind: "create" } & Act)
  | ({ readonly kind: "scale"; readonly replicas: number } & Act)
  /** Applies objects and waits until the external actor has given them the state. */
  | WaitOp
  | { readonly kind: "sleep"; readonly name: string; readonly ms: number }
  /** Waits for a signal. Only the outermost run receives signals. */
  | { readonly kind: "signal" }
  | { readonly kind: "child"; readonly name: string; readonly program: VerbProgram }
  | { readonly kind: "all"; readonly branches: readonly (readonly VerbOp[])[] };

/** The key that makes failing steps succeed. */
export const healedOf = (prefix: string) => `${prefix}:trace:healed`;
/** The key in which workers count started bodies. */
export const bodiesOf = (prefix: string) => `${prefix}:trace:bodies`;
export const COUNTERS = 3;
export const NAMESPACE = "default";
export const FAILED_CHILD = 1_000;

export function makeVerbProgram(random: () => number, depth = 0): VerbProgram {
  const below = (n: number) => Math.floor(random() * n);
  let serial = 0;
  const makeOp = (isNested: boolean): VerbOp => {
    const name = `n${(serial += 1)}`;
    const act = { name, undo: below(2) === 0, takesMs: below(40) };
    if (below(6) === 0) return makeWaitOp(random, act);
    switch (below(isNested ? 5 : 9)) {
      case 0: {
        const later = (["keep", "change", "delete"] as const)[below(3)] ?? "keep";
        return { kind: "apply", later, ...act };
      }
      case 1:
        return { kind: "create", ...act };
      case 2:
        if (below(3) === 0) return { kind: "scale", replicas: 2 + below(5), ...act };
        return { kind: "sleep", name, ms: 1 + below(100) };
      case 5:
        if (depth < 1) return { kind: "child", name, program: makeVerbProgram(random, depth + 1) };
        return { kind: "sleep", name, ms: 1 };
      case 6: {
        const branches = Array.from({ length: 2 + below(2) }, () => makeOps(1 + below(2), true));
        return { kind: "all", branches };
      }
      case 7:
        return depth === 0 ? { kind: "signal" } : { kind: "sleep", name, ms: 1 };
      default: {
        const by = Array.from({ length: 1 + below(2) }, () => 1 + below(9));
        return { kind: "count", counter: below(COUNTERS), by, spread: below(2) === 0, ...act };
      }
    }
  };
  const makeOps = (count: number, isNested: boolean): VerbOp[] =>
    Array.from({ length: count }, () => makeOp(isNested));
  return { ops: makeOps(2 + below(4), false), fails: below(3) === 0 };
}

export function countSignals({ ops }: VerbProgram): number {
  return ops.filter(({ kind }) => kind === "signal").length;
}

/** Returns a program whose run fails at one step without undo, so that it can be retried from there. */
export function makeBreakingProgram(random: () => number): VerbProgram {
  const { ops } = makeVerbProgram(random, 1);
  const keep = (op: VerbOp): VerbOp => {
    if (op.kind === "all") return { ...op, branches: op.branches.map((each) => each.map(keep)) };
    return "undo" in op ? { ...op, undo: false } : op;
  };
  const counter = Math.floor(random() * COUNTERS);
  const act = { name: "break", undo: false, takesMs: 5 };
  const broken: VerbOp = { kind: "count", counter, by: [1, 2], breaks: true, ...act };
  const at = Math.floor(random() * (ops.length + 1));
  return { ops: [...ops.slice(0, at), broken, ...ops.slice(at)].map(keep), fails: false };
}

/** The predicted state of the cluster after all runs have ended. */
export interface ClusterState {
  /** The sum of each counter, and its number of mutations. */
  readonly sums: number[];
  readonly counts: number[];
  /** The content of every object, by the step that created it. */
  readonly objects: Map<string, string>;
  /** Objects that existed temporarily. */
  readonly gone: Set<string>;
  /** The number of bodies without failures, excluding those of undo steps. */
  bodies: number;
}

export function emptyState(): ClusterState {
  const zeros = () => Array.from({ length: COUNTERS }, () => 0);
  return { sums: zeros(), counts: zeros(), objects: new Map(), gone: new Set(), bodies: 0 };
}

/** Adds the effects of a run on the cluster. Returns its result. */
export function predictInto(state: ClusterState, program: VerbProgram, run: string): number {
  let signals = 0;
  const addOps = (ops: readonly VerbOp[]): number => ops.reduce((sum, op) => sum + addOp(op), 0);
  const addOp = (op: VerbOp): number => {
    switch (op.kind) {
      case "sleep":
        return 0;
      case "signal":
        return (signals += 1);
      case "child": {
        const of = predictInto(state, op.program, `${run}.${op.name}`);
        return op.program.fails ? FAILED_CHILD : of;
      }
      case "all":
        return op.branches.reduce((sum, branch) => sum + addOps(branch), 0);
      case "count": {
        state.bodies += 1;
        const by = op.by.reduce((sum, one) => sum + one, 0);
        const isUndone = program.fails && op.undo;
        state.sums[op.counter] = (state.sums[op.counter] ?? 0) + (isUndone ? 0 : by);
        const mutations = op.by.length + (isUndone ? 1 : 0);
        state.counts[op.counter] = (state.counts[op.counter] ?? 0) + mutations;
        return 1;
      }
      case "apply":
      case "create":
      case "scale": {
        state.bodies += op.kind === "scale" || (op.kind === "apply" && op.later !== "keep") ? 2 : 1;
        const isGone = (program.fails && op.undo) || (op.kind === "apply" && op.later === "delete");
        const maker = makerOf(run, op.name);
        if (isGone) state.gone.add(maker);
        else state.objects.set(maker, contentOf(op));
        return 1;
      }
      case "wait": {
        state.bodies += 1;
        for (const [index, { what, afterMs }] of op.objects.entries()) {
          const isDeleted = what === "gone" && afterMs !== undefined;
          const maker = `${makerOf(run, op.name)}.${index}`;
          if (isDeleted || (program.fails && op.undo)) state.gone.add(maker);
          else state.objects.set(maker, what);
        }
        return worthOf(op);
      }
    }
  };
  return addOps(program.ops);
}

function contentOf(op: Extract<VerbOp, { kind: "apply" | "create" | "scale" }>): string {
  if (op.kind === "scale") return `${op.replicas} replicas`;
  return op.kind === "apply" && op.later === "change" ? "changed" : "made";
}

export interface Counter extends ApiObject {
  data?: Record<string, string>;
}

export const MAKER = "verb-test-maker";
export const TEST = "verb-test";
export const makerOf = (run: string, name: string) => `${run}.${name}`;
export const counterOf = (test: string, counter: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  namespace: NAMESPACE,
  name: `${test}-counter-${counter}`,
});
