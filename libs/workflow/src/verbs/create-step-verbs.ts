import { KonvergeError, type ApiObject, type JsonValue, type ResourceType } from "@konverge/core";
import {
  assertOutsideOfChanges,
  buildIntent,
  createAttemptSecrets,
  createClientNodeApi,
  ignoreNotFound,
  type AppliedFields,
  type ApplyCallOptions,
  type AttemptSecrets,
  type KindName,
  type NamespacedName,
  type NewObject,
  type ObjectDraft,
  type ObjectManifest,
  type ObjectRef,
  type ObjectTarget,
} from "@konverge/kube";
import type { StepVerbs } from "../define/step-verbs.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { BodySpan } from "../journal/run-tracing.ts";
import { applyObject } from "./apply.ts";
import { createObject, withName } from "./create.ts";
import { deleteObject } from "./delete.ts";
import type { EffectWatch } from "./effect-watch.ts";
import { forward } from "./forward.ts";
import { evictPod } from "./evict.ts";
import { getObject } from "./get.ts";
import { listObjects } from "./list.ts";
import { mutateObject, mutateSubresource } from "./mutate.ts";
import { patchObject, replaceObject } from "./patch.ts";
import { assertJob } from "./run-job.ts";
import { scaleObject } from "./scale.ts";
import { createVerbScope, labelOf, withKind, type VerbScope } from "./verb-scope.ts";

async function create(scope: VerbScope, object: ObjectManifest, verb: string): Promise<ObjectRef> {
  const identity = scope.identify(verb, object);
  const named = withName(object, identity);
  return await createObject(scope, await scope.reach(named), { object: named, identity });
}

/** A body names namespaces: no object is reconciled. */
function manifestOf<T extends ApiObject>(
  first: ResourceType<T> | ObjectManifest,
  second: ObjectDraft<T> | NewObject<T> | AppliedFields<T> | undefined,
): ObjectManifest {
  return "metadata" in first || second === undefined
    ? (first as ObjectManifest)
    : buildIntent(first, second, undefined);
}

function targetOf(
  first: ResourceType | ObjectTarget,
  second: string | NamespacedName | undefined,
): ObjectTarget {
  if (second === undefined) return first as ObjectTarget;
  return withKind(first as ResourceType, typeof second === "string" ? { name: second } : second);
}

/** The verbs of one attempt of a body. */
export interface OpenVerbs {
  readonly verbs: StepVerbs;
  /** @throws KonvergeError `invalid_workflow` if the body has returned while one of its verbs is running */
  assertEnded(): void;
  /** Removes values of sensitive objects that the body has read (P12). */
  readonly scrub: (text: string) => string;
  /** @throws KonvergeError `invalid_result` if the value contains one of them */
  assertNotSecret(value: unknown): void;
}

export interface StepVerbsOptions {
  readonly step: string;
  readonly signal: AbortSignal;
  readonly effects: EffectWatch;
  /** The span of the attempt. */
  readonly span?: BodySpan | undefined;
}

export function createStepVerbs(
  journal: RunJournal,
  { step, signal, effects, span }: StepVerbsOptions,
): OpenVerbs {
  const running = new Map<string, number>();
  const own = createAttemptSecrets();
  const secrets: Pick<AttemptSecrets, "note"> = {
    note(object) {
      own.note(object);
      // The function may quote them after the body.
      journal.secrets.note(object);
    },
  };
  /** `assertEnded` reports verbs that are not awaited; their failure must not end the process as well. */
  const track = <T>(verb: string, work: () => Promise<T>): Promise<T> => {
    const add = (by: number) => running.set(verb, (running.get(verb) ?? 0) + by);
    add(1);
    effects.beginVerb();
    const promise = work().finally(() => {
      add(-1);
      effects.endVerb();
    });
    promise.catch(() => undefined);
    return promise;
  };
  const verbsOn = (scope: VerbScope): StepVerbs => bindVerbs(scope, track);
  return {
    verbs: verbsOn(
      createVerbScope({ journal, step, signal, effects, counts: new Map(), secrets, span }),
    ),
    scrub: (text) => own.scrub(text),
    assertNotSecret(value) {
      if (!own.revealedBy(value)) return;
      const detail = `the value of "${step}" contains text of a Secret or another sensitive object`;
      throw new KonvergeError("invalid_result", `${detail}; return a reference instead`);
    },
    assertEnded() {
      const verbs = [...running].filter(([, count]) => count > 0).map(([verb]) => verb);
      if (verbs.length === 0) return;
      throw new KonvergeError(
        "invalid_workflow",
        `the body of step "${step}" returned with pending calls: ${verbs.join(", ")}; await them`,
      );
    },
  };
}

