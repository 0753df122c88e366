import {
  attemptRecordSchema,
  hintDocs,
  HINTS,
  LOOP_CAUSE,
  type AttemptRecord,
  type Hint,
  type HintCode,
  type LoopState,
} from "@konverge/records";
import { ensureError, parseKey } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { AttemptLease, HistoryAnswer, LostAttempt, WorkQueue } from "@konverge/queue";
import type { Metrics } from "@konverge/telemetry";
import { hintOf } from "../attempt/find-hints.ts";
import type { NotedEnd } from "../attempt/noted-end.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { describeLoop, hintOfLoop, isLoopHint } from "./describe-loop.ts";
import { emitEvent } from "./emit-event.ts";
import { createFailureAlerts, type FailureAlerts } from "./failure-alerts.ts";
import { findLoop } from "./find-loop.ts";
import type { FleetReports } from "./fleet-reports.ts";
import { takenFrom, type HistoryCollector } from "./history-collector.ts";
import { LoopThrottle, type FoundLoop } from "./loop-throttle.ts";
import type { Suspicion } from "./suspicion.ts";

/** Takeovers of one field from one manager within an episode: us, them, us, them, us. */
const FLIPS_IN_A_ROW = 3;
const RECORDS_READ = 64;
/** The lost attempt, and those that may have ended before the records are read. */
const LATEST = 5;
const RECORDS_READ_TO_THROTTLE = 16;
const EPISODE_MS = 60_000;
const LOOP_KINDS: readonly LoopState["kind"][] = ["selfTriggered", "requeue", "ownershipFlip"];

export type Writer = Pick<AttemptRecord, "key" | "uid">;

/** What the histories of all controllers collect for the next flush. */
export interface Collected {
  readonly batch: HistoryCollector;
  readonly suspicion: Suspicion;
  readonly reports: FleetReports;
  /** The keys that took fields of an object, to throttle them if the object is contended. */
  readonly writers: Map<string, Writer>;
}

export interface ControllerHistoryOptions {
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly client: KubeClient;
  readonly workerId: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

type Episode = HistoryAnswer["episodes"][number];

/** The history of one controller's attempts. */
export class ControllerHistory {
  readonly throttle: LoopThrottle;
  readonly #options: ControllerHistoryOptions;
  readonly #collected: Collected;
  readonly #alerts: FailureAlerts;

