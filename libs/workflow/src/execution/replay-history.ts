import { defined, ensureError, jsonEquals, KonvergeError, type PayloadCodec } from "@konverge/core";
import { decodeHistory } from "../codec/run-values.ts";
import { isCodecError } from "../codec/value-codec.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { ExecutionScope, type Interrupt } from "../journal/execution-scope.ts";
import { RunJournal } from "../journal/run-journal.ts";
import { heldOfRecords } from "../store/held-of-records.ts";
import type { RunHistory } from "../store/run-history.ts";
import type { Held, RunJournalStore } from "../store/run-journal-store.ts";
import type { RunView } from "../store/run-record.ts";
import type { ChildStarter } from "./await-child.ts";
import { createContext } from "./create-context.ts";
import { OpenChildren } from "./open-children.ts";
import { findMisfit } from "./find-misfit.ts";
import { findUndos } from "./find-undos.ts";
import { parseInput } from "./run-execution.ts";
import { DEFAULT_STALL_TIMEOUT_MS, watchStalls } from "./watch-stalls.ts";

/** The waits of an execution that are known. */
const MAX_KNOWN_WAITS = 20;

export interface ReplayHistoryOptions {
  readonly stallTimeoutMs?: number;
  /** Decodes the values of the history. Default: none. */
  readonly codec?: PayloadCodec | undefined;
}

/** Whether the code of a workflow fits a run. */
export type ReplayResult =
  | { readonly fits: true }
  | {
      readonly fits: false;
      /** True if the run would be blocked. False if it would continue with a warning, and run renamed steps again. */
      readonly blocks: boolean;
      /** The first record that does not fit, if one does not. */
      readonly step?: string;
      /** The difference, in the same words for the same difference. */
      readonly reason: string;
    };

type Outcome =
  | Interrupt
  | { readonly kind: "returned"; readonly result: unknown }
  | { readonly kind: "threw"; readonly error: Error };

/**
 * Runs the function on the records of a run, without bodies, without new records, and without any store: every verb that has no record
 * waits. Code between steps is executed.
 */
export async function replayHistory(
  workflow: AnyWorkflow,
  stored: RunHistory,
  { stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS, codec }: ReplayHistoryOptions = {},
): Promise<ReplayResult> {
  let history: RunHistory;
  try {
    history = await decodeHistory(stored, codec);
  } catch (error) {
    if (isCodecError(error)) return blocks(error.message);
    throw error;
  }
  if (history.workflow !== workflow.name) {
    return blocks(`the run is of "${history.workflow}", not of "${workflow.name}"`);
  }
  const held = heldOf(history);
  const unfit = findMisfit(workflow, held);
  if (unfit !== undefined) return blocks(unfit);
  let input: unknown;
  try {
    input = parseInput(workflow, held);
  } catch (error) {
    return blocks(`its input is rejected: ${ensureError(error).message}`);
  }
  const journal = new RunJournal({
    store: NO_STORE,
    held,
    stopped: new AbortController().signal,
    clock: () => 0,
    random: () => 0,
    clusters: NO_CLUSTERS,
  });
  const scope = new ExecutionScope(journal.order);
  // Verbs without a record wait.
  scope.stopWork();
  try {
    const outcome = await play({ workflow, journal, scope, input, stallTimeoutMs });
    if (outcome.kind === "returned" || outcome.kind === "threw") await journal.order.rest();
    return judge(history, journal, outcome, workflow.strict);
  } finally {
    scope.close();
    journal.output.close();
  }
}

async function play({
  workflow,
  journal,
  scope,
  input,
  stallTimeoutMs,
}: {
  readonly workflow: AnyWorkflow;
  readonly journal: RunJournal;
  readonly scope: ExecutionScope;
  readonly input: unknown;
  readonly stallTimeoutMs: number;
}): Promise<Outcome> {
  const children = new OpenChildren(journal, NO_CHILDREN);
  const startChild = NO_CHILDREN;
  const w = createContext({ workflow, scope, journal, startChild, children, isStrict: false });
  const timeoutMs = Math.min(workflow.stallTimeoutMs ?? Infinity, stallTimeoutMs);
  const offersAllUndos = () => findUndos(journal).kind === "found";
  const endWatch = watchStalls({ scope, journal, timeoutMs, offersAllUndos });
  const run = async (): Promise<Outcome> => {
    try {
      return { kind: "returned", result: await workflow.run(w, input as never) };
    } catch (error) {
      return { kind: "threw", error: ensureError(error) };
    }
  };
  try {
    return await Promise.race([scope.interrupted, run()]);
  } finally {
    endWatch();
  }
}

