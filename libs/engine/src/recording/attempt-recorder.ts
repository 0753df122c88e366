import {
  defined,
  ensureError,
  findCause,
  isKonvergeError,
  resourceId,
  typeOfError,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  createCallRecorder,
  createDiscovery,
  ENTRY_CHARACTERS,
  type CallHold,
  type CallRecorder,
  type Discovery,
  type EventRecorder,
} from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { AttemptRecording } from "@konverge/records";
import type { PlannedRun } from "../access/attempt-plan.ts";
import type { AttemptTape } from "../access/attempt-tape.ts";
import type { ControllerRuntime } from "../access/attempt.ts";
import type { FreshReads } from "../access/fresh-reads.ts";
import type { ObjectCache } from "../access/object-cache.ts";
import { createWriteGroups } from "../access/write-group.ts";
import type { RunState } from "../define/start-run.ts";
import { findQuery, listQuery } from "./cache-query.ts";

/** Largest recording, in characters of JSON. Later reads are not recorded. */
const MOST_CHARACTERS = 1_000_000;

/** Longest path of a call that counts as an entry. */
const MOST_PATH = 1_000;

/** A read from the cache, with objects that are not serialized yet. */
export interface NotedRead {
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly query: string;
  readonly type: ResourceType;
  readonly found: ApiObject | readonly ApiObject[] | undefined;
}

type Outside = Omit<AttemptRecording["externals"][number], "value"> & { readonly result?: unknown };

/** The calls of events are not part of a recording: their number depends on earlier attempts. */
const UNRECORDED: CallHold = { send: (call, live) => live(call) };

/** Records everything that an attempt reads and writes. */
export class AttemptRecorder implements AttemptTape {
  readonly discovery: Discovery = createDiscovery();
  readonly clusters = new Map<string, CallRecorder>();
  readonly lists: NotedRead[] = [];
  readonly finds: NotedRead[] = [];
  readonly passed: { readonly lane: string; readonly object: JsonObject | undefined }[] = [];
  readonly fresh: { readonly object: string; readonly isFresh: boolean }[] = [];
  readonly scopes: { readonly namespace: string; readonly isIn: boolean }[] = [];
  readonly externals: Outside[] = [];
  readonly runs: AttemptRecording["runs"] = [];
  readonly events: AttemptRecording["events"] = [];
  readonly gaps: { about: string; reason: string }[] = [];
  readonly beganAtMs = Date.now();
  /** True once later reads are not recorded. */
  isCut = false;
  #now = 0;
  #left = MOST_CHARACTERS;

  /** The runtime of the recorded attempt. Its writes are not combined with those of other attempts. */
  runtime(runtime: ControllerRuntime): ControllerRuntime {
    const { cache, lanes, isInScope } = runtime;
    return {
      ...runtime,
      cache: this.#cache(cache),
      lanes: this.lanes("", lanes),
      groups: createWriteGroups(),
      isInScope: async (namespace, query) => {
        const isIn = await isInScope(namespace, query);
        this.#keep(this.scopes, { namespace, isIn });
        return isIn;
      },
    };
  }

