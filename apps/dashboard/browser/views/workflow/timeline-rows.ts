import { defined } from "@konverge/core";
import type { RunDetail } from "@konverge/contracts";

import { evenScale, workScale, type Scale } from "./timeline-scale.ts";

type Step = RunDetail["steps"][number];

/** The appearance of a bar. */
export type BarLook = "step" | "wait" | "undo" | "failed" | "instant";

/** A bar on the timeline of a run, in Unix ms. */
export interface TimelineRow {
  readonly name: string;
  readonly kind: Step["kind"];
  readonly look: BarLook;
  readonly fromMs: number;
  readonly toMs: number;
  /** Start of the gap before this row in which a worker was lost. */
  readonly lostMs?: number;
  /** True while the wait is in progress; it ends at the present. */
  readonly isOpen: boolean;
  /** True without a recorded start; the previous record is used instead. */
  readonly isGuessed: boolean;
  readonly step?: Step;
  /** Id of the child's run. */
  readonly child?: string;
  /** The unmet condition of an open wait for objects, or the progress of a running step. */
  readonly message?: string;
  /** The call of an open wait in the code, as `at name (file:line:column)`. */
  readonly position?: string;
  /** Time of the last heartbeat of a running step. */
  readonly heartbeatAt?: string;
  /** The timeout of an open wait. */
  readonly until?: string;
  /** Failed tries of a step that has not ended. */
  readonly failedTries?: number;
  /** The number of tries after which that step fails. */
  readonly maxTries?: number;
  /** The last failed tries, oldest first. */
  readonly tries?: Step["tries"];
  /** True for a compensation that follows later. */
  readonly isPlanned?: boolean;
}

export interface Timeline {
  readonly fromMs: number;
  readonly toMs: number;
  /** By start time. */
  readonly steps: readonly TimelineRow[];
  readonly undos: readonly TimelineRow[];
  /** Start of an execution without a record yet; absent if no worker executes the run. */
  readonly executingSinceMs?: number;
  /** Shortens long waits. */
  readonly scale: Scale;
}

/** Puts the records and open waits of a run on one scale. Open rows end at `nowMs`. */
export function timelineOf(
  run: RunDetail,
  nowMs: number,
  { isEven = false }: { readonly isEven?: boolean } = {},
): Timeline {
  const fromMs = Date.parse(run.startedAt ?? run.createdAt);
  const lastMs = Math.max(fromMs, ...run.steps.map(({ at }) => Date.parse(at)));
  const toMs = run.endedAt === undefined ? Math.max(nowMs, lastMs) : Date.parse(run.endedAt);

  let beforeMs = fromMs;
  const rows = run.steps.map((step): TimelineRow => {
    const { name, kind, at, startedAt, error } = step;
    const atMs = Date.parse(at);
    const began = kind === "now" ? at : startedAt;
    const row = {
      name,
      kind,
      look: lookOf(kind, error?.code),
      fromMs: began === undefined ? beforeMs : Date.parse(began),
      toMs: atMs,
      ...(step.workerLost === true ? { lostMs: beforeMs } : {}),
      isOpen: false,
      isGuessed: began === undefined,
      step,
      ...defined({ child: step.child, tries: step.tries }),
    };
    beforeMs = atMs;
    return row;
  });
  const known = new Set(rows.map(({ name }) => name));
  const progressOf = new Map((run.progress ?? []).map((each) => [each.step, each]));
  const open = (run.waits ?? [])
    .filter(({ step }) => !known.has(step))
    .map(({ step: name, kind, since, until, child, message, position }): TimelineRow => ({
      name,
      kind,
      look: kind === "step" || kind === "undo" ? "failed" : "wait",
      fromMs: since === undefined ? lastMs : Date.parse(since),
      toMs,
      isOpen: true,
      isGuessed: since === undefined,
      ...defined({ child, until, position }),
      ...triesOf(progressOf.get(name)),
      ...defined({ message: message ?? progressOf.get(name)?.message }),
    }));
  const waiting = new Set(open.map(({ name }) => name));
  const working = (run.progress ?? []).flatMap(({ step: name, heartbeat }): TimelineRow[] => {
    if (heartbeat === undefined || known.has(name) || waiting.has(name)) return [];
    const { progress } = heartbeat;
    return [
      {
        name,
        kind: "step",
        look: "step",
        fromMs: lastMs,
        toMs,
        isOpen: true,
        isGuessed: true,
        heartbeatAt: heartbeat.at,
        ...triesOf(progressOf.get(name)),
        ...(progress === undefined ? {} : { message: JSON.stringify(progress) }),
      },
    ];
  });
  const met = new Set([...known, ...waiting, ...working.map(({ name }) => name)]);
  const left = undosLeftOf(run, { lastMs, toMs }).filter(({ name }) => !met.has(name));
  const all = [
    ...[...rows, ...open, ...working].toSorted((one, other) => one.fromMs - other.fromMs),
    ...left,
  ];
  const whole = { fromMs, toMs };
  const isExecuting = run.status === "running" || run.status === "compensating";
  const work = [
    ...all.filter(
      ({ look, isOpen, isPlanned }) => look !== "wait" && !isOpen && isPlanned !== true,
    ),
    ...working,
    ...(isExecuting ? [{ fromMs: lastMs, toMs }] : []),
  ];
  return {
    fromMs,
    toMs,
    scale: isEven ? evenScale(whole) : workScale(whole, work),
    steps: all.filter(({ kind }) => kind !== "undo"),
    undos: all.filter(({ kind }) => kind === "undo"),
    ...(isExecuting ? { executingSinceMs: lastMs } : {}),
  };
}

