import type { ComponentChildren } from "preact";
import type { KeyPhase, RunStatus as WorkflowStatus } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";

export type Tone = "good" | "bad" | "race" | "warn" | "idle" | "run" | "wait";

/** Each tone has its own shape, because color alone is not accessible. */
const SHAPES: Readonly<Record<Tone, string>> = {
  good: "M3.5 8.4 6.6 11.4 12.5 5",
  bad: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  race: "M3 6h9.5L10 3.5M13 10H3.5L6 12.5",
  warn: "M8 3v6.2M8 12.4v.2",
  idle: "M4 8h8",
  run: "M5.5 3.8v8.4L12 8Z",
  wait: "M6 4v8M10 4v8",
};

export interface StatusProps {
  readonly tone: Tone;
  /** Text of the shape for screen readers, if the children do not state it. */
  readonly label?: string;
  readonly children: ComponentChildren;
}

/** A label with color and shape. */
export function Status({ tone, label, children }: StatusProps) {
  return (
    <span class={`status ${tone}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[tone]} />
      </svg>
      <span>
        {label === undefined ? null : <span class="hidden">{label}: </span>}
        {children}
      </span>
    </span>
  );
}

const OUTCOMES: Readonly<Record<AttemptRecord["outcome"], readonly [tone: Tone, text: string]>> = {
  done: ["good", "done"],
  requeueAfter: ["good", "done, requeued"],
  awaitChange: ["good", "awaiting change"],
  awaitApproval: ["idle", "awaiting approval"],
  gone: ["good", "object deleted"],
  conflict: ["race", "conflict"],
  deferred: ["idle", "deferred"],
  cancelled: ["idle", "cancelled"],
  // Whether it is retried depends on the state of the key.
  retry: ["bad", "failed"],
  rejected: ["bad", "rejected"],
  terminal: ["bad", "failed permanently"],
  lost: ["bad", "worker lost"],
};

/** Returns the tone and text of an outcome. The API of a newer version may return others. */
function lookOf(outcome: string): readonly [tone: Tone, text: string] {
  return Object.hasOwn(OUTCOMES, outcome)
    ? OUTCOMES[outcome as AttemptRecord["outcome"]]
    : ["idle", outcome];
}

export function Outcome({ of }: { readonly of: string }) {
  const [tone, text] = lookOf(of);
  return <Status tone={tone}>{text}</Status>;
}

export function toneOfOutcome(outcome: string): Tone {
  return lookOf(outcome)[0];
}

export function textOfOutcome(outcome: string): string {
  return lookOf(outcome)[1];
}

export const outcomeNames: readonly string[] = Object.keys(OUTCOMES);

const PHASES: Readonly<Record<KeyPhase, Tone>> = {
  idle: "good",
  waiting: "run",
  running: "run",
  backoff: "warn",
  deadLettered: "bad",
  paused: "warn",
};

const PHASE_TEXTS: Readonly<Partial<Record<KeyPhase, string>>> = { deadLettered: "dead-lettered" };

export function textOfPhase(phase: KeyPhase): string {
  return PHASE_TEXTS[phase] ?? phase;
}

export function toneOfPhase(phase: KeyPhase): Tone {
  return PHASES[phase];
}

export function Phase({ of }: { readonly of: KeyPhase }) {
  return <Status tone={PHASES[of]}>{textOfPhase(of)}</Status>;
}

const RUN_TONES: Readonly<Record<WorkflowStatus, Tone>> = {
  queued: "run",
  running: "run",
  waiting: "wait",
  blocked: "bad",
  pausing: "warn",
  paused: "warn",
  compensating: "warn",
  done: "good",
  failed: "bad",
  cancelled: "idle",
};

export function toneOfRun(status: WorkflowStatus): Tone {
  return RUN_TONES[status];
}

/** The status of a workflow run. */
export function RunStatus({ of }: { readonly of: WorkflowStatus }) {
  return <Status tone={RUN_TONES[of]}>{of}</Status>;
}
