import { deepFreeze, ensureError, type ApiObject, type ResourceType } from "@konverge/core";
import {
  createEventRecorder,
  isForbidden,
  isInvalid,
  type ConflictRecord,
  type EventRecorder,
  type KubeClient,
} from "@konverge/kube";
import { handOut, noteSecrets } from "./attempt-reads.ts";
import type { WriteTrace } from "./attempt-trace.ts";
import type { Attempt } from "./attempt.ts";

/** What the calls of user code need: an attempt, or a test without one. */
export interface CallHost {
  readonly client: KubeClient;
  /** The namespace of names without one. */
  readonly namespace: string | undefined;
  /** The reconciled object. */
  readonly object: ApiObject | undefined;
  /** Runs a call, unless calls are no longer accepted. */
  call<R>(run: () => Promise<R>): Promise<R>;
  /** Returns an object as user code receives it: frozen. */
  handOut<T extends ApiObject>(type: ResourceType<T>, object: T): T;
  /** Like `handOut`, for an object that no write may start from, such as the result of a dry run. */
  show<T extends ApiObject>(type: ResourceType<T>, object: T): T;
  /** Registers the content of a sensitive object, which must not appear in an error or a log line (P12). */
  noteSecrets(type: ResourceType, object: object): void;
  /** Records a write that changed an object. */
  noteWrite(write: WriteTrace): void;
  noteConflict(conflict: ConflictRecord): void;
  /** Removes values of sensitive objects (P12). */
  readonly scrub: (text: string) => string;
  /** Of `apply`; undefined if the client chooses it. */
  readonly fieldManager: string | undefined;
  readonly events: EventRecorder;
  /** Receives the error of an event, which does not fail the handler. */
  reportEventError(error: unknown): void;
}

export function attemptHost(attempt: Attempt): CallHost {
  const { cache } = attempt.runtime;
  return {
    get client() {
      return attempt.client;
    },
    namespace: attempt.lease.key.namespace,
    get object() {
      return attempt.object;
    },
    call: (run) => attempt.call(run),
    handOut: (type, object) => handOut(attempt, type, object),
    show(type, object) {
      noteSecrets(attempt, type, object);
      return deepFreeze(object);
    },
    noteSecrets: (type, object) => noteSecrets(attempt, type, object),
    noteWrite(write) {
      attempt.trace.noteWrite(write);
      const { type, verb, subresource, object } = write;
      // Other subresources, such as scale, return objects of other kinds.
      if (subresource !== undefined && subresource !== "status") return;
      if (verb === "delete") cache.noteDelete(type, object);
      else cache.noteWrite(type, object);
    },
    noteConflict: (conflict) => attempt.trace.noteConflict(conflict),
    scrub: (text) => attempt.trace.secrets.scrub(text),
    fieldManager: `konverge/${attempt.runtime.controller.name}`,
    events: recorderOf(attempt),
    reportEventError(error) {
      // Only these need a user: a missing permission, or an event that the API server rejects.
      const level = isForbidden(error) || isInvalid(error) ? "warn" : "debug";
      const err = ensureError(error);
      attempt.log[level]({ err }, "event not recorded");
      attempt.trace.log.note(level, { error: err.message }, "event not recorded");
    },
  };
}

function recorderOf({ plan, hold, tape, runtime: { events } }: Attempt): EventRecorder {
  if (tape !== undefined) return tape.recorder(events);
  return plan?.recorder ?? hold?.unheld(events) ?? events;
}

/** The program that calls outside of a handler. */
export interface DirectCaller {
  /** The reporting controller of its events. */
  readonly component: string;
  /** Receives the error of an event, which does not fail the caller. */
  readonly onEventError: (error: unknown) => void;
}

/** Calls outside of a handler. They are not recorded. */
export function directHost(client: KubeClient, namespace: string, caller: DirectCaller): CallHost {
  const ignore = () => undefined;
  return {
    client,
    namespace,
    object: undefined,
    call: (run) => run(),
    handOut: (_, object) => deepFreeze(object),
    show: (_, object) => deepFreeze(object),
    noteSecrets: ignore,
    noteWrite: ignore,
    noteConflict: ignore,
    scrub: (text) => text,
    fieldManager: undefined,
    events: createEventRecorder(caller.component),
    reportEventError: caller.onEventError,
  };
}
