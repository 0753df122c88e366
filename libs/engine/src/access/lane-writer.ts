import {
  KonvergeError,
  linkAbort,
  namespaceSegment,
  resourceId,
  type ApiObject,
  type CallPriority,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  isConflict,
  startFrom,
  type ChangeDraft,
  type KubeClient,
  type MutateOptions,
  type MutateResult,
  type NamespacedName,
  type ReadBasis,
  type ServerRead,
  type Urgency,
} from "@konverge/kube";
import { carriedAs, type LaneHold, type ObjectLanes } from "@konverge/lanes";
import type { AttemptTrace } from "./attempt-trace.ts";
import { isRefusal, isUnwritten } from "./is-refusal.ts";
import type { Company, TakenOutcome, WriteGroups } from "./write-group.ts";

/** The object to change, and the read that the change needs at least. */
interface WriteTarget {
  readonly type: ResourceType;
  readonly name: NamespacedName;
  readonly subresource: MutateOptions["subresource"] | undefined;
  readonly uid: string | undefined;
  readonly read: ServerRead;
}

/** Writes a change while the lane is held. */
export type WriteOnce = (
  change: ChangeDraft<ApiObject>,
  basis: ReadBasis,
) => Promise<MutateResult<ApiObject>>;

export type LaneWriter = (
  target: WriteTarget,
  change: ChangeDraft<ApiObject>,
  write: WriteOnce,
) => Promise<MutateResult<ApiObject>>;

export interface LaneWriterOptions {
  readonly client: KubeClient;
  readonly lanes: ObjectLanes;
  /** Per controller, since changes written together have one field manager. */
  readonly groups: WriteGroups;
  readonly signal: AbortSignal;
  readonly isOpen: () => boolean;
  readonly trace: Pick<AttemptTrace, "noteLane" | "secrets">;
  readonly priority: CallPriority;
  /** Of the attempt's calls. */
  readonly urgency: Urgency;
}

/**
 * Queues all writers of an object in its lane, whatever key they run under. Each passes the object to the next one. Writers
 * that wait in the same process for the same controller are written together by the first of them.
 */
export function createLaneWriter(options: LaneWriterOptions): LaneWriter {
  return async (target, change, write) => {
    const job: WriteJob = { options, target, change, write };
    // The attempt that writes for others would not know the secrets of this one.
    const isAlone = !isShared(job) || !options.trace.secrets.isEmpty;
    if (isAlone) return await writeAlone(job);
    const waited = await waitInGroup(job);
    if (waited.kind === "taken") return waited.result ?? (await writeAlone(job));
    const id = groupOf(target);
    return await whileHeld(job, waited.turn, async (passed) => {
      const company = options.groups.take(id, target);
      if (company === undefined) return await write(change, basisOf(target.read, passed));
      return await writeTogether(job, company, passed);
    });
  };
}

/** One change on its way through the lane. */
interface WriteJob {
  readonly options: LaneWriterOptions;
  readonly target: WriteTarget;
  readonly change: ChangeDraft<ApiObject>;
  readonly write: WriteOnce;
}

/** Either the lane, or the result of another writer that included this change; undefined if it must be written alone. */
type Waited =
  | { readonly kind: "held"; readonly turn: LaneHold }
  | { readonly kind: "taken"; readonly result: MutateResult<ApiObject> | undefined };

async function waitInGroup({ options, target, change }: WriteJob): Promise<Waited> {
  const { groups, signal, isOpen, trace } = options;
  const taken = new AbortController();
  let outcome: Promise<TakenOutcome> | undefined;
  const stopWaiting = groups.wait(groupOf(target), {
    change,
    uid: target.uid,
    read: target.read,
    isOpen: () => isOpen() && !signal.aborted,
    onTaken: (comes) => {
      outcome = comes;
      taken.abort();
    },
  });
  const unlink = linkAbort(taken, signal);
  const askedAtMs = performance.now();
  let turn: LaneHold | undefined;
  try {
    turn = await enterLane(options, target, taken.signal);
  } catch (error) {
    if (outcome === undefined) throw error;
  } finally {
    unlink();
    stopWaiting();
  }
  if (turn !== undefined && outcome === undefined) return { kind: "held", turn };
  // Taken while it got the lane, if lanes admit several writers: it must not write twice.
  turn?.leave();
  const came = await outcome;
  trace.noteLane(performance.now() - askedAtMs);
  if (came?.kind === "failed") throw came.error;
  return { kind: "taken", result: came?.kind === "written" ? came.result : undefined };
}

