import type { ApiObject, JsonObject, ResourceType } from "@konverge/core";
import {
  isConflict,
  resourceName,
  type KubeClient,
  type MutateOptions,
  type MutateResult,
  type NamespacedName,
} from "@konverge/kube";
import type { ObjectLanes } from "@konverge/queue";
import type { AttemptTrace } from "./attempt-trace.ts";

export interface LaneTarget {
  readonly type: ResourceType;
  readonly name: NamespacedName;
  readonly subresource: MutateOptions["subresource"] | undefined;
}

/** Runs `write` when its turn has come, with the object as the writer before left it, if that may be used. */
export type LaneWriter = <T extends ApiObject>(
  target: LaneTarget,
  write: (carried: JsonObject | undefined) => Promise<MutateResult<T>>,
) => Promise<MutateResult<T>>;

export interface LaneWriterOptions {
  readonly client: KubeClient;
  readonly lanes: ObjectLanes;
  readonly signal: AbortSignal;
  readonly trace: Pick<AttemptTrace, "noteLane">;
}

/** Lets all writers of an object take turns, whatever key they run under; each hands on what it knows of the object. */
export function createLaneWriter({ client, lanes, signal, trace }: LaneWriterOptions): LaneWriter {
  return async <T extends ApiObject>(
    { type, name, subresource }: LaneTarget,
    write: (carried: JsonObject | undefined) => Promise<MutateResult<T>>,
  ): Promise<MutateResult<T>> => {
    const turn = await lanes.enter(laneOf(type, name), signal);
    trace.noteLane(turn.waitedMs);
    // A scale is an object of its own; of what is sensitive nothing leaves the attempt (P12).
    const mayCarry = subresource !== "scale" && !client.isSensitive(type);
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
}

/** One lane per object, whatever version of its kind it is written through. */
function laneOf(type: ResourceType, { namespace = "_", name }: NamespacedName): string {
  return [resourceName(type), namespace, name].map(encodeURIComponent).join("/");
}
