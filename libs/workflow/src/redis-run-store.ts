import { runScript, type RedisClient, type Script, type ScriptArgument } from "@konverge/redis";
import { readHeld, readRun, readSteps, refOf } from "./run-fields.ts";
import { runNames, type RunNames } from "./run-names.ts";
import type { RunRef } from "./run-ref.ts";
import {
  FencedError,
  type Claimed,
  type Followers,
  type Leave,
  type Progress,
  type RunStore,
  type RunView,
  type Started,
  type StepRecord,
} from "./run-store.ts";
import { cancelScript } from "./scripts/cancel.ts";
import { claimScript } from "./scripts/claim.ts";
import { commitScript } from "./scripts/commit.ts";
import { leaveScript } from "./scripts/leave.ts";
import { noteScript } from "./scripts/note.ts";
import { signalScript } from "./scripts/signal.ts";
import { startScript } from "./scripts/start.ts";
import { sweepScript } from "./scripts/sweep.ts";

/** Signals that may wait in one run. */
const MAX_BUFFERED = 1_000;
const SWEPT_AT_ONCE = 100;

export interface RedisRunStoreOptions {
  /** Makes a call, by the rules of who waits for it. */
  readonly call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>;
  readonly prefix: string;
  readonly cluster: string;
  /** How long a run is kept after its end, in ms. */
  readonly retentionMs: number;
}

