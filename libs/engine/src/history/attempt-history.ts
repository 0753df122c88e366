import {
  attemptRecordSchema,
  hintDocs,
  HINTS,
  type AttemptRecord,
  type Hint,
  type HintCode,
  type LoopState,
} from "@konverge/records";
import { ensureError, parseKey } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type {
  AttemptLease,
  HistoryAnswer,
  HistoryWriter,
  LostAttempt,
  WorkQueue,
} from "@konverge/queue";
import type { Metrics } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { findLoop } from "./find-loop.ts";
import { hintOf } from "../attempt/find-hints.ts";
import { createLoopThrottle, type FoundLoop, type LoopThrottle } from "./loop-throttle.ts";
import { describeLoop, hintOfLoop, isLoopHint } from "./describe-loop.ts";
import { createHistoryBatch, takenFrom } from "./history-batch.ts";
import { createFailureAlerts } from "./failure-alerts.ts";
import { createSuspicion } from "./suspicion.ts";
import { emitEvent } from "./emit-event.ts";

const FLUSH_MS = 1_000;
/** A hint about a key is not said again for so long, by whatever worker. */
const SAY_AGAIN_MS = 3_600_000;
/** Takes of one field from one manager within an episode: us, them, us, them, us. */
const FLIPS_IN_A_ROW = 3;
const RECORDS_READ = 64;
/** The lost one, and those that may have ended until somebody looks. */
const LATEST = 5;
const RECORDS_READ_TO_THROTTLE = 16;
const EPISODE_MS = 60_000;
const SAYINGS_KEPT = 1_000;
const LOOP_KINDS: readonly LoopState["kind"][] = ["selfTriggered", "requeue", "ownershipFlip"];

/**
 * What is known of attempts beyond their own records: the search index, who fights over what, loops, hints. Gathered in
 * memory while attempts run, stored every second and never waited for; without Redis it is dropped first.
 */
export interface AttemptHistory {
  /** Of one controller. */
  readonly of: (controller: Controller, queue: WorkQueue) => ControllerHistory;
  /** Stores what is left. */
  readonly stop: () => Promise<void>;
}

interface ControllerHistory {
  readonly throttle: LoopThrottle;
  /** What was found about a key. */
  readonly hintsOf: (key: string) => readonly Hint[];
  /** Told of an attempt that never ended. */
  readonly noteLost: (lost: LostAttempt) => void;
  /** Told of each attempt whose end was stored. */
  readonly note: (attempt: AttemptLease, record: AttemptRecord, recordBytes: number) => void;
}