  in(cluster: string): CallHold {
    const known =
      this.clusters.get(cluster) ??
      createCallRecorder({ tick: () => this.#tick(), take: (size) => this.take(size) });
    this.clusters.set(cluster, known);
    return known;
  }

  /** Takes room for a text. False if there is none. */
  take(characters: number): boolean {
    if (characters <= this.#left) {
      this.#left -= characters;
      return true;
    }
    // Not even an entry has room, so later reads are missing without a trace.
    if (this.#left < ENTRY_CHARACTERS + MOST_PATH) this.isCut = true;
    return false;
  }

  /** Keeps an entry that has room. */
  #keep<T>(entries: T[], entry: T): void {
    if (this.take(ENTRY_CHARACTERS)) entries.push(entry);
  }

  lanes(cluster: string, lanes: ObjectLanes): ObjectLanes {
    return {
      close: () => lanes.close(),
      enter: async (lane, ...options) => {
        const hold = await lanes.enter(lane, ...options);
        this.#keep(this.passed, { lane: `${cluster} ${lane}`, object: hold.carried });
        return hold;
      },
    };
  }

  freshReads(reads: FreshReads): FreshReads {
    return {
      note: (object) => reads.note(object),
      noteListed: (object) => reads.noteListed(object),
      take: (target, maxAgeMs) => {
        const found = reads.take(target, maxAgeMs);
        this.#keep(this.fresh, { object: identityOf(target), isFresh: found !== undefined });
        return found;
      },
    };
  }

  async outside<T>(name: string, call: () => T | Promise<T>): Promise<T> {
    if (!this.take(ENTRY_CHARACTERS)) return await call();
    const at = this.externals.length;
    this.externals.push({ name, answeredAt: this.#tick(), omitted: "aborted" });
    try {
      const result = await call();
      this.externals[at] = { name, answeredAt: this.#tick(), ...defined({ result }) };
      return result;
    } catch (thrown) {
      const { message } = ensureError(thrown);
      const ours = findCause(thrown, isKonvergeError);
      const error = {
        name: typeOfError(ensureError(thrown)),
        code: ours?.code ?? "",
        message,
        ...defined({ retryAfterMs: ours?.retryAfterMs }),
      };
      this.externals[at] = { name, answeredAt: this.#tick(), error };
      throw thrown;
    }
  }

  async start(run: PlannedRun, call: () => Promise<RunState>): Promise<RunState> {
    if (!this.take(ENTRY_CHARACTERS)) return await call();
    const at = this.runs.length;
    this.runs.push({ ...run, answeredAt: this.#tick() });
    try {
      const state = await call();
      const { id, created, status, ...rest } = state;
      this.runs[at] = { ...run, answeredAt: this.#tick(), run: { id, created, status } };
      if (Object.values(rest).some((value) => value !== undefined)) {
        const about = `run of workflow ${run.workflow}`;
        this.gaps.push({ about, reason: "its result and its error are not recorded" });
      }
      return state;
    } catch (thrown) {
      const code = findCause(thrown, isKonvergeError)?.code ?? "";
      const error = { code, message: ensureError(thrown).message };
      this.runs[at] = { ...run, answeredAt: this.#tick(), error };
      throw thrown;
    }
  }

  recorder(events: EventRecorder): EventRecorder {
    return {
      record: (client, about, event) => {
        const { type, reason, message } = event;
        const path = [about.namespace, about.name].filter((part) => part !== undefined).join("/");
        this.#keep(this.events, { type, reason, message, about: `${resourceId(about)} ${path}` });
        return events.record(client.scoped({ hold: UNRECORDED }), about, event);
      },
    };
  }

  #cache(cache: ObjectCache): ObjectCache {
    return {
      list: async (type, options) => {
        const sentAt = this.#tick();
        const found = await cache.list(type, options);
        const query = listQuery(type, options);
        this.#keep(this.lists, { sentAt, answeredAt: this.#tick(), query, type, found });
        return found;
      },
      find: async (type, name, atLeast, within) => {
        const sentAt = this.#tick();
        const found = await cache.find(type, name, atLeast, within);
        const query = findQuery(type, name);
        this.#keep(this.finds, { sentAt, answeredAt: this.#tick(), query, type, found });
        return found;
      },
      noteWrite: (type, object) => cache.noteWrite(type, object),
      noteDelete: (type, object) => cache.noteDelete(type, object),
      noteConflict: (ref) => cache.noteConflict(ref),
    };
  }

  #tick(): number {
    this.#now += 1;
    return this.#now;
  }
}

/** Identifies a read object and its version. */
export function identityOf(target: object): string {
  const { kind = "", metadata = { name: "" } } = target as Partial<ApiObject>;
  const { uid = "", name, resourceVersion = "" } = metadata;
  return `${kind} ${uid === "" ? name : uid}@${resourceVersion}`;
}
