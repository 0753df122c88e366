import {
  KonvergeError,
  resourceId,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  isConflict,
  type ChangeDraft,
  type KubeClient,
  type MutateOptions,
  type MutateResult,
  type NamespacedName,
} from "@konverge/kube";
import type { LaneHold, ObjectLanes } from "@konverge/lanes";
import type { AttemptTrace } from "./attempt-trace.ts";
import { isRefusal, isUnwritten } from "./is-refusal.ts";
import type { Company, TakenOutcome, WriteGroups } from "./write-group.ts";

/** What is to be changed, and what it must be. */
interface WriteTarget {
  readonly type: ResourceType;
  readonly name: NamespacedName;
  readonly subresource: MutateOptions["subresource"] | undefined;
  readonly uid: string | undefined;
  readonly floor: string | undefined;
}

/** Writes a change when its turn has come; `handedOn` is the object as the writer before left it, if that may be used. */
export type WriteOnce = (
  change: ChangeDraft<ApiObject>,
  options: { readonly floor: string | undefined; readonly handedOn: JsonObject | undefined },
) => Promise<MutateResult<ApiObject>>;

export type LaneWriter = (
  target: WriteTarget,
  change: ChangeDraft<ApiObject>,
  write: WriteOnce,
) => Promise<MutateResult<ApiObject>>;

export interface LaneWriterOptions {
  readonly client: KubeClient;
  readonly lanes: ObjectLanes;
  /** Of the controller, since what is written together has one field manager. */
  readonly groups: WriteGroups;
  readonly signal: AbortSignal;
  readonly isOpen: () => boolean;
  readonly trace: Pick<AttemptTrace, "noteLane">;
}

/**
 * Lets all writers of an object take turns, whatever key they run under; each hands on what it knows of the object. Who
 * waits in the same process, for the same controller, is taken along by whoever's turn comes.
 */
export function createLaneWriter(options: LaneWriterOptions): LaneWriter {
  const { client, lanes, groups, signal, isOpen, trace } = options;

  const inTurn = async (
    target: WriteTarget,
    turn: LaneHold,
    write: (handedOn: JsonObject | undefined) => Promise<MutateResult<ApiObject>>,
  ): Promise<MutateResult<ApiObject>> => {
    trace.noteLane(turn.waitedMs);
    const mayCarry = isShared(target);
    let known: JsonObject | undefined;
    // Our own writers take turns, so whoever won against one is a stranger.
    let stranger = false;
    try {
      const result = await write(mayCarry ? turn.carried : undefined);
      if (mayCarry) known = result.object as unknown as JsonObject;
      stranger = result.lost > 0;
      return result;
    } catch (error) {
      stranger = isConflict(error);
      throw error;
    } finally {
      turn.leave(known, { stranger });
    }
  };
  /** A scale is an object of its own; of what is sensitive nothing leaves the attempt (P12). */
  const isShared = ({ type, subresource }: WriteTarget) =>
    subresource !== "scale" && !client.isSensitive(type);

  const alone: LaneWriter = async (target, change, write) => {
    const turn = await lanes.enter(laneOf(target), signal);
    return await inTurn(target, turn, (handedOn) =>
      write(change, { floor: target.floor, handedOn }),
    );
  };

  return async (target, change, write) => {
    if (!isShared(target)) return await alone(target, change, write);
    const id = groupOf(target);
    const taken = new AbortController();
    let outcome: Promise<TakenOutcome> | undefined;
    const stopWaiting = groups.wait(id, {
      change,
      uid: target.uid,
      floor: target.floor,
      isOpen: () => isOpen() && !signal.aborted,
      onTaken: (comes) => {
        outcome = comes;
        taken.abort();
      },
    });
    const askedAtMs = performance.now();
    let turn: LaneHold | undefined;
    try {
      turn = await lanes.enter(laneOf(target), AbortSignal.any([signal, taken.signal]));
    } catch (error) {
      if (outcome === undefined) throw error;
    } finally {
      stopWaiting();
    }
    if (turn === undefined || outcome !== undefined) {
      // Taken along while its own turn came, where lanes let several in: it must not write a second time.
      turn?.leave();
      const came = await outcome;
      trace.noteLane(performance.now() - askedAtMs);
      if (came?.kind === "failed") throw came.error;
      return came?.kind === "written" ? came.result : await alone(target, change, write);
    }
    return await inTurn(target, turn, async (handedOn) => {
      const company = groups.take(id, target);
      if (company === undefined) return await write(change, { floor: target.floor, handedOn });
      return await writeTogether(company, { target, change, write, handedOn, signal });
    });
  };
}

/** The end of one attempt is not that of the others. */
const LEFT_ALONE = new KonvergeError(
  "kube_unreachable",
  "the attempt that wrote this change along with its own ended before the API server had answered; whether it was written is not known",
);

interface Together {
  readonly target: WriteTarget;
  readonly change: ChangeDraft<ApiObject>;
  readonly write: WriteOnce;
  readonly handedOn: JsonObject | undefined;
  readonly signal: AbortSignal;
}

async function writeTogether(
  company: Company,
  { target, change, write, handedOn, signal }: Together,
): Promise<MutateResult<ApiObject>> {
  try {
    const written = await write(company.join(change), { floor: company.floor, handedOn });
    return company.settle(written);
  } catch (error) {
    // What came of a call that broke off is unknown, and its writers are told so, as if each had made it alone.
    if (isUnwritten(error)) company.dissolve();
    else company.dissolve({ error: signal.aborted ? LEFT_ALONE : error });
    // What the server refuses may be any of them: each is written alone, and meets its own error.
    if (!isRefusal(error) || signal.aborted) throw error;
    return await write(change, { floor: target.floor, handedOn: undefined });
  }
}

/** One lane per object, whatever version of its kind it is written through. */
function laneOf({ type, name: { namespace = "_", name } }: WriteTarget): string {
  return [resourceId(type), namespace, name].map(encodeURIComponent).join("/");
}

/** What may be one write: drafts of one version of the kind, to one address. */
function groupOf(target: WriteTarget): string {
  return [laneOf(target), target.type.version, target.subresource ?? ""].join(" ");
}
