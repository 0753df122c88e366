import {
  attemptRecordSchema,
  hintDocs,
  HINTS,
  type AttemptRecord,
  type Hint,
  type HintCode,
  type LoopState,
} from "@konverge/contracts";
import { ensureError, parseKey } from "@konverge/core";
import { recordEvent, type KubeClient } from "@konverge/kube";
import type { AttemptLease, HistoryAnswer, HistoryWriter, WorkQueue } from "@konverge/queue";
import type { Metrics } from "@konverge/telemetry";
import type { Controller } from "../define-controller.ts";
import type { Log } from "../log.ts";
import { findLoop } from "./find-loop.ts";
import { hintOf } from "./find-hints.ts";
import { createLoopBrake, type FoundLoop, type LoopBrake } from "./loop-brake.ts";
import { createHistoryBatch, writtenObjects } from "./history-batch.ts";
import { createSuspicion } from "./suspicion.ts";

const FLUSH_MS = 1_000;
/** A hint about a key is not said again for so long, by whatever worker. */
const SAY_AGAIN_MS = 3_600_000;
/** Takes of one field from one manager within an episode: us, them, us, them, us. */
const FLIPS_IN_A_ROW = 3;
const RECORDS_READ = 64;
const RECORDS_READ_TO_BRAKE = 16;
const SAYINGS_KEPT = 1_000;
const LOOP_KINDS: readonly LoopState["kind"][] = ["ownWrites", "requeue", "flip"];

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