export function createRedisRunStore(options: RedisRunStoreOptions): RunStore {
  const { call, prefix, cluster, retentionMs } = options;
  const of = (workflow: string): RunNames => runNames(prefix, cluster, workflow);
  const script = async <T>(
    what: Script,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<T> => (await call((redis) => runScript(redis, what, keys, args))) as T;

  const get = async (ref: RunRef): Promise<RunView | undefined> => {
    const fields = await call((redis) => redis.hgetall(of(ref.workflow).run(ref.id)));
    return fields["status"] === undefined ? undefined : readRun(ref, fields);
  };

  return {
    async start(run): Promise<Started> {
      const { workflow, id, version, input, key = "", onExisting = "attach", parent } = run;
      const names = of(workflow);
      const [kind, other = ""] = await script<[string, string?]>(
        startScript,
        [names.run(id), names.wakes, names.index, names.cancelling, names.holder(key)],
        [
          id,
          version,
          textOf(input),
          key,
          onExisting,
          parent?.workflow ?? "",
          parent?.id ?? "",
          names.runRoot,
        ],
      );
      if (kind === "created") return { kind, ...(other === "" ? {} : { replaces: other }) };
      if (kind === "attached" || kind === "rejected") return { kind, id: other };
      const known = await get(run);
      // Its time was over between the two calls.
      return known === undefined ? await this.start(run) : { kind: "exists", run: known };
    },

    async claim(ref, { lease, owner, anew = false }): Promise<Claimed> {
      const { workflow, id } = ref;
      const names = of(workflow);
      const answer = await script<string[]>(
        claimScript,
        [names.run(id), names.steps(id), names.signals(id), names.wakes],
        [lease, owner, anew ? 1 : 0, id, names.runRoot],
      );
      const [kind, first = "", second = "", third = ""] = answer;
      switch (kind) {
        case "missing":
        case "fenced":
        case "waiting":
          return { kind };
        case "ended":
          return { kind, ...followersOf(workflow, first, second, third) };
        default: {
          const [, , , run, steps, signals] = answer as unknown as string[][];
          const lists = { run: run ?? [], steps: steps ?? [], signals: signals ?? [] };
          return { kind: "held", ...readHeld(ref, { epoch: first, now: second, ...lists }) };
        }
      }
    },

    async commit(held, step, record, { sleepMs, taken, cancels = false } = {}) {
      const { workflow, id, epoch } = held;
      const names = of(workflow);
      const [kind, text = ""] = await script<[string, string?]>(
        commitScript,
        [names.run(id), names.steps(id), names.signals(id), names.cancelling],
        [
          epoch,
          step,
          JSON.stringify(record),
          sleepMs === undefined ? "" : Math.ceil(sleepMs),
          taken === undefined ? "" : JSON.stringify(taken),
          cancels ? id : "",
        ],
      );
      // A signal that is gone was taken by who holds the run now.
      if (kind === "fenced" || kind === "taken") throw fenced(held);
      return JSON.parse(text) as StepRecord;
    },

    async note(held, step, { attempts, delayMs, keep = false }) {
      const names = of(held.workflow);
      const [kind, text = ""] = await script<[string, string?]>(
        noteScript,
        [names.run(held.id), names.steps(held.id)],
        [held.epoch, step, attempts, Math.ceil(delayMs), keep ? 1 : 0],
      );
      if (kind === "fenced") throw fenced(held);
      return JSON.parse(text) as Progress;
    },

    async leave(held, leave) {
      const { workflow, id, epoch, wakeSeq, run } = held;
      const names = of(workflow);
      const [kind, ...others] = await script<string[]>(
        leaveScript,
        [
          names.run(id),
          names.steps(id),
          names.signals(id),
          names.seen(id),
          names.wakes,
          names.ended,
          names.cancelling,
          names.holder(run.key ?? ""),
        ],
        [epoch, leave.kind, untilOf(leave), detailOf(leave), id, wakeSeq, retentionMs],
      );
      if (kind === "fenced") throw fenced(held);
      const [parentWorkflow = "", parent = "", next = ""] = others;
      return followersOf(workflow, parentWorkflow, parent, next);
    },

    async signal({ workflow, id }, signal) {
      const names = of(workflow);
      return await script(
        signalScript,
        [names.run(id), names.signals(id), names.seen(id), names.wakes],
        [id, signal.id, JSON.stringify(signal), MAX_BUFFERED],
      );
    },

    async cancel({ workflow, id }, order) {
      const names = of(workflow);
      const keys = [names.run(id), names.wakes, names.cancelling];
      return await script(cancelScript, keys, [id, JSON.stringify(order)]);
    },

    get,

    async list(workflow, { limit, from }) {
      const names = of(workflow);
      const offset = Number(from ?? 0);
      const ids = await call((redis) => redis.zrevrange(names.index, offset, offset + limit - 1));
      const found = await Promise.all(ids.map((id) => get({ workflow, id })));
      return {
        // A run is in the index for a moment longer than it is kept.
        runs: found.filter((run) => run !== undefined),
        ...(ids.length < limit ? {} : { next: String(offset + limit) }),
      };
    },

    async steps({ workflow, id }) {
      return readSteps(await call((redis) => redis.hgetall(of(workflow).steps(id)))).steps;
    },

    async overdue(workflow) {
      const { wakes, ended, index } = of(workflow);
      return await script(sweepScript, [wakes, ended, index], [SWEPT_AT_ONCE, retentionMs]);
    },

    async cancelling(workflow) {
      return new Set(await call((redis) => redis.smembers(of(workflow).cancelling)));
    },
  };
}

function fenced({ workflow, id }: RunRef): FencedError {
  return new FencedError(`another activation holds the run ${workflow}/${id}`);
}

function followersOf(
  workflow: string,
  parentWorkflow: string,
  parentId: string,
  nextId: string,
): Followers {
  const parent = refOf(parentWorkflow, parentId);
  const next = refOf(workflow, nextId);
  return { ...(parent === undefined ? {} : { parent }), ...(next === undefined ? {} : { next }) };
}

function untilOf(leave: Leave): number | "" {
  const untilMs = "untilMs" in leave ? leave.untilMs : undefined;
  return untilMs === undefined ? "" : Math.ceil(untilMs);
}

function detailOf(leave: Leave): string {
  switch (leave.kind) {
    case "parked":
      return leave.waits === undefined ? "" : JSON.stringify(leave.waits);
    case "stuck":
      return leave.reason;
    case "compensating":
      return JSON.stringify(leave.failing);
    case "done":
      return textOf(leave.result);
    case "failed":
    case "cancelled":
      return JSON.stringify(leave.error);
  }
}

/** Nothing is empty text. */
function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "";
}
