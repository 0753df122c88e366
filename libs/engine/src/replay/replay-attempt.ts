import { url as inspectorUrl } from "node:inspector";
import {
  defined,
  findCause,
  isKonvergeError,
  KonvergeError,
  parseKey,
  resourceId,
  typeOfError,
  type Outcome,
} from "@konverge/core";
import {
  createKubeClient,
  type ComparedWrite,
  type KubeClient,
  type SameOptions,
} from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { AttemptRecording } from "@konverge/records";
import { NO_LANES } from "../access/attempt-plan.ts";
import { Attempt, type ControllerRuntime } from "../access/attempt.ts";
import { createWriteGroups } from "../access/write-group.ts";
import type { LoopWatch } from "../attempt/loop-watch.ts";
import { runAttempt, type AttemptRun } from "../attempt/run-attempt.ts";
import type { Controller } from "../define/define-controller.ts";
import { inlineRetry } from "../define/inline-retry.ts";
import type { ConflictRetry } from "../define/controller-options.ts";
import type { Log } from "../define/log.ts";
import type { Middleware } from "../define/middleware.ts";
import { compareEffects, type EffectDifference } from "./compare-effects.ts";
import { ReplayTape, type ReplayGap } from "./replay-tape.ts";
import { inReplayedProcess } from "./replayed-process.ts";

export interface ReplayParts {
  readonly controllers: readonly Controller[];
  /** Middleware of the configuration. */
  readonly use?: readonly Middleware[];
  readonly conflictRetry?: ConflictRetry;
  /** As `plural.group`, in addition to Secrets. */
  readonly sensitiveResources?: readonly string[];
  /** Receives the log of the handler. Default: it is dropped. */
  readonly log?: Log;
}

/** The end of an attempt. */
export interface ReplayedOutcome {
  /** For example `done` or `retry`. */
  readonly kind: Outcome["kind"];
  /** The delay of a requeue or deferral. */
  readonly afterMs?: number;
  /** The error that the handler threw, redacted. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** A write of the replay beside that of the recorded attempt. */
export interface ReplayedWrite extends ComparedWrite {
  /** The name of the cluster, for an object in another cluster. */
  readonly cluster?: string;
}

/** What the replay of an attempt has shown. */
export interface AttemptReplay {
  /**
   * `same`: today's code does what the recorded attempt did. `different`: it does something else. `unknown`: it needs something that
   * the recording does not hold, and has done the same until then.
   */
  readonly result: "same" | "different" | "unknown";
  /** The key of the object. */
  readonly key: string;
  /** The name of the controller. */
  readonly controller: string;
  /** The number of the attempt. */
  readonly epoch: number;
  /** Both outcomes; that of the replay is missing if it could not reach the end of the handler. */
  readonly outcome: { readonly recorded: ReplayedOutcome; readonly replayed?: ReplayedOutcome };
  /** All writes. After an early end, those that the replay did not reach are left out. */
  readonly writes: readonly ReplayedWrite[];
  /** Events, workflow runs and external calls that differ. */
  readonly effects: readonly EffectDifference[];
  /** Why the replay could not continue. */
  readonly end?: ReplayGap;
  /** Facts that the recording lacks. */
  readonly gaps: readonly ReplayGap[];
  /** Answers to changed writes that were computed without the API server. */
  readonly assumed: readonly ReplayGap[];
  /** Differences that a second replay did not repeat: the handler is not deterministic. */
  readonly unstable: readonly string[];
}

/**
 * Runs today's handler on everything that a recorded attempt read, and compares what it writes. Makes no calls.
 * @throws KonvergeError `unknown_controller`
 */
export async function replayAttempt(
  recording: AttemptRecording,
  parts: ReplayParts,
): Promise<AttemptReplay> {
  const controller = controllerOf(recording, parts);
  const first = await replayOnce(recording, controller, parts);
  // In a debugger, a second run would stop at the same places again.
  if (first.result === "same" || inspectorUrl() !== undefined) return first;
  const second = await replayOnce(recording, controller, parts);
  const [one, other] = [differencesOf(first), differencesOf(second)];
  const unstable = [
    ...one.filter((each) => !other.includes(each)),
    ...other.filter((each) => !one.includes(each)),
  ];
  return { ...first, unstable };
}

function controllerOf({ key, controller: name }: AttemptRecording, parts: ReplayParts): Controller {
  const found = parts.controllers.find((controller) => controller.name === name);
  const kind = resourceId(parseKey(key));
  if (found !== undefined && resourceId(found.for) === kind) return found;
  const detail =
    found === undefined
      ? `it has ${parts.controllers.map((each) => each.name).join(", ") || "no controllers"}`
      : `there it reconciles ${resourceId(found.for)}`;
  throw new KonvergeError(
    "unknown_controller",
    `the recording is of controller "${name}" for ${kind}, which the configuration does not have; ${detail}`,
  );
}

const LOOP: LoopWatch = { began: () => ({ ended: () => 0 }), stop: () => undefined };
const ignore = () => undefined;
const SILENT: Log = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  child: () => SILENT,
};
/** The maximum of setTimeout. */
const NEVER_MS = 2 ** 31 - 1;

