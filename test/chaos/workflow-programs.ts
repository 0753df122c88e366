import type { Redis } from "ioredis";
import {
  defineWorkflow,
  TerminalError,
  type Workflow,
  type WorkflowContext,
} from "@konverge/workflow";

/** A random workflow, as the input of a run. Names are unique in it, except those of signals. */
export interface Program {
  readonly ops: readonly Op[];
  /** Throws at the end, which triggers the undo steps. */
  readonly fails: boolean;
}
export type Op =
  | {
      readonly kind: "step";
      readonly name: string;
      readonly value: number;
      /** The number of failed tries before the success. */
      readonly failures: number;
      readonly takesMs: number;
      readonly undo: boolean;
    }
  | { readonly kind: "sleep"; readonly name: string; readonly ms: number }
  | { readonly kind: "signal" }
  | { readonly kind: "child"; readonly name: string; readonly program: Program }
  | { readonly kind: "all"; readonly branches: readonly (readonly Op[])[] };

/** The value of a failing child. */
export const FAILED_CHILD = 1_000;

export function makeProgram(random: () => number, depth = 0): Program {
  const below = (n: number) => Math.floor(random() * n);
  let serial = 0;
  const makeOp = (isNested: boolean): Op => {
    const name = `n${(serial += 1)}`;
    switch (below(isNested ? 2 : 6)) {
      case 0:
        return { kind: "sleep", name, ms: 1 + below(150) };
      case 2:
        return { kind: "signal" };
      case 3:
        if (depth < 1) return { kind: "child", name, program: makeProgram(random, depth + 1) };
        return { kind: "sleep", name, ms: 1 };
      case 4: {
        const branches = Array.from({ length: 2 + below(2) }, () => makeOps(1 + below(2), true));
        return { kind: "all", branches };
      }
      default:
        return {
          kind: "step",
          name,
          value: 1 + below(9),
          failures: Math.max(0, below(5) - 2),
          takesMs: below(40),
          undo: below(2) === 0,
        };
    }
  };
  const makeOps = (count: number, isNested: boolean): Op[] =>
    Array.from({ length: count }, () => makeOp(isNested));
  // Only the outermost run receives signals.
  const ops = makeOps(2 + below(5), false).filter(({ kind }) => depth === 0 || kind !== "signal");
  return { ops, fails: below(3) === 0 };
}

/** The predicted result of a program: its sum, the tries of each step and the number of consumed signals. */
export interface Prediction {
  readonly sum: number;
  readonly tries: ReadonlyMap<string, number>;
  readonly signals: number;
}

export function predict(program: Program, run: string): Prediction {
  const tries = new Map<string, number>();
  let signals = 0;
  const sumOf = (ops: readonly Op[], id: string): number =>
    ops.reduce((sum, op) => {
      switch (op.kind) {
        case "step":
          tries.set(`${id}/${op.name}`, op.failures + 1);
          return sum + op.value;
        case "sleep":
          return sum;
        case "signal":
          signals += 1;
          return sum + signals;
        case "child": {
          const of = sumOf(op.program.ops, `${id}.${op.name}`);
          return sum + (op.program.fails ? FAILED_CHILD : of);
        }
        case "all":
          return op.branches.reduce((all, branch) => all + sumOf(branch, id), sum);
      }
    }, 0);
  const sum = sumOf(program.ops, run);
  return { sum, tries, signals };
}

/** Returns the steps of a run with an undo, without those of its children. */
export function undoableOf(ops: readonly Op[]): string[] {
  return ops.flatMap((op) => {
    if (op.kind === "all") return op.branches.flatMap(undoableOf);
    return op.kind === "step" && op.undo ? [op.name] : [];
  });
}

