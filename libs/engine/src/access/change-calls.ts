import {
  defined,
  formatApiVersion,
  KonvergeError,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import {
  assertOutsideOfChanges,
  isAlreadyExists,
  isNotFound,
  runChange,
  setControllerReference,
  type ChangeDraft,
  type CreateOrUpdateOptions,
  type CreateOrUpdateResult,
  type MutateCallOptions,
  type NamespacedName,
  type ObjectTarget,
  type Scale,
  type WriteCallOptions,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { CallHost } from "./call-host.ts";
import { mutateStatusBy } from "./mutate-status.ts";
import { labelOf, resolveTarget } from "./resolve-target.ts";
import { clientFor } from "./write-calls.ts";

/** Reads, changes and writes an object, with retries on conflict. */
export type ChangeObject = <T extends ApiObject>(
  target: T | ObjectTarget<T>,
  change: ChangeDraft<T>,
  how?: MutateCallOptions,
) => Promise<{ readonly kind: "updated" | "unchanged"; readonly object: T }>;

type ChangeCalls = Pick<
  AttemptKube,
  "mutate" | "mutateStatus" | "createOrUpdate" | "scale" | "readScale"
>;

/** The calls that change an object by a function. */
export function createChangeCalls(host: CallHost, changeObject: ChangeObject): ChangeCalls {
  const mutate: AttemptKube["mutate"] = async (target, change, how) =>
    (await changeObject(target, change, how)).object;
  return {
    mutate,
    mutateStatus: mutateStatusBy(mutate),
    createOrUpdate: (type, name, change, options = {}) =>
      host.call(() => createOrUpdate({ host, changeObject }, { type, name, change, options })),
    scale: async (target, replicas, options: WriteCallOptions = {}) => {
      assertReplicas(replicas);
      const set = (draft: Scale) => void (draft.spec = { ...draft.spec, replicas });
      const scaled = target as ObjectTarget<Scale>;
      return (await changeObject(scaled, set, { ...options, subresource: "scale" })).object;
    },
    readScale: (target) =>
      host.call(async () => {
        const { type, name } = await resolveTarget(host.client, target, host.namespace);
        const scale = await host.client.get<Scale>(type, name, {
          subresource: "scale",
        });
        return host.show(type, scale);
      }),
  };
}

function assertReplicas(replicas: number): void {
  if (Number.isSafeInteger(replicas) && replicas >= 0) return;
  const detail = `replicas must be an integer >= 0 (got ${replicas})`;
  throw new KonvergeError("invalid_request", detail);
}

interface Upsert<T extends ApiObject> {
  readonly type: ResourceType<T>;
  readonly name: string | NamespacedName;
  readonly change: ChangeDraft<T>;
  readonly options: CreateOrUpdateOptions;
}

/** Others may create or delete the object between two calls. */
const MAX_TRIES = 8;

async function createOrUpdate<T extends ApiObject>(
  { host, changeObject }: { readonly host: CallHost; readonly changeObject: ChangeObject },
  { type, name, change, options: { ownedBy, dryRun } }: Upsert<T>,
): Promise<CreateOrUpdateResult<T>> {
  const given = typeof name === "string" ? { name } : name;
  const namespace = given.namespace ?? ownedBy?.metadata.namespace ?? host.namespace;
  const target = { type, name: given.name, ...defined({ namespace }) };
  const label = labelOf(target, undefined);
  const owned: ChangeDraft<T> = async (draft) => {
    if (ownedBy !== undefined) setControllerReference(draft, ownedBy);
    await change(draft);
  };
  for (let tries = 1; ; tries += 1) {
    try {
      return await changeObject<T>(target, owned, defined({ dryRun }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    assertOutsideOfChanges(label);
    const draft = newObject(type, target);
    await runChange(label, () => owned(draft));
    host.noteSecrets(type, draft);
    try {
      const created = await clientFor(host, { dryRun }).create(type, draft);
      if (dryRun === true) return { kind: "created", object: host.show(type, created) };
      const at = { name: given.name, ...defined({ namespace: created.metadata.namespace }) };
      host.noteWrite({ verb: "create", type, name: at, object: created });
      return { kind: "created", object: host.handOut(type, created) };
    } catch (error) {
      if (!isAlreadyExists(error) || tries >= MAX_TRIES) throw error;
    }
  }
}

function newObject<T extends ApiObject>(
  { group, version, kind, scope }: ResourceType<T>,
  { name, namespace }: NamespacedName,
): T {
  const metadata = { name, ...(scope === "Cluster" ? {} : defined({ namespace })) };
  return { apiVersion: formatApiVersion(group, version), kind, metadata } as T;
}
