import {
  cloneJson,
  defined,
  jsonEquals,
  TerminalError,
  type ApiObject,
  type JsonObject,
} from "@konverge/core";
import {
  runChange,
  untracked,
  type CreateOrUpdateResult,
  type MutateOptions,
  type ObjectRef,
} from "@konverge/kube";
import type { MarkState } from "../store/run-journal-store.ts";
import type { StepMark } from "../store/run-journal-store.ts";
import { refTo } from "../define/wait-target.ts";
import { markerName, markOf, marksIn } from "./step-marker.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Most marks of other steps that are checked in Redis for one write. */
const MAX_LOOKED_UP = 50;
/** With more marks than this, those that only a retry would read are removed. Annotations may have 256 KiB. */
const MAX_KEPT = 200;

export interface Mutation<T> {
  /** Identity of the call, the same in all attempts. */
  readonly identity: string;
  readonly change: (draft: T) => void | Promise<void>;
  readonly strategy?: MutateOptions["strategy"] | undefined;
}

/** What all attempts of the step have done together. */
type Mutated = CreateOrUpdateResult<ObjectRef>;

/**
 * Changes an object once for all attempts of the step. The mark is part of the write with its precondition, so it exists exactly
 * if the change does. A mark whose step is recorded is never read again: another execution of that step no longer holds the
 * run, or its attempt has ended, and `assertHeld` stops both. The next marked write therefore removes it. If a user retries a
 * failed step after that, it changes the object once more.
 */
export async function mutateObject<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
  { identity, change, strategy }: Mutation<T>,
): Promise<Mutated> {
  const { client, type, at, uid, label } = reached;
  const marker = markerName(identity);
  const text = await markOf(scope);
  let found: { readonly mark: StepMark | undefined } | undefined;
  const result = await client.mutate<ApiObject>(
    type,
    at,
    async (draft) => {
      const object = untracked(draft);
      const marks = marksIn(object.metadata.annotations);
      found = marks.find(({ name }) => name === marker);
      if (found !== undefined) return;
      const before = cloneJson(object as unknown as JsonObject);
      scope.noteSeen(reached, before);
      await runChange(label, () => change(draft as T));
      scope.noteSeen(reached, object);
      if (jsonEquals(before, object)) return;
      const settled = await settledOf(
        scope,
        marks.flatMap(({ name, mark }) => (mark === undefined ? [] : [{ name, mark }])),
      );
      const annotations = { ...object.metadata.annotations };
      // Restores marks that the change has overwritten.
      for (const { name, text: own } of marks) annotations[name] = own;
      for (const name of settled) delete annotations[name];
      draft.metadata.annotations = { ...annotations, [marker]: text };
      await scope.assertHeld();
    },
    defined({ uid, strategy }),
  );
  if (result.kind === "updated" && result.object.metadata.annotations?.[marker] === undefined) {
    throw new TerminalError(
      `${label} was changed without the annotation ${marker}; an admission webhook may remove annotations of konverge.dev, which Konverge needs to detect earlier attempts`,
    );
  }
  const created = found?.mark?.created === true;
  const kind = created ? "created" : found === undefined ? result.kind : "updated";
  return { kind, object: { ...refTo(reached, result.object), created } };
}

/**
 * Changes a subresource, or an object of another kind behind it, which cannot have a mark. A later attempt changes it again, so
 * `change` must set values instead of adding to them.
 */
export async function mutateSubresource<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
  {
    change,
    strategy,
    subresource,
  }: Omit<Mutation<T>, "identity"> & Required<Pick<MutateOptions, "subresource">>,
): Promise<ObjectRef> {
  const { client, type, at, uid, label } = reached;
  const result = await client.mutate<ApiObject>(
    type,
    at,
    async (draft) => {
      const object = untracked(draft);
      scope.noteSeen(reached, object);
      await runChange(label, () => change(draft as T));
      scope.noteSeen(reached, object);
      await scope.assertHeld();
    },
    { subresource, ...defined({ uid, strategy }) },
  );
  return { ...refTo(reached, result.object), created: false };
}

/** Returns the names of marks that no step will read again, of a limited number of them. */
async function settledOf(
  { journal }: VerbScope,
  marks: readonly { readonly name: string; readonly mark: StepMark }[],
): Promise<string[]> {
  const installation = await journal.installation();
  const ours = marks.filter(({ mark }) => mark.installation === installation);
  // Starts at a random mark, since some stay for long.
  const from = Math.floor(journal.random() * ours.length);
  const asked = [...ours.slice(from), ...ours.slice(0, from)].slice(0, MAX_LOOKED_UP);
  const states = asked.length === 0 ? [] : await journal.statesOf(asked.map(({ mark }) => mark));
  const isRemovable = (state: MarkState | undefined) =>
    state === "settled" || (state === "ended" && ours.length > MAX_KEPT);
  return asked.filter((_, index) => isRemovable(states[index])).map(({ name }) => name);
}
