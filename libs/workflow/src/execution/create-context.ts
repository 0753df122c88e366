import { createHash } from "node:crypto";
import { toMs, type Duration } from "@konverge/core";
import type {
  AnyWorkflow,
  Durable,
  Schema,
  StepContext,
  StepOptions,
  WorkflowContext,
} from "../define/define-workflow.ts";
import { roundIdOf } from "../define/run-ref.ts";
import { asCondition, type WaitCondition } from "../define/wait-condition.ts";
import { readWaitOptions, type WaitForOptions } from "../define/wait-options.ts";
import type { ExecutionScope } from "../journal/execution-scope.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { checkStepOptions } from "./check-step-options.ts";
import type { ChildStarter } from "./await-child.ts";
import {
  awaitSpread,
  begunAsSpread,
  hasSpread,
  type BegunSpreads,
  type SpreadStarter,
} from "./await-spread.ts";
import { assertAccess, awaitCondition } from "./await-condition.ts";
import { assertOutsideOfBodies, idempotencyKeyOf, runningBody } from "./run-body.ts";
import { race } from "./race.ts";
import { mapItems } from "./map-items.ts";
import type { OpenChildren } from "./open-children.ts";
import { continueWith } from "./continue-with.ts";
import { createRunVerbs } from "./run-verbs.ts";
import { runStep } from "./run-step.ts";
import { StepPermits } from "./step-permits.ts";
import { sleep, sleepUntil } from "./sleep.ts";
import { takeSignal } from "./take-signal.ts";
import { takeUpdate, type UpdateHandler } from "./take-update.ts";
import { valueOf, VerbReplay } from "./verb-replay.ts";

export interface ContextOptions {
  readonly workflow: Pick<AnyWorkflow, "name" | "input">;
  readonly scope: ExecutionScope;
  readonly journal: RunJournal;
  readonly startChild: ChildStarter;
  readonly children: OpenChildren;
  /** Default: spread steps run in this execution. */
  readonly spread?: SpreadStarter;
  /** Called with each step before it begins. Default: nothing. */
  readonly onStep?: (key: string, step: CalledStep) => void;
  /** Blocks the run if the code does not fit the records; otherwise this is a warning. */
  readonly isStrict: boolean;
}

/** A step as the function calls it. */
export interface CalledStep {
  readonly body: (step: StepContext) => unknown;
  readonly options: StepOptions<never>;
}

/** Creates the context of one execution. */
export function createContext(options: ContextOptions): WorkflowContext {
  const { scope, journal, startChild, children, onStep } = options;
  const begun: BegunSpreads = new Set();
  const { held } = journal;
  const replay = new VerbReplay(scope, journal, options.isStrict);

  const step = async (
    name: string,
    body: (step: StepContext) => unknown,
    stepOptions: StepOptions<never> = {},
  ): Promise<unknown> =>
    await replay.exclusively(name, async (key) => {
      checkStepOptions(name, stepOptions);
      const { isReplaying: isReplayed } = journal.order;
      const starter = begunAsSpread(journal, key, stepOptions) ? options.spread : undefined;
      const isSpread = starter !== undefined;
      const kind = isSpread ? "child" : "step";
      journal.undos.offer(key, { kind, options: stepOptions, isReplayed });
      onStep?.(key, { body, options: stepOptions });
      const isOver = () => scope.closed || !scope.mayWork;
      const run = () => runStep(journal, key, "step", body, { ...stepOptions, isOver });
      if (!isSpread) return valueOf(key, await replay.settle(key, "step", run));
      children.addSpread(key);
      const wait = async () => {
        // The note may be that of a child with this name, in earlier code.
        if (stepOptions.spread !== true && !(await hasSpread(journal, key, starter))) {
          return await run();
        }
        // Checked here, where the function receives the error.
        StepPermits.of(journal, key, stepOptions.limit);
        return await awaitSpread(journal, key, { starter, begun });
      };
      return valueOf(key, await replay.settle(key, "step", wait, { isSpread }));
    });

  const runs = createRunVerbs(replay, startChild, children);

  const context: WorkflowContext = {
    runId: held.id,
    round: held.run.round ?? 1,
    version: held.run.version,
    scheduledAtMs: held.run.scheduledAtMs,
    parent: held.run.parent,
    step: step as unknown as WorkflowContext["step"],
    sleep: (name, duration) => sleep(replay, name, duration) as Durable<void>,
    sleepUntil: (name, time) => sleepUntil(replay, name, time) as Durable<void>,
    signal: ((name, signalOptions) =>
      signal(replay, name, signalOptions)) as WorkflowContext["signal"],
    waitFor: ((name, condition, waitOptions) =>
      waitFor(replay, name, condition, waitOptions)) as WorkflowContext["waitFor"],
    now: (name) => now(replay, name) as Durable<number>,
    id: (name) => uuidOf(`${held.workflow}/${roundIdOf(held.run)}/${replay.nextKey(`id:${name}`)}`),
    handle: handleOf(replay),
    set: (name: string, value: unknown) => {
      assertOutsideOfBodies(name);
      journal.output.publish(name, value);
    },
    log: journal.log.logger(() => {
      const body = runningBody();
      return body === undefined ? undefined : { step: body };
    }),
    label(name, value) {
      assertOutsideOfBodies(name);
      journal.output.label(name, value);
    },
    idempotencyKey: (key) => idempotencyKeyOf(held.run, key),
    race: ((branches, { name } = {}) =>
      race(replay, children, context, { branches, name })) as WorkflowContext["race"],
    map: ((items, call, mapOptions) => mapItems(items, call, mapOptions)) as WorkflowContext["map"],
    continueWith: (input: unknown) =>
      continueWith(replay, options.workflow, input) as Durable<never>,
    ...(runs as unknown as Pick<WorkflowContext, "child" | "start" | "signalRun">),
  };
  return context;
}

