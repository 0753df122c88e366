import type { RunRef } from "../define/run-ref.ts";
import { FencedError, type Held } from "../store/run-journal-store.ts";
import {
  isEndStatus,
  type BufferedSignal,
  type CancelRequest,
  type Failing,
  type RunView,
  type RunWait,
  type StepProgress,
  type StepRecord,
} from "../store/run-record.ts";

export interface StoredRun {
  view: RunView;
  epoch: number;
  lease: number;
  owner: string;
  died: boolean;
  wakeSeq: number;
  watched: Set<string>;
  /** Id of the run that this one replaces, until that has ended. */
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

/** The runs of a test, shared by the ports of the store. Nothing expires. */
export class MemoryRuns {
  /** Epoch ms. */
  readonly now: () => number;
  readonly #runs = new Map<string, StoredRun>();
  readonly #holders = new Map<string, string>();

  constructor(now: () => number) {
    this.now = now;
  }

  find({ workflow, id }: RunRef): StoredRun | undefined {
    return this.#runs.get(`${workflow}/${id}`);
  }

  add(run: StoredRun): void {
    const { workflow, id, key } = run.view;
    this.#runs.set(`${workflow}/${id}`, run);
    if (key !== undefined) this.#holders.set(`${workflow}/${key}`, id);
  }

  /** Returns the active run that holds a key. */
  holderOf(workflow: string, key: string): StoredRun | undefined {
    const id = this.#holders.get(`${workflow}/${key}`);
    const run = id === undefined ? undefined : this.find({ workflow, id });
    return hasEnded(run) ? undefined : run;
  }

  /** @throws FencedError */
  own(held: Held): StoredRun {
    const run = this.find(held);
    if (run?.epoch !== held.epoch) throw new FencedError(`another execution holds ${held.id}`);
    return run;
  }

  /** Returns the runs of a workflow, newest first. */
  of(workflow: string): readonly StoredRun[] {
    return [...this.#runs.values()].filter(({ view }) => view.workflow === workflow).toReversed();
  }
}

export function hasEnded(run: StoredRun | undefined): boolean {
  return run === undefined || isEndStatus(run.view.status);
}

/** Stores a cancellation; the first one counts. */
export function requestCancel(run: StoredRun, cancel: CancelRequest): void {
  if (run.view.cancel !== undefined) return;
  run.view = { ...run.view, cancel };
  run.wakeSeq += 1;
}

/** Copies a value as a round trip to Redis does. */
export function jsonCopy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
