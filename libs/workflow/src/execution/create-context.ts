import type { Advance } from "./advance.ts";
import { createHash } from "node:crypto";
import {
  defined,
  ensureError,
  isKonvergeError,
  KonvergeError,
  toMs,
  type Duration,
} from "@konverge/core";
import { never, type ExecutionScope } from "../journal/execution-scope.ts";
import type {
  Durable,
  Schema,
  StepContext,
  StepOptions,
  AnyWorkflow,
  WorkflowContext,
} from "../define/define-workflow.ts";
import { awaitChild } from "./await-child.ts";
import type { ChildStarter } from "./await-child.ts";
import { assertOutsideOfBodies, idempotencyKeyOf } from "./run-body.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { RunWait, StepKind, StepRecord } from "../store/run-record.ts";
import { runStep } from "./run-step.ts";
import { errorOf } from "./step-failed-error.ts";
import { takeSignal } from "./take-signal.ts";
import { assertAccess, awaitCondition } from "./await-condition.ts";
import { asCondition, type WaitCondition } from "../define/wait-condition.ts";
import { readWaitOptions, type WaitForOptions } from "../define/wait-options.ts";

/** A step to take back, should the run fail. */
export interface Undo {
  readonly step: string;
  readonly seq: number;
  readonly result: unknown;
  readonly options: StepOptions<never>;
}

export interface ContextOptions {
  readonly scope: ExecutionScope;
  readonly journal: RunJournal;
  readonly startChild: ChildStarter;
  /** Told of each step that has an undo and a record. */
  readonly onUndo: (undo: Undo) => void;
}

