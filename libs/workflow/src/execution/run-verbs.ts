import { defined, isKonvergeError, KonvergeError } from "@konverge/core";
import type { AnyWorkflow, ChildOptions, StartRunOptions } from "../define/define-workflow.ts";
import type { OnExisting } from "../define/on-existing.ts";
import { childIdOf, isRunId, roundIdOf, type RunRef } from "../define/run-ref.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { Failure } from "../store/run-record.ts";
import { assertSameInput } from "../store/same-input.ts";
import type { Advance } from "./advance.ts";
import { awaitChild, type ChildStarter } from "./await-child.ts";
import type { OpenChildren } from "./open-children.ts";
import { valueOf, type VerbReplay } from "./verb-replay.ts";

const ON_EXISTING: readonly OnExisting[] = ["attach", "reject", "supersede", "queue"];
/** Errors of a start that would be the same in each try. */
const REFUSED_STARTS: ReadonlySet<string> = new Set(["run_exists", "queue_full", "input_mismatch"]);

interface RunVerbs {
  child(
    name: string,
    workflow: AnyWorkflow,
    input: unknown,
    options?: ChildOptions<never>,
  ): Promise<unknown>;
  start(
    name: string,
    workflow: AnyWorkflow,
    input: unknown,
    options?: StartRunOptions,
  ): Promise<unknown>;
  signalRun(name: string, run: RunRef, signal: string, payload?: unknown): Promise<unknown>;
}

/** Creates the verbs that start and signal other runs. */
export function createRunVerbs(
  replay: VerbReplay,
  starter: ChildStarter,
  children: OpenChildren,
): RunVerbs {
  const { journal } = replay;
  const refOf = (workflow: AnyWorkflow, key: string) => ({
    workflow: workflow.name,
    id: childIdOf(roundIdOf(journal.held.run), key),
  });
  return {
    async child(name, workflow, input, { undo, onParentClose = "cancel" } = {}) {
      return await replay.exclusively(name, async (key) => {
        journal.assertFits(key, { kind: "child", value: input });
        const { isReplaying: isReplayed } = journal.order;
        journal.undos.offer(key, { kind: "child", options: defined({ undo }), isReplayed });
        const ref = refOf(workflow, key);
        if (onParentClose !== "abandon") children.add(key, { ref, onParentClose });
        const how = { ref, workflow, input, start: starter, onParentClose };
        return valueOf(key, await replay.settle(key, "child", () => awaitChild(journal, key, how)));
      });
    },

    async start(name, workflow, input, options = {}) {
      return await replay.exclusively(name, async (key) => {
        journal.assertFits(key, { kind: "child", value: input });
        checkStart(name, options);
        const ref = refOf(workflow, key);
        const begin = () => startRun(journal, key, { ref, workflow, input, options, starter });
        return valueOf(key, await replay.settle(key, "child", begin));
      });
    },

    async signalRun(name, run, signal, payload) {
      return await replay.exclusively(name, async (key) => {
        journal.assertFits(key, { kind: "step", value: payload });
        const send = () => sendSignal(journal, key, { run, signal, payload, starter });
        return valueOf(key, await replay.settle(key, "step", send));
      });
    },
  };
}

/** @throws KonvergeError `invalid_workflow` */
function checkStart(name: string, { id, key, onExisting }: StartRunOptions): void {
  const refuse = (detail: string): never => {
    throw new KonvergeError("invalid_workflow", `start "${name}": ${detail}`);
  };
  for (const [option, value] of Object.entries({ id, key })) {
    if (value !== undefined && !isRunId(value)) {
      refuse(`${option} must have 1 to 500 characters without spaces and control characters`);
    }
  }
  if (onExisting === undefined) return;
  if (!ON_EXISTING.includes(onExisting)) {
    refuse(`onExisting must be one of ${ON_EXISTING.join(", ")}`);
  }
  if (key === undefined) refuse("onExisting needs a key");
}

/** Starts another run. A refused start is the failure of the step, since a repetition would be refused as well. */
async function startRun(
  journal: RunJournal,
  key: string,
  {
    ref,
    workflow: { version },
    input,
    options,
    starter,
  }: {
    ref: RunRef;
    workflow: AnyWorkflow;
    input: unknown;
    options: StartRunOptions;
    starter: ChildStarter;
  },
): Promise<Advance> {
  const cancelled = await journal.throwCancel(key, "child");
  if (cancelled !== undefined) return cancelled;
  const { workflow, id } = journal.held;
  const run = { ...ref, ...defined(options), version, input, by: `run ${workflow}/${id}` };
  try {
    const started = await starter.start(run);
    if (options.id !== undefined && "status" in started) assertSameInput(started, input);
    const child = { workflow: ref.workflow, id: started.id };
    return await journal.commit(key, { kind: "child", value: child, child });
  } catch (error) {
    if (!isKonvergeError(error) || !REFUSED_STARTS.has(error.code)) throw error;
    const { code, message } = error;
    return await journal.commit(key, { kind: "child", error: { code, message } });
  }
}

async function sendSignal(
  journal: RunJournal,
  key: string,
  sent: { run: RunRef; signal: string; payload: unknown; starter: ChildStarter },
): Promise<Advance> {
  const cancelled = await journal.throwCancel(key, "step");
  if (cancelled !== undefined) return cancelled;
  const { run, signal: name, payload, starter } = sent;
  const sender = `${journal.held.workflow}/${journal.held.id}`;
  // A repeated call is the same signal.
  const id = `${journal.held.workflow}/${roundIdOf(journal.held.run)}/${key}`;
  const by = `run ${sender}`;
  const stored = await starter.signal(run, { name, id, by, ...defined({ payload }) });
  const error = refusalOf(run, stored);
  return await journal.commit(key, { kind: "step", ...defined({ error }) });
}

function refusalOf(
  { workflow, id }: RunRef,
  stored: Awaited<ReturnType<ChildStarter["signal"]>>,
): Failure | undefined {
  const run = `run ${id} of "${workflow}"`;
  switch (stored) {
    case "stored":
    case "buffered":
    case "duplicate":
      return undefined;
    case "ended":
      return { code: "run_ended", message: `${run} has ended` };
    case "missing":
      return { code: "not_found", message: `${run} does not exist` };
    case "full":
      return { code: "queue_full", message: `${run} has too many unconsumed signals` };
  }
}
