import { createHash } from "node:crypto";
import { isKonvergeError, TerminalError } from "@konverge/core";
import {
  defineWorkflow,
  type StepContext,
  type Workflow,
  type WorkflowContext,
} from "../../../libs/workflow/src/define/define-workflow.ts";

export interface StepOp {
  readonly kind: "step";
  readonly name: string;
  /** Tries that fail before the first success. */
  readonly failures: number;
  readonly attempts: number;
  /** Delay between tries, ms. */
  readonly delayMs: number;
  /** Turns of the event loop of each try. */
  readonly turns: number;
  /** Heartbeats of each try. */
  readonly beats: number;
  /** True if it has a `heartbeatTimeout`, so that a try counts although its worker was lost. */
  readonly isWatched: boolean;
  readonly undo: boolean;
  /** True if it may run in another worker. */
  readonly spread: boolean;
  /** Tries of the undo that fail before the first success. */
  readonly undoFailures: number;
}

/** Names are unique in a program. */
export type Op =
  | StepOp
  | { readonly kind: "sleep"; readonly name: string; readonly ms: number }
  | { readonly kind: "signal"; readonly name: string; readonly timeoutMs?: number }
  | { readonly kind: "now"; readonly name: string }
  | {
      readonly kind: "child";
      readonly name: string;
      readonly takesMs: number;
      readonly fails: boolean;
      /** Cancellations that it catches. It ends with the next one. */
      readonly catches: number;
    }
  | { readonly kind: "fail"; readonly name: string }
  /** Continues with a branch that depends on all answers so far. */
  | { readonly kind: "choose"; readonly branches: readonly (readonly Op[])[] }
  | {
      readonly kind: "all" | "race" | "any" | "allSettled" | "wRace";
      readonly name: string;
      readonly branches: readonly (readonly Op[])[];
    };

/** A call of the function on its context. */
export type Verb = Extract<Op, { readonly kind: "step" | "sleep" | "signal" | "now" | "child" }>;

/** One round of a run. */
export type Program = readonly Op[];

const COMBINATORS = ["all", "race", "any", "allSettled", "wRace"] as const;
const MAX_OPS = 40;

/** Makes the random programs of the rounds of a run, with branches of different length. */
export function makeRounds(random: () => number): readonly Program[] {
  const below = (n: number) => Math.floor(random() * n);
  const rounds = below(4) === 0 ? 2 + below(2) : 1;
  let serial = 0;
  const makeStep = (name: string): StepOp => {
    const attempts = 1 + below(3);
    return {
      kind: "step",
      name,
      attempts,
      failures: below(3) === 0 ? 1 + below(attempts) : 0,
      delayMs: below(2) === 0 ? 60_000 : 100,
      turns: below(6),
      beats: below(3) === 0 ? 1 + below(3) : 0,
      isWatched: below(3) === 0,
      undo: below(3) > 0,
      spread: below(4) === 0 && rounds === 1,
      undoFailures: below(5) === 0 ? 1 + below(6) : 0,
    };
  };
  const makeOp = (depth: number): Op => {
    const name = `n${(serial += 1)}`;
    const draw = below(depth === 0 ? 14 : 18 - depth);
    if (draw < 6) return makeStep(name);
    if (draw === 6) return { kind: "sleep", name, ms: below(5) * 30_000 };
    if (draw === 7) return { kind: "signal", name };
    if (draw === 8) return { kind: "signal", name, timeoutMs: 1 + below(5) * 30_000 };
    if (draw === 9) return { kind: "now", name };
    if (draw === 10) {
      const takesMs = below(5) * 20_000;
      return { kind: "child", name, takesMs, fails: below(3) === 0, catches: below(3) };
    }
    if (draw === 11 && below(2) === 0) return { kind: "fail", name };
    if (draw >= 12 && depth < 3 && serial < MAX_OPS) {
      const branches = Array.from({ length: 2 + below(3) }, () => makeOps(below(6), depth + 1));
      const kind = COMBINATORS[below(COMBINATORS.length)] ?? "all";
      return below(5) === 0 ? { kind: "choose", branches } : { kind, name, branches };
    }
    return makeStep(name);
  };
  const makeOps = (length: number, depth: number): Op[] =>
    Array.from({ length: serial < MAX_OPS ? length : 0 }, () => makeOp(depth));
  const programs = Array.from({ length: rounds }, () => makeOps(2 + below(5), 0));
  // Few of the programs above fail after a race, or beside a spread step at work.
  if (rounds > 1 || below(4) > 0) return programs;
  const name = `n${(serial += 1)}`;
  const begun = { ...makeStep(`n${(serial += 1)}`), undo: true, turns: 5 + below(10) };
  const other = { ...makeStep(`n${(serial += 1)}`), failures: 0 };
  const fail = { kind: "fail", name: `n${(serial += 1)}` } as const;
  const end: readonly Op[] =
    below(2) === 0
      ? [{ kind: "all", name, branches: [[{ ...begun, spread: true }], [other, fail]] }]
      : [{ kind: "wRace", name, branches: [[{ ...begun, spread: false }], [other]] }, fail];
  return programs.map((ops) => [...ops.slice(0, below(3)), ...end]);
}

/** All operations, nested ones included. */
export function opsOf(program: Program): readonly Op[] {
  return program.flatMap((op) => ["branches" in op ? op.branches.flatMap(opsOf) : [], op].flat());
}

/** Returns the program with another name for one of its steps. */
export function rename(program: Program, name: string): Program {
  return program.map((op) => {
    if ("branches" in op) return { ...op, branches: op.branches.map((ops) => rename(ops, name)) };
    return op.name === name ? { ...op, name: `${name}-renamed` } : op;
  });
}

