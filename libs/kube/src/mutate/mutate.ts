import {
  defined,
  nextDelay,
  compareResourceVersions,
  isJsonObject,
  KonvergeError,
  sleepMs,
  type ApiObject,
  type JsonObject,
  type BackoffPolicy,
  type ResourceRef,
} from "@konverge/core";
import type { ConflictRecord } from "../contract/call-record.ts";
import { conflictRecord } from "./conflict-record.ts";
import { findCompetingWriters } from "./competing-writers.ts";
import { makeDraft, patchOf } from "./draft.ts";
import { trackFields } from "./field-tracker.ts";
import { fieldsPatch } from "./fields-patch.ts";
import { ConnectionBroken } from "../errors/connection-broken.ts";
import { KubeApiError } from "../errors/kube-api-error.ts";
import {
  isBadRequest,
  isInapplicable,
  isInvalid,
  isNotFound,
  isOptimisticConflict,
  isReplaced,
  isResourceVersionTooLarge,
} from "../errors/error-predicates.ts";
import type { ChangeDraft, MutateOptions, MutateResult, Patch } from "../contract/kube-client.ts";
import { MUST_READ, type ReadBasis, type ServerRead } from "../contract/read-basis.ts";
import { redactValues } from "../names/sensitive-kinds.ts";
import { assertNoStatus, type ServesSubresource } from "./served-status.ts";

/** Access of a mutation to its object. */
export interface MutateAccess {
  readonly ref: ResourceRef;
  readonly sensitive: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onConflict: ((conflict: ConflictRecord) => void) | undefined;
  readonly random: () => number;
  /** Without a version: the newest. */
  read(resourceVersion?: string): Promise<JsonObject>;
  /** Sends a patch to the object or its subresource. */
  write(patch: Patch): Promise<JsonObject>;
  readonly serves: ServesSubresource;
}

/**
 * Number of tries without a retry policy. The last delays are drawn from twice the write time, so all eight fail only
 * under heavy contention.
 */
const DEFAULT_TRIES = 8;

interface LostTry {
  readonly error: unknown;
  /** A patch did not apply. This is a conflict only if the object has another version by now. */
  readonly isUnsure: boolean;
  readonly read: JsonObject;
  readonly number: number;
  readonly atMs: number;
  /** Delay before the next try; undefined if there is none. */
  readonly delayMs: number | undefined;
}

/** Reads, changes and writes the object, with retries on conflict. */
export async function mutateObject<T extends ApiObject>(
  access: MutateAccess,
  change: ChangeDraft<T>,
  options: MutateOptions,
): Promise<MutateResult<T>> {
  const { subresource, basis = MUST_READ, strategy = "guarded" } = options;
  assertStrategy(strategy);
  let uid = options.uid;
  let lost: LostTry | undefined;
  let losses = 0;
  const firstRead = basis.kind === "from" ? basis.otherwise : basis;
  let given = usableObject(basis, uid);
  for (let number = 1; ; number++) {
    if (lost?.delayMs !== undefined && lost.delayMs > 0) await sleepMs(lost.delayMs, access.signal);
    const beganAtMs = performance.now();
    const isGiven = given !== undefined;
    const read =
      given ??
      (await readFor(access, { how: lost === undefined ? firstRead : MUST_READ, uid, lost }));
    given = undefined;
    if (lost !== undefined) {
      assertLost(lost, read);
      report(access, lost, { found: read, subresource });
    }
    if (!isGiven) uid ??= textOf(read, "uid");
    const edited = makeDraft(read, subresource);
    const tracked = strategy === "fields" ? trackFields(edited.draft) : undefined;
    try {
      await change((tracked?.draft ?? edited.draft) as unknown as T);
    } catch (error) {
      if (isGiven) continue;
      throw error;
    }
    const patch = patchOf(edited, subresource);
    const beforeVersion = textOf(read, "resourceVersion") ?? "";
    if (patch === undefined) {
      if (isGiven) continue;
      return unchanged(read, { tries: number, lost: losses }, beforeVersion);
    }
    if (subresource === undefined) await assertNoStatus(patch, access.serves);
    try {
      const written = await access.write(
        tracked === undefined
          ? { type: "merge", body: guard(patch, read) }
          : { type: "json", body: fieldsPatch({ read, touched: tracked.touched, patch }) },
      );
      // The server already had the same content, for example a default that the draft removed.
      if (textOf(written, "resourceVersion") === beforeVersion)
        return unchanged(written, { tries: number, lost: losses }, beforeVersion);
      return {
        kind: "updated",
        object: written as unknown as T,
        tries: number,
        lost: losses,
        beforeVersion,
        before: read as unknown as T,
        patch: access.sensitive ? redactValues(patch) : patch,
      };
    } catch (error) {
      if (error instanceof ConnectionBroken) {
        const found = await findApplied(access, change, { read, subresource });
        if (found === undefined) throw error;
        return unchanged(found, { tries: number, lost: losses }, beforeVersion);
      }
      const isUnsure = tracked !== undefined && isInapplicable(error);
      const isLost = isUnsure || isOptimisticConflict(error);
      // The rejection may be caused by the outdated copy.
      if (isGiven && !isLost && isRefused(error)) continue;
      if (isReplaced(error)) throw replaced(access.ref, error);
      if (!isLost) throw error;
      losses += 1;
      const tookMs = performance.now() - beganAtMs;
      const delayMs = delayAfter(number, tookMs, { retry: options.retry, random: access.random });
      lost = { error, isUnsure, read, number, atMs: Date.now(), delayMs };
      if (delayMs === undefined) throw await giveUp(access, lost, { uid, subresource });
    }
  }
}