  constructor(options: ControllerHistoryOptions, collected: Collected) {
    const { controller, queue, workerId, log, metrics, client } = options;
    this.#options = options;
    this.#collected = collected;
    this.throttle = new LoopThrottle({
      workerId,
      loopProtection: controller.loopProtection,
      readRecords: ({ id }) => readRecords(queue, id, RECORDS_READ_TO_THROTTLE),
      onEnded: (key, { kind, step }) => log.info({ key, kind, step }, "reconcile loop ended"),
    });
    this.#alerts = createFailureAlerts({
      client,
      controller,
      log,
      report: (name, print) => collected.reports.add(name, print),
    });
    metrics.addHistory(controller.name, { kinds: LOOP_KINDS, hints: Object.keys(HINTS) });
  }

  /** The findings about a key. */
  hintsOf(key: string): readonly Hint[] {
    const state = this.throttle.stateOf(key);
    return state === undefined ? [] : [hintOf(hintOfLoop(state), describeLoop(state))];
  }

  /** Notes an attempt whose end was stored. */
  note(attempt: AttemptLease, record: AttemptRecord, { bytes, ...measured }: NotedEnd): void {
    const { batch, suspicion, writers } = this.#collected;
    const isAccepted = this.#options.controller.loopProtection === "accept";
    batch.add(record, bytes, {
      ...measured,
      isLoop: this.throttle.stateOf(attempt.id)?.kind === "selfTriggered",
      isTakeoverAccepted: isAccepted,
    });
    for (const object of isAccepted ? [] : takenFrom(record)) writers.set(object, record);
    for (const hint of record.hints ?? []) this.#noteHint(attempt.id, hint);
    this.#alerts.ended(attempt, record);
    if (record.cause === LOOP_CAUSE) return;
    this.throttle.ended(attempt.id, record);
    if (!isAccepted) suspicion.note(attempt.id, record);
  }

  /** Notes an attempt that was lost with its worker. */
  noteLost({ id: key, consecutive, isIndexed }: LostAttempt): void {
    if (!isIndexed) {
      this.#indexLost(key).catch((error: unknown) => {
        this.#options.log.debug({ err: ensureError(error) }, "lost attempt not indexed");
      });
    }
    this.#alerts.lost(key, consecutive);
  }

  /** Reads the latest records of a suspicious key. */
  async lookForLoop(key: string): Promise<void> {
    if (this.throttle.stateOf(key) !== undefined) return;
    const records = await readRecords(this.#options.queue, key, RECORDS_READ);
    const loop = findLoop(records);
    if (loop === undefined) return;
    const uid = records.find((record) => record.uid !== undefined)?.uid;
    this.#found(key, uid, { ...loop, managers: [] });
  }

  /** Notes how often fields of an object changed their owner, as counted over all workers. */
  noteFlips({ key, uid }: Writer, { pair, count }: Episode): void {
    if (pair.kind !== "takeover" || count < FLIPS_IN_A_ROW) return;
    const { controller, metrics } = this.#options;
    const { manager, path } = pair;
    metrics.ownershipFlipped({ controller: controller.name, manager, flips: pair.count });
    const loop = { kind: "ownershipFlip", hint: "ownership_flip", count } as const;
    this.#found(key, uid, { ...loop, paths: [path], managers: [manager] });
  }

  #noteHint(key: string, { code, message }: Hint): void {
    if (isLoopHint(code)) return;
    const { controller, metrics, log } = this.#options;
    metrics.hintGiven({ controller: controller.name, hint: code });
    this.#collected.reports.add(`hint/${code}/${key}`, () =>
      log.warn(
        { key, hint: code, detail: message, docs: hintDocs(code) },
        "handler problem detected",
      ),
    );
  }

  #found(
    key: string,
    uid: string | undefined,
    loop: FoundLoop & { readonly hint: HintCode },
  ): void {
    if (this.throttle.stateOf(key) !== undefined) return;
    const { controller, metrics } = this.#options;
    this.throttle.start(key, loop);
    metrics.loopFound({ controller: controller.name, kind: loop.kind });
    // Two workers may find the loop at the same time. Each episode is reported again.
    const name = `loop/${loop.kind}/${key}/${Math.floor(Date.now() / EPISODE_MS)}`;
    this.#collected.reports.add(name, () => this.#reportLoop(key, uid, loop));
  }

  #reportLoop(
    key: string,
    uid: string | undefined,
    loop: FoundLoop & { readonly hint: HintCode },
  ): void {
    const { controller, client, log } = this.#options;
    const { loopProtection } = controller;
    const { kind, hint, count, paths, managers } = loop;
    const { namespace, name } = parseKey(key);
    const docs = hintDocs(hint);
    const fields = { key, namespace, name, hint, count, paths, managers, loopProtection, docs };
    log.warn(fields, "reconcile loop detected");
    const { message } = hintOf(hint, describeLoop(loop));
    const throttled = loopProtection === "throttle" ? "Its starts are delayed. " : "";
    emitEvent(
      {
        key,
        uid,
        reason: kind === "ownershipFlip" ? "OwnershipFlip" : "ReconcileLoop",
        message: `${message}. ${throttled}See ${docs}`,
      },
      { client, controller, log },
    );
  }

  async #indexLost(key: string): Promise<void> {
    const latest = await this.#options.queue.listAttempts(parseKey(key), { limit: LATEST });
    const lost = latest.find(({ outcome }) => outcome === "lost");
    if (lost !== undefined) this.#collected.batch.addLost(key, lost);
  }
}

async function readRecords(queue: WorkQueue, key: string, limit: number): Promise<AttemptRecord[]> {
  const stored = await queue.listAttempts(parseKey(key), { limit });
  return stored.flatMap(({ record }) => {
    const parsed = attemptRecordSchema.safeParse(record === "" ? undefined : JSON.parse(record));
    return parsed.success ? [parsed.data] : [];
  });
}
