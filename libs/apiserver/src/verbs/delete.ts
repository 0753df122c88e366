import {
  cloneJson,
  isJsonObject,
  parseJson,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { invalid, notSupported, type FieldError } from "../errors/field-error.ts";
import {
  badRequest,
  conflict,
  forbiddenByServer,
  invalidObject,
  notFound,
} from "../errors/status-error.ts";
import { isReleased, PROTECTED_NAMESPACES } from "../kinds/namespace.ts";
import {
  finalizersOf,
  formatTime,
  generationOf,
  isTerminating,
  metadataOf,
  nameOf,
  objectOf,
  stringsOf,
  textOf,
  uidOf,
  versionOf,
} from "../objects/metadata.ts";
import { StoredObject } from "../storage/stored-object.ts";
import { keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { parseYamlText } from "./decode-body.ts";
import { formatList } from "./list-text.ts";
import { selectObjects } from "./list.ts";
import { validateDryRun } from "./write-options.ts";

interface DeleteOptions {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly policy: "Background" | "Foreground" | "Orphan" | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly isDryRun: boolean;
}

/** The result of deleting an object. */
type Deletion =
  | { readonly kind: "removed"; readonly last: StoredObject }
  | { readonly kind: "marked"; readonly object: StoredObject };

const POLICY_FINALIZERS = ["orphan", "foregroundDeletion"];

/** DELETE of one object. */
export function deleteObject(call: Call): Answer {
  const options = readDeleteOptions(call);
  const { kind, name } = call;
  const stored = call.table.get(keyOf(call, name));
  if (stored === undefined) throw notFound(kind, name);
  const result = deleteStored(call, stored, options);
  if (result.kind === "marked") return { code: 200, text: viewOf(kind, result.object).text };
  if (kind.returnsDeleted) return { code: 200, text: viewOf(kind, result.last).text };
  const details = {
    name,
    ...(kind.group === "" ? {} : { group: kind.group }),
    kind: kind.resource,
    uid: uidOf(result.last.object),
  };
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
  return { code: 200, text: JSON.stringify(status) };
}

/** DELETE of a collection: one object after the other, so it is not atomic. */
export function deleteCollection(call: Call): Answer {
  const options = readDeleteOptions(call);
  const { kind, state } = call;
  const metadata = { resourceVersion: String(state.store.version) };
  const found = selectObjects(call);
  for (const stored of found) deleteStored(call, stored, options);
  return { code: 200, text: formatList(kind, found, metadata) };
}

function deleteStored(call: Call, stored: StoredObject, options: DeleteOptions): Deletion {
  const { kind, state, table } = call;
  const live = viewOf(kind, stored).object;
  const isNamespace = kind.resource === "namespaces" && kind.group === "";
  if (isNamespace && PROTECTED_NAMESPACES.has(nameOf(live))) {
    throw forbiddenByServer(kind, nameOf(live), "this namespace may not be deleted");
  }
  checkPreconditions(call, live, options);
  const next = cloneJson(live);
  const finalizers = withPolicy(finalizersOf(next), choosePolicy(call, next, options));
  if (finalizers.length === 0) delete metadataOf(next)["finalizers"];
  else metadataOf(next)["finalizers"] = finalizers;
  const graceSeconds = chooseGracePeriod(kind, live, options);
  const isHeld = (isNamespace && !isReleased(next)) || graceSeconds > 0;
  if (kind.prepareDelete !== undefined && !isTerminating(live)) kind.prepareDelete(next);
  if (finalizersOf(next).length === 0 && !isHeld) {
    if (options.isDryRun) return { kind: "removed", last: stored };
    const isGraceful = kind.gracePeriodSeconds !== undefined;
    if (isGraceful) {
      if (isTerminating(next)) setGracePeriod(next, state.now(), 0);
      else markDeleted(next, state.now(), 0);
    }
    const last = isGraceful ? next : stored.object;
    return { kind: "removed", last: state.store.remove(table, stored.key, last) };
  }
  if (!isTerminating(next)) {
    markDeleted(next, state.now(), graceSeconds);
    // A namespace is deleted by its own rules: it has no grace period.
    if (isNamespace) {
      delete metadataOf(next)["deletionGracePeriodSeconds"];
      next["status"] = { ...objectOf(next, "status"), phase: "Terminating" };
    }
  } else if (graceSeconds < remainingGrace(live)) {
    setGracePeriod(next, state.now(), graceSeconds);
  } else if (JSON.stringify(finalizersOf(next)) === JSON.stringify(finalizersOf(live))) {
    return { kind: "marked", object: stored };
  }
  const object = kind.toStorage(next);
  if (options.isDryRun) {
    return { kind: "marked", object: new StoredObject(stored.key, stored.version, object) };
  }
  return { kind: "marked", object: state.store.put(table, stored.key, object) };
}

function markDeleted(object: JsonObject, nowMs: number, graceSeconds: number): void {
  setGracePeriod(object, nowMs, graceSeconds);
  const generation = generationOf(object);
  if (generation > 0) metadataOf(object)["generation"] = generation + 1;
}

function setGracePeriod(object: JsonObject, nowMs: number, graceSeconds: number): void {
  const metadata = metadataOf(object);
  metadata["deletionTimestamp"] = formatTime(nowMs + graceSeconds * 1_000);
  metadata["deletionGracePeriodSeconds"] = graceSeconds;
}

/** A kind may orphan its dependents by default, with a warning. */
function choosePolicy(
  { kind, warnings }: Call,
  object: JsonObject,
  { policy }: DeleteOptions,
): DeleteOptions["policy"] {
  if (policy !== undefined || kind.deletesDependentsByDefault) return policy;
  if (finalizersOf(object).some((one) => POLICY_FINALIZERS.includes(one))) return policy;
  warnings.push(
    `child pods are preserved by default when ${kind.resource} are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning`,
  );
  return "Orphan";
}

const remainingGrace = (live: JsonObject): number =>
  Number(metadataOf(live)["deletionGracePeriodSeconds"] ?? 0);

/** A second deletion can only shorten the grace period. */
function chooseGracePeriod(
  kind: Call["kind"],
  live: JsonObject,
  { gracePeriodSeconds: requested }: DeleteOptions,
): number {
  const grace = kind.gracePeriodSeconds?.(live, requested) ?? 0;
  if (!isTerminating(live)) return grace;
  return requested === undefined ? remainingGrace(live) : Math.min(grace, remainingGrace(live));
}

/** Foreground deletion and orphaning are finalizers, which a garbage collector would remove. */
function withPolicy(finalizers: readonly string[], policy: DeleteOptions["policy"]): string[] {
  if (policy === undefined) return [...finalizers];
  const others = finalizers.filter((one) => !POLICY_FINALIZERS.includes(one));
  if (policy === "Orphan") others.push("orphan");
  if (policy === "Foreground") others.push("foregroundDeletion");
  return others;
}

function checkPreconditions({ kind }: Call, live: JsonObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = options;
  // The text names the kind, not the resource, as in the real server.
  const named = { group: kind.group, resource: kind.kind };
  if (uid !== undefined && uid !== uidOf(live)) {
    throw conflict(
      named,
      nameOf(live),
      `the UID in the precondition (${uid}) does not match the UID in record (${uidOf(live)}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== versionOf(live)) {
    throw conflict(
      named,
      nameOf(live),
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${versionOf(live)}). The object might have been modified`,
    );
  }
}

/** The options are in the body, or in the query if there is no body. */
function readDeleteOptions(call: Call): DeleteOptions {
  const body = parseOptions(call);
  const preconditions = objectOf(body, "preconditions") ?? {};
  const optional = (value: JsonValue | undefined) =>
    typeof value === "string" ? value : undefined;
  const policy = textOf(body, "propagationPolicy") || call.query.get("propagationPolicy") || "";
  const orphans = body["orphanDependents"] ?? call.query.get("orphanDependents");
  // With a body, the server ignores the options in the query.
  const hasBody = Object.keys(body).length > 0;
  const dryRun = hasBody ? stringsOf(body, "dryRun") : call.query.getAll("dryRun");
  const errors: FieldError[] = [];
  if (policy !== "" && orphans !== null && orphans !== undefined) {
    const detail = "orphanDependents and deletionPropagation cannot be both set";
    errors.push(invalid("propagationPolicy", policy, detail));
  }
  if (!isPolicy(policy)) {
    const supported = ["Foreground", "Background", "Orphan", "nil"];
    errors.push(notSupported("propagationPolicy", policy, supported));
  }
  errors.push(...validateDryRun(dryRun));
  if (errors.length > 0) {
    throw invalidObject({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", errors);
  }
  const isOrphaning = orphans === true || orphans === "true";
  return {
    uid: optional(preconditions["uid"]),
    resourceVersion: optional(preconditions["resourceVersion"]),
    policy: isOrphaning ? "Orphan" : isPolicy(policy) && policy !== "" ? policy : undefined,
    gracePeriodSeconds: readGracePeriod(body, call),
    isDryRun: dryRun.length > 0,
  };
}

function readGracePeriod(body: JsonObject, { query }: Call): number | undefined {
  const value = body["gracePeriodSeconds"] ?? query.get("gracePeriodSeconds");
  return value === null || value === undefined ? undefined : Number(value);
}

const isPolicy = (policy: string) =>
  policy === "" || policy === "Background" || policy === "Foreground" || policy === "Orphan";

function parseOptions({ body, contentType }: Call): JsonObject {
  if (body === "") return {};
  let options: JsonValue;
  try {
    options = contentType === "application/yaml" ? parseYamlText(body) : parseJson(body);
  } catch {
    throw badRequest("the body of the delete request is not DeleteOptions: send JSON or nothing");
  }
  return isJsonObject(options) ? options : {};
}