/** Redis keys of the traces of workers. */
export function traceNames(prefix: string) {
  return {
    /** Hash: tries by run and step. */
    tries: `${prefix}:trace:tries`,
    /** Hash: the first value of a step that the code saw; and a list of later values that differ. */
    seen: `${prefix}:trace:seen`,
    changed: `${prefix}:trace:changed`,
    /** Hash: the time at which the code first continued after a sleep, epoch ms on Redis's clock. */
    woke: `${prefix}:trace:woke`,
    /** Hashes by worker: completed bodies, and the maximum number of runs with a body in progress at the same time. */
    did: `${prefix}:trace:did`,
    most: `${prefix}:trace:most`,
    /** List: undone steps. */
    undone: (run: string) => `${prefix}:trace:undone:${run}`,
  };
}

export function makeInterpreter(
  redis: Redis,
  prefix: string,
  workerId = "test",
): Workflow<Program, number> {
  const names = traceNames(prefix);
  /** Running bodies, without those that have lost their run. */
  const atWork = new Map<AbortSignal, string>();
  let most = 0;
  const interpreter: Workflow<Program, number> = defineWorkflow(
    "program",
    { version: 1 },
    async (w, program: Program) => {
      const sum = await runOps(w, program.ops);
      if (program.fails) throw new TerminalError(`as planned: ${sum}`);
      return sum;
    },
  );
  const runOps = async (w: WorkflowContext, ops: readonly Op[]): Promise<number> => {
    let sum = 0;
    for (const op of ops) sum += await runOp(w, op);
    return sum;
  };
  const runOp = async (w: WorkflowContext, op: Op): Promise<number> => {
    switch (op.kind) {
      case "step":
        return await runStep(w, op);
      case "sleep":
        await w.sleep(op.name, op.ms);
        void noteWoke(`${w.runId}/${op.name}`);
        return 0;
      case "signal":
        return await w.signal<number>("signal");
      case "child":
        return await w.child(op.name, interpreter, op.program).catch(() => FAILED_CHILD);
      case "all": {
        const sums = await Promise.all(op.branches.map((branch) => runOps(w, branch)));
        return sums.reduce((all, one) => all + one, 0);
      }
    }
  };
  const noteSeen = async (id: string, nonce: string) => {
    if ((await redis.hsetnx(names.seen, id, nonce)) === 1) return;
    if ((await redis.hget(names.seen, id)) !== nonce) await redis.rpush(names.changed, id);
  };
  const noteWoke = async (id: string) => {
    const [seconds, us] = await redis.time();
    await redis.hsetnx(names.woke, id, Number(seconds) * 1_000 + Math.floor(Number(us) / 1_000));
  };
  const noteAtWork = async () => {
    const live = [...atWork].filter(([signal]) => !signal.aborted);
    const runs = new Set(live.map(([, run]) => run)).size;
    if (runs <= most) return;
    most = runs;
    await redis.hset(names.most, workerId, most);
  };
  const runStep = async (w: WorkflowContext, op: Extract<Op, { kind: "step" }>) => {
    const { name, value, failures, takesMs, undo } = op;
    const id = `${w.runId}/${name}`;
    const result = await w.step(
      name,
      async ({ attempt, signal }) => {
        atWork.set(signal, w.runId);
        try {
          await noteAtWork();
          await redis.hincrby(names.tries, id, 1);
          await new Promise((resolve) => setTimeout(resolve, takesMs));
          await redis.hincrby(names.did, workerId, 1);
          if (attempt <= failures) throw new Error("as planned");
          return { value, nonce: Math.random() };
        } finally {
          atWork.delete(signal);
        }
      },
      {
        retry: {
          policy: { baseMs: 5, factor: 1, capMs: 5, steps: Infinity, jitter: { kind: "full" } },
        },
        ...(undo
          ? { undo: async () => void (await redis.rpush(names.undone(w.runId), name)) }
          : {}),
      },
    );
    // Not allowed in a workflow function, but the subject of the test. It is not awaited.
    void noteSeen(id, String(result.nonce));
    return result.value;
  };
  return interpreter;
}
