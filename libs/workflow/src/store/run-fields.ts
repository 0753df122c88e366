import { defined, type RunLabels } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import type { EndedRun } from "./run-actions.ts";
import { historyOf, type RunHistory } from "./run-history.ts";
import { unpackRecord } from "./packed-record.ts";
import {
  isEndStatus,
  type BufferedSignal,
  type CancelRequest,
  type EndStatus,
  type Failing,
  type Failure,
  type StepProgress,
  type RetryRequest,
  type RunOverview,
  type RunPause,
  type RunStatus,
  type RunSummary,
  type RunWait,
  type RunView,
  type RunWarning,
  type SlotWait,
  type StepRecord,
} from "./run-record.ts";
import type { Held } from "./run-journal-store.ts";

type Fields = Readonly<Record<string, string | undefined>>;

/** Suffix of a step's name in the field that holds its progress. */
export const PROGRESS_MARK = "~";

const SUMMARY_FIELDS = [
  "status",
  "version",
  "error",
  "reason",
  "blockedAt",
  "blockedError",
  "key",
  "parentWorkflow",
  "parent",
  "by",
  "cancel",
  "pause",
  "pausedAt",
  "pausedFrom",
  "terminated",
  "retry",
  "scheduledAt",
  "createdAt",
  "startedAt",
  "endedAt",
  "waitingUntil",
  "waits",
  "warnings",
  "labels",
  "round",
  "roundAt",
  "limitSteps",
  "limitBytes",
  "beatAt",
  "slot",
] as const;

/** Reads a run without its input and result, which may be large. Returns undefined if the run has expired. */
export async function readSummary(
  ref: RunRef,
  read: (fields: readonly string[]) => Promise<readonly (string | null)[]>,
): Promise<RunSummary | undefined> {
  const values = await read(SUMMARY_FIELDS);
  const fields: Record<string, string | undefined> = {};
  for (const [index, name] of SUMMARY_FIELDS.entries()) fields[name] = values[index] ?? undefined;
  return fields["status"] === undefined ? undefined : summaryOf(ref, fields);
}

export function overviewOf(
  status: RunStatus,
  {
    steps,
    round,
    beatAtMs,
  }: {
    readonly steps: number;
    readonly round: number | undefined;
    readonly beatAtMs: number | undefined;
  },
): RunOverview {
  return {
    status,
    ...defined({ round }),
    steps,
    ...defined({ beatAtMs }),
    hasEnded: isEndStatus(status),
  };
}

/** Parses a run; Redis stores empty text for missing values. */
export function readRun(ref: RunRef, fields: Fields): RunView {
  const result = json(fields["result"]);
  const published = json(fields["published"]) as RunView["published"];
  const firstInput = json(fields["firstInput"]);
  return {
    ...summaryOf(ref, fields),
    input: json(fields["input"]),
    ...defined({ firstInput, result, published }),
  };
}

function summaryOf(ref: RunRef, fields: Fields): RunSummary {
  const error = json(fields["error"]) as Failure | undefined;
  const cancel = json(fields["cancel"]) as CancelRequest | undefined;
  const pause = pauseOf(fields);
  const terminated = json(fields["terminated"]) as CancelRequest | undefined;
  const retry = json(fields["retry"]) as RetryRequest | undefined;
  const parent = refOf(fields["parentWorkflow"], fields["parent"]);
  const scheduledAtMs = number(fields["scheduledAt"]);
  const startedAtMs = number(fields["startedAt"]);
  const endedAtMs = number(fields["endedAt"]);
  const waitingUntilMs = number(fields["waitingUntil"]);
  const round = number(fields["round"]);
  const roundStartedAtMs = number(fields["roundAt"]);
  const beatAtMs = number(fields["beatAt"]);
  const status = fields["status"] as RunStatus;
  const labels = labelsIn(fields);
  const steps = number(fields["limitSteps"]);
  const bytes = number(fields["limitBytes"]);
  const limits = steps === undefined && bytes === undefined ? undefined : defined({ steps, bytes });
  const before = status === "paused" ? fields["pausedFrom"] : status;
  const blockedError =
    before === "blocked" ? (json(fields["blockedError"]) as Failure | undefined) : undefined;
  const warnings = json(fields["warnings"]) as readonly RunWarning[] | undefined;
  // Redis keeps them for the next execution, which takes the begin of its waits from them.
  const waits = before === "waiting" ? waitsOf(fields) : undefined;
  const slotWait = slotWaitIn(fields);
  return {
    workflow: ref.workflow,
    id: ref.id,
    version: Number(fields["version"]),
    status,
    ...defined({ round, roundStartedAtMs, error }),
    ...(fields["reason"]
      ? {
          blockedReason: fields["reason"],
          ...defined({ blockedAtMs: number(fields["blockedAt"]) }),
        }
      : {}),
    ...defined({ blockedError }),
    ...(fields["key"] ? { key: fields["key"] } : {}),
    ...defined({ labels, limits, parent }),
    ...(fields["by"] ? { by: fields["by"] } : {}),
    ...defined({ cancel, pause, terminated, retry, scheduledAtMs }),
    createdAtMs: Number(fields["createdAt"]),
    ...defined({ startedAtMs, endedAtMs, waitingUntilMs, slotWait, waits, beatAtMs, warnings }),
  };
}

