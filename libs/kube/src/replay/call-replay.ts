import { findCause, isJsonObject, isKonvergeError, type JsonObject } from "@konverge/core";
import type { CallHold, PlannedCall, SendPlanned } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { createKubePlan, type KubePlan } from "../plan/create-kube-plan.ts";
import { fail, notFound, show, succeed } from "../plan/planned-answer.ts";
import {
  bodyOf,
  isNamed,
  isTrial,
  labelOf,
  pathOnly,
  placeOf,
  type ObjectPlace,
  type Place,
} from "../plan/planned-call.ts";
import { textOf, withMetadata } from "../plan/object-fields.ts";
import { aboutOf } from "./about-call.ts";
import { bodyDifferences, type SameOptions } from "./body-differences.ts";
import { KnownObjects } from "./known-objects.ts";
import type { RecordedCall } from "./recorded-call.ts";
import {
  concerns,
  entryOf,
  hasLanded,
  readKey,
  replayAnswer,
  writtenPlace,
  type RecordedEntry,
} from "./recorded-entry.ts";
import { ReplayedWrites, type ComparedWrite } from "./replayed-writes.ts";

export interface CallReplayOptions {
  readonly calls: readonly RecordedCall[];
  /** The number of the recorded attempt, for messages. */
  readonly epoch: number;
  /** Resolves when the answer is due: answers come in the recorded order. */
  readonly turn: (answeredAt: number) => Promise<void>;
  /** Ends the replay, because nothing more can be known. Returns the error of all later calls. */
  readonly end: (about: string, reason: string) => Error;
  /** The error of a replay that has ended. */
  readonly ended: () => Error | undefined;
  /** Notes an answer that is computed without the server, and so may differ from it. */
  readonly assume: (about: string, reason: string) => void;
  readonly toleranceMs: () => number;
}

/** Answers the calls to one cluster from a recording, and compares the writes. */
export class CallReplay implements CallHold {
  readonly #options: CallReplayOptions;
  readonly #entries: readonly RecordedEntry[];
  readonly #known = new KnownObjects();
  /** The objects that have another state than in the recorded attempt. */
  readonly #overlay: KubePlan = createKubePlan();
  readonly #drawn = new Map<string, string>();
  readonly #writes: ReplayedWrites;
  /** Used entries, in the order in which the replay made them. */
  readonly #made: RecordedEntry[] = [];

  constructor(options: CallReplayOptions) {
    this.#options = options;
    this.#entries = options.calls.map(entryOf);
    this.#writes = new ReplayedWrites(this.#entries, (withVersions) => this.#same(withVersions));
  }

  /** All writes of the replay and of the recorded attempt. */
  get writes(): readonly ComparedWrite[] {
    return this.#writes.compared();
  }

  async send(call: PlannedCall): Promise<ApiAnswer> {
    const { ended } = this.#options;
    const over = ended();
    if (over !== undefined) throw over;
    const place = placeOf(call);
    if (call.method === "GET") return await this.#read(call, place);
    if (isTrial(call)) return await this.#trial(call, place);
    return await this.#write(call, place);
  }

  /** True if objects of the kind have another state than in the recorded attempt. */
  differs(place: Place): boolean {
    return this.#overlay.objects.ofKind(place).length > 0;
  }

  /** The objects of a kind with another state, by name; undefined for one that does not exist. */
  differing(place: Place): ReadonlyMap<string, JsonObject | undefined> {
    return new Map(
      this.#overlay.objects
        .ofKind(place)
        .map(({ place: { namespace = "", name }, view }) => [`${namespace}/${name}`, view]),
    );
  }

