import {
  defined,
  formatApiVersion,
  KonvergeError,
  parseJson,
  resourceId,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import {
  buildIntent,
  isConflict,
  isReplaced,
  ownerOf,
  readinessOf,
  setControllerReference,
  toWireValue,
  type AppliedFields,
  type KubeClient,
  type ObjectManifest,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { Child, ChildrenReport, ChildState } from "../define/children.ts";
import { isApplied, isControlledBy, markedBy, withChildMarks } from "./child-mark.ts";
import { labelOf } from "./resolve-target.ts";

/** No object has this version, so the apply either creates the object or is rejected. */
const NO_VERSION = "1";
const MAX_DELETE_TRIES = 3;

export interface ChildrenHost {
  readonly client: KubeClient;
  readonly kube: Pick<AttemptKube, "apply" | "delete" | "find" | "list">;
  readonly controller: string;
  /** The kinds in `owns`. */
  readonly owns: readonly ResourceType[];
}

interface Intent {
  readonly type: ResourceType;
  readonly object: ApiObject;
}

/** Applies the listed children of an owner, deletes its other children, and returns the status of each. */
export async function reconcileChildren<const Listed extends readonly (Child | ObjectManifest)[]>(
  host: ChildrenHost,
  {
    owner,
    listed,
    none,
  }: {
    readonly owner: ApiObject;
    readonly listed: Listed;
    readonly none: "ready" | "inProgress" | undefined;
  },
): Promise<ChildrenReport<Listed>> {
  const intents = listed.map((entry, index) => intentOf(host, owner, { entry, index }));
  assertDistinct(intents);
  const existing = await findChildren(host, owner);
  const errors: unknown[] = [];
  // A child that always fails must not prevent the others from being applied and deleted.
  const collect = async <T>(run: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await run();
    } catch (error) {
      errors.push(error);
      return undefined;
    }
  };
  const children: (ChildState | undefined)[] = [];
  for (const intent of intents) {
    const known = existing.get(keyOf(intent.type, intent.object));
    children.push(await collect(() => applyChild(host, owner, { intent, known, none })));
  }
  const wanted = new Set(intents.map(({ type, object }) => keyOf(type, object)));
  const deleted: (ChildState | undefined)[] = [];
  for (const [key, object] of existing) {
    if (wanted.has(key) || !isOwnChild(host, owner, object)) continue;
    deleted.push(await collect(() => deleteChild(host, owner, object)));
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, "children could not be reconciled");
  const missing = children.filter(isPresent).filter(({ status }) => status !== "current");
  return {
    ready: missing.length === 0,
    message: missing
      .map(({ object, message }) => `${labelOf(object, undefined)} ${message}`)
      .join("; "),
    // As many entries as listed, in their order; each has the type of its entry.
    children: children as unknown as ChildrenReport<Listed>["children"],
    deleted: deleted.filter(isPresent),
  };
}

/** @throws KonvergeError `invalid_request` for a kind that the controller does not own, `invalid_owner` */
function intentOf(
  { client, owns, controller }: ChildrenHost,
  owner: ApiObject,
  { entry, index }: { readonly entry: Child | ObjectManifest; readonly index: number },
): Intent {
  const { apiVersion, kind, given } = isTyped(entry)
    ? { ...kindOf(entry.type), given: entry.given }
    : { apiVersion: entry.apiVersion, kind: entry.kind, given: entry };
  const type = owns.find((each) => each.kind === kind && kindOf(each).apiVersion === apiVersion);
  if (type === undefined) {
    const detail = `children[${index}]: ${kind} in ${apiVersion} is not in owns of controller "${controller}"; add it, so that its objects are watched and deleted`;
    throw new KonvergeError("invalid_request", detail, {
      issues: [{ pointer: `/children/${index}`, detail }],
    });
  }
  // A copy, without undefined fields: the caller's object is not changed.
  const plain = parseJson(
    JSON.stringify(toWireValue(given)),
  ) as unknown as AppliedFields<ApiObject>;
  const object = buildIntent(type, plain, owner.metadata.namespace);
  setControllerReference(object, owner);
  const isSensitive = client.isSensitive(type);
  return { type, object: withChildMarks(object, { controller, owner, isSensitive }) };
}

function kindOf({ group, version, kind }: ResourceType) {
  return { apiVersion: formatApiVersion(group, version), kind };
}

function isTyped(entry: Child | ObjectManifest): entry is Child {
  return "given" in entry && "type" in entry;
}

function assertDistinct(intents: readonly Intent[]): void {
  const seen = new Set<string>();
  for (const [index, { type, object }] of intents.entries()) {
    const key = keyOf(type, object);
    if (seen.has(key)) {
      const detail = `children[${index}]: ${labelOf(object, undefined)} is listed twice; remove one`;
      throw new KonvergeError("invalid_request", detail, {
        issues: [{ pointer: `/children/${index}`, detail }],
      });
    }
    seen.add(key);
  }
}

/** The objects of the owned kinds that refer to the owner, by kind and name. Read from the cache. */
async function findChildren(
  { kube, owns }: ChildrenHost,
  owner: ApiObject,
): Promise<Map<string, ApiObject>> {
  const lists = await Promise.all(
    owns.map(async (type) => {
      const items = await kube.list(type, { ownedBy: owner });
      return items.map((item) => [keyOf(type, item), item] as const);
    }),
  );
  return new Map(lists.flat());
}

interface Application {
  readonly intent: Intent;
  readonly known: ApiObject | undefined;
  readonly none: "ready" | "inProgress" | undefined;
}

async function applyChild(
  host: ChildrenHost,
  owner: ApiObject,
  { intent: { type, object }, known, none }: Application,
): Promise<ChildState> {
  const before = known ?? (await createChild(host, type, object));
  if ("created" in before)
    return stateOf(host, { type, object: before.created, change: "created", none });
  assertOwnChild(host, owner, before);
  const isKept =
    before.metadata.deletionTimestamp !== undefined ||
    isApplied(before, object, {
      manager: `konverge/${host.controller}`,
      isSensitive: host.client.isSensitive(type),
    });
  if (isKept) return stateOf(host, { type, object: before, change: "unchanged", none });
  const { uid = "" } = before.metadata;
  const applied = await host.kube.apply<ApiObject>(type, object, { force: true, uid });
  const isSame = applied.metadata.resourceVersion === before.metadata.resourceVersion;
  return stateOf(host, { type, object: applied, change: isSame ? "unchanged" : "updated", none });
}

/** Creates the object, or returns the one that exists: the cache was behind, or it is not a child. */
async function createChild(
  { kube }: ChildrenHost,
  type: ResourceType,
  object: ApiObject,
): Promise<{ readonly created: ApiObject } | ApiObject> {
  const metadata = { ...object.metadata, resourceVersion: NO_VERSION };
  try {
    return { created: await kube.apply<ApiObject>(type, { ...object, metadata }, { force: true }) };
  } catch (error) {
    if (!isConflict(error)) throw error;
    const found = await kube.find<ApiObject>(type, object.metadata);
    if (found === undefined) throw error;
    return found;
  }
}

/** @throws KonvergeError `object_exists` for an object that the owner does not control */
function assertOwnChild({ controller }: ChildrenHost, owner: ApiObject, object: ApiObject): void {
  const other = markedBy(object);
  const isOwn = isControlledBy(object, owner) && (other ?? controller) === controller;
  if (isOwn) return;
  const by = ownerOf(object);
  const reason = isControlledBy(object, owner)
    ? `is a child of controller "${other ?? ""}"`
    : by === undefined
      ? "exists and has no controller"
      : `is controlled by ${by.kind} "${by.name}"`;
  throw new KonvergeError(
    "object_exists",
    `${labelOf(object, undefined)} ${reason}; choose another name, delete it, or set its controller reference to ${owner.kind} "${owner.metadata.name}"`,
  );
}

function isOwnChild({ controller }: ChildrenHost, owner: ApiObject, object: ApiObject): boolean {
  return isControlledBy(object, owner) && markedBy(object) === controller;
}

async function deleteChild(
  host: ChildrenHost,
  owner: ApiObject,
  known: ApiObject,
): Promise<ChildState> {
  let object = known;
  for (let tries = 1; object.metadata.deletionTimestamp === undefined; tries += 1) {
    try {
      const { resourceVersion = "" } = object.metadata;
      await host.kube.delete(object, { resourceVersion });
      break;
    } catch (error) {
      if (!isConflict(error) || tries >= MAX_DELETE_TRIES) throw error;
      const found = isReplaced(error) ? undefined : await host.kube.find(object);
      // Released by another writer, or deleted.
      if (found === undefined || !isOwnChild(host, owner, found)) break;
      object = found;
    }
  }
  const isTerminating = (object.metadata.finalizers ?? []).length > 0;
  return {
    object,
    change: "deleted",
    status: isTerminating ? "terminating" : "notFound",
    message: isTerminating ? "is being deleted" : "does not exist",
  };
}

function stateOf(
  { client }: ChildrenHost,
  {
    type,
    object,
    change,
    none,
  }: {
    readonly type: ResourceType;
    readonly object: ApiObject;
    readonly change: ChildState["change"];
    readonly none: "ready" | "inProgress" | undefined;
  },
): ChildState {
  const { resourceVersion = "" } = object.metadata;
  const { status, message } = readinessOf(object, {
    ...defined({ none }),
    ...(change === "unchanged" ? {} : { writtenVersion: resourceVersion }),
  });
  // Messages quote conditions (P12).
  const isHidden = message !== "" && client.isSensitive(type);
  return { object, change, status, message: isHidden ? `is ${status}` : message };
}

function keyOf(type: ResourceType, { metadata: { namespace = "", name } }: ApiObject): string {
  return `${resourceId(type)}/${namespace}/${name}`;
}

function isPresent<T>(value: T | undefined): value is T {
  return value !== undefined;
}
