import {
  defined,
  KonvergeError,
  parseJson,
  resourceId,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  CallReplay,
  createDiscovery,
  matchesLabels,
  parseLabelSelector,
  recordedError,
  type Discovery,
  type EventRecorder,
} from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { AttemptRecording } from "@konverge/records";
import type { PlannedRun } from "../access/attempt-plan.ts";
import { isOwnedBy } from "../access/attempt-reads.ts";
import type { AttemptTape } from "../access/attempt-tape.ts";
import type { FreshReads } from "../access/fresh-reads.ts";
import { hasIndexValues, type NamedIndexValue } from "../access/indexed-values.ts";
import type { ObjectCache } from "../access/object-cache.ts";
import type { RunState } from "../define/start-run.ts";
import { identityOf } from "../recording/attempt-recorder.ts";
import { findQuery, listQuery } from "../recording/cache-query.ts";
import { Turns } from "./turns.ts";

/** A fact that a replay or a recording lacks. */
export interface ReplayGap {
  /** The object or call. */
  readonly about: string;
  /** Why it is missing. */
  readonly reason: string;
}

type Place = Parameters<CallReplay["noteMissing"]>[0];
type CachedRead = AttemptRecording["lists"][number];
type CachedList = Parameters<ObjectCache["list"]>[1];

/** Answers everything that a replayed attempt reads from a recording. */
export class ReplayTape implements AttemptTape {
  readonly discovery: Discovery = createDiscovery();
  readonly clusters = new Map<string, CallReplay>();
  readonly externals: string[] = [];
  readonly runs: PlannedRun[] = [];
  readonly events: AttemptRecording["events"] = [];
  /** Answers that were computed without the API server. */
  readonly assumed = new Map<string, ReplayGap>();
  readonly #recording: AttemptRecording;
  readonly #cluster: string;
  readonly #turns = new Turns();
  readonly #used = new Set<object>();
  readonly #startedMs = performance.now();
  #end: { readonly gap: ReplayGap; readonly error: Error } | undefined;

  constructor(recording: AttemptRecording, cluster: string) {
    this.#recording = recording;
    this.#cluster = cluster;
  }

  /** Why the replay could not continue; undefined if it has reached the end of the handler. */
  get end(): ReplayGap | undefined {
    return this.#end?.gap;
  }

  in(cluster: string): CallReplay {
    const { calls, epoch, beganAtMs, endedAtMs } = this.#recording;
    const known = this.clusters.get(cluster);
    if (known !== undefined) return known;
    const replay = new CallReplay({
      calls: calls[cluster] ?? [],
      epoch,
      turn: (answeredAt) => this.#turns.take(answeredAt),
      end: (about, reason) => this.endAt(about, reason),
      ended: () => this.#end?.error,
      assume: (about, reason) => void this.assumed.set(`${about}\n${reason}`, { about, reason }),
      toleranceMs: () => endedAtMs - beganAtMs + performance.now() - this.#startedMs + 2_000,
    });
    this.clusters.set(cluster, replay);
    return replay;
  }