  /** True if the replay has made a recorded write of the kind since this time. */
  hasWritten(place: Place, since: number): boolean {
    return this.#made.some(
      (entry) =>
        hasLanded(entry) &&
        entry.call.sentAt > since &&
        entry.place !== undefined &&
        concerns(entry.place, place),
    );
  }

  /** Notes an object that the attempt has read from a cache or received from another writer. */
  noteRead(place: Place, object: JsonObject): void {
    this.#known.noteObject(place, object);
  }

  /**
   * Recorded writes that the read at this time would show, and that the replay has not made: marks their objects as different.
   */
  noteMissing(place: Place, sentAt: number): void {
    for (const entry of this.#missingBefore(place, sentAt)) {
      const at = writtenPlace(entry.call);
      if (at !== undefined && isNamed(at)) this.#differ(at, beforeOf(entry));
    }
  }

  #same(withVersions: boolean): SameOptions {
    return { drawn: this.#drawn, toleranceMs: this.#options.toleranceMs(), withVersions };
  }

  async #read(call: PlannedCall, place: Place | undefined): Promise<ApiAnswer> {
    const whole = place === undefined ? undefined : withoutPart(place);
    if (whole !== undefined && isNamed(whole) && this.#overlay.objects.find(whole)) {
      return await this.#throughOverlay(call);
    }
    const entry = this.#entryFor(call, place);
    if (entry === undefined) return await this.#readKnown(call, place);
    if (whole !== undefined) this.noteMissing(whole, entry.call.sentAt);
    this.#use(entry);
    const { omitted, answeredAt } = entry.call;
    if (omitted !== undefined) throw this.#omitted(call, omitted);
    await this.#options.turn(answeredAt);
    if (whole !== undefined && isNamed(whole) && this.#overlay.objects.find(whole)) {
      return await this.#throughOverlay(call);
    }
    this.#known.note(entry);
    return whole !== undefined && !isNamed(whole) && this.differs(whole)
      ? await this.#throughOverlay(call, (sent) => this.#live(sent, entry))
      : replayAnswer(call, entry);
  }

  /** The next recorded answer of a read; the last one, if nothing has changed since. */
  #entryFor(call: PlannedCall, place: Place | undefined): RecordedEntry | undefined {
    const key = readKey(call);
    const same = this.#entries.filter((each) => !each.isWrite && readKey(each.call) === key);
    // Reads that today's code has left out are over once it makes a write after them.
    const since = place === undefined ? 0 : this.#lastWriteOf(place);
    const next = same.find(({ isUsed, call: { answeredAt } }) => !isUsed && answeredAt >= since);
    if (next !== undefined || (place !== undefined && isNamed(place))) return next;
    const last = same.at(-1);
    if (last === undefined) return undefined;
    const later = this.#made.slice(this.#made.lastIndexOf(last));
    const hasChanged = later.some(
      (each) =>
        hasLanded(each) && each.place !== undefined && concerns(each.place, place ?? each.place),
    );
    return hasChanged ? undefined : last;
  }

  /** When the replay has last repeated a recorded write of what is read at the place. */
  #lastWriteOf(place: Place): number {
    const written = this.#made.filter((entry) => {
      const at = hasLanded(entry) ? writtenPlace(entry.call) : undefined;
      return at !== undefined && concerns(at, place);
    });
    return Math.max(0, ...written.map(({ call }) => call.sentAt));
  }

  /** Answers a read that the recording does not hold from the objects that it holds. */
  async #readKnown(call: PlannedCall, place: Place | undefined): Promise<ApiAnswer> {
    const known = place === undefined || !isObject(place) ? undefined : this.#known.get(place);
    if (place !== undefined && isObject(place) && known !== undefined) {
      await this.#options.turn(-1);
      return known === null ? await fail(call, place, notFound(place)) : show(call, known);
    }
    throw this.#unread(call, place);
  }

  /** A dry run changes nothing, so it is a read. */
  async #trial(call: PlannedCall, place: Place | undefined): Promise<ApiAnswer> {
    const entry = this.#entries.find(
      (each) =>
        !each.isWrite &&
        !each.isUsed &&
        each.call.method === call.method &&
        pathOnly(each.call.path) === pathOnly(call.path) &&
        bodyDifferences(each.call.body, call.body, this.#same(false)).length === 0,
    );
    if (entry === undefined) {
      const about = aboutOf(call, place);
      throw this.#options.end(
        about,
        "the result of a dry run that the attempt did not send is unknown",
      );
    }
    this.#use(entry);
    if (entry.call.omitted !== undefined) throw this.#omitted(call, entry.call.omitted);
    await this.#options.turn(entry.call.answeredAt);
    return replayAnswer(call, entry);
  }

  async #write(call: PlannedCall, place: Place | undefined): Promise<ApiAnswer> {
    const target = writtenPlace(call);
    const isDifferent =
      target !== undefined && isNamed(target) && this.#overlay.objects.find(target) !== undefined;
    const paired = this.#writes.pair(call, isDifferent);
    const { entry } = paired;
    if (entry !== undefined && !isDifferent && this.#answersAs(paired.kind, call, entry)) {
      this.#use(entry);
      if (entry.call.omitted !== undefined) throw this.#omitted(call, entry.call.omitted);
      await this.#options.turn(entry.call.answeredAt);
      this.#known.note(entry);
      return replayAnswer(call, entry);
    }
    if (entry !== undefined) this.#use(entry);
    if (target === undefined || place === undefined) throw this.#unanswered(call, place);
    if (isNamed(target)) this.#differ(target, stateBefore(call, entry));
    else if (call.method !== "POST") throw this.#unanswered(call, place);
    if (isNamed(target) && this.#overlay.objects.find(target) === undefined) {
      throw this.#unanswered(call, place);
    }
    this.#options.assume(
      aboutOf(call, { ...place, ...target }),
      "the answer to this write is computed: defaults, admission and rejections of the API server are unknown",
    );
    await this.#options.turn(-1);
    const answer = await this.#throughOverlay(call);
    this.#noteDrawn(entry, answer);
    return answer;
  }

  /** True if the recorded answer is that of this write as well. */
  #answersAs(kind: "same" | "other", call: PlannedCall, entry: RecordedEntry): boolean {
    const target = writtenPlace(entry.call);
    const isNext =
      target === undefined || this.#missingBefore(target, entry.call.sentAt).length === 0;
    return kind === "same" ? isNext : isNext && this.#writes.failsAlike(call, entry);
  }

  #missingBefore(place: Place, sentAt: number): RecordedEntry[] {
    return this.#entries.filter((entry) => {
      if (entry.isUsed || !hasLanded(entry) || entry.call.answeredAt >= sentAt) return false;
      const at = writtenPlace(entry.call);
      return at !== undefined && concerns(at, place);
    });
  }

  /** The state of an object that the attempt has read later, before it wrote the object. */
  #firstRead(place: ObjectPlace): JsonObject | null | undefined {
    const first = this.#entries.find(({ isWrite, call, place: at }) => {
      if (at === undefined || at.subresource !== undefined) return false;
      const target = isWrite ? writtenPlace(call) : at;
      return target?.name === place.name && concerns(target, place);
    });
    const answer = first?.isWrite === false ? first.call.answer : undefined;
    if (first === undefined || answer === undefined) return undefined;
    const seen = new KnownObjects();
    seen.note(first);
    return seen.get(place);
  }

  /** Marks an object as different. Undefined: its state before is unknown. */
  #differ(place: ObjectPlace, assumed: JsonObject | null | undefined): void {
    const { objects } = this.#overlay;
    if (objects.find(place) !== undefined) return;
    let state = this.#known.get(place);
    if (state === undefined) state = this.#firstRead(place);
    if (state === undefined) state = assumed;
    if (state === undefined) return;
    if (this.#known.get(place) === undefined && state !== null) {
      const reason =
        "its state before the write is unknown, so the recorded result is used instead";
      this.#options.assume(labelOf(place), reason);
    }
    // An object that exists only in the overlay: no server checks its writes.
    objects.add(place, state ?? undefined).before = undefined;
  }

  async #throughOverlay(
    call: PlannedCall,
    live: SendPlanned = (sent) => this.#live(sent),
  ): Promise<ApiAnswer> {
    try {
      return await this.#overlay.send(call, live);
    } catch (error) {
      const refusal = findCause(error, isKonvergeError);
      if (refusal?.code !== "not_plannable") throw error;
      throw this.#unanswered(call, placeOf(call));
    }
  }

  /** Answers the calls of the overlay in place of the server. */
  async #live(call: PlannedCall, list?: RecordedEntry): Promise<ApiAnswer> {
    const place = placeOf(call);
    if (list !== undefined && call.method === "GET") return replayAnswer(call, list);
    if (call.method === "GET" && place !== undefined && isObject(place)) {
      const known = this.#known.get(place);
      if (known) return show(call, known);
      return await fail(call, place, notFound(place));
    }
    const body = bodyOf(call);
    if (call.method !== "POST" || place === undefined || body === undefined) {
      throw this.#unanswered(call, place);
    }
    const drawn = {
      uid: DRAWN_UID,
      creationTimestamp: new Date().toISOString().slice(0, 19) + "Z",
    };
    const { namespace } = place;
    const at = namespace === undefined ? {} : { namespace };
    return succeed(call, withMetadata(body, { ...drawn, ...at, generation: 1 }), 201);
  }

  /** Notes which names and uids of the replay stand for those that the server had drawn. */
  #noteDrawn(entry: RecordedEntry | undefined, { value }: ApiAnswer): void {
    const recorded = entry?.call.answer;
    if (recorded === undefined || recorded.status !== 201 || !isJsonObject(value)) return;
    const made = bodyOf({
      verb: "get",
      method: "POST",
      path: "",
      body: recorded.body,
      sensitive: false,
    });
    if (made === undefined) return;
    for (const field of ["uid", "name"]) {
      const [now, then] = [textOf(value, field), textOf(made, field)];
      if (now !== undefined && then !== undefined && now !== then) this.#drawn.set(now, then);
    }
  }

  #use(entry: RecordedEntry): void {
    entry.isUsed = true;
    this.#made.push(entry);
  }

  #unread(call: PlannedCall, place: Place | undefined): Error {
    const reason = `today's code reads it, and attempt ${this.#options.epoch} did not read it`;
    return this.#options.end(aboutOf(call, place), reason);
  }

  #unanswered(call: PlannedCall, place: Place | undefined): Error {
    const reason = `attempt ${this.#options.epoch} did not send this ${call.method}, and only the API server can answer it`;
    return this.#options.end(aboutOf(call, place), reason);
  }

  #omitted(call: PlannedCall, omitted: NonNullable<RecordedCall["omitted"]>): Error {
    const about = aboutOf(call, placeOf(call));
    return this.#options.end(about, `its answer is not in the recording: ${OMITTED[omitted]}`);
  }
}

