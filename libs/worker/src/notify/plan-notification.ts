import { randomBytes } from "node:crypto";
import type { Fault, NotificationEvent, NotificationFormat } from "@konverge/core";
import type { FaultGroup, NotificationRecord } from "@konverge/queue";

/** The current faults of a cluster. */
export interface ObservedFaults {
  /** By id. */
  readonly faults: ReadonlyMap<string, Fault>;
  /** Events whose faults were read in part only. Those that are missing may still exist. */
  readonly partial: ReadonlySet<NotificationEvent>;
}

/** The difference between the current faults and those that a receiver was notified of. */
export interface FaultChanges {
  readonly firing: ReadonlyMap<string, Fault>;
  readonly resolved: ReadonlyMap<string, Fault>;
}

const MOST_EXAMPLES = 5;
/** Maximum number of alerts in one request to Alertmanager. Each group is one alert. */
const MOST_ALERTS = 200;
/** Events whose faults are new if their start has changed. The start of the others may move while they last. */
const RENEWED: ReadonlySet<NotificationEvent> = new Set(["dead_letter", "approval"]);
const REPORTS_RESOLVED: ReadonlySet<NotificationFormat> = new Set(["json", "alertmanager"]);

export function changesOf(
  on: readonly NotificationEvent[],
  { faults, partial }: ObservedFaults,
  told: ReadonlyMap<string, Fault>,
): FaultChanges {
  const isNew = (id: string, { event, sinceMs }: Fault) => {
    const known = told.get(id);
    return known === undefined || (RENEWED.has(event) && known.sinceMs !== sinceMs);
  };
  return {
    firing: new Map([...faults].filter(([id, each]) => on.includes(each.event) && isNew(id, each))),
    resolved: new Map(
      [...told].filter(
        ([id, { event }]) => on.includes(event) && !faults.has(id) && !partial.has(event),
      ),
    ),
  };
}

/** Returns true if a receiver of this format gets a message about the changes. */
export function isReported(
  format: NotificationFormat,
  { firing, resolved }: FaultChanges,
): boolean {
  return firing.size > 0 || (resolved.size > 0 && REPORTS_RESOLVED.has(format));
}

/** Applies changes to the faults that a receiver was notified of. */
export function toldAfter(
  told: ReadonlyMap<string, Fault>,
  { firing, resolved }: FaultChanges,
): Map<string, Fault> {
  const next = new Map([...told, ...firing]);
  for (const id of resolved.keys()) next.delete(id);
  return next;
}

/** Returns the changes of the first groups, if messages of the format have a limit. Later messages contain the rest. */
export function limitChanges(format: NotificationFormat, changes: FaultChanges): FaultChanges {
  if (format !== "alertmanager") return changes;
  const nameOf = ({ event, group }: Fault) => JSON.stringify([event, group]);
  const all = [...changes.firing.values(), ...changes.resolved.values()].map(nameOf);
  const first = new Set([...new Set(all)].slice(0, MOST_ALERTS));
  const limited = (faults: ReadonlyMap<string, Fault>) =>
    new Map([...faults].filter(([, fault]) => first.has(nameOf(fault))));
  return { firing: limited(changes.firing), resolved: limited(changes.resolved) };
}

/** Makes the message about changes. */
export function planNotification(
  receiver: {
    readonly name: string;
    readonly format: NotificationFormat;
    readonly subscription: string;
  },
  changes: FaultChanges,
  {
    told,
    nowMs,
    deadlineMs,
  }: {
    /** Before the changes. */
    readonly told: ReadonlyMap<string, Fault>;
    readonly nowMs: number;
    readonly deadlineMs: number;
  },
): NotificationRecord {
  return {
    id: randomBytes(12).toString("base64url"),
    receiver: receiver.name,
    subscription: receiver.subscription,
    format: receiver.format,
    state: "waiting",
    createdAtMs: nowMs,
    deadlineMs: nowMs + deadlineMs,
    groups: groupsOf(changes, toldAfter(told, changes)),
    examples: examplesOf([...changes.firing.values()]),
    tries: 0,
    lastTries: [],
    nextAtMs: nowMs,
  };
}

function groupsOf(
  { firing, resolved }: FaultChanges,
  open: ReadonlyMap<string, Fault>,
): FaultGroup[] {
  const nameOf = ({ event, group }: Fault) => JSON.stringify([event, group]);
  const countsOf = (faults: ReadonlyMap<string, Fault>) => Map.groupBy(faults.values(), nameOf);
  const [began, ended, last] = [countsOf(firing), countsOf(resolved), countsOf(open)];
  return [...new Set([...began.keys(), ...ended.keys()])].toSorted().map((name) => {
    const [event, group] = JSON.parse(name) as [NotificationEvent, string];
    const left = last.get(name) ?? [];
    const all = left.length > 0 ? left : (ended.get(name) ?? []);
    return {
      event,
      group,
      firing: began.get(name)?.length ?? 0,
      resolved: ended.get(name)?.length ?? 0,
      open: left.length,
      sinceMs: all.reduce((least, { sinceMs }) => Math.min(least, sinceMs), Infinity),
    };
  });
}

/** Returns the oldest fault of each group, then more. */
function examplesOf(faults: readonly Fault[]): Fault[] {
  const byTime = faults.toSorted((one, other) => one.sinceMs - other.sinceMs);
  const firsts = [...Map.groupBy(byTime, ({ event, group }) => `${event}/${group}`).values()];
  const chosen = new Set(firsts.flatMap(([first]) => first ?? []));
  return [...chosen, ...byTime.filter((fault) => !chosen.has(fault))].slice(0, MOST_EXAMPLES);
}