export function readHistory(ref: RunRef, fields: Fields, steps: readonly string[]): RunHistory {
  const failing = json(fields["failing"]) as Failing | undefined;
  const parsedInput = json(fields["parsedInput"]);
  const continuedBy = number(fields["continuedBy"]);
  return historyOf(readRun(ref, fields), {
    ...readSteps(steps),
    ...defined({ failing, parsedInput, continuedBy }),
  });
}

export function readHeld(
  ref: RunRef,
  answer: {
    readonly epoch: number;
    readonly nowMs: number;
    readonly run: readonly string[];
    readonly steps: readonly string[];
    readonly signalCount: number;
    readonly signals: readonly string[];
  },
): Held {
  const fields = pairs(answer.run);
  const failing = json(fields["failing"]) as Failing | undefined;
  const cancelledAt = fields["cancelledAt"];
  const parsedInput = json(fields["parsedInput"]);
  const continuedBy = number(fields["continuedBy"]);
  return {
    ...ref,
    epoch: answer.epoch,
    nowMs: answer.nowMs,
    run: readRun(ref, fields),
    ...readSteps(answer.steps),
    signalCount: answer.signalCount,
    awaited: (fields["awaited"] ?? "").split("\n").filter((name) => name !== ""),
    signals: parseSignals(answer.signals),
    waited: waitsOf(fields) ?? [],
    ...defined({ failing, cancelledAt, parsedInput, continuedBy }),
    cancels: Number(fields["cancels"] ?? 0),
    resumes: Number(fields["resumes"] ?? 0),
    cancelCalls: Number(fields["cancelCalls"] ?? 0),
    hasSlot: /^[+^]/.test(fields["slot"] ?? ""),
    died: fields["died"] === "1",
    refusedCount: Number(fields["refusedCount"] ?? 0),
    logged: Number(fields["logged"] ?? 0),
    ...(fields["reopened"] ? { reopened: Number(fields["reopened"]) } : {}),
    wakeSeq: Number(fields["wakeSeq"]),
    watched: new Set((fields["watched"] ?? "").split(" ").filter((object) => object !== "")),
  };
}

/** Parses a flat list of numbers and signals. */
export function parseSignals(flat: readonly string[]): readonly BufferedSignal[] {
  return flat.flatMap((text, at) =>
    at % 2 === 0
      ? []
      : [{ ...(JSON.parse(text) as Omit<BufferedSignal, "seq">), seq: Number(flat[at - 1]) }],
  );
}

/** Parses a flat list of names and records. */
export function readSteps(flat: readonly string[]): {
  readonly steps: ReadonlyMap<string, StepRecord>;
  readonly progress: ReadonlyMap<string, StepProgress>;
  readonly bytes: number;
} {
  const progress = new Map<string, StepProgress>();
  const names: string[] = [];
  const texts: string[] = [];
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const [field = "", text = ""] = [flat[index], flat[index + 1]];
    if (field.endsWith(PROGRESS_MARK)) {
      progress.set(field.slice(0, -1), JSON.parse(text) as StepProgress);
    } else {
      names.push(field);
      texts.push(text);
    }
  }
  // Each execution parses all records; many small texts take more than twice as long as one.
  const stored = JSON.parse(`[${texts.join(",")}]`) as readonly StepRecord[];
  let bytes = Buffer.byteLength(names.join("")) + Buffer.byteLength(texts.join(""));
  const records = stored.map((each) => {
    const { record, savedBytes } = unpackRecord(each);
    bytes += savedBytes;
    return record;
  });
  return {
    steps: new Map(records.map((record, at) => [names[at] ?? "", record])),
    progress,
    bytes,
  };
}

export function refOf(workflow: string | undefined, id: string | undefined): RunRef | undefined {
  return workflow && id ? { workflow, id } : undefined;
}

/** Parses the kept end of a run. */
export function endedRun({ status, text }: { status: string; text: string }): EndedRun {
  const value = json(text);
  return status === "done"
    ? { status, ...defined({ result: value }) }
    : { status: status as EndStatus, ...defined({ error: value as Failure | undefined }) };
}

/** Returns the JSON text of a value, empty for undefined. */
export function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "";
}

function pairs(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let index = 0; index + 1 < flat.length; index += 2) {
    fields[flat[index] ?? ""] = flat[index + 1] ?? "";
  }
  return fields;
}

/** A run whose labels were removed has none. */
function labelsIn(fields: Fields): RunLabels | undefined {
  const labels = json(fields["labels"]) as RunLabels | undefined;
  return labels === undefined || Object.keys(labels).length === 0 ? undefined : labels;
}

function pauseOf(fields: Fields): RunPause | undefined {
  const pause = json(fields["pause"]) as CancelRequest | undefined;
  return pause && { ...pause, atMs: Number(fields["pausedAt"]) };
}

function waitsOf(fields: Fields): readonly RunWait[] | undefined {
  return json(fields["waits"]) as readonly RunWait[] | undefined;
}

function slotWaitIn({ slot = "" }: Fields): SlotWait | undefined {
  if (!slot.startsWith("?")) return undefined;
  return slot === "?" ? {} : { group: slot.slice(1) };
}

function json(text: string | undefined): unknown {
  return text ? (JSON.parse(text) as unknown) : undefined;
}

export function number(text: string | null | undefined): number | undefined {
  return text ? Number(text) : undefined;
}
