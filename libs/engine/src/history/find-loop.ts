import { LOOP_CAUSE, type AttemptRecord, type HintCode, type LoopState } from "@konverge/records";

/** Consecutive attempts, each triggered by the writes of the previous one. A chain of phases is shorter. */
export const OWN_WRITES_IN_A_ROW = 10;
/** Consecutive attempts that requeued without a change. */
export const REQUEUES_IN_A_ROW = 20;
/** Slower requeues are polling, which costs little and is not a loop. */
const RARE_REQUEUE_MS = 10_000;

export interface Loop {
  readonly kind: LoopState["kind"];
  readonly hint: HintCode;
  /** Consecutive attempts. */
  readonly count: number;
  /** The written fields. */
  readonly paths: readonly string[];
}

type Trigger = AttemptRecord["triggers"][number];

/** Finds a loop in the records of one key, newest first. */
export function findLoop(stored: readonly AttemptRecord[]): Loop | undefined {
  const records = mergeDeferred(stored);
  return findOwnWrites(records) ?? findRequeues(records);
}

/** True if the trigger is one of the key's own writes or timers. */
export function isOwnTrigger(trigger: Trigger, versions: ReadonlySet<string>): boolean {
  return isNeutral(trigger) || isEcho(trigger, versions);
}

export function isPerson({ kind, by }: Pick<Trigger, "kind" | "by">): boolean {
  return kind === "http" || kind === "cli" || kind === "signal" || by === "annotation";
}

/** Returns the versions of objects that the attempts wrote. */
export function writtenVersions(records: readonly AttemptRecord[]): Set<string> {
  return new Set(
    records.flatMap(({ writes }) => writes.flatMap(({ toVersion }) => toVersion ?? [])),
  );
}

function findOwnWrites(records: readonly AttemptRecord[]): Loop | undefined {
  let count = 0;
  const paths = new Set<string>();
  let isStatusOnly = true;
  for (const [at, record] of records.entries()) {
    const versions = writtenVersions(records.slice(at + 1));
    const { triggers, writes } = record;
    // A retry continues with the triggers of its first try.
    if (triggers.length === 0 && count > 0) continue;
    const isOwn = triggers.every((trigger) => isOwnTrigger(trigger, versions));
    if (!isOwn || !triggers.some((trigger) => isEcho(trigger, versions))) break;
    if (writes.length === 0) break;
    count += 1;
    for (const write of writes) {
      const isOwnStatus =
        write.subresource === "status" || Object.keys(write.patch ?? {}).join() === "status";
      isStatusOnly &&= isOwnStatus;
      for (const path of pathsOf(write)) paths.add(path);
    }
  }
  if (count < OWN_WRITES_IN_A_ROW) return undefined;
  const hint = isStatusOnly ? "own_status_trigger" : "own_write_trigger";
  return { kind: "selfTriggered", hint, count, paths: [...paths].slice(0, 5) };
}

function findRequeues(records: readonly AttemptRecord[]): Loop | undefined {
  const other = records.findIndex(
    ({ outcome, writes, triggers, versionBefore }) =>
      outcome !== "requeueAfter" ||
      writes.length > 0 ||
      !triggers.every(isNeutral) ||
      versionBefore !== records[0]?.versionBefore,
  );
  const count = other === -1 ? records.length : other;
  if (count < REQUEUES_IN_A_ROW) return undefined;
  const asked = records.slice(0, count).map(({ afterMs = 0 }) => afterMs);
  if (Math.min(...asked) >= RARE_REQUEUE_MS) return undefined;
  return { kind: "requeue", hint: "endless_requeue", count, paths: [] };
}

/** Moves the triggers of a deferred start to the attempt that followed. */
function mergeDeferred(stored: readonly AttemptRecord[]): AttemptRecord[] {
  const merged: AttemptRecord[] = [];
  let carried: Trigger[] = [];
  for (const record of stored.toReversed()) {
    if (record.outcome === "deferred" && record.cause === LOOP_CAUSE) {
      carried.push(...record.triggers);
      continue;
    }
    merged.push(
      carried.length === 0 ? record : { ...record, triggers: [...carried, ...record.triggers] },
    );
    carried = [];
  }
  return merged.toReversed();
}

/** True for triggers without a change. */
function isNeutral({ kind }: Trigger): boolean {
  return kind === "schedule" || kind === "resync" || kind === "retry";
}

function isEcho({ kind, by, resourceVersion, version }: Trigger, versions: ReadonlySet<string>) {
  if ((kind !== "watch" && kind !== "owner") || by === "annotation") return false;
  return versions.has(version ?? resourceVersion ?? "");
}

function pathsOf({ resource, subresource, patch }: AttemptRecord["writes"][number]): string[] {
  const fields = Object.entries(patch ?? {}).flatMap(([part, value]) =>
    typeof value === "object" && value !== null
      ? Object.keys(value).map((field) => `${part}.${field}`)
      : [part],
  );
  const inWhat = `${resource}${subresource === undefined ? "" : `/${subresource}`}`;
  return fields.length === 0 ? [inWhat] : fields.map((field) => `${inWhat} ${field}`);
}