  /** Ends the replay. Returns the error of this call and of all later ones. */
  endAt(about: string, why: string): Error {
    const { isCut } = this.#recording;
    const reason = isCut === true ? `${why}, or it is missing, because the recording is cut` : why;
    this.#end ??= {
      gap: { about, reason },
      error: new KonvergeError("not_recorded", `${about}: ${reason}`),
    };
    return this.#end.error;
  }

  isInScope(namespace: string): boolean {
    return this.#recording.scopes.find((each) => each.namespace === namespace)?.isIn ?? true;
  }

  lanes(cluster: string, lanes: ObjectLanes): ObjectLanes {
    return {
      close: () => lanes.close(),
      enter: async (lane, ...options) => {
        const hold = await lanes.enter(lane, ...options);
        const id = `${cluster} ${lane}`;
        const found = this.#next(this.#recording.passed, (each) => each.lane === id);
        if (found?.omitted !== undefined) {
          throw this.endAt(
            `object in lane ${lane}`,
            "it is not in the recording, which would be too large",
          );
        }
        const { object = null } = found ?? {};
        return object === null ? hold : { ...hold, carried: parseJson(object) as JsonObject };
      },
    };
  }

  freshReads(reads: FreshReads): FreshReads {
    return {
      note: (object) => reads.note(object),
      noteListed: (object) => reads.noteListed(object),
      take: (target, maxAgeMs) => {
        const id = identityOf(target);
        const found = this.#next(this.#recording.fresh, (each) => each.object === id);
        // Time passes differently in a debugger, so the recorded decision counts.
        const object = reads.take(target, found === undefined ? maxAgeMs : Infinity);
        return (found?.isFresh ?? true) ? object : undefined;
      },
    };
  }

  get cache(): ObjectCache {
    const ignore = () => undefined;
    return {
      list: <T extends ApiObject>(type: ResourceType<T>, options: CachedList) =>
        this.#list(type, options) as Promise<T[] | undefined>,
      find: <T extends ApiObject>(
        type: ResourceType<T>,
        name: { name: string; namespace?: string },
      ) => this.#find(type, name) as Promise<T | undefined>,
      noteWrite: ignore,
      noteDelete: ignore,
      noteConflict: ignore,
    };
  }

  async outside<T>(name: string): Promise<T> {
    this.#assertOpen();
    this.externals.push(name);
    const found = this.#next(this.#recording.externals, (each) => each.name === name);
    if (found === undefined) {
      const reason = `today's code calls it, and attempt ${this.#recording.epoch} did not call it`;
      throw this.endAt(`"${name}"`, reason);
    }
    if (found.omitted !== undefined) {
      throw this.endAt(`result of "${name}"`, `it is not in the recording (${found.omitted})`);
    }
    await this.#turns.take(found.answeredAt);
    if (found.error !== undefined) throw errorOf(found.error);
    return (found.value === undefined ? undefined : JSON.parse(found.value)) as T;
  }

  async start(run: PlannedRun): Promise<RunState> {
    this.#assertOpen();
    this.runs.push(run);
    const about = `run of workflow ${run.workflow}`;
    const found = this.#next(
      this.#recording.runs,
      (each) => each.workflow === run.workflow && each.id === run.id,
    );
    if (found === undefined) {
      const reason = `today's code starts it, and attempt ${this.#recording.epoch} did not start it`;
      throw this.endAt(about, reason);
    }
    await this.#turns.take(found.answeredAt);
    if (found.error !== undefined) throw errorOf({ name: "Error", ...found.error });
    if (found.run === undefined) throw this.endAt(about, "the attempt ended before the answer");
    return found.run as RunState;
  }

  recorder(_events: EventRecorder): EventRecorder {
    return {
      record: async (_client, about, { type, reason, message }) => {
        this.#assertOpen();
        const path = [about.namespace, about.name].filter((part) => part !== undefined).join("/");
        this.events.push({ type, reason, message, about: `${resourceId(about)} ${path}` });
        return "counted";
      },
    };
  }

  async #list(type: ResourceType, options: CachedList): Promise<ApiObject[] | undefined> {
    this.#assertOpen();
    const { group, version, kind, resource } = type;
    const { namespace } = options;
    const place = { group, version, kind, resource, ...defined({ namespace }) };
    const read = this.#cached(this.#recording.lists, listQuery(type, options), place);
    if (read === undefined) return undefined;
    const calls = this.in(this.#cluster);
    calls.noteMissing(place, read.sentAt);
    const found = await this.#answerOf(read, `list of ${resource}`);
    if (found === undefined) return undefined;
    const items = found as ApiObject[];
    for (const item of items) calls.noteRead(place, item as unknown as JsonObject);
    return calls.differs(place) ? this.#merged(items, calls.differing(place), options) : items;
  }

  async #find(type: ResourceType, name: { name: string; namespace?: string }) {
    this.#assertOpen();
    const { group, version, kind, resource } = type;
    const place = { group, version, kind, resource };
    const at = { ...place, ...name };
    const read = this.#cached(this.#recording.finds, findQuery(type, name), at);
    if (read === undefined) return undefined;
    const found = (await this.#answerOf(read, `${type.kind} ${name.name}`)) as
      | ApiObject
      | undefined;
    if (found !== undefined) this.in(this.#cluster).noteRead(place, found as unknown as JsonObject);
    return found;
  }

  /** The next read of the query. If all are used: the last one, unless a write has changed its result since. */
  #cached(reads: readonly CachedRead[], query: string, place: Place): CachedRead | undefined {
    const calls = this.in(this.#cluster);
    const next = this.#next(
      reads,
      (each) => each.query === query && !calls.hasWritten(place, each.answeredAt),
    );
    if (next !== undefined) return next;
    const last = reads.findLast((each) => each.query === query);
    return last !== undefined && calls.hasWritten(place, last.answeredAt) ? undefined : last;
  }

  async #answerOf({ found, omitted, answeredAt }: CachedRead, about: string): Promise<unknown> {
    if (omitted !== undefined) {
      throw this.endAt(about, "it is not in the recording, which would be too large");
    }
    await this.#turns.take(answeredAt);
    return found === null ? undefined : parseJson(found);
  }

  /** The items with the state that their objects have in the replay. */
  #merged(
    items: readonly ApiObject[],
    differing: ReadonlyMap<string, JsonObject | undefined>,
    { labelSelector, ownerUid, indexed = [], namespace }: CachedList,
  ): ApiObject[] {
    const selector = parseLabelSelector(labelSelector ?? "");
    const isSelected = (item: ApiObject) =>
      (namespace === undefined || item.metadata.namespace === namespace) &&
      (selector === undefined || matchesLabels(selector, item.metadata.labels)) &&
      isOwnedBy(item, ownerUid) &&
      hasIndexValues(item, indexed as readonly NamedIndexValue[], () => undefined);
    const kept = items.filter(({ metadata }) => !differing.has(keyOf(metadata)));
    const views = [...differing.values()].filter((view) => view !== undefined);
    return [...kept, ...(views as unknown as ApiObject[]).filter(isSelected)];
  }

  #next<E extends object>(entries: readonly E[], matches: (entry: E) => boolean): E | undefined {
    const found = entries.find((entry) => !this.#used.has(entry) && matches(entry));
    if (found !== undefined) this.#used.add(found);
    return found;
  }

  #assertOpen(): void {
    if (this.#end !== undefined) throw this.#end.error;
  }
}

function keyOf({ namespace = "", name }: ApiObject["metadata"]): string {
  return `${namespace}/${name}`;
}

/** The error that a recorded call threw, as far as it is recorded. */
function errorOf({
  name,
  code,
  message,
  retryAfterMs,
}: NonNullable<AttemptRecording["externals"][number]["error"]>): Error {
  if (code !== "") return recordedError({ code, message, retryAfterMs });
  const error = new Error(message);
  error.name = name;
  return error;
}
