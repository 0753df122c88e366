import { resourceId, type ResourceRef } from "@konverge/core";
import type { EventInput } from "../contract/call-options.ts";
import type { KubeClient } from "../contract/kube-client.ts";
import { isNotFound } from "../errors/error-predicates.ts";
import type { NamespacedName } from "../names/resource-path.ts";
import { recordEvent, repeatEvent } from "./record-event.ts";

/** Equal events within this time of each other are one series, in ms. As in client-go. */
const IDLE_MS = 6 * 60_000;
/** A repeated event is written when its count has doubled, or after this time, in ms. */
const WRITE_AFTER_MS = 60_000;
/** New events of one object at once, and the time for each further one, in ms. As in client-go. */
const BURST = 25;
const REFILL_MS = 5 * 60_000;
/** Series and objects in memory; the oldest are forgotten. */
const MAX_KEPT = 2_000;

/** Records the events of one component, within bounds per object. */
export interface EventRecorder {
  /**
   * Returns `recorded` if a call was made, `counted` if the event only increased a count in memory, `dropped` if the object had
   * too many different events. @throws as the calls
   */
  record(
    client: KubeClient,
    regarding: ResourceRef,
    event: EventInput,
  ): Promise<"recorded" | "counted" | "dropped">;
}

interface Series {
  readonly written: Promise<NamespacedName>;
  count: number;
  writtenCount: number;
  writtenAtMs: number;
  lastAtMs: number;
}

interface Budget {
  left: number;
  atMs: number;
}

export function createEventRecorder(
  component: string,
  clock: () => number = Date.now,
): EventRecorder {
  const known = new Map<string, Series>();
  const budgets = new Map<string, Budget>();

  const takeBudget = (object: string): boolean => {
    const nowMs = clock();
    const { left, atMs } = budgets.get(object) ?? { left: BURST, atMs: nowMs };
    const now = Math.min(BURST, left + (nowMs - atMs) / REFILL_MS);
    keep(budgets, object, { left: now >= 1 ? now - 1 : now, atMs: nowMs });
    return now >= 1;
  };

  const repeat = async (client: KubeClient, id: string, series: Series) => {
    const nowMs = clock();
    series.count += 1;
    series.lastAtMs = nowMs;
    const isDue =
      series.count >= 2 * series.writtenCount || nowMs - series.writtenAtMs >= WRITE_AFTER_MS;
    if (!isDue) return "counted";
    const { count } = series;
    series.writtenCount = count;
    series.writtenAtMs = nowMs;
    try {
      await repeatEvent(client, await series.written, { count, atMs: nowMs });
    } catch (error) {
      // The server deletes events after an hour: the next one begins a new series.
      if (known.get(id) === series) known.delete(id);
      if (!isNotFound(error)) throw error;
    }
    return "recorded";
  };

  return {
    async record(client, regarding, { type, reason, message, action }) {
      const { namespace = "", name, uid = "" } = regarding;
      const object = [client.server, resourceId(regarding), namespace, name, uid].join("/");
      const id = JSON.stringify([object, type, reason, action, message]);
      const nowMs = clock();
      const series = known.get(id);
      if (series !== undefined && nowMs - series.lastAtMs < IDLE_MS) {
        return await repeat(client, id, series);
      }
      if (!takeBudget(object)) return "dropped";
      const input = { regarding, type, reason, message, action, component, atMs: nowMs };
      const written = recordEvent(client, input);
      keep(known, id, { written, count: 1, writtenCount: 1, writtenAtMs: nowMs, lastAtMs: nowMs });
      try {
        await written;
      } catch (error) {
        known.delete(id);
        throw error;
      }
      return "recorded";
    },
  };
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_KEPT && oldest !== undefined) map.delete(oldest);
}
