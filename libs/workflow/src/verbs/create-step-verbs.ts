import { KonvergeError } from "@konverge/core";
import { assertOutsideOfChanges, createAttemptSecrets, type AttemptSecrets } from "@konverge/kube";
import type { ObjectRef } from "../define/object-ref.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { BodySpan } from "../journal/run-tracing.ts";
import { applyObject } from "./apply.ts";
import { createObject, withName } from "./create.ts";
import { deleteObject } from "./delete.ts";
import type { EffectWatch } from "./effect-watch.ts";
import { evictPod } from "./evict.ts";
import { getObject } from "./get.ts";
import { listObjects } from "./list.ts";
import { mutateObject } from "./mutate.ts";
import { assertJob } from "./run-job.ts";
import { scaleObject } from "./scale.ts";
import type { ObjectManifest, StepVerbs } from "../define/step-verbs.ts";
import { createVerbScope, labelOf, type VerbScope } from "./verb-scope.ts";

async function create(scope: VerbScope, object: ObjectManifest, verb: string): Promise<ObjectRef> {
  const identity = scope.identify(verb, object);
  const named = withName(object, identity);
  return await createObject(scope, await scope.reach(named), { object: named, identity });
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
  const verbsOn = (scope: VerbScope): StepVerbs => ({
    get: (target) => track("get", async () => getObject(scope, await scope.reach(target))),
    list: (target) => track("list", () => listObjects(scope, target)),
    apply: (object, options = {}) =>
      track("apply", async () => {
        const identity = scope.identify("apply", object);
        return await applyObject(scope, await scope.reach(object), { object, identity, options });
      }),
    mutate: (target, change) =>
      track("mutate", async () => {
        assertOutsideOfChanges(labelOf(target));
        const identity = scope.identify("mutate", target);
        return await mutateObject(scope, await scope.reach(target), { identity, change });
      }),
    create: (object) => track("create", () => create(scope, object, "create")),
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
    on: (cluster) => verbsOn(scope.on(cluster)),
  });
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