type Track = <T>(verb: string, work: () => Promise<T>) => Promise<T>;

function bindVerbs(scope: VerbScope, track: Track): StepVerbs {
  const read = async <T extends ApiObject>(
    first: ResourceType<T> | ObjectTarget<T>,
    second: string | NamespacedName | undefined,
  ) => getObject<T>(scope, await scope.reach(targetOf(first, second)));
  const mutate: StepVerbs["mutate"] = (target, change, { strategy, subresource } = {}) =>
    track("mutate", async () => {
      assertOutsideOfChanges(labelOf(target));
      const identity = scope.identify("mutate", target);
      const reached = await scope.reach(target);
      return subresource === undefined
        ? await mutateObject(scope, reached, { identity, change, strategy })
        : await mutateSubresource(scope, reached, { change, strategy, subresource });
    });
  return {
    get: <T extends ApiObject>(
      first: ResourceType<T> | ObjectTarget<T>,
      second?: string | NamespacedName,
    ) => track("get", () => read(first, second)),
    find: <T extends ApiObject>(
      first: ResourceType<T> | ObjectTarget<T>,
      second?: string | NamespacedName,
    ) => track("find", () => read(first, second).catch(ignoreNotFound)),
    list: <T extends ApiObject>(kind: ResourceType<T> | KindName, options = {}) =>
      track("list", () => listObjects<T>(scope, kind, options)),
    apply: <T extends ApiObject>(
      first: ResourceType<T> | ObjectManifest,
      second?: ObjectDraft<T> | AppliedFields<T> | ApplyCallOptions,
      third?: ApplyCallOptions,
    ) =>
      track("apply", async () => {
        const isManifest = "metadata" in first;
        const object = manifestOf(first, isManifest ? undefined : (second as AppliedFields<T>));
        const options = (isManifest ? (second as ApplyCallOptions) : third) ?? {};
        const identity = scope.identify("apply", object);
        return await applyObject(scope, await scope.reach(object), { object, identity, options });
      }),
    create: <T extends ApiObject>(
      first: ResourceType<T> | ObjectManifest,
      second?: ObjectDraft<T> | NewObject<T>,
    ) => track("create", async () => create(scope, manifestOf(first, second), "create")),
    patch: (target: ObjectTarget, body, options) =>
      track("patch", async () => {
        const reached = await scope.reach(target);
        return await patchObject(scope, reached, { target, body: body as JsonValue, options });
      }),
    replace: (object) =>
      track("replace", async () => replaceObject(scope, await scope.reach(object), object)),
    mutate,
    mutateStatus: (target, change, options) =>
      mutate(target, change as (draft: ApiObject) => void | Promise<void>, {
        ...options,
        subresource: "status",
      }),
    scale: (target, replicas) =>
      track("scale", async () => scaleObject(scope, await scope.reach(target), replicas)),
    runJob: (job) =>
      track("runJob", async () => {
        assertJob(job);
        return await create(scope, job, "runJob");
      }),
    evict: (pod, options = {}) =>
      track("evict", async () => evictPod(scope, await scope.reach(pod), options)),
    delete: (target, options = {}) =>
      track("delete", async () => deleteObject(scope, await scope.reach(target), options)),
    api: (type) =>
      createClientNodeApi(type, (request) => track("api", () => forward(scope, request))),
    on: (cluster) => bindVerbs(scope.on(cluster), track),
  };
}