/** Untyped code could misspell it, and would silently use another strategy. */
function assertStrategy(strategy: NonNullable<MutateOptions["strategy"]>): void {
  if (strategy === "guarded" || strategy === "fields") return;
  const detail = `is "${String(strategy)}"; use "guarded" or "fields"`;
  throw new KonvergeError("invalid_request", `mutate: strategy ${detail}`, {
    issues: [{ pointer: "/strategy", detail }],
  });
}

/** An unchanged version cannot explain why the patch did not apply. An equal value may have been restored since. */
function assertLost({ isUnsure, error, read }: LostTry, found: JsonObject): void {
  if (isUnsure && textOf(read, "resourceVersion") === textOf(found, "resourceVersion")) throw error;
}

/** Returns the error of the last try. */
async function giveUp(
  access: MutateAccess,
  lost: LostTry,
  {
    uid,
    subresource,
  }: { readonly uid: string | undefined; readonly subresource: string | undefined },
): Promise<unknown> {
  if (!lost.isUnsure) {
    report(access, lost, { subresource });
    return lost.error;
  }
  const found = await readFor(access, { how: MUST_READ, uid, lost });
  assertLost(lost, found);
  report(access, lost, { found, subresource });
  return new KubeApiError(
    `Operation cannot be fulfilled on ${access.ref.resource} "${access.ref.name}": fields that were read have been modified; please apply your changes to the latest version and try again`,
    { status: 409, reason: "Conflict", ref: access.ref, verb: "patch" },
  );
}

/**
 * Returns the newest version if the change would not modify it. Then it does not matter whether a write without a response
 * took effect.
 */
async function findApplied<T>(
  access: MutateAccess,
  change: ChangeDraft<T>,
  {
    read,
    subresource,
  }: { readonly read: JsonObject; readonly subresource: MutateOptions["subresource"] | undefined },
): Promise<JsonObject | undefined> {
  const found = await access.read().catch(() => undefined);
  if (found === undefined || textOf(found, "uid") !== textOf(read, "uid")) return undefined;
  const edited = makeDraft(found, subresource);
  try {
    await change(edited.draft as unknown as T);
  } catch {
    // The result of the write stays unknown.
    return undefined;
  }
  return patchOf(edited, subresource) === undefined ? found : undefined;
}

const isRefused = (error: unknown): boolean =>
  isReplaced(error) || isInvalid(error) || isBadRequest(error) || isNotFound(error);

/** Undefined if a read is needed: no object is given, or it is another one or too old. */
function usableObject(basis: ReadBasis, uid: string | undefined): JsonObject | undefined {
  if (basis.kind !== "from") return undefined;
  const { object, otherwise } = basis;
  if (uid !== undefined && textOf(object, "uid") !== uid) return undefined;
  if (otherwise.kind === "mustRead") return object;
  const version = textOf(object, "resourceVersion") ?? "";
  const order = compareResourceVersions(version, otherwise.version);
  return order !== undefined && order >= 0 ? object : undefined;
}

