import {
  defined,
  diffMergePatch,
  isJsonObject,
  metadataOf,
  resourceId,
  SERVER_METADATA,
  type ApiObject,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import {
  findTakenFields,
  isCurrentTime,
  redactValues,
  type AttemptSecrets,
  type KubeClient,
  type KubePlan,
  type PlannedObject,
} from "@konverge/kube";
import { redactPatch, type PlanRecord } from "@konverge/records";
import { scrubValue } from "../attempt/handler-log.ts";
import { planHash } from "./plan-hash.ts";

type PlanChange = PlanRecord["changes"][number];

/** A change for the record, and its values in the hash of the plan. */
export interface RecordedChange {
  /** With all writes. */
  readonly shown: PlanChange;
  readonly hashed: JsonObject;
  /** A reason why the API server may reject it nevertheless. */
  readonly warning: string | undefined;
}

export interface ChangeContext {
  readonly cluster: string | undefined;
  readonly isSensitive: KubeClient["isSensitive"];
  readonly secrets: AttemptSecrets;
  /** Start of the plan, in epoch ms. */
  readonly sinceMs: number;
}

/** Hexadecimal digits of the digest of a change. */
const DIGEST_LENGTH = 32;
/** The default limit of etcd for a request, which a dry run does not reach. */
const MOST_BYTES = 1_500_000;

export function changesOf(plan: KubePlan, context: ChangeContext): RecordedChange[] {
  return plan.objects.written.map((object) => changeOf(object, context));
}

function changeOf(object: PlannedObject, context: ChangeContext): RecordedChange {
  const { before, view, writes, place } = object;
  const { cluster, secrets } = context;
  const kind = String((view ?? before)?.["kind"] ?? "");
  const type: ResourceType = { ...place, kind, scope: "Namespaced" };
  const sensitive = context.isSensitive(type);
  const patch = diffMergePatch(contentOf(before), contentOf(view));
  const action = actionOf(object, patch);
  const isTerminating = view !== undefined && metadataOf(view)["deletionTimestamp"] !== undefined;
  const fieldsTakenOver = takenOver(object, { patch, sensitive });
  const identity = {
    ...defined({ cluster, namespace: place.namespace }),
    resource: resourceId(place),
    kind,
    name: place.name,
    action,
    ...(isTerminating ? { terminating: true } : {}),
  };
  const showsPatch = patch !== undefined && action !== "deleted";
  const shownPatch = sensitive
    ? redactValues(patch ?? {})
    : redactPatch(resourceId(place), patch ?? {});
  const hashedPatch =
    patch === undefined ? null : sensitive ? redactValues(patch) : stable(patch, object, context);
  return {
    shown: {
      ...identity,
      writes: [...writes],
      ...(showsPatch
        ? { patch: (secrets.isEmpty ? shownPatch : scrubValue(shownPatch, secrets)) as JsonObject }
        : {}),
      digest: planHash({ action, patch: hashedPatch }).slice(0, DIGEST_LENGTH),
      ...(fieldsTakenOver.length === 0 ? {} : { fieldsTakenOver }),
    },
    hashed: {
      ...identity,
      writes: writes.map((write) => ({ ...write })),
      patch: hashedPatch,
    },
    warning:
      view !== undefined && JSON.stringify(view).length > MOST_BYTES
        ? "the object is larger than 1.5 MB, which etcd rejects by default although the dry run succeeds"
        : undefined,
  };
}

/** Replaces values that differ in each dry run: those that the server draws, and the current time. */
function stable(
  patch: JsonObject,
  { drawn }: PlannedObject,
  { sinceMs }: Pick<ChangeContext, "sinceMs">,
): JsonObject {
  const replace = (value: JsonValue): JsonValue => {
    if (drawn.has(value)) return "drawn by the server";
    if (typeof value === "string" && isCurrentTime(value, { sinceMs })) return "the current time";
    if (Array.isArray(value)) return value.map(replace);
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, replace(member)] as const),
    );
  };
  return replace(patch) as JsonObject;
}

function actionOf(
  { before, view, standIn }: PlannedObject,
  patch: JsonObject | undefined,
): PlanChange["action"] {
  if (view === undefined) return before === undefined ? "unchanged" : "deleted";
  if (before === undefined) return "created";
  if (standIn !== undefined) return "replaced";
  const wasTerminating = metadataOf(before)["deletionTimestamp"] !== undefined;
  if (!wasTerminating && metadataOf(view)["deletionTimestamp"] !== undefined) return "deleted";
  return patch === undefined ? "unchanged" : "changed";
}

function takenOver(
  { before, view, writes }: PlannedObject,
  { patch, sensitive }: { readonly patch: JsonObject | undefined; readonly sensitive: boolean },
): NonNullable<PlanChange["fieldsTakenOver"]> {
  if (before === undefined || view === undefined || patch === undefined) return [];
  const own = new Set(writes.map(({ fieldManager }) => fieldManager));
  const [manager = ""] = own;
  const current = before as unknown as ApiObject;
  const options = { manager, sensitive, patch };
  return findTakenFields(current, view as unknown as ApiObject, options)
    .filter((field) => !own.has(field.manager))
    .map((field) => ({ ...field, ...defined({ at: writtenAt(current, field.manager) }) }));
}

/** The last time that a manager wrote the object. */
function writtenAt({ metadata }: ApiObject, manager: string): string | undefined {
  const times = (metadata.managedFields ?? []).flatMap((entry) =>
    entry.manager === manager && entry.time !== undefined ? [entry.time] : [],
  );
  return times.toSorted().at(-1);
}

function contentOf(object: JsonObject | undefined): JsonObject {
  if (object === undefined) return {};
  const metadata = Object.entries(metadataOf(object)).filter(
    ([name]) => !SERVER_METADATA.includes(name),
  );
  const { apiVersion: _version, kind: _kind, ...content } = object;
  return { ...content, metadata: Object.fromEntries(metadata) };
}