export interface AttemptHistoryOptions {
  readonly writer: HistoryWriter;
  readonly client: KubeClient;
  readonly workerId: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

type Writer = Pick<AttemptRecord, "key" | "uid">;

interface Followed {
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly log: Log;
  readonly throttle: LoopThrottle;
}

export function createAttemptHistory(options: AttemptHistoryOptions): AttemptHistory {
  const { writer, client, workerId, log, metrics } = options;
  const batch = createHistoryBatch();
  const suspicion = createSuspicion();
  const followed = new Map<string, Followed>();
  /** What to do once nobody else has said it. */
  const sayings = new Map<string, () => void>();
  /** Who wrote the objects of the batch, to slow them down when there is a fight. */
  let writers = new Map<string, Writer>();
  let failing = false;

  const report = (what: string, reports: () => void) => {
    if (sayings.size < SAYINGS_KEPT && !sayings.has(what)) sayings.set(what, reports);
  };

  const found = (
    { controller, throttle, log: ownLog }: Followed,
    key: string,
    loop: FoundLoop & { readonly hint: HintCode; readonly uid: string | undefined },
  ) => {
    if (throttle.stateOf(key) !== undefined) return;
    const { hint } = loop;
    throttle.start(key, loop);
    metrics.loopFound({ controller: controller.name, kind: loop.kind });
    const { message } = hintOf(hint, describeLoop(loop));
    const { namespace, name } = parseKey(key);
    // Two workers may find it at once; another episode is told again.
    report(`loop/${loop.kind}/${key}/${Math.floor(Date.now() / EPISODE_MS)}`, () => {
      const { count, paths, managers } = loop;
      const docs = hintDocs(hint);
      ownLog.warn(
        {
          key,
          namespace,
          name,
          hint,
          count,
          paths,
          managers,
          loopProtection: controller.loopProtection,
          docs,
        },
        "reconcile loop detected",
      );
      const slowed = controller.loopProtection === "throttle" ? "Its starts are slowed down. " : "";
      emitEvent(
        {
          key,
          uid: loop.uid,
          reason: loop.kind === "ownershipFlip" ? "OwnershipFlip" : "ReconcileLoop",
          message: `${message}. ${slowed}See ${docs}`,
        },
        { client, controller, log: ownLog },
      );
    });
  };

  const readRecords = async (queue: WorkQueue, key: string, limit: number) => {
    const stored = await queue.listAttempts(parseKey(key), { limit });
    return stored.flatMap(({ record }) => {
      const parsed = attemptRecordSchema.safeParse(record === "" ? undefined : JSON.parse(record));
      return parsed.success ? [parsed.data] : [];
    });
  };

  const indexLost = async (queue: WorkQueue, key: string) => {
    const latest = await queue.listAttempts(parseKey(key), { limit: LATEST });
    const lost = latest.find(({ outcome }) => outcome === "lost");
    if (lost !== undefined) batch.addLost(key, lost);
  };

  /** Few at a time: a look reads the last records of a key. */
  const lookForLoops = async () => {
    for (const key of suspicion.take()) {
      const part = followed.get(parseKey(key).controller);
      if (part === undefined || part.throttle.stateOf(key) !== undefined) continue;
      const records = await readRecords(part.queue, key, RECORDS_READ);
      const loop = findLoop(records);
      if (loop === undefined) continue;
      const uid = records.find((record) => record.uid !== undefined)?.uid;
      found(part, key, { ...loop, managers: [], uid });
    }
  };

  const noteFlips = ({ episodes }: HistoryAnswer, wrote: ReadonlyMap<string, Writer>) => {
    for (const { object, pair, count } of episodes) {
      const by = wrote.get(object);
      if (pair.kind !== "takeover" || count < FLIPS_IN_A_ROW || by === undefined) continue;
      const { key, uid } = by;
      const part = followed.get(parseKey(key).controller);
      if (part === undefined) continue;
      const { manager, path } = pair;
      metrics.ownershipFlipped({ controller: part.controller.name, manager, flips: pair.count });
      found(part, key, {
        kind: "ownershipFlip",
        hint: "ownership_flip",
        count,
        paths: [path],
        managers: [manager],
        uid,
      });
    }
  };

  const flush = async () => {
    await lookForLoops();
    const wrote = writers;
    writers = new Map();
    const reports = new Map(sayings);
    sayings.clear();
    const throttles = [...followed.values()].map(({ throttle }) => throttle);
    const loops = new Map(throttles.flatMap((throttle) => [...throttle.takeChanges()]));
    try {
      const answer = await writer.flush({
        ...batch.take(),
        reports: [...reports.keys()],
        reportAgainMs: SAY_AGAIN_MS,
        loops,
      });
      for (const [name, { throttle }] of followed) throttle.learn(ofController(answer.loops, name));
      for (const what of answer.toSay) reports.get(what)?.();
      noteFlips(answer, wrote);
      if (failing) log.info({}, "history writes resumed");
      failing = false;
    } catch (error) {
      for (const [name, { throttle }] of followed) throttle.putBack(ofController(loops, name));
      for (const tell of reports.values()) tell();
      // Once: Redis may be away for long, and the queue tells as well.
      if (!failing) log.warn({ err: ensureError(error) }, "history write failed, records dropped");
      failing = true;
    }
  };

  let flushing: Promise<void> | undefined;
  const tick = () => {
    flushing ??= flush()
      .catch((error: unknown) => log.debug({ err: ensureError(error) }, "history look failed"))
      .finally(() => {
        flushing = undefined;
      });
    return flushing;
  };
  const timer = setInterval(() => void tick(), FLUSH_MS);
  timer.unref();

  return {
    of: (controller, queue) => {
      const ownLog = log.child({ controller: controller.name });
      const throttle = createLoopThrottle({
        workerId,
        loopProtection: controller.loopProtection,
        readRecords: ({ id }) => readRecords(queue, id, RECORDS_READ_TO_THROTTLE),
        onEnded: (key, { kind, step }) => ownLog.info({ key, kind, step }, "reconcile loop ended"),
      });
      metrics.addHistory(controller.name, { kinds: LOOP_KINDS, hints: Object.keys(HINTS) });
      const part = { controller, queue, log: ownLog, throttle };
      const rows = createFailureAlerts({ client, controller, log: ownLog, report });
      followed.set(controller.name, part);
      return {
        throttle,
        hintsOf: (key) => {
          const state = throttle.stateOf(key);
          return state === undefined ? [] : [hintOf(hintOfLoop(state), describeLoop(state))];
        },
        noteLost: ({ id: key, consecutive, isIndexed }) => {
          if (!isIndexed) {
            indexLost(queue, key).catch((error: unknown) => {
              ownLog.debug({ err: ensureError(error) }, "lost attempt not indexed");
            });
          }
          rows.lost(key, consecutive);
        },
        note: (attempt, record, recordBytes) => {
          batch.add(record, recordBytes);
          for (const object of takenFrom(record)) writers.set(object, record);
          for (const { code, message } of record.hints ?? []) {
            if (isLoopHint(code)) continue;
            metrics.hintGiven({ controller: controller.name, hint: code });
            report(`hint/${code}/${attempt.id}`, () =>
              ownLog.warn(
                { key: attempt.id, hint: code, detail: message, docs: hintDocs(code) },
                "handler problem detected",
              ),
            );
          }
          rows.ended(attempt, record);
          if (record.cause === "loop") return;
          throttle.ended(attempt.id, record);
          suspicion.note(attempt.id, record);
        },
      };
    },
    stop: async () => {
      clearInterval(timer);
      await flushing;
      await tick();
    },
  };
}

function ofController<Value>(byKey: ReadonlyMap<string, Value>, name: string): Map<string, Value> {
  return new Map([...byKey].filter(([key]) => parseKey(key).controller === name));
}