async function writeAlone(job: WriteJob): Promise<MutateResult<ApiObject>> {
  const { options, target, change, write } = job;
  const turn = await enterLane(options, target, options.signal);
  return await whileHeld(job, turn, (passed) => write(change, basisOf(target.read, passed)));
}

/** While the turn lasts, the calls of the attempt inherit the priority of the writers that wait for the lane. */
async function enterLane(
  { lanes, urgency, priority }: LaneWriterOptions,
  target: WriteTarget,
  signal: AbortSignal,
): Promise<LaneHold> {
  const hold = urgency.hold();
  try {
    const onWanted = (wanted: CallPriority) => hold.raise(wanted);
    const turn = await lanes.enter(laneOf(target), signal, { priority, onWanted });
    return {
      ...turn,
      leave(...how) {
        hold.end();
        turn.leave(...how);
      },
    };
  } catch (error) {
    hold.end();
    throw error;
  }
}

/** Passes the written object to the next holder of the lane. */
async function whileHeld(
  job: WriteJob,
  turn: LaneHold,
  write: (passed: JsonObject | undefined) => Promise<MutateResult<ApiObject>>,
): Promise<MutateResult<ApiObject>> {
  job.options.trace.noteLane(turn.waitedMs);
  const mayPass = isShared(job);
  let known: JsonObject | undefined;
  // Our own writers use the lane, so a conflict is with another one.
  let stranger = false;
  try {
    const result = await write(mayPass ? carriedAs(turn, job.target.type) : undefined);
    const isKnown = mayPass && !job.options.trace.secrets.revealedBy(result.object);
    if (isKnown) known = result.object as unknown as JsonObject;
    stranger = result.lost > 0;
    return result;
  } catch (error) {
    stranger = isConflict(error);
    throw error;
  } finally {
    turn.leave(known, { stranger });
  }
}

/** A scale is another object. Sensitive objects do not leave the attempt (P12). */
function isShared({ options, target: { type, subresource } }: WriteJob): boolean {
  return subresource !== "scale" && !options.client.isSensitive(type);
}

function basisOf(read: ServerRead, passed: JsonObject | undefined): ReadBasis {
  return passed === undefined ? read : startFrom(passed, read);
}

/** For the other attempts: the end of the writing attempt is not theirs. */
const LEFT_ALONE = new KonvergeError(
  "kube_unreachable",
  "the attempt that wrote this change together with its own ended before the API server responded; the result of the write is unknown",
);

async function writeTogether(
  { options: { signal }, target, change, write }: WriteJob,
  company: Company,
  passed: JsonObject | undefined,
): Promise<MutateResult<ApiObject>> {
  try {
    const written = await write(company.join(change), basisOf(company.read, passed));
    return company.settle(written);
  } catch (error) {
    // The result of an interrupted call is unknown; its writers get the error as if each had made the call alone.
    if (isUnwritten(error)) company.dissolve();
    else company.dissolve({ error: signal.aborted ? LEFT_ALONE : error });
    // Any of the changes may be what the server rejected: each is written alone, and gets its own error.
    if (!isRefusal(error) || signal.aborted) throw error;
    return await write(change, target.read);
  }
}

/** One lane per object, whatever version of its kind the write uses. */
function laneOf({ type, name: { namespace, name } }: WriteTarget): string {
  return [resourceId(type), namespaceSegment(namespace), name].map(encodeURIComponent).join("/");
}

/** Changes that can be one write: drafts of one version of the kind, to one address. */
function groupOf(target: WriteTarget): string {
  return [laneOf(target), target.type.version, target.subresource ?? ""].join(" ");
}
