import { isJsonObject, KonvergeError } from "@konverge/core";
import type { CallHold, PlannedCall, SendPlanned } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { findApiError } from "../errors/api-exception.ts";
import { isConflict, isForbidden, isNotFound } from "../errors/error-predicates.ts";
import { finalizersOf, textOf } from "./object-fields.ts";
import { dry, isNamed, labelOf, pathOnly, placeOf, type Place } from "./planned-call.ts";
import { isHeld, madeOf, type PlannedSend } from "./planned-writes.ts";
import { objectPathOf } from "./read-planned.ts";
import { givenVersion, withVersion } from "./write-version.ts";
import { writeDigest, writeTarget } from "./write-digest.ts";

export interface CallHoldOptions {
  readonly planned: readonly PlannedSend[];
  /** Called before each write; its error rejects the write. */
  readonly admit: () => Promise<void>;
  /** The version of an object that the plan has read; null if it did not exist, undefined if it is unknown. */
  readonly versionOf: (place: Place) => string | null | undefined;
  /** True to check the version before each write of an object, not only before the first one. */
  readonly isStrict: boolean;
}

/** Holds the calls of an attempt to a plan: each planned write is sent once, and every other write is rejected. */
export interface KubeHold extends CallHold {
  /** The first write that was rejected, or that met a changed object; undefined while all calls follow the plan. */
  readonly deviation: KonvergeError | undefined;
}

export function createCallHold(options: CallHoldOptions): KubeHold {
  return new Hold(options);
}

/** The planned writes of one object. */
interface Target {
  /** In order. */
  readonly open: PlannedSend[];
  readonly rejected: Set<string>;
  /** Undefined until the first write, and if it is unknown. */
  version: string | null | undefined;
  isWritten: boolean;
  /** The end of the last write. */
  last: Promise<unknown>;
}

class Hold implements KubeHold {
  readonly #targets = new Map<string, Target>();
  readonly #drawn = new Map<string, string>();
  readonly #options: CallHoldOptions;
  readonly #sinceMs = Date.now();
  #deviation: KonvergeError | undefined;

  constructor(options: CallHoldOptions) {
    this.#options = options;
    for (const each of options.planned) {
      const target = this.#targets.get(each.target) ?? newTarget();
      this.#targets.set(each.target, target);
      if (each.failed) target.rejected.add(each.digest);
      else target.open.push(each);
    }
  }

  get deviation(): KonvergeError | undefined {
    return this.#deviation;
  }