type Progress = NonNullable<RunDetail["progress"]>[number];

function triesOf(
  progress: Progress | undefined,
): Pick<TimelineRow, "failedTries" | "maxTries" | "tries"> {
  if (progress === undefined) return {};
  const { attempts, maxAttempts, tries } = progress;
  return { failedTries: attempts, ...defined({ maxTries: maxAttempts, tries }) };
}

/** The compensations without a record: the first one is being tried, or blocks the run. */
function undosLeftOf(
  run: RunDetail,
  { lastMs, toMs }: { readonly lastMs: number; readonly toMs: number },
): TimelineRow[] {
  const { status, undosLeft = [], blockedReason } = run;
  if (status !== "blocked" && status !== "compensating") return [];
  // A run can also be blocked by changed code before its first compensation.
  const isUndoing = status === "compensating" || blockedReason?.includes("could not be undone");
  return undosLeft.map((step, index): TimelineRow => {
    const isTried = index === 0 && isUndoing === true;
    const isFailing = isTried && status === "blocked";
    return {
      name: `undo:${step}`,
      kind: "undo",
      look: isFailing ? "failed" : "undo",
      fromMs: isTried ? lastMs : toMs,
      toMs,
      isOpen: true,
      isGuessed: false,
      ...(isFailing ? defined({ message: blockedReason }) : {}),
      ...(isTried ? {} : { isPlanned: true }),
    };
  });
}

/** Cancelled waits, timeouts and steps of branches that lost a race are not failures of the run. */
const NO_FAILURES: readonly (string | undefined)[] = [
  undefined,
  "cancelled",
  "wait_timeout",
  "race_lost",
];

function lookOf(kind: Step["kind"], code: string | undefined): BarLook {
  if (!NO_FAILURES.includes(code)) return "failed";
  switch (kind) {
    case "step":
      return "step";
    case "undo":
      return "undo";
    case "now":
    case "race":
      return "instant";
    case "sleep":
    case "signal":
    case "update":
    case "child":
    case "wait":
      return "wait";
  }
}

/** Leaves room for the text of the last mark. */
const LAST_MARK = 0.93;
/** Readable intervals between marks. */
const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000,
  432_000_000, 864_000_000, 2_592_000_000,
];

/** Returns the positions of about four marks, in ms from the start of the axis. */
export function ticksOf(spanMs: number): readonly number[] {
  const step = STEPS_MS.find((each) => spanMs / each <= 5) ?? 2_592_000_000;
  return Array.from(
    { length: Math.floor((spanMs * LAST_MARK) / step) + 1 },
    (_, index) => index * step,
  );
}