/** The bodies of steps and undos, and what the function of an execution sees. */
export interface Player {
  body(op: StepOp, context: StepContext): Promise<unknown>;
  undo(op: StepOp, context: StepContext): Promise<void>;
  /** Called with each verb, before it is called. */
  asked(op: Verb): void;
  /** Called with each answer, in the order in which the function receives them. */
  answered(name: string, answer: string): void;
  /** Called with what branches contain that have lost a race: their verbs do not answer, and their bodies are aborted. */
  lost(ops: readonly Op[]): void;
  /** Returns after a time that differs between executions, as code does on another machine, with a value that differs as well. */
  compute(): Promise<number>;
  /** Called when the function returns or throws. */
  ended(): void;
  readonly answers: readonly string[];
}

const CHILD = defineWorkflow<unknown, null>("child", { version: 1 }, async () => null);

/** Makes the workflow that plays the program of a round, and then the next round. */
export function workflowOf(
  program: Program,
  player: Player,
  { strict, rounds }: { readonly strict: boolean; readonly rounds: number },
): Workflow {
  return defineWorkflow<unknown, string>("program", { version: 1, strict }, async (w) => {
    try {
      await playOps(w, program, player);
    } finally {
      player.ended();
    }
    if (w.round < rounds) return await w.continueWith(w.round + 1);
    return player.answers.join();
  });
}

async function playOps(w: WorkflowContext, ops: readonly Op[], player: Player): Promise<void> {
  for (const op of ops) await playOp(w, op, player);
}

async function playOp(w: WorkflowContext, op: Op, player: Player): Promise<void> {
  switch (op.kind) {
    case "fail":
      throw new TerminalError(`${op.name} fails as planned`);
    case "choose": {
      const hash = createHash("sha256").update(player.answers.join()).digest().readUInt32BE();
      return await playOps(w, op.branches[hash % op.branches.length] ?? [], player);
    }
    case "wRace":
      return await answer(player, op.name, raceOn(w, op, player));
    case "all":
    case "race":
    case "any":
    case "allSettled": {
      const branches = op.branches.map(async (branch, at) => {
        await playOps(w, branch, player);
        return at;
      });
      return await answer(player, op.name, combine(op.kind, branches));
    }
    case "step":
    case "sleep":
    case "signal":
    case "now":
    case "child":
      player.asked(op);
      return await answer(player, op.name, callVerb(w, op, player));
  }
}

/** Returns the name of the branch that was first, with its value. */
async function raceOn(
  w: WorkflowContext,
  { name, branches }: { readonly name: string; readonly branches: readonly (readonly Op[])[] },
  player: Player,
): Promise<string> {
  let failed: string | undefined;
  const calls = branches.map((branch, at) => {
    const call = async (): Promise<number> => {
      try {
        await playOps(w, branch, player);
      } catch (error) {
        failed ??= `b${at}`;
        throw error;
      }
      return await player.compute();
    };
    return [`b${at}`, call] as const;
  });
  const lose = (winner: string | undefined) =>
    player.lost(branches.flatMap((branch, at) => (`b${at}` === winner ? [] : opsOf(branch))));
  try {
    const first = await w.race(Object.fromEntries(calls), { name });
    lose(first.branch);
    return `${first.branch}/${first.value}`;
  } catch (error) {
    if (codeOf(error) !== "cancelled") lose(failed);
    throw error;
  }
}

/** A combinator's answer; never with the errors themselves, whose text may have a path. */
async function combine(
  how: "all" | "race" | "any" | "allSettled",
  branches: readonly Promise<number>[],
): Promise<unknown> {
  switch (how) {
    case "all":
      return await Promise.all(branches);
    case "race":
      return branches.length === 0 ? null : await Promise.race(branches);
    case "any":
      return await Promise.any(branches).catch((error: unknown) => {
        const errors = error instanceof AggregateError ? (error.errors as unknown[]) : [];
        throw new TerminalError(`all failed: ${errors.map(codeOf).join()}`);
      });
    case "allSettled":
      return (await Promise.allSettled(branches)).map(({ status }) => status);
  }
}

async function callVerb(w: WorkflowContext, op: Verb, player: Player): Promise<unknown> {
  switch (op.kind) {
    case "step": {
      const { delayMs: capMs, attempts } = op;
      const jitter = { kind: "none" } as const;
      const policy = { baseMs: capMs, factor: 1, capMs, steps: 100, jitter };
      const undo = op.undo
        ? { undo: async (_: unknown, k: StepContext) => await player.undo(op, k) }
        : {};
      return await w.step(op.name, async (k) => (await player.body(op, k)) as string, {
        retry: { attempts, policy },
        spread: op.spread,
        // Longer than a program takes: no try is silent.
        ...(op.isWatched ? { heartbeatTimeout: "1h" } : {}),
        ...undo,
      });
    }
    case "sleep":
      return await w.sleep(op.name, op.ms);
    case "signal":
      return op.timeoutMs === undefined
        ? await w.signal(op.name)
        : await w.signal(op.name, { timeout: op.timeoutMs });
    case "now":
      return await w.now(op.name);
    case "child":
      return await w.child(op.name, CHILD, null);
  }
}

async function answer(player: Player, name: string, asked: Promise<unknown>): Promise<void> {
  try {
    const value = JSON.stringify(await asked) ?? "void";
    player.answered(name, `${name}=${value}`);
  } catch (error) {
    player.answered(name, `${name}!${codeOf(error)}`);
    throw error;
  }
}

function codeOf(error: unknown): string {
  return isKonvergeError(error) ? error.code : String(error);
}
