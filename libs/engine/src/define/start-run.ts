import { createHash } from "node:crypto";
import { defined, jsonEquals, KonvergeError, type ApiObject, type ObjectKey } from "@konverge/core";
import {
  formatRunId,
  type OnExisting,
  type RunView,
  type StartedWorkflow,
  type Workflows,
} from "@konverge/workflow";

export interface StartRunOptions {
  /**
   * Names the run; the same again is that run. Default: made of the object's name, uid and generation, or of the input for
   * kinds that have no generation, so that the attempts for one generation start one run.
   */
  readonly id?: string;
  /** At most one run with this key goes on at a time. Default: the object. */
  readonly key?: string;
  /** When another run holds the key: answer that one (default), refuse, or cancel it and begin when it has ended. */
  readonly onExisting?: OnExisting;
  /** `reconcile`: the object is reconciled again when the run has ended. Default: nothing. */
  readonly onEnd?: "reconcile";
}

/** How the run stands, which may be one that was there. */
export interface RunState extends Pick<RunView, "status" | "result" | "error" | "blockedReason"> {
  /** `<workflow>/<cluster>/<id>`. */
  readonly id: string;
  readonly created: boolean;
}

/** @throws KonvergeError `run_exists`, `invalid_request`, `redis_unavailable` */
export type StartRun = <I>(
  workflow: StartedWorkflow<I>,
  input: NoInfer<I>,
  options?: StartRunOptions,
) => Promise<RunState>;

/** As much of the workflows of a cluster as handlers need. */
export type RunStarter = Pick<Workflows, "start" | "get">;

const HASH_CHARS = 12;

/** Starts runs for one object in one attempt. */
export function createStartRun({
  runs,
  key,
  object,
  call,
  onStarted,
}: {
  readonly runs: (() => RunStarter) | undefined;
  readonly key: ObjectKey;
  readonly object: ApiObject;
  /** Refuses calls after the end of the attempt, and counts those under way. */
  readonly call: <R>(run: () => Promise<R>) => Promise<R>;
  readonly onStarted: (run: { readonly id: string; readonly created: boolean }) => void;
}): StartRun {
  const { uid = "", generation } = object.metadata;
  const place = `${key.controller}/${key.namespace ?? "_"}/${key.name}`;
  const defaultId = (input: unknown): string => {
    const of = generation ?? hash(JSON.stringify(input) ?? "");
    return `${key.name}.${hash(uid)}.${of}`;
  };
  return (workflow, input, { id = defaultId(input), onExisting, onEnd, ...rest } = {}) =>
    call(async () => {
      if (runs === undefined) {
        throw new KonvergeError(
          "invalid_config",
          "this engine was started without workflows; run the controller with konverge worker",
        );
      }
      const started = await runs().start(workflow, input, {
        id,
        key: rest.key ?? place,
        by: `controller ${place}`,
        ...defined({ onExisting }),
        ...(generation === undefined ? {} : { origin: { uid, generation } }),
        ...(onEnd === undefined ? {} : { notify: key }),
      });
      const run = await runs().get({ workflow: workflow.name, id: started.id });
      const text = formatRunId({ workflow: workflow.name, id: started.id }, key.cluster);
      if (started.id === id && !started.created) assertSameInput(text, run, input);
      onStarted({ id: text, created: started.created });
      const { status = "queued", result, error, blockedReason } = run ?? {};
      return {
        id: text,
        created: started.created,
        status,
        ...defined({ result, error, reason: blockedReason }),
      };
    });
}

/** Otherwise a handler would take the end of another work for that of its own. */
function assertSameInput(id: string, run: RunView | undefined, input: unknown): void {
  if (run === undefined || jsonEquals(run.input, asStored(input))) return;
  throw new KonvergeError(
    "invalid_request",
    `run ${id} was started with another input: give startRun an id that is another one when the input is`,
  );
}

/** As JSON has it: without what is undefined. */
function asStored(input: unknown): unknown {
  return input === undefined ? undefined : (JSON.parse(JSON.stringify(input)) as unknown);
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}