async function replayOnce(
  recording: AttemptRecording,
  controller: Controller,
  parts: ReplayParts,
): Promise<AttemptReplay> {
  const lease = leaseOf(recording);
  const { cluster } = lease.key;
  const tape = new ReplayTape(recording, cluster);
  const client = openClient(tape, parts);
  const attempt = new Attempt(lease, runtimeOf({ tape, client, controller, parts }), {
    log: parts.log ?? SILENT,
    span: undefined,
    tape,
  });
  const { beganAtMs } = recording;
  const onConnect = (address: string) =>
    tape.endAt(
      `connection to ${address}`,
      "a replay has no network; wrap the call in ctx.external",
    );
  try {
    const run = await inReplayedProcess({ beganAtMs, onConnect }, () => runAttempt(attempt, LOOP));
    return reportOf(recording, run, tape);
  } finally {
    await client.close();
  }
}

function leaseOf(recording: AttemptRecording): AttemptLease {
  const { key, epoch, attempt, failures, conflicts, triggers, floor } = recording;
  const { signal } = new AbortController();
  return {
    key: parseKey(key),
    id: key,
    epoch,
    attempt,
    failures,
    conflicts,
    triggers,
    isResync: false,
    pauses: [],
    ...defined({ floor }),
    requestedAtMs: recording.requestedAtMs,
    startedAtMs: recording.startedAtMs,
    class: recording.class,
    signal,
    checkExpiry: ignore,
    keepLog: async () => undefined,
  };
}

interface RuntimeParts {
  readonly tape: ReplayTape;
  readonly client: KubeClient;
  readonly controller: Controller;
  readonly parts: ReplayParts;
}

function runtimeOf({ tape, client, controller, parts }: RuntimeParts): ControllerRuntime {
  const { conflictRetry = "both", use = [] } = parts;
  const timeoutMs = inspectorUrl() === undefined ? controller.timeoutMs : NEVER_MS;
  return {
    controller: { ...controller, timeoutMs },
    use: [...use, ...controller.use],
    client,
    isInScope: (namespace) => tape.isInScope(namespace),
    cache: tape.cache,
    lanes: tape.lanes("", NO_LANES),
    groups: createWriteGroups(),
    retry: inlineRetry(controller.conflictRetry ?? conflictRetry, controller.inlineBackoff),
    runs: undefined,
    events: { record: async () => "counted" },
    limits: undefined,
    clusters: { reach: async () => ({ client, lanes: NO_LANES }) },
  };
}

/** A client without a server. */
function openClient(tape: ReplayTape, { sensitiveResources }: ReplayParts): KubeClient {
  const refuse = (): never => {
    throw tape.endAt("a watch or another stream", "a recording does not hold streams");
  };
  return createKubeClient({
    credentials: {
      server: "http://replay.invalid",
      context: "replay",
      authorize: async () => ({ headers: {}, tls: {} }),
      forget: ignore,
    },
    gate: { admit: async () => ({ waitedMs: 0, settle: ignore }) },
    userAgent: "konverge-replay",
    dispatcher: { dispatch: refuse, request: async () => refuse() },
    ...defined({ sensitiveResources }),
  });
}