export interface ControllerHistory {
  readonly brake: LoopBrake;
  /** What was found about a key. */
  readonly hintsOf: (key: string) => readonly Hint[];
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

interface Followed {
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly log: Log;
  readonly brake: LoopBrake;
}

export function createAttemptHistory(options: AttemptHistoryOptions): AttemptHistory {
  const { writer, client, workerId, log, metrics } = options;
  const batch = createHistoryBatch();
  const suspicion = createSuspicion();
  const followed = new Map<string, Followed>();
  /** What to do once nobody else has said it. */
  const sayings = new Map<string, () => void>();
  /** Who wrote the objects of the batch, to slow them down when there is a fight. */
  let writers = new Map<string, string>();
  let failing = false;

  const say = (what: string, saying: () => void) => {
    if (sayings.size < SAYINGS_KEPT && !sayings.has(what)) sayings.set(what, saying);
  };

  const found = (
    { controller, brake, log: ours }: Followed,
    key: string,
    loop: FoundLoop & { readonly hint: HintCode },
  ) => {
    if (brake.stateOf(key) !== undefined) return;
    const { hint } = loop;
    brake.start(key, loop);
    metrics.loopFound({ controller: controller.name, kind: loop.kind });
    const { message } = hintOf(hint, describe(loop));
    const { namespace, name } = parseKey(key);
    say(`loop/${loop.kind}/${key}/${Math.floor(Date.now() / FLUSH_MS)}`, () => {
      const { count, paths, managers } = loop;
      const docs = hintDocs(hint);
      ours.warn(
        { key, namespace, name, hint, count, paths, managers, docs },
        "reconciles run in circles; their starts are slowed down",
      );
      recordEvent(client.scoped({ priority: "resync" }), {
        regarding: { ...controller.for, name, ...(namespace === undefined ? {} : { namespace }) },
        type: "Warning",
        reason: loop.kind === "flip" ? "OwnershipFlip" : "ReconcileLoop",
        message: `${controller.name}: ${message}. Its starts are slowed down. See ${docs}`,
        component: `konverge/${controller.name}`,
      }).catch((error: unknown) => ours.debug({ err: ensureError(error) }, "event not recorded"));
    });
  };

  const readRecords = async (queue: WorkQueue, key: string, limit: number) => {
    const stored = await queue.listAttempts(parseKey(key), { limit });
    return stored.flatMap(({ record }) => {
      const parsed = attemptRecordSchema.safeParse(record === "" ? undefined : JSON.parse(record));
      return parsed.success ? [parsed.data] : [];
    });
  };

  /** Few at a time: a look reads the last records of a key. */
  const lookForLoops = async () => {
    for (const key of suspicion.take()) {
      const part = followed.get(parseKey(key).controller);
      if (part === undefined || part.brake.stateOf(key) !== undefined) continue;
      const loop = findLoop(await readRecords(part.queue, key, RECORDS_READ));
      if (loop !== undefined) {
        found(part, key, { ...loop, managers: [] });
      }
    }
  };

  const noteFlips = ({ episodes }: HistoryAnswer, wrote: ReadonlyMap<string, string>) => {
    for (const { object, pair, count } of episodes) {
      const key = wrote.get(object);
      if (pair.kind !== "taken" || count < FLIPS_IN_A_ROW || key === undefined) continue;
      const part = followed.get(parseKey(key).controller);
      if (part === undefined) continue;
      const { manager, path } = pair;
      metrics.ownershipFlipped({ controller: part.controller.name, manager, flips: pair.count });
      found(part, key, {
        kind: "flip",
        hint: "ownership_flip",
        count,
        paths: [path],
        managers: [manager],
      });
    }
  };

  const flush = async () => {
    await lookForLoops();
    const wrote = writers;
    writers = new Map();
    const saying = new Map(sayings);
    sayings.clear();
    const brakes = [...followed.values()].map(({ brake }) => brake);
    const loops = new Map(brakes.flatMap((brake) => [...brake.takeChanges()]));
    try {
      const answer = await writer.flush({
        ...batch.take(),
        say: [...saying.keys()],
        sayAgainMs: SAY_AGAIN_MS,
        loops,
      });
      for (const [name, { brake }] of followed) brake.learn(ofController(answer.loops, name));
      for (const what of answer.toSay) saying.get(what)?.();
      noteFlips(answer, wrote);
      if (failing) log.info({}, "history is stored again");
      failing = false;
    } catch (error) {
      for (const [name, { brake }] of followed) brake.putBack(ofController(loops, name));
      for (const tell of saying.values()) tell();
      // Once: Redis may be away for long, and the queue tells as well.
      if (!failing) log.warn({ err: ensureError(error) }, "history is not stored");
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
      const ours = log.child({ controller: controller.name });
      const brake = createLoopBrake({
        workerId,
        readRecords: ({ id }) => readRecords(queue, id, RECORDS_READ_TO_BRAKE),
        onEnded: (key, { kind, step }) => ours.info({ key, kind, step }, "no loop any more"),
      });
      metrics.addHistory(controller.name, { kinds: LOOP_KINDS, hints: Object.keys(HINTS) });
      followed.set(controller.name, { controller, queue, log: ours, brake });
      return {
        brake,
        hintsOf: (key) => {
          const state = brake.stateOf(key);
          return state === undefined ? [] : [hintOf(hintOfLoop(state), describe(state))];
        },
        note: (attempt, record, recordBytes) => {
          batch.add(record, recordBytes);
          for (const { object, key } of writtenObjects(record)) writers.set(object, key);
          for (const { code, message } of record.hints ?? []) {
            if (isLoopHint(code)) continue;
            metrics.hintGiven({ controller: controller.name, hint: code });
            say(`hint/${code}/${attempt.id}`, () =>
              ours.warn({ key: attempt.id, hint: code, docs: hintDocs(code) }, message),
            );
          }
          if (record.cause === "loop") return;
          brake.ended(attempt.id, record);
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

function hintOfLoop({ kind, paths }: LoopState): HintCode {
  switch (kind) {
    case "flip":
      return "ownership_flip";
    case "requeue":
      return "requeue_never_ends";
    case "ownWrites":
      return paths.every((path) => path.includes("status"))
        ? "own_status_trigger"
        : "own_write_trigger";
  }
}

function isLoopHint(code: HintCode): boolean {
  return (
    code === "own_write_trigger" ||
    code === "own_status_trigger" ||
    code === "requeue_never_ends" ||
    code === "ownership_flip"
  );
}

function describe({ kind, count, paths, managers }: FoundLoop): string {
  switch (kind) {
    case "flip":
      return `${paths.join(", ")} was taken from ${managers.join(", ")} ${count} times`;
    case "ownWrites":
      return `${count} times in a row, writing ${paths.join(", ")}`;
    case "requeue":
      return `${count} times in a row`;
  }
}

function ofController<Value>(byKey: ReadonlyMap<string, Value>, name: string): Map<string, Value> {
  return new Map([...byKey].filter(([key]) => parseKey(key).controller === name));
}