async function signal(
  replay: VerbReplay,
  name: string,
  { schema, timeout }: { readonly schema?: Schema<unknown>; readonly timeout?: Duration } = {},
): Promise<unknown> {
  return await replay.exclusively(name, async (key) => {
    const timeoutMs =
      timeout === undefined ? undefined : toMs(timeout, `the timeout of signal "${name}"`);
    const isOver = replay.isOver();
    const record = await replay.settle(key, "signal", () =>
      takeSignal(replay.journal, key, name, { schema, timeoutMs, isOver }),
    );
    if (record.error?.code === "wait_timeout") return null;
    return valueOf(key, record);
  });
}

function handleOf(replay: VerbReplay): WorkflowContext["handle"] {
  const handle = async (
    name: string,
    schema: Schema<unknown>,
    answer: UpdateHandler["answer"],
    { timeout }: { readonly timeout?: Duration } = {},
  ): Promise<unknown> =>
    await replay.exclusively(name, async (key) => {
      const timeoutMs =
        timeout === undefined ? undefined : toMs(timeout, `the timeout of update "${name}"`);
      const record = await replay.settle(key, "update", () =>
        takeUpdate(replay.journal, key, name, { schema, answer, timeoutMs }),
      );
      if (record.error?.code === "wait_timeout") return null;
      return valueOf(key, record);
    });
  return handle as unknown as WorkflowContext["handle"];
}

async function waitFor(
  replay: VerbReplay,
  name: string,
  condition: WaitCondition,
  options: WaitForOptions = {},
): Promise<unknown> {
  const { journal } = replay;
  return await replay.exclusively(name, async (key) => {
    const { clusters } = journal;
    assertAccess(name, clusters);
    const how = {
      clusters,
      condition: asCondition(condition, `waitFor "${name}"`),
      ...readWaitOptions(name, options),
    };
    return valueOf(key, await replay.settle(key, "wait", () => awaitCondition(journal, key, how)));
  });
}

async function now(replay: VerbReplay, name = "now"): Promise<number | undefined> {
  const { journal } = replay;
  return await replay.exclusively(name, async (key) => {
    const record = await replay.settle(key, "now", async () => {
      const cancelled = await journal.throwCancel(key, "now");
      return cancelled ?? (await journal.commit(key, { kind: "now" }));
    });
    valueOf(key, record);
    return record.atMs;
  });
}

/** Returns a UUID of version 8 (RFC 9562) whose bits are a hash. */
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
