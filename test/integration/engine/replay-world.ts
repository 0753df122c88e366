import { formatKey, type ApiObject, type ObjectKey, type ResourceType } from "@konverge/core";
import {
  defineController,
  replayAttempt,
  type AttemptReplay,
  type Controller,
  type ReconcileContext,
} from "@konverge/engine";
import { createEventRecorder, type KubeClient } from "@konverge/kube";
import { attemptRecordingSchema, type AttemptRecording } from "@konverge/records";
import { NO_LANES } from "../../../libs/engine/src/access/attempt-plan.ts";
import { Attempt, NO_CACHE } from "../../../libs/engine/src/access/attempt.ts";
import { inlineRetry } from "../../../libs/engine/src/define/inline-retry.ts";
import { createWriteGroups } from "../../../libs/engine/src/access/write-group.ts";
import { runAttempt } from "../../../libs/engine/src/attempt/run-attempt.ts";
import { AttemptRecorder } from "../../../libs/engine/src/recording/attempt-recorder.ts";
import { buildRecording } from "../../../libs/engine/src/recording/build-recording.ts";

type Reconcile<T extends ApiObject> = (context: ReconcileContext<T>) => Promise<unknown>;

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const loop = { began: () => ({ ended: () => 0 }), stop: () => undefined };

export interface RecordedObject<T extends ApiObject> {
  readonly client: KubeClient;
  readonly type: ResourceType<T>;
  readonly namespace: string;
  readonly name: string;
}

function controllerFor<T extends ApiObject>(
  type: ResourceType<T>,
  reconcile: Reconcile<T>,
): Controller {
  return defineController({
    name: "recorded",
    for: type,
    backoff: { inline: { baseMs: 1, factor: 1, capMs: 1, steps: 4 } },
    reconcile: reconcile as never,
  });
}

/** Runs an attempt without queue and watches, and returns its recording as it is stored. */
export async function recordAttempt<T extends ApiObject>(
  { client, type, namespace, name }: RecordedObject<T>,
  reconcile: Reconcile<T>,
): Promise<AttemptRecording> {
  const controller = controllerFor(type, reconcile);
  const { group, resource } = type;
  const key: ObjectKey = {
    controller: controller.name,
    cluster: "default",
    resource,
    group,
    namespace,
    name,
  };
  const lease = {
    key,
    id: formatKey(key),
    epoch: 7,
    attempt: 1,
    failures: 0,
    conflicts: 0,
    triggers: [],
    isResync: false,
    pauses: [],
    requestedAtMs: Date.now(),
    startedAtMs: Date.now(),
    class: "interactive" as const,
    signal: new AbortController().signal,
    checkExpiry: () => undefined,
    keepLog: async () => undefined,
  };
  const runtime = {
    controller,
    use: [],
    client,
    isInScope: () => true,
    cache: NO_CACHE,
    lanes: NO_LANES,
    groups: createWriteGroups(),
    retry: inlineRetry("both", controller.inlineBackoff),
    runs: undefined,
    events: createEventRecorder("konverge/recorded"),
    limits: undefined,
    clusters: undefined,
  };
  const tape = new AttemptRecorder();
  const run = await runAttempt(
    new Attempt(lease, tape.runtime(runtime), { log: silent, span: undefined, tape }),
    loop,
  );
  const recording = buildRecording(lease, run, tape, { controller: controller.name, client });
  // As Redis and files keep it.
  return attemptRecordingSchema.parse(JSON.parse(JSON.stringify(recording)));
}

/** Replays a recording with a handler. */
export async function replayWith<T extends ApiObject>(
  type: ResourceType<T>,
  recording: AttemptRecording,
  reconcile: Reconcile<T>,
): Promise<AttemptReplay> {
  return await replayAttempt(recording, { controllers: [controllerFor(type, reconcile)] });
}