function judge(
  history: RunHistory,
  journal: RunJournal,
  outcome: Outcome,
  isStrict: boolean,
): ReplayResult {
  if (outcome.kind === "blocked") {
    const { reason, misfit } = outcome;
    return { ...blocks(misfit?.difference ?? reason), ...defined({ step: misfit?.step }) };
  }
  if (history.failing !== undefined) {
    const found = findUndos(journal);
    if (found.kind === "found") return { fits: true };
    const [step = ""] = found.steps;
    return { ...blocks(`step "${step}" must be undone, and has no undo any more`), step };
  }
  const next = outcome.kind === "waiting" ? outcome.waits?.[0] : undefined;
  const calls = next === undefined ? "" : `; the code calls ${next.kind} "${next.step}" instead`;
  const { missing: [missing] = [], early } = journal.order.misfit() ?? {};
  if (missing !== undefined) {
    const reason = `${journal.get(missing)?.kind} "${missing}" is not called any more${calls}`;
    return { fits: false, blocks: isStrict, step: missing, reason };
  }
  if (early !== undefined) {
    const reason = `"${early}" is called in another order`;
    return { fits: false, blocks: isStrict, step: early, reason };
  }
  const lost = history.progress.find(
    ({ name, attempts }) => attempts > 0 && !isAwaited(outcome, name),
  );
  if (lost !== undefined) {
    const reason = `step "${lost.name}", which has begun, is not called any more${calls}`;
    return { fits: false, blocks: false, step: lost.name, reason };
  }
  const difference = history.status === "done" ? differenceAtEnd(history, outcome) : undefined;
  if (difference === undefined) return { fits: true };
  return { fits: false, blocks: false, reason: difference };
}

function differenceAtEnd({ result }: RunHistory, outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case "waiting": {
      const next = outcome.waits?.[0];
      return `the run is done, but the code calls ${next?.kind} "${next?.step}"`;
    }
    case "threw":
      return `the run is done, but the code throws ${outcome.error.message}`;
    case "returned": {
      // A result is stored as JSON, which omits undefined members.
      const returned = JSON.parse(JSON.stringify(outcome.result ?? null)) as unknown;
      return jsonEquals(returned, result ?? null) ? undefined : "the code returns another result";
    }
    default:
      return undefined;
  }
}

function blocks(reason: string): Extract<ReplayResult, { fits: false }> {
  return { fits: false, blocks: true, reason };
}

/** Only the first waits are known. */
function isAwaited(outcome: Outcome, name: string): boolean {
  if (outcome.kind !== "waiting") return false;
  const waits = outcome.waits ?? [];
  return waits.some(({ step }) => step === name) || waits.length >= MAX_KNOWN_WAITS;
}

/** Returns what an execution reads of a run. */
export function heldOf(history: RunHistory): Held {
  const { workflow, id, version, status, round, createdAtMs, input } = history;
  const { parsedInput, failing, continuedBy } = history;
  const run: RunView = { workflow, id, version, status, createdAtMs, input, ...defined({ round }) };
  return heldOfRecords({
    workflow,
    id,
    run,
    steps: new Map(history.steps.map(({ name, ...record }) => [name, record])),
    progress: new Map(history.progress.map(({ name, ...each }) => [name, each])),
    nowMs: 0,
    ...defined({ parsedInput, failing, continuedBy }),
  });
}

async function refuse(): Promise<never> {
  throw new KonvergeError("invalid_request", "a replay has no store");
}

export const NO_CHILDREN: ChildStarter = {
  start: refuse,
  cancel: refuse,
  terminate: refuse,
  get: refuse,
  signal: refuse,
};
/** For the check that a worker has clusters at all. */
const NO_CLUSTERS: ClusterAccess = { home: "default", client: refuse };
/** Published values are not stored, and no other call is reached: every verb without a record waits. */
const NO_STORE = new Proxy({} as RunJournalStore, {
  get: (_, method) => (method === "publish" ? async () => undefined : refuse),
});
