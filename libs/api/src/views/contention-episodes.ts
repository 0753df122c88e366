import type { ContentionEpisode } from "@konverge/contracts";
import { defined, parseKey, resourceId } from "@konverge/core";
import {
  contentionObject,
  EPISODE_PAUSE_MS,
  type ContentionEntry,
  type HistoryReader,
  type WastedWrites,
} from "@konverge/queue";
import type { LoopState } from "@konverge/records";
import { suggestedFix } from "./find-contention-problems.ts";
import type { ObjectPlace } from "./object-place.ts";

const MINUTE_MS = 60_000;
/** The period of the current rate. */
const RECENT_MINUTES = 5;
/** Fewer writes are single conflicts, or corrections of a manual change. */
const MIN_WRITES = 3;
/** Episodes whose competing writers are read. */
const MOST_READ = 20;
const MOST_FIELDS = 5;

export interface EpisodesInput {
  readonly history: Pick<HistoryReader, "contention" | "wastedWrites">;
  readonly loops: ReadonlyMap<string, LoopState>;
  readonly isVisible: (object: ObjectPlace, controller: string) => boolean;
  readonly placeOf: (object: string) => ObjectPlace;
  readonly keyOf: (object: ObjectPlace, controller: string) => string | undefined;
}

/** Returns the contention of the last hour by object and controller, most wasted writes per minute first. */
export async function readEpisodes(input: EpisodesInput): Promise<{
  readonly episodes: ContentionEpisode[];
  /** Further episodes, with fewer wasted writes. */
  readonly more: number;
}> {
  const { history, loops, isVisible, placeOf, keyOf } = input;
  const nowMs = Date.now();
  const found = (await history.wastedWrites())
    .map((each) => ({ ...each, place: placeOf(each.object), ...measure(each, nowMs) }))
    .filter((each) => each.total >= MIN_WRITES && isVisible(each.place, each.controller))
    .toSorted((one, other) => other.perMinute - one.perMinute || other.total - one.total);
  const read = await Promise.all(
    found.slice(0, MOST_READ).map(async ({ object, place, controller, minutes, ...rest }) => {
      const entries = await history.contention(object);
      const loop = [...loops].find(([key]) => isLoopOf(key, object, controller))?.[1];
      const { total: wastedWrites, perMinute, sinceMs, lastMs } = rest;
      const what = { controller, ...describe(entries, loop, sinceMs) };
      return {
        ...place,
        ...defined({ key: keyOf(place, controller) }),
        ...what,
        wastedWrites,
        perMinute,
        minutes: [...minutes],
        lastAt: new Date(lastMs).toISOString(),
        suggestedFix: suggestedFix(what),
      };
    }),
  );
  return { episodes: read, more: Math.max(0, found.length - MOST_READ) };
}

/** Returns the extent of the latest episode. */
function measure({ minutes }: WastedWrites, nowMs: number) {
  const thisMinuteMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  const startOf = (at: number) => thisMinuteMs - (minutes.length - 1 - at) * MINUTE_MS;
  const last = minutes.findLastIndex((writes) => writes > 0);
  let first = last;
  for (let at = last; at >= 0 && (first - at) * MINUTE_MS <= EPISODE_PAUSE_MS; at--) {
    if ((minutes[at] ?? 0) > 0) first = at;
  }
  const total = minutes.slice(first).reduce((sum, writes) => sum + writes, 0);
  const recent = minutes.slice(Math.max(first, minutes.length - RECENT_MINUTES));
  const spanMs = nowMs - Math.max(startOf(first), thisMinuteMs - (RECENT_MINUTES - 1) * MINUTE_MS);
  const perMinute =
    recent.reduce((sum, writes) => sum + writes, 0) / Math.max(1, spanMs / MINUTE_MS);
  return {
    total,
    perMinute: Math.round(perMinute * 10) / 10,
    sinceMs: startOf(first),
    lastMs: Math.min(nowMs, startOf(last) + MINUTE_MS),
  };
}

function describe(
  entries: readonly ContentionEntry[],
  loop: LoopState | undefined,
  sinceMs: number,
): Pick<ContentionEpisode, "kind" | "managers" | "fields" | "since" | "isThrottled"> {
  const current = entries.filter(({ lastMs }) => lastMs >= sinceMs);
  const flips = current.filter(({ kind, inEpisode }) => kind === "takeover" && inEpisode >= 2);
  const shown = (flips.length > 0 ? flips : current).toSorted(
    (one, other) => other.inEpisode - one.inEpisode,
  );
  const kind = flips.length > 0 ? "ownershipFlip" : shown.length > 0 ? "conflict" : undefined;
  const fields = shown.map(({ path }) => path).filter((path) => path !== "");
  const firstMs = Math.min(...shown.map((entry) => entry.firstMs), loop?.sinceMs ?? Infinity);
  return {
    kind: kind ?? (loop?.kind === "selfTriggered" ? "selfTriggered" : "conflict"),
    managers: [...new Set(shown.map(({ manager }) => manager))],
    fields: [...new Set([...fields, ...(kind === undefined ? (loop?.paths ?? []) : [])])].slice(
      0,
      MOST_FIELDS,
    ),
    since: new Date(firstMs === Infinity ? sinceMs : Math.min(firstMs, Date.now())).toISOString(),
    ...defined({ isThrottled: loop === undefined ? undefined : loop.protection === "throttle" }),
  };
}

function isLoopOf(key: string, object: string, controller: string): boolean {
  const { namespace, name, ...kind } = parseKey(key);
  if (kind.controller !== controller) return false;
  return contentionObject({ resource: resourceId(kind), namespace, name }) === object;
}