  async send(call: PlannedCall, live: SendPlanned): Promise<ApiAnswer> {
    if (!isHeld(call)) return await live(call);
    // From the first deviation on, the plan does not describe this attempt.
    if (this.#deviation !== undefined) throw this.#deviation;
    const options = { drawn: this.#drawn, sinceMs: this.#sinceMs };
    const digest = writeDigest(call, options);
    const target = this.#targets.get(writeTarget(call, options));
    if (target?.open[0]?.digest === digest) {
      const entry = target.open.shift() as PlannedSend;
      // The version of a write is that of the answer to the previous write.
      const write = target.last.then(() => this.#write(call, live, { entry, target }));
      target.last = write.catch(() => undefined);
      return await write;
    }
    if (target?.rejected.has(digest) === true) return await this.#tryAgain(call, live);
    const isLater = target?.open.some((each) => each.digest === digest) === true;
    const reason = isLater ? "the plan makes another write first" : "the plan does not contain it";
    throw this.#deviate(call, reason);
  }

  async #write(
    call: PlannedCall,
    live: SendPlanned,
    { entry, target }: { readonly entry: PlannedSend; readonly target: Target },
  ): Promise<ApiAnswer> {
    if (this.#deviation !== undefined) throw this.#deviation;
    await this.#options.admit();
    const sent = await this.#checked(call, live, target);
    try {
      const answer = await live(sent);
      noteAnswer(target, call, answer);
      const made = madeOf(answer);
      if (entry.made !== undefined && made !== undefined) {
        this.#drawn.set(made.uid, entry.made.uid);
        if (made.name !== entry.made.name) this.#drawn.set(made.name, entry.made.name);
      }
      return answer;
    } catch (error) {
      if (isConflict(error)) this.#deviate(call, CHANGED);
      // The server has not stored it. After any other error, it may have.
      else if (isRejection(error)) target.open.unshift(entry);
      throw error;
    }
  }

  /** Returns the write with the version that the plan has read. @throws KonvergeError `approval_stale` */
  async #checked(call: PlannedCall, live: SendPlanned, target: Target): Promise<PlannedCall> {
    const place = placeOf(call);
    if (place === undefined) return call;
    const { isStrict, versionOf } = this.#options;
    if (!target.isWritten && isNamed(place)) target.version = versionOf(place);
    const { version, isWritten } = target;
    if (version === undefined || (isWritten && !isStrict) || !isNamed(place)) return call;
    const given = givenVersion(call);
    if (version !== null && given !== undefined && given !== version) {
      throw this.#deviate(call, CHANGED);
    }
    const expected = version ?? (call.verb === "apply" ? MISSING : undefined);
    const sent = expected === undefined ? undefined : withVersion(call, expected);
    if (sent !== undefined) return sent;
    // The call itself cannot carry the precondition.
    const found = await readVersion(call, live, place);
    if (found !== undefined && found !== version) throw this.#deviate(call, CHANGED);
    return call;
  }

  /** The plan contains its rejection, so it must be rejected now as well. */
  async #tryAgain(call: PlannedCall, live: SendPlanned): Promise<ApiAnswer> {
    await live(dry(call));
    throw this.#deviate(call, "it was rejected while it was planned, and would now succeed");
  }

  #deviate(call: PlannedCall, reason: string): KonvergeError {
    const place = placeOf(call);
    const about = place === undefined ? pathOnly(call.path) : labelOf(place);
    this.#deviation ??= new KonvergeError(
      "approval_stale",
      `${call.method} ${about} was not made, because ${reason}; the key is planned again`,
    );
    return this.#deviation;
  }
}

/** No object has this version, so an apply either creates the object or is rejected. */
const MISSING = "1";
const CHANGED = "its object has changed since the plan";

function newTarget(): Target {
  return {
    open: [],
    rejected: new Set(),
    version: undefined,
    isWritten: false,
    last: Promise.resolve(),
  };
}

function noteAnswer(target: Target, { method }: PlannedCall, { value }: ApiAnswer): void {
  target.isWritten = true;
  const version = isJsonObject(value) ? textOf(value, "resourceVersion") : undefined;
  const isDeleted = method === "DELETE" && isJsonObject(value);
  // A deleted object that has no finalizers may be gone. A status as the answer means that it is.
  const mayBeGone = isDeleted && finalizersOf(value).length === 0;
  target.version = mayBeGone ? (value["kind"] === "Status" ? null : undefined) : version;
}

/** Undefined if it may not be read. */
async function readVersion(
  call: PlannedCall,
  live: SendPlanned,
  place: Place,
): Promise<string | null | undefined> {
  const { sensitive, ref } = call;
  const { subresource: _part, ...whole } = place;
  const path = objectPathOf(call.path, whole);
  try {
    const { value } = await live({
      verb: "get",
      method: "GET",
      path,
      sensitive,
      ref,
      body: undefined,
      contentType: undefined,
      accept: undefined,
      onAnswer: undefined,
      subresource: undefined,
    });
    return isJsonObject(value) ? textOf(value, "resourceVersion") : undefined;
  } catch (error) {
    if (isNotFound(error)) return null;
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

function isRejection(error: unknown): boolean {
  const status = findApiError(error)?.status ?? 0;
  return status >= 400 && status < 500;
}