/** Not in names: they part a name from its number, its progress and its refused signals. */
const FORBIDDEN = /[#~!\p{Cc}]|^undo:/u;
const MAX_NAME = 200;
/** Behind the name of a sleep whose time is set, for what ends it early. */
const OVER = /!over$/;

const FAULTS_OF_THE_FUNCTION: ReadonlySet<string> = new Set(["invalid_result", "invalid_workflow"]);

/** The context of one activation: verbs answer from the journal, and go on where it ends. */
export function createContext(options: ContextOptions): WorkflowContext {
  const { scope, journal, startChild, onUndo } = options;
  const { held } = journal;
  const met = new Map<string, number>();
  const open = new Set<string>();

  const nextKey = (name: string, isWaiting: boolean): string => {
    assertOutsideOfBodies(name);
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME || FORBIDDEN.test(name)) {
      throw new KonvergeError(
        "invalid_workflow",
        `name "${name}" must be 1 to ${MAX_NAME} characters without #, ~, ! and line breaks, and not begin with "undo:"`,
      );
    }
    if (open.has(name)) {
      throw new KonvergeError(
        "invalid_workflow",
        `"${name}" is called while another "${name}" goes on: give steps that run at once names of their own`,
      );
    }
    if (isWaiting) open.add(name);
    const count = (met.get(name) ?? 0) + 1;
    met.set(name, count);
    return count === 1 ? name : `${name}#${count}`;
  };

  /** The name is taken until `verb` has ended. */
  const exclusively = async <T>(name: string, verb: (key: string) => Promise<T>): Promise<T> => {
    const key = nextKey(name, true);
    try {
      return await verb(key);
    } finally {
      open.delete(name);
    }
  };

  /** Answers the record of a step, made now if it is not there; or never. */
  const settle = async (
    key: string,
    kind: StepKind,
    advance: () => Promise<Advance>,
  ): Promise<StepRecord> => {
    if (scope.closed) return await never();
    const known = journal.get(key);
    if (known !== undefined && known.kind !== kind) {
      return await scope.interrupt({
        kind: "blocked",
        reason:
          `the journal has "${key}" as a ${known.kind}, the code now makes it a ${kind}: ` +
          "give it another name, or bring the old code back; the run goes on by itself when the code fits",
      });
    }
    return known ?? (await go({ step: key.replace(OVER, ""), kind }, advance));
  };

  const go = async (wait: RunWait, advance: () => Promise<Advance>): Promise<StepRecord> => {
    // Once the run is failing, its function only tells which steps can be taken back.
    if (held.failing !== undefined) return await scope.block();
    journal.assertRoom();
    const sinceMs = journal.begin(wait.step);
    let advanced: Advance;
    try {
      advanced = await scope.run(advance);
    } catch (thrown) {
      const error = ensureError(thrown);
      // What the function gave is at fault, and would be again.
      if (isKonvergeError(error) && FAULTS_OF_THE_FUNCTION.has(error.code)) throw error;
      return await scope.interrupt(journal.interruptOf(error));
    }
    if (!("waitUntilMs" in advanced)) return advanced;
    const { waitUntilMs: untilMs, message, child, objects } = advanced;
    const until = untilMs === undefined ? {} : { untilMs };
    const words = {
      ...defined({ message, child }),
    };
    return await scope.block({ ...wait, sinceMs, ...until, ...words }, objects);
  };

  const valueOf = (key: string, { error, value }: StepRecord): unknown => {
    if (error !== undefined) throw errorOf(key, error);
    return value;
  };

  const step = async (
    name: string,
    body: (step: StepContext) => unknown,
    stepOptions: StepOptions<never> = {},
  ): Promise<unknown> =>
    await exclusively(name, async (key) => {
      const record = await settle(key, "step", () =>
        runStep(journal, key, "step", body, stepOptions),
      );
      const mayHaveActed = record.error === undefined || (record.attempts ?? 0) > 0;
      if (stepOptions.undo !== undefined && mayHaveActed) {
        onUndo({ step: key, seq: record.seq ?? 0, result: record.value, options: stepOptions });
      }
      return valueOf(key, record);
    });

  const sleep = async (name: string, duration: Duration): Promise<void> =>
    await exclusively(name, async (key) => {
      const sleepMs = toMs(duration, `the duration of sleep "${name}"`);
      const record = await settle(key, "sleep", async () => {
        const cancelled = await journal.throwCancel(key, "sleep");
        return cancelled ?? (await journal.commit(key, { kind: "sleep" }, { sleepMs }));
      });
      valueOf(key, record);
      const { untilMs = 0 } = record;
      // The record cannot change, so a cancellation during the sleep has one of its own.
      const over = `${key}!over`;
      const isOver = journal.get(over) === undefined && untilMs <= journal.nowMs();
      if (isOver) return;
      const advance = async () =>
        (await journal.throwCancel(over, "sleep")) ?? { waitUntilMs: untilMs };
      valueOf(key, await settle(over, "sleep", advance));
    });

  const signal = async (
    name: string,
    { schema, timeout }: { readonly schema?: Schema<unknown>; readonly timeout?: Duration } = {},
  ): Promise<unknown> =>
    await exclusively(name, async (key) => {
      const timeoutMs =
        timeout === undefined ? undefined : toMs(timeout, `the timeout of signal "${name}"`);
      const record = await settle(key, "signal", () =>
        takeSignal(journal, key, name, { schema, timeoutMs }),
      );
      if (record.error?.code === "wait_timeout") return null;
      const value = valueOf(key, record);
      return schema === undefined ? value : schema.parse(value);
    });

  const waitFor = async (
    name: string,
    condition: WaitCondition,
    waitOptions: WaitForOptions = {},
  ): Promise<unknown> =>
    await exclusively(name, async (key) => {
      const { clusters } = journal;
      assertAccess(name, clusters);
      const how = {
        clusters,
        condition: asCondition(condition, `waitFor "${name}"`),
        ...readWaitOptions(name, waitOptions),
      };
      return valueOf(key, await settle(key, "wait", () => awaitCondition(journal, key, how)));
    });

  const now = async (name = "now"): Promise<unknown> =>
    await exclusively(name, async (key) => {
      const record = await settle(key, "now", async () => {
        const cancelled = await journal.throwCancel(key, "now");
        return cancelled ?? (await journal.commit(key, { kind: "now" }));
      });
      valueOf(key, record);
      return record.atMs;
    });

  const child = async (name: string, workflow: AnyWorkflow, input: unknown): Promise<unknown> =>
    await exclusively(name, async (key) => {
      const record = await settle(key, "child", () =>
        awaitChild(journal, key, { workflow, input, start: startChild }),
      );
      return valueOf(key, record);
    });

  return {
    runId: held.id,
    version: held.run.version,
    step: step as WorkflowContext["step"],
    sleep: sleep as (...args: Parameters<typeof sleep>) => Durable<void>,
    signal: signal as WorkflowContext["signal"],
    waitFor: waitFor as unknown as WorkflowContext["waitFor"],
    now: now as WorkflowContext["now"],
    id(name) {
      return uuidOf(`${held.workflow}/${held.id}/${nextKey(`id:${name}`, false)}`);
    },
    idempotencyKey: (key) => idempotencyKeyOf(held, key),
    child: child as unknown as WorkflowContext["child"],
  };
}

/** A UUID of version 8 (RFC 9562): its bits are a hash. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join("-");
}
