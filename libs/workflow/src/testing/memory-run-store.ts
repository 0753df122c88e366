import { defined } from "@konverge/core";
import { fits } from "../store/list-runs.ts";
import { glanceOf } from "../store/run-fields.ts";
import { bytesOf } from "../journal/run-limits.ts";
import { markStateOf } from "../store/mark-state.ts";
import type { RunRef } from "../define/run-ref.ts";
import {
  FencedError,
  isEndStatus,
  RUN_STATUSES,
  withoutPayload,
  type BufferedSignal,
  type CancelRequest,
  type Failing,
  type Followers,
  type Held,
  type StepProgress,
  type RunCounts,
  type RunStore,
  type RunView,
  type RunWait,
  type StepRecord,
} from "../store/run-store.ts";

interface StoredRun {
  view: RunView;
  epoch: number;
  lease: number;
  owner: string;
  died: boolean;
  wakeSeq: number;
  watched: Set<string>;
  after?: string;
  next?: string;
  failing?: Failing;
  cancelledAt?: string;
  readonly steps: Map<string, StepRecord>;
  readonly progress: Map<string, StepProgress>;
  signals: BufferedSignal[];
  waited: readonly RunWait[];
  readonly seen: Set<string>;
}

/** Runs in memory, by the same rules as in Redis (the scripts); nothing is ever forgotten. `now`: epoch ms. */
export function createMemoryRunStore(now: () => number): RunStore {
  const runs = new Map<string, StoredRun>();
  const holders = new Map<string, string>();
  const keyOf = ({ workflow, id }: RunRef) => `${workflow}/${id}`;
  const hasEnded = (run: StoredRun | undefined) =>
    run === undefined || isEndStatus(run.view.status);
  const set = (run: StoredRun, fields: Partial<RunView>, gone: readonly (keyof RunView)[] = []) => {
    const view = { ...run.view, ...fields };
    for (const field of gone) Reflect.deleteProperty(view, field);
    run.view = view;
  };
  const own = (held: Held): StoredRun => {
    const run = runs.get(keyOf(held));
    if (run?.epoch !== held.epoch) throw new FencedError(`another execution holds ${held.id}`);
    return run;
  };
  const followersOf = (run: StoredRun): Followers => {
    const { workflow, parent } = run.view;
    const next = run.next === undefined ? undefined : { workflow, id: run.next };
    return { ...defined({ parent, next }) };
  };
  const request = (run: StoredRun, cancel: CancelRequest) => {
    if (run.view.cancel !== undefined) return;
    set(run, { cancel });
    run.wakeSeq += 1;
  };
  const list = (workflow: string) =>
    [...runs.values()].filter(({ view }) => view.workflow === workflow).toReversed();

  /** Marks in the objects of a test must not meet those of an earlier test on the same server. */
  const name = crypto.randomUUID();

  return {
    scope: name,
    installation: async () => name,
    async holds(held) {
      const run = runs.get(keyOf(held));
      return run?.epoch === held.epoch && !hasEnded(run);
    },
    async statesOf(marks) {
      return marks.map((mark) => {
        const run = runs.get(keyOf(mark));
        const isSame = run?.view.createdAtMs === mark.createdAtMs;
        const status = isSame ? run?.view.status : undefined;
        return markStateOf(status, run?.steps ?? new Map(), mark.step);
      });
    },

    async start({ workflow, id, version, input, key, onExisting = "attach", parent, by, retry }) {
      const known = runs.get(keyOf({ workflow, id }));
      if (known !== undefined) return { kind: "exists", run: known.view };
      let replaces: string | undefined;
      if (key !== undefined) {
        const holder = holders.get(`${workflow}/${key}`);
        const held = holder === undefined ? undefined : runs.get(keyOf({ workflow, id: holder }));
        if (holder !== undefined && held !== undefined && !hasEnded(held)) {
          if (onExisting === "attach") return { kind: "attached", id: holder };
          if (onExisting === "reject") return { kind: "rejected", id: holder };
          request(held, { reason: `superseded by ${id}` });
          held.next = id;
          replaces = holder;
        }
        holders.set(`${workflow}/${key}`, id);
      }
      runs.set(keyOf({ workflow, id }), {
        view: {
          workflow,
          id,
          version,
          status: "queued",
          input: copy(input),
          createdAtMs: now(),
          ...defined({ key, parent, by, retry }),
        },
        epoch: 0,
        lease: 0,
        owner: "",
        died: false,
        wakeSeq: 0,
        watched: new Set(),
        ...defined({ after: replaces }),
        steps: new Map(),
        progress: new Map(),
        signals: [],
        waited: [],
        seen: new Set(),
      });
      return { kind: "created", ...defined({ replaces }) };
    },

    async claim(ref, { lease, owner, anew = false }) {
      const run = runs.get(keyOf(ref));
      if (run === undefined) return { kind: "missing" };
      if (hasEnded(run)) return { kind: "ended", ...followersOf(run) };
      const isSame = run.owner === owner;
      if (!isSame && !anew && lease <= run.lease) return { kind: "fenced" };
      if (run.after !== undefined) {
        if (!hasEnded(runs.get(keyOf({ workflow: ref.workflow, id: run.after })))) {
          return { kind: "waiting" };
        }
        delete run.after;
      }
      if (!isSame) run.epoch += 1;
      run.died = run.view.status === "running";
      run.lease = lease;
      run.owner = owner;
      const status = run.failing === undefined ? "running" : "compensating";
      const { startedAtMs = now(), waits: waited = run.waited } = run.view;
      run.waited = waited;
      set(run, { status, startedAtMs }, ["blockedReason", "waitingUntilMs", "waits"]);
      const { epoch, died, wakeSeq, failing, cancelledAt } = run;
      return {
        kind: "held",
        ...ref,
        epoch,
        died,
        wakeSeq,
        watched: new Set(run.watched),
        nowMs: now(),
        run: run.view,
        steps: new Map(run.steps),
        progress: new Map(run.progress),
        bytes: [...run.steps].reduce((sum, [step, record]) => sum + bytesOf(step, record), 0),
        signals: [...run.signals],
        waited,
        ...defined({ failing, cancelledAt }),
      };
    },

    async commit(held, step, record, { sleepMs, taken, cancels = false, warnings } = {}) {
      const run = own(held);
      const known = run.steps.get(step);
      if (known !== undefined) return known;
      if (taken !== undefined) {
        if (!run.signals.some(({ id }) => id === taken.id)) {
          throw new FencedError(`signal ${taken.id} was taken by another execution`);
        }
        run.signals = run.signals.filter(({ id }) => id !== taken.id);
      }
      const stored = {
        ...copy(record),
        seq: run.steps.size + 1,
        atMs: now(),
        ...(sleepMs === undefined ? {} : { untilMs: now() + Math.ceil(sleepMs) }),
      };
      run.steps.set(step, stored);
      run.progress.delete(step);
      if (cancels) run.cancelledAt = step;
      if (warnings !== undefined) set(run, { warnings });
      return stored;
    },

    async note(held, step, { attempts, delayMs, keep = false, ...more }) {
      const run = own(held);
      const known = run.progress.get(step);
      if (keep && known !== undefined) return known;
      const progress: StepProgress = {
        attempts,
        untilMs: now() + Math.ceil(delayMs),
        ...more,
      };
      run.progress.set(step, progress);
      return progress;
    },

    async watch(held, objects) {
      const run = own(held);
      for (const object of objects) run.watched.add(object);
    },

    async leave(held, leave) {
      const run = own(held);
      if (hasEnded(run)) return followersOf(run);
      if (leave.kind !== "compensating") {
        run.watched = new Set(leave.kind === "waiting" ? (leave.objects ?? []) : []);
      }
      switch (leave.kind) {
        case "compensating":
          run.failing = leave.failing;
          set(run, { status: "compensating" });
          break;
        case "waiting": {
          const { untilMs, waits } = leave;
          const status = run.failing === undefined ? "waiting" : "compensating";
          const until = untilMs === undefined ? {} : { waitingUntilMs: untilMs };
          set(run, { status, ...until, ...defined({ waits }) });
          break;
        }
        case "blocked":
          set(run, {
            status: "blocked",
            blockedReason: leave.reason,
            waitingUntilMs: leave.untilMs,
          });
          break;
        case "done":
          set(run, { status: "done", endedAtMs: now(), result: copy(leave.result) });
          break;
        case "failed":
        case "cancelled":
          set(run, { status: leave.kind, endedAtMs: now(), error: leave.error });
          break;
      }
      return followersOf(run);
    },

    async signal(ref, signal) {
      const run = runs.get(keyOf(ref));
      if (run === undefined) return "missing";
      if (run.seen.has(signal.id)) return "duplicate";
      if (hasEnded(run)) return "ended";
      run.seen.add(signal.id);
      run.signals.push({ ...copy(signal), atMs: now() });
      run.wakeSeq += 1;
      return "stored";
    },

    async cancel(ref, cancel) {
      const run = runs.get(keyOf(ref));
      if (run === undefined) return "missing";
      if (hasEnded(run)) return "ended";
      request(run, cancel);
      return "requested";
    },

    get: async (ref) => runs.get(keyOf(ref))?.view,
    async peek(ref) {
      const run = runs.get(keyOf(ref));
      return run === undefined ? undefined : glanceOf(run.view.status, run.steps.size);
    },
    // One page holds all.
    list: async (workflow, { filter }) => ({
      runs: list(workflow).flatMap(({ view }) => (fits(view, filter) ? [view] : [])),
    }),
    async counts(workflow) {
      const views = [...runs.values()].map(({ view }) => view);
      return Object.fromEntries(
        RUN_STATUSES.map((status) => [
          status,
          views.filter((view) => view.workflow === workflow && view.status === status).length,
        ]),
      ) as RunCounts;
    },
    steps: async (ref) => new Map(runs.get(keyOf(ref))?.steps),
    unconsumedSignals: async (ref) => (runs.get(keyOf(ref))?.signals ?? []).map(withoutPayload),
    // Nothing is lost between two calls of one process.
    overdue: async () => [],
    async cancelling(workflow) {
      const told = list(workflow).filter(
        (run) => run.view.cancel !== undefined && run.cancelledAt === undefined && !hasEnded(run),
      );
      return new Set(told.map(({ view }) => view.id));
    },
  };
}

/** As it comes back from Redis. */
function copy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
