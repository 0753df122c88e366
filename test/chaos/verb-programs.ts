import { TerminalError, type ApiObject } from "@konverge/core";
import {
  defineWorkflow,
  type ObjectRef,
  type StepContext,
  type Workflow,
  type WorkflowContext,
} from "@konverge/workflow";

/** A random workflow whose steps change objects of a cluster, as the input of a run. */
export interface VerbProgram {
  readonly ops: readonly VerbOp[];
  /** Throws at its end, so that it is undone. */
  readonly fails: boolean;
}

interface Act {
  readonly name: string;
  readonly undo: boolean;
  /** Before and behind the verb, so that workers die there. */
  readonly takesMs: number;
}
type VerbOp =
  /** Adds to a counter that all runs share, in one or two mutations of one step. */
  | ({
      readonly kind: "count";
      readonly counter: number;
      readonly by: readonly number[];
      /** The step fails behind them, until all is healed. */
      readonly breaks?: boolean;
    } & Act)
  /** Applies an object of its own, and perhaps something else behind that. */
  | ({ readonly kind: "apply"; readonly later: "keep" | "change" | "delete" } & Act)
  | ({ readonly kind: "create" } & Act)
  | ({ readonly kind: "scale"; readonly replicas: number } & Act)
  | { readonly kind: "sleep"; readonly name: string; readonly ms: number }
  | { readonly kind: "child"; readonly name: string; readonly program: VerbProgram }
  | { readonly kind: "all"; readonly branches: readonly (readonly VerbOp[])[] };

/** Where workers count the bodies that they begin. */
/** Where it stands that steps which break do so no more. */
export const healedOf = (prefix: string) => `${prefix}:trace:healed`;
export const bodiesOf = (prefix: string) => `${prefix}:trace:bodies`;
export const COUNTERS = 3;
export const NAMESPACE = "default";
const FAILED_CHILD = 1_000;

export function makeVerbProgram(random: () => number, depth = 0): VerbProgram {
  const below = (n: number) => Math.floor(random() * n);
  let serial = 0;
  const makeOp = (isNested: boolean): VerbOp => {
    const name = `n${(serial += 1)}`;
    const act = { name, undo: below(2) === 0, takesMs: below(40) };
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
      default: {
        const by = Array.from({ length: 1 + below(2) }, () => 1 + below(9));
        return { kind: "count", counter: below(COUNTERS), by, ...act };
      }
    }
  };
  const makeOps = (count: number, isNested: boolean): VerbOp[] =>
    Array.from({ length: count }, () => makeOp(isNested));
  return { ops: makeOps(2 + below(4), false), fails: below(3) === 0 };
}

/** A program whose run fails at one step, with nothing undone, so that it can go on from there. */
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

/** What the cluster must look like when all runs have ended. */
export interface ClusterState {
  /** Sum of each counter, and how many mutations made it. */
  readonly sums: number[];
  readonly counts: number[];
  /** What every object holds, by the step that made it. */
  readonly objects: Map<string, string>;
  /** Objects that were there for a while. */
  readonly gone: Set<string>;
  /** Bodies that do all this when nothing goes wrong, those of undos left out. */
  bodies: number;
}

export function emptyState(): ClusterState {
  const zeros = () => Array.from({ length: COUNTERS }, () => 0);
  return { sums: zeros(), counts: zeros(), objects: new Map(), gone: new Set(), bodies: 0 };
}