function reportOf(recording: AttemptRecording, run: AttemptRun, tape: ReplayTape): AttemptReplay {
  const { key, controller, epoch, outcome: recorded } = recording;
  const { cluster: own } = parseKey(key);
  const { end } = tape;
  // Clusters that today's code does not call have writes as well.
  for (const cluster of Object.keys(recording.calls)) tape.in(cluster);
  const writes = [...tape.clusters].flatMap(([cluster, replay]) =>
    replay.writes.map((write) => ({ ...(cluster === own ? {} : { cluster }), ...write })),
  );
  const shown = end === undefined ? writes : writes.filter(({ kind }) => kind !== "missing");
  const effects = effectsOf(recording, tape).filter(
    ({ kind }) => end === undefined || kind === "extra",
  );
  const replayed = outcomeOf(run);
  const wasCut = recorded.kind === "cancelled" || recorded.error?.code === "timed_out";
  const isOutcomeSame =
    end !== undefined || wasCut || isSameOutcome(shownOutcome(recorded), replayed);
  const isDifferent =
    !isOutcomeSame || effects.length > 0 || shown.some(({ kind }) => kind !== "same");
  const cut = {
    about: "end of the attempt",
    reason: `the attempt was ended from outside (${recorded.error?.code ?? recorded.cause ?? ""}), so its outcome is not compared`,
  };
  return {
    result: isDifferent ? "different" : end === undefined ? "same" : "unknown",
    key,
    controller,
    epoch,
    outcome: { recorded: shownOutcome(recorded), ...(end === undefined ? { replayed } : {}) },
    writes: shown,
    effects,
    ...defined({ end }),
    gaps: [...recording.gaps, ...(wasCut ? [cut] : [])],
    assumed: [...tape.assumed.values()],
    unstable: [],
  };
}

function shownOutcome({ kind, afterMs, error }: AttemptRecording["outcome"]): ReplayedOutcome {
  return { kind, ...defined({ afterMs, error }) };
}

function outcomeOf({ outcome }: AttemptRun): ReplayedOutcome {
  const error = "error" in outcome ? outcome.error : undefined;
  return {
    kind: outcome.kind,
    ...("afterMs" in outcome ? { afterMs: Math.round(outcome.afterMs) } : {}),
    ...(error === undefined
      ? {}
      : {
          error: {
            code: findCause(error, isKonvergeError)?.code ?? typeOfError(error),
            message: error.message,
          },
        }),
  };
}

/** Delays of other outcomes are drawn. A requeue may be computed from the time. */
function isSameOutcome(recorded: ReplayedOutcome, replayed: ReplayedOutcome): boolean {
  if (recorded.kind !== replayed.kind) return false;
  if (recorded.error?.code !== replayed.error?.code) return false;
  const texts = [recorded, replayed].map(({ error }) => JSON.stringify(error?.message ?? ""));
  const [one, other] = texts;
  if (bodyDifferencesOf(one, other) > 0) return false;
  if (recorded.kind !== "requeueAfter") return true;
  const [before = 0, after = 0] = [recorded.afterMs, replayed.afterMs];
  return Math.abs(before - after) <= Math.max(2_000, before / 100);
}

function effectsOf(recording: AttemptRecording, tape: ReplayTape): EffectDifference[] {
  const { events, externals, runs } = recording;
  const named = (names: readonly string[]) => names.map((name) => ({ name }));
  const label = (entry: object) => Object.values(entry).join(" ");
  const options = { same: SAME, label };
  const made = runs.map(({ workflow, id }) => ({ workflow, ...defined({ id }) }));
  const called = named(externals.map(({ name }) => name));
  return [
    ...compareEffects("event", { recorded: events, replayed: tape.events }, options),
    ...compareEffects("external", { recorded: called, replayed: named(tape.externals) }, options),
    ...compareEffects("run", { recorded: made, replayed: tape.runs }, options),
  ];
}

const SAME: SameOptions = { drawn: new Map(), toleranceMs: 0, withVersions: true };

function bodyDifferencesOf(one: string | undefined, other: string | undefined): number {
  return compareEffects(
    "event",
    { recorded: [{ text: one ?? "" }], replayed: [{ text: other ?? "" }] },
    { same: SAME, label: () => "" },
  ).length;
}

function differencesOf({ writes, effects, outcome, end }: AttemptReplay): string[] {
  return [
    ...writes
      .filter(({ kind }) => kind !== "same")
      .map(({ kind, method, about, differences, replayed = "" }) => {
        const content = kind === "extra" ? replayed : JSON.stringify(differences);
        return `${kind} ${method} ${about} ${content}`;
      }),
    ...effects.map(({ kind, effect, about }) => `${kind} ${effect} ${about}`),
    ...(end === undefined
      ? [`outcome ${outcome.replayed?.kind ?? ""}`]
      : [`${end.about}: ${end.reason}`]),
  ];
}
