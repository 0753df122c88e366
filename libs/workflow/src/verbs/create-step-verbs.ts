import {
  deepFreeze,
  defined,
  formatApiVersion,
  KonvergeError,
  type ApiObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import {
  assertOutsideOfChanges,
  buildIntent,
  createAttemptSecrets,
  createClientNodeApi,
  extractOwned,
  ignoreNotFound,
  type AppliedFields,
  readLogs,
  readPages,
  type ApplyCallOptions,
  type AttemptSecrets,
  type ExtractOptions,
  type KindName,
  type NamespacedName,
  type NewObject,
  type ObjectDraft,
  type ObjectIdentity,
  type ObjectManifest,
  type ObjectRef,
  type ReadonlyObject,
  type ObjectTarget,
  type PageCallOptions,
  type WriteCallOptions,
  withTypeOf,
} from "@konverge/kube";
import type { StepVerbs } from "../define/step-verbs.ts";
import type { Log } from "../define/log.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { BodySpan } from "../journal/run-tracing.ts";
import { applyObject } from "./apply.ts";
import { createObject, withName } from "./create.ts";
import { deleteCollection, deleteObject } from "./delete.ts";
import type { EffectWatch } from "./effect-watch.ts";
import { createOrUpdate } from "./create-or-update.ts";
import { recordStepEvent } from "./event.ts";
import { evict } from "./evict.ts";
import { forward, sendRaw } from "./forward.ts";
import { getObject } from "./get.ts";
import { listObjects } from "./list.ts";
import { mutateObject, mutateSubresource } from "./mutate.ts";
import { patchObject, replaceObject } from "./patch.ts";
import { assertJob } from "./run-job.ts";
import { readScale, scaleObject } from "./scale.ts";
import { createVerbScope, dryRunOf, labelOf, withKind, type VerbScope } from "./verb-scope.ts";

async function create(
  scope: VerbScope,
  object: ObjectManifest,
  { verb, dryRun }: { readonly verb: string; readonly dryRun?: boolean | undefined },
): Promise<ObjectRef> {
  const identity = scope.identify(verb, object);
  const named = withName(object, identity);
  const reached = dryRunOf(await scope.reach(named), dryRun);
  const ref = await createObject(scope, reached, { object: named, identity });
  return dryRun === true ? { ...ref, created: false } : ref;
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
  readonly log: Log;
  /** The span of the attempt. */
  readonly span?: BodySpan | undefined;
}

export function createStepVerbs(
  journal: RunJournal,
  { step, signal, effects, log, span }: StepVerbsOptions,
): OpenVerbs {
  const running = new Map<string, number>();
  const own = createAttemptSecrets();
  const secrets: Pick<AttemptSecrets, "note" | "scrub"> = {
    scrub: (text) => own.scrub(text),
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
  return {
    verbs: bindVerbs(
      createVerbScope({ journal, step, signal, effects, counts: new Map(), secrets, log, span }),
      track,
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
  return {
    ...readVerbs(scope, track),
    ...objectVerbs(scope, track),
    ...changeVerbs(scope, track),
    runJob: (job) =>
      track("runJob", async () => {
        assertJob(job);
        return await create(scope, job, { verb: "runJob" });
      }),
    evict: (pod, options = {}) =>
      track("evict", async () =>
        evict(scope, dryRunOf(await scope.reach(pod), options.dryRun), options),
      ),
    delete: (target, { dryRun, ...options } = {}) =>
      track("delete", async () =>
        deleteObject(scope, dryRunOf(await scope.reach(target), dryRun), options),
      ),
    deleteCollection: (kind, options) =>
      track("deleteCollection", async () =>
        deleteCollection(scope, await scope.reachKind(kindOf(kind)), options),
      ),
    event: (about, event) =>
      track("event", async () => recordStepEvent(scope, await scope.reach(about), event)),
    extract: <T extends ApiObject>(
      object: T | ObjectIdentity,
      { fieldManager, subresource }: ExtractOptions = {},
    ) =>
      track("extract", async () => {
        const manager = fieldManager ?? `konverge/${scope.journal.held.workflow}`;
        const owned: unknown = extractOwned(object as ApiObject, {
          manager,
          ...defined({ subresource }),
        });
        return owned as AppliedFields<T> | undefined;
      }),
    raw: (request) => track("raw", () => sendRaw(scope, request)),
    api: (type) =>
      createClientNodeApi(type, (request) => track("api", () => forward(scope, request))),
    on: (cluster) => bindVerbs(scope.on(cluster), track),
  };
}

type ReadVerbs = Pick<StepVerbs, "get" | "find" | "list" | "pages" | "readScale" | "logs">;

function readVerbs(scope: VerbScope, track: Track): ReadVerbs {
  const read = async <T extends ApiObject>(
    first: ResourceType<T> | ObjectTarget<T>,
    second: string | NamespacedName | undefined,
  ) => getObject<T>(scope, await scope.reach(targetOf(first, second)));
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
    async *pages<T extends ApiObject>(
      kind: ResourceType<T> | KindName,
      options: PageCallOptions = {},
    ) {
      const reached = await track("pages", () => scope.reachKind(kindOf(kind)));
      const call = <R>(work: () => Promise<R>) => track("pages", work);
      for await (const page of readPages(reached.client, reached.type, { options, call })) {
        for (const item of page) scope.noteSeen(reached, item);
        yield page.map((item) => deepFreeze(item) as ReadonlyObject<T>);
      }
    },
    readScale: (target) => track("readScale", async () => readScale(await scope.reach(target))),
    logs: (pod, options = {}) =>
      track("logs", async () => {
        const { client, type, at } = await scope.reach(pod);
        return await readLogs(client, type, { at, options });
      }),
  };
}

function objectVerbs(
  scope: VerbScope,
  track: Track,
): Pick<StepVerbs, "apply" | "create" | "patch" | "replace"> {
  return {
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
        const reached = dryRunOf(await scope.reach(object), options.dryRun);
        const ref = await applyObject(scope, reached, { object, identity, options });
        return options.dryRun === true ? { ...ref, created: false } : ref;
      }),
    create: <T extends ApiObject>(
      first: ResourceType<T> | ObjectManifest,
      second?: ObjectDraft<T> | NewObject<T> | WriteCallOptions,
      third?: WriteCallOptions,
    ) =>
      track("create", async () => {
        const isManifest = "metadata" in first;
        const object = manifestOf(first, isManifest ? undefined : (second as NewObject<T>));
        const { dryRun } = (isManifest ? (second as WriteCallOptions) : third) ?? {};
        return await create(scope, object, { verb: "create", dryRun });
      }),
    patch: (target: ObjectTarget, body, options) =>
      track("patch", async () => {
        const reached = dryRunOf(await scope.reach(target), options.dryRun);
        return await patchObject(scope, reached, { target, body: body as JsonValue, options });
      }),
    replace: (first: ResourceType | ObjectIdentity, second?: object, third?: WriteCallOptions) =>
      track("replace", async () => {
        const isObject = "metadata" in first;
        const object = isObject ? first : withTypeOf(first, second ?? {});
        const { dryRun } = ((isObject ? second : third) ?? {}) as WriteCallOptions;
        return await replaceObject(scope, dryRunOf(await scope.reach(object), dryRun), object);
      }),
  };
}

type ChangeVerbs = Pick<StepVerbs, "mutate" | "mutateStatus" | "createOrUpdate" | "scale">;

function changeVerbs(scope: VerbScope, track: Track): ChangeVerbs {
  const mutate: StepVerbs["mutate"] = (target, change, { strategy, subresource, dryRun } = {}) =>
    track("mutate", async () => {
      assertOutsideOfChanges(labelOf(target));
      const identity = scope.identify("mutate", target);
      const reached = dryRunOf(await scope.reach(target), dryRun);
      if (subresource !== undefined) {
        return await mutateSubresource(scope, reached, { change, strategy, subresource });
      }
      return (await mutateObject(scope, reached, { identity, change, strategy })).object;
    });
  return {
    mutate,
    mutateStatus: (target, change, options) =>
      mutate(target, change as (draft: ApiObject) => void | Promise<void>, {
        ...options,
        subresource: "status",
      }),
    createOrUpdate: (type, name, change, options = {}) =>
      track("createOrUpdate", async () => {
        const named = typeof name === "string" ? { name } : name;
        const namespace = options.ownedBy?.metadata.namespace;
        const target = withKind(type, namespace === undefined ? named : { namespace, ...named });
        assertOutsideOfChanges(labelOf(target));
        const identity = scope.identify("createOrUpdate", target);
        const reached = dryRunOf(await scope.reach(target), options.dryRun);
        return await createOrUpdate(scope, reached, { identity, change, options });
      }),
    scale: (target, replicas, { dryRun } = {}) =>
      track("scale", async () =>
        scaleObject(scope, dryRunOf(await scope.reach(target), dryRun), replicas),
      ),
  };
}

function kindOf(kind: ResourceType | KindName): KindName {
  if ("apiVersion" in kind) return kind;
  return { apiVersion: formatApiVersion(kind.group, kind.version), kind: kind.kind };
}