/** Adds what a run does to the cluster. Answers its result. */
export function predictInto(state: ClusterState, program: VerbProgram, run: string): number {
  const addOps = (ops: readonly VerbOp[]): number => ops.reduce((sum, op) => sum + addOp(op), 0);
  const addOp = (op: VerbOp): number => {
    switch (op.kind) {
      case "sleep":
        return 0;
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
const makerOf = (run: string, name: string) => `${run}.${name}`;
export const counterOf = (test: string, counter: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  namespace: NAMESPACE,
  name: `${test}-counter-${counter}`,
});

export interface InterpreterOptions {
  readonly version?: number;
  /** Told of each body that begins. */
  readonly onBody?: () => Promise<unknown>;
  readonly isHealed?: () => Promise<boolean>;
}

/** The workflow that does what a program says. */
export function makeVerbInterpreter(
  test: string,
  {
    version = 1,
    onBody = async () => undefined,
    isHealed = async () => true,
  }: InterpreterOptions = {},
): Workflow<VerbProgram, number> {
  const accepts = Array.from({ length: version - 1 }, (_, before) => before + 1);
  const interpreter: Workflow<VerbProgram, number> = defineWorkflow(
    "verbs",
    { version, accepts },
    async (w, program: VerbProgram) => {
      const sum = await runOps(w, program.ops);
      if (program.fails) throw new Error(`as planned: ${sum}`);
      return sum;
    },
  );
  const runOps = async (w: WorkflowContext, ops: readonly VerbOp[]): Promise<number> => {
    let sum = 0;
    for (const op of ops) sum += await runOp(w, op);
    return sum;
  };
  const runOp = async (w: WorkflowContext, op: VerbOp): Promise<number> => {
    switch (op.kind) {
      case "sleep":
        await w.sleep(op.name, op.ms);
        return 0;
      case "child":
        return await w.child(op.name, interpreter, op.program).catch(() => FAILED_CHILD);
      case "all": {
        const sums = await Promise.all(op.branches.map((branch) => runOps(w, branch)));
        return sums.reduce((all, one) => all + one, 0);
      }
      case "count":
        await runCount(w, op);
        return 1;
      case "apply":
        await runApply(w, op);
        return 1;
      case "create":
        await runCreate(w, op);
        return 1;
      case "scale":
        await runScale(w, op);
        return 1;
    }
  };
  const labels = (w: WorkflowContext, name: string) => ({
    [TEST]: test,
    [MAKER]: makerOf(w.runId, name),
  });
  const runCount = async (
    w: WorkflowContext,
    { name, counter, by, undo, takesMs, breaks = false }: Extract<VerbOp, { kind: "count" }>,
  ) => {
    const target = counterOf(test, counter);
    const add = (value: number) => (draft: Counter) => {
      const { sum = "0", count = "0" } = draft.data ?? {};
      draft.data = { sum: String(Number(sum) + value), count: String(Number(count) + 1) };
    };
    const whole = by.reduce((sum, one) => sum + one, 0);
    await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        for (const value of by) await k.mutate<Counter>(target, add(value));
        if (breaks && !(await isHealed())) throw new TerminalError("broken, as planned");
        await pause(takesMs);
      },
      undo ? { undo: async (_, k) => void (await k.mutate<Counter>(target, add(-whole))) } : {},
    );
  };
  const runApply = async (
    w: WorkflowContext,
    { name, later, undo, takesMs }: Extract<VerbOp, { kind: "apply" }>,
  ) => {
    const object = (content: string) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        namespace: NAMESPACE,
        name: `${test}-${makerOf(w.runId, name)}`,
        labels: labels(w, name),
      },
      data: { content },
    });
    const ref = await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        const made = await k.apply(object("made"));
        await pause(takesMs);
        return made;
      },
      undo ? { undo: (made, k) => k.delete(made ?? object("made")) } : {},
    );
    if (later === "change") {
      await w.step(`${name} change`, async (k) => {
        await onBody();
        return await k.apply(object("changed"), { uid: ref.uid });
      });
    }
    if (later === "delete") {
      await w.step(`${name} delete`, async (k) => {
        await onBody();
        await k.delete(ref);
      });
    }
  };
  const runCreate = async (
    w: WorkflowContext,
    { name, undo, takesMs }: Extract<VerbOp, { kind: "create" }>,
  ) => {
    await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        const made = await k.create({
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: {
            namespace: NAMESPACE,
            generateName: `${test}-`,
            labels: labels(w, name),
          },
          data: { content: "made" },
        });
        await pause(takesMs);
        return made;
      },
      undo ? { undo: (made, k) => deleteMade(made, k) } : {},
    );
  };
  const runScale = async (
    w: WorkflowContext,
    { name, replicas, undo, takesMs }: Extract<VerbOp, { kind: "scale" }>,
  ) => {
    const matchLabels = labels(w, name);
    const ref = await w.step(
      name,
      async (k) => {
        await onBody();
        return await k.create({
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { namespace: NAMESPACE, generateName: `${test}-`, labels: matchLabels },
          spec: {
            selector: { matchLabels },
            template: {
              metadata: { labels: matchLabels },
              spec: { containers: [{ name: "main", image: "main" }] },
            },
          },
        });
      },
      undo ? { undo: (made, k) => deleteMade(made, k) } : {},
    );
    await w.step(`${name} scale`, async (k) => {
      await onBody();
      await pause(takesMs);
      await k.scale(ref, replicas);
    });
  };
  return interpreter;
}

async function deleteMade(made: ObjectRef | undefined, k: StepContext): Promise<void> {
  if (made !== undefined) await k.delete(made);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
