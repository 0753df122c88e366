import { deepFreeze, defined, type ApiObject, type ResourceType } from "@konverge/core";
import {
  assertOutsideOfChanges,
  runChange,
  untracked,
  type ChangeDraft,
  type MutateCallOptions,
  type MutateResult,
  type ObjectTarget,
} from "@konverge/kube";
import { handOut, noteSecrets } from "./attempt-reads.ts";
import type { Attempt } from "./attempt.ts";
import type { ChangeObject } from "./change-calls.ts";
import { preferNewer } from "./fresh-reads.ts";
import { createLaneWriter, type LaneWriter, type WriteOnce } from "./lane-writer.ts";
import { labelOf, resolveTarget, type ResolvedTarget } from "./resolve-target.ts";

type HowToWrite = MutateCallOptions;

/** Changes objects in their lanes. */
export function createLaneChange(attempt: Attempt): ChangeObject {
  const { client } = attempt;
  const { lanes, groups } = attempt.runtime;
  const writeInLane = createLaneWriter({
    client,
    lanes,
    groups,
    signal: attempt.signal,
    isOpen: () => attempt.isOpen,
    trace: attempt.trace,
    priority: attempt.priority,
    urgency: attempt.urgency,
  });
  return <T extends ApiObject>(
    target: T | ObjectTarget<T>,
    change: ChangeDraft<T>,
    how: HowToWrite = {},
  ) =>
    attempt.call(async () => {
      const label = labelOf(target, attempt.lease.key.namespace);
      assertOutsideOfChanges(label);
      const resolved = await resolveTarget<T>(client, target, attempt.lease.key.namespace);
      const result = await write(attempt, { target, label, resolved, how, writeInLane }, change);
      const { kind } = result;
      if (how.dryRun === true) {
        noteSecrets(attempt, resolved.type, result.object);
        return { kind, object: deepFreeze(result.object) };
      }
      noteWrite(attempt, resolved, how, result);
      return { kind, object: handOut(attempt, resolved.type, result.object) };
    });
}

interface Write<T extends ApiObject> {
  readonly target: T | ObjectTarget<T>;
  /** For messages. */
  readonly label: string;
  readonly resolved: ResolvedTarget<T>;
  readonly how: HowToWrite;
  readonly writeInLane: LaneWriter;
}

async function write<T extends ApiObject>(
  attempt: Attempt,
  { target, label, resolved, how, writeInLane }: Write<T>,
  change: ChangeDraft<T>,
): Promise<MutateResult<T>> {
  const { type, name, uid, read } = resolved;
  const { subresource, strategy, dryRun } = how;
  const { retry } = attempt.runtime;
  // A scale is another object. If each lost race costs an attempt, none is risked to save a call.
  const mayUseRead = subresource !== "scale" && retry !== "none";
  // The write tests the values that the change has read, so the age of the object does not matter.
  const maxAgeMs = strategy === "fields" ? Infinity : undefined;
  const client = dryRun === true ? attempt.client.scoped({ dryRun }) : attempt.client;
  const writeOnce: WriteOnce = (changes, basis) =>
    client.mutate<ApiObject>(type, name, changes, {
      basis: mayUseRead ? preferNewer(basis, attempt.freshReads.take(target, maxAgeMs)) : basis,
      ...defined({ subresource, strategy, retry, uid }),
    });
  const alone: ChangeDraft<T> = (draft) => runChange(label, () => change(draft));
  const noted = noting(attempt, type, alone) as ChangeDraft<ApiObject>;
  // Writers of different fields do not conflict, so a lane would only delay them. A dry run has no result for the next writer.
  const written =
    strategy === "fields" || dryRun === true
      ? await writeOnce(noted, read)
      : await writeInLane({ type, name, uid, read, subresource }, noted, writeOnce);
  return written as MutateResult<T>;
}

/** Also registers the secrets that a change writes. */
function noting<T extends ApiObject>(
  attempt: Attempt,
  type: ResourceType<T>,
  change: ChangeDraft<T>,
): ChangeDraft<T> {
  return async (draft) => {
    const object = untracked(draft);
    noteSecrets(attempt, type, object);
    try {
      await change(draft);
    } finally {
      noteSecrets(attempt, type, object);
    }
  };
}

function noteWrite<T extends ApiObject>(
  { client, trace, runtime }: Attempt,
  { type, name }: ResolvedTarget<T>,
  { subresource }: HowToWrite,
  result: MutateResult<T>,
): void {
  if (result.kind !== "updated") return;
  trace.noteWrite({
    verb: "patch",
    type,
    name,
    fromVersion: result.beforeVersion,
    object: result.object,
    sensitive: client.isSensitive(type),
    ...defined({ subresource, before: result.before, patch: result.patch }),
  });
  // A scale has the name and the uid of its object.
  if (subresource !== "scale") runtime.cache.noteWrite(type, result.object);
}