/** Of the answer to a create, until the overlay replaces it. */
const DRAWN_UID = "00000000-0000-0000-0000-000000000000";

const OMITTED: Readonly<Record<NonNullable<RecordedCall["omitted"]>, string>> = {
  tooLarge: "the recording would be too large",
  notJson: "it is not JSON",
  aborted: "the attempt ended before the answer",
};

function withoutPart({ subresource: _part, ...place }: Place): Place {
  return place;
}

/** True for the place of a whole object. */
function isObject(place: Place): place is ObjectPlace {
  return isNamed(place) && (place.subresource === undefined || place.subresource === "status");
}

/** The state of an object before a recorded write that is the first to show it; undefined if it is unknown. */
function beforeOf({ call: { answer } }: RecordedEntry): null | undefined {
  return answer?.status === 201 ? null : undefined;
}

function stateBefore(
  call: PlannedCall,
  entry: RecordedEntry | undefined,
): JsonObject | null | undefined {
  const answer = entry?.call.answer;
  if (answer?.status === 201) return null;
  if (entry !== undefined && answer !== undefined && answer.status < 300) {
    const found =
      entry.call.method === "DELETE" ? undefined : bodyOf({ ...call, body: answer.body });
    if (found !== undefined) return found;
  }
  return call.method === "POST" || call.verb === "apply" ? null : undefined;
}
