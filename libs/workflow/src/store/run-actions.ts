import type { RunRef } from "../define/run-ref.ts";
import type { BufferedSignal, CancelRequest, RetryRequest, RunView } from "./run-record.ts";

/** What to do when a run with the same key has not ended. */
export type OnExisting = "attach" | "reject" | "supersede";

export interface NewRun extends RunRef {
  readonly version: number;
  readonly input: unknown;
  readonly key?: string;
  readonly onExisting?: OnExisting;
  readonly parent?: RunRef;
  /** Author of the start. */
  readonly by?: string;
  /** Set if the run repeats another one. */
  readonly retry?: RetryRequest;
  /** The object that the run is for. It does not start if a run with its key was started for a newer generation of the object. */
  readonly origin?: { readonly uid: string; readonly generation: number };
  /** Key to request when the run has ended, as text. */
  readonly notify?: string;
}

export type Started =
  | { readonly kind: "created"; readonly replaces?: string }
  /** A run with this id exists. */
  | { readonly kind: "exists"; readonly run: RunView }
  /** Another run with this key is active, or is for a newer generation. */
  | { readonly kind: "attached" | "rejected"; readonly id: string };

/** The port for callers that start and control runs. Every call is atomic and may be repeated. */
export interface RunActions {
  start(run: NewRun): Promise<Started>;
  signal(
    ref: RunRef,
    signal: Omit<BufferedSignal, "atMs">,
  ): Promise<"stored" | "duplicate" | "ended" | "full" | "missing">;
  cancel(ref: RunRef, request: CancelRequest): Promise<"requested" | "ended" | "missing">;
}