interface ReadFor {
  readonly how: ServerRead;
  readonly uid: string | undefined;
  readonly lost: LostTry | undefined;
}

/** Reads the object and rejects a successor with the same name. */
async function readFor(access: MutateAccess, { how, uid, lost }: ReadFor): Promise<JsonObject> {
  try {
    if (how.kind === "atLeast" && isComparable(how.version)) {
      const cached = await readAtLeast(access, how.version);
      if (cached !== undefined && (uid === undefined || textOf(cached, "uid") === uid))
        return cached;
    }
    const read = await access.read();
    if (uid !== undefined && textOf(read, "uid") !== uid) throw replaced(access.ref);
    return read;
  } catch (error) {
    // Without this the record of the conflict would be lost.
    if (lost !== undefined) report(access, lost, {});
    throw error;
  }
}

/** Undefined if the server has not reached the version; after a restore from a backup it may never do so. */
async function readAtLeast(access: MutateAccess, version: string): Promise<JsonObject | undefined> {
  try {
    return await access.read(version);
  } catch (error) {
    if (isResourceVersionTooLarge(error)) return undefined;
    throw error;
  }
}

/** Only comparable versions can be a minimum (KEP-5504); "0" would accept any old state. */
function isComparable(version: string): boolean {
  return compareResourceVersions(version, version) === 0;
}

/** Adds the preconditions of a guarded patch. */
function guard(patch: JsonObject, read: JsonObject): JsonObject {
  const metadata = isJsonObject(patch["metadata"]) ? patch["metadata"] : {};
  const resourceVersion = textOf(read, "resourceVersion");
  const uid = textOf(read, "uid");
  if (resourceVersion === undefined) {
    throw new KonvergeError(
      "invalid_draft",
      "/metadata/resourceVersion is missing in the response, so the write cannot be guarded",
    );
  }
  return {
    ...patch,
    metadata: { ...metadata, resourceVersion, ...defined({ uid }) },
  };
}

/**
 * Immediate after the first conflict, because the competing writer has usually finished; then full jitter within the
 * time of a write here, and twice that time. Returns undefined without tries left.
 */
function delayAfter(
  number: number,
  tookMs: number,
  {
    retry,
    random,
  }: { readonly retry: BackoffPolicy | "none" | undefined; readonly random: () => number },
): number | undefined {
  if (retry === "none") return undefined;
  if (retry !== undefined) {
    const step = nextDelay(retry, number - 1, random);
    return step.kind === "wait" ? step.afterMs : undefined;
  }
  if (number >= DEFAULT_TRIES) return undefined;
  return number === 1 ? 0 : random() * tookMs * Math.min(2 ** (number - 2), 2);
}

function report(
  { ref, onConflict, sensitive }: MutateAccess,
  { read, number, atMs, delayMs }: LostTry,
  {
    found,
    subresource,
  }: { readonly found?: JsonObject; readonly subresource?: string | undefined },
): void {
  if (onConflict === undefined) return;
  const foundVersion = found === undefined ? undefined : textOf(found, "resourceVersion");
  onConflict(
    conflictRecord({
      ref,
      atMs,
      try: number,
      readVersion: textOf(read, "resourceVersion") ?? "",
      competingWriters: found === undefined ? [] : findCompetingWriters(read, found, { sensitive }),
      isThrown: found === undefined || delayMs === undefined,
      waitedMs: delayMs ?? 0,
      ...defined({ subresource, foundVersion }),
    }),
  );
}

function replaced(ref: ResourceRef, cause?: unknown): KonvergeError {
  const path = ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`;
  return new KonvergeError(
    "object_replaced",
    `${ref.kind} ${path} was deleted and recreated; read the new object first`,
    cause === undefined ? {} : { cause },
  );
}

function unchanged<T>(
  object: JsonObject,
  counts: Pick<MutateResult<T>, "tries" | "lost">,
  beforeVersion: string,
): MutateResult<T> {
  return { kind: "unchanged", object: object as unknown as T, ...counts, beforeVersion };
}

function textOf(object: JsonObject, field: "uid" | "resourceVersion"): string | undefined {
  const metadata = object["metadata"];
  const value = isJsonObject(metadata) ? metadata[field] : undefined;
  return typeof value === "string" ? value : undefined;
}
