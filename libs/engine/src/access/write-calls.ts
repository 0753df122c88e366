import {
  defined,
  formatApiVersion,
  isJsonObject,
  type ApiObject,
  type JsonValue,
  type ResourceRef,
  type ResourceType,
} from "@konverge/core";
import {
  buildIntent,
  conflictRecord,
  fieldConflict,
  findOwners,
  ignoreNotFound,
  isChild,
  isFieldManagerConflict,
  type AppliedFields,
  type ApplyCallOptions,
  type KubeClient,
  type NamespacedName,
  type NewObject,
  type ObjectDraft,
  type ObjectIdentity,
  type ObjectManifest,
  type ObjectTarget,
  type PatchCallOptions,
  type WriteCallOptions,
  withoutManagedFields,
  withTypeOf,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { CallHost } from "./call-host.ts";
import {
  labelOf,
  nameOf,
  resolveKind,
  resolveTarget,
  type ResolvedTarget,
} from "./resolve-target.ts";

type WriteCalls = Pick<AttemptKube, "create" | "delete" | "apply" | "patch" | "replace">;

/** The writes that need no lane, because none of them repeats a change after a conflict. */
export function createWriteCalls(host: CallHost): WriteCalls {
  return {
    create: <T extends ApiObject>(
      first: ResourceType<T> | ObjectManifest,
      second?: ObjectDraft<T> | NewObject<T> | WriteCallOptions,
      third?: WriteCallOptions,
    ) =>
      host.call(() =>
        "metadata" in first
          ? create<T>(host, first, { given: first, options: second as WriteCallOptions })
          : create<T>(host, first, { given: second as NewObject<T>, options: third }),
      ),
    delete: (target, options = {}) =>
      host.call(async () => {
        const resolved = await resolveTarget(host.client, target, host.namespace);
        const { type, name, uid } = resolved;
        const { dryRun, ...given } = options;
        const deleted = await clientFor(host, { dryRun })
          .delete(type, name, { ...defined({ uid }), ...given })
          .then(() => true)
          .catch((error: unknown) => ignoreNotFound(error) ?? false);
        if (!deleted || dryRun === true) return;
        host.noteWrite({ verb: "delete", type, name, object: deletedOf(target, resolved) });
      }),
    apply: <T extends ApiObject>(
      first: ResourceType<T> | ObjectManifest,
      second?: ObjectDraft<T> | AppliedFields<T> | ApplyCallOptions,
      third?: ApplyCallOptions,
    ) =>
      host.call(() =>
        "metadata" in first
          ? apply<T>(host, first, { given: first, options: second as ApplyCallOptions })
          : apply<T>(host, first, { given: second as AppliedFields<T>, options: third }),
      ),
    patch: (target, body, options) =>
      host.call(() => patch(host, target, { body: body as JsonValue, options })),
    replace: <T extends ApiObject>(
      first: ResourceType<T> | ObjectIdentity,
      second?: object,
      third?: WriteCallOptions,
    ) =>
      host.call(async () => {
        const [object, options] =
          "metadata" in first ? [first, second] : [withTypeOf(first, second ?? {}), third];
        const replaced = await replace(host, object as ApiObject, options ?? {});
        return replaced as T;
      }),
  };
}

interface Creation<T extends ApiObject> {
  readonly given: ObjectDraft<T> | NewObject<T> | ObjectManifest;
  readonly options: WriteCallOptions | undefined;
}

async function create<T extends ApiObject>(
  host: CallHost,
  kind: ResourceType<T> | ObjectManifest,
  { given, options = {} }: Creation<T>,
): Promise<T> {
  const type = await resolveKind<T>(host.client, kind);
  const wanted = buildIntent(type, given as NewObject<T>, host.namespace);
  host.noteSecrets(type, wanted);
  const created = await clientFor(host, options).create(type, wanted);
  if (options.dryRun === true) return host.show(type, created);
  host.noteWrite({ verb: "create", type, name: nameOf(created), object: created });
  return host.handOut(type, created);
}

async function replace(
  host: CallHost,
  object: ApiObject,
  options: WriteCallOptions,
): Promise<ApiObject> {
  const { type } = await resolveTarget(host.client, object, host.namespace);
  host.noteSecrets(type, object);
  // Objects of the cache have only some field managers; those of a PUT take the place of all.
  const replaced = await clientFor(host, options).replace(type, withoutManagedFields(object));
  if (options.dryRun === true) return host.show(type, replaced);
  const { resourceVersion: fromVersion = "" } = object.metadata;
  // The server writes nothing if the object is already the same.
  if (replaced.metadata.resourceVersion !== fromVersion) {
    const name = nameOf(object);
    host.noteWrite({ verb: "update", type, name, fromVersion, object: replaced });
  }
  return host.handOut(type, replaced);
}

interface Application<T extends ApiObject> {
  readonly given: ObjectDraft<T> | AppliedFields<T> | ObjectManifest;
  readonly options: ApplyCallOptions | undefined;
}

async function apply<T extends ApiObject>(
  host: CallHost,
  kind: ResourceType<T> | ObjectManifest,
  { given, options = {} }: Application<T>,
): Promise<T> {
  const { force, fieldManager, subresource, uid, dryRun } = options;
  const type = await resolveKind<T>(host.client, kind);
  const intent = buildIntent(type, given as NewObject<T>, host.namespace);
  const wanted = { ...intent, metadata: { ...intent.metadata, ...defined({ uid }) } };
  host.noteSecrets(type, wanted);
  const how = { force: force ?? isChild(given, wanted, host.object), ...defined({ subresource }) };
  const applied = await clientFor(host, { fieldManager, dryRun })
    .apply(type, wanted, how)
    .catch((error: unknown) => {
      const { resourceVersion } = wanted.metadata;
      const label = labelOf(wanted, host.namespace);
      throw rejectionOf(host, { ...type, ...nameOf(wanted) }, { error, label, resourceVersion });
    });
  if (dryRun === true) return host.show(type, applied);
  const written = defined({ subresource, fieldManager });
  host.noteWrite({ verb: "apply", type, name: nameOf(applied), object: applied, ...written });
  return host.handOut(type, applied);
}

interface Patching {
  readonly body: JsonValue;
  readonly options: PatchCallOptions;
}

async function patch<T extends ApiObject>(
  host: CallHost,
  target: T | ObjectTarget<T>,
  { body, options }: Patching,
): Promise<T> {
  const { subresource, force, fieldManager, dryRun } = options;
  const { type, name } = await resolveTarget<T>(host.client, target, host.namespace);
  host.noteSecrets(type, valuesOf(body));
  const read = readOf(target, type, name);
  const patched = await clientFor(host, { fieldManager, dryRun })
    .patch(type, name, { type: options.type, body }, defined({ subresource, force, read }))
    .catch((error: unknown) => {
      const label = labelOf(target, host.namespace);
      throw rejectionOf(host, { ...type, ...name }, { error, label });
    });
  if (dryRun === true) return host.show(type, patched);
  const fromVersion = read?.metadata.resourceVersion;
  // The server writes nothing if the object is already the same.
  if (patched.metadata.resourceVersion !== fromVersion) {
    const sensitive = host.client.isSensitive(type);
    host.noteWrite({
      verb: options.type === "apply" ? "apply" : "patch",
      type,
      name,
      object: patched,
      sensitive,
      ...defined({ subresource, fieldManager, fromVersion, before: read }),
      ...(isJsonObject(body) && !sensitive ? { patch: body } : {}),
    });
  }
  return host.handOut(type, patched);
}

/** The object that a patch is based on. */
function readOf(
  target: ApiObject | ObjectTarget,
  type: ResourceType,
  name: NamespacedName,
): ApiObject | undefined {
  if (!("metadata" in target)) return undefined;
  const apiVersion = formatApiVersion(type.group, type.version);
  return { ...target, apiVersion, kind: type.kind, metadata: { ...target.metadata, ...name } };
}

/** The values of a patch, without its operations and paths. */
function valuesOf(body: JsonValue): object {
  if (!Array.isArray(body)) return isJsonObject(body) ? body : {};
  return { values: body.map((operation) => (isJsonObject(operation) ? operation["value"] : null)) };
}

/** The object of a delete, of which only the address may be known. */
function deletedOf(
  target: ObjectTarget,
  { type, name, uid }: ResolvedTarget<ApiObject>,
): ApiObject {
  const known = "metadata" in target ? target : {};
  const apiVersion = formatApiVersion(type.group, type.version);
  const metadata = {
    ...("metadata" in target ? target.metadata : {}),
    ...name,
    ...defined({ uid }),
  };
  return { ...known, apiVersion, kind: type.kind, metadata };
}

/** Returns the client of a call with its own field manager, or of a dry run. */
export function clientFor(
  { client }: CallHost,
  scope: { readonly fieldManager?: string | undefined; readonly dryRun?: boolean | undefined },
): KubeClient {
  const { fieldManager, dryRun } = scope;
  return fieldManager === undefined && dryRun === undefined
    ? client
    : client.scoped(defined(scope));
}

interface Rejection {
  readonly error: unknown;
  readonly label: string;
  readonly resourceVersion?: string | undefined;
}

/**
 * The error of a rejected write, with the fix for fields of other managers. The owners of these fields are contention, even if
 * the handler catches the error.
 */
function rejectionOf(host: CallHost, ref: ResourceRef, rejection: Rejection): unknown {
  const { error, label, resourceVersion: readVersion = "" } = rejection;
  const competingWriters = findOwners(error);
  if (competingWriters.length > 0) {
    host.noteConflict(conflictRecord({ ref, readVersion, competingWriters }));
  }
  return isFieldManagerConflict(error) ? fieldConflict(error, label) : error;
}
