import {
  cloneJson,
  jsonEquals,
  TerminalError,
  type ApiObject,
  type JsonObject,
} from "@konverge/core";
import type { ObjectRef } from "../define/object-ref.ts";
import type { MarkState } from "../store/run-journal-store.ts";
import type { StepMark } from "../store/run-journal-store.ts";
import { refTo } from "../define/wait-target.ts";
import { markerName, markOf, marksIn } from "./step-marker.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** Marks of other steps that are looked up in Redis for one write. */
const MAX_LOOKED_UP = 50;
/** With more marks than this in one object those go that only a retry would look for. Annotations may have 256 KiB. */
const MAX_KEPT = 200;

export interface Mutation<T> {
  /** Of this call, in all tries. */
  readonly identity: string;
  readonly change: (draft: T) => void | Promise<void>;
}

/**
 * Changes an object once for all tries of the step. The mark is part of the guarded write, so it is there exactly when the
 * change is. A mark whose step is recorded is never looked for again: whoever still runs that step holds the run no longer,
 * or its try is over, and `assertHeld` stops both. The next marked write therefore takes it away; a failed step that a person
 * lets go on after that changes the object once more.
 */
export async function mutateObject<T extends ApiObject>(
  scope: VerbScope,
  reached: Reached,
  { identity, change }: Mutation<T>,
): Promise<ObjectRef> {
  const { client, type, at, uid, label } = reached;
  const marker = markerName(identity);
  const text = await markOf(scope);

  const result = await client.mutate<ApiObject>(
    type,
    at,
    async (draft) => {
      const marks = marksIn(draft.metadata.annotations);
      if (marks.some(({ name }) => name === marker)) return;
      const before = cloneJson(draft as unknown as JsonObject);
      scope.noteSeen(reached, before);
      await change(draft as T);
      scope.noteSeen(reached, draft);
      if (jsonEquals(before, draft)) return;
      const settled = await settledOf(
        scope,
        marks.flatMap(({ name, mark }) => (mark === undefined ? [] : [{ name, mark }])),
      );
      const annotations = { ...draft.metadata.annotations };
      // Also those that the change has overwritten.
      for (const { name, text: own } of marks) annotations[name] = own;
      for (const name of settled) delete annotations[name];
      draft.metadata.annotations = { ...annotations, [marker]: text };
      await scope.assertHeld();
    },
    uid === undefined ? {} : { uid },
  );
  if (result.kind === "updated" && result.object.metadata.annotations?.[marker] === undefined) {
    throw new TerminalError(
      `${label} was changed, but the annotation ${marker} is not there: something in the cluster, such as an admission webhook, takes annotations of konverge.dev away; without it a second try could not see the first`,
    );
  }
  return refTo(reached, result.object);
}

/** Names of the marks that nobody will look for again, of those that are looked up. */
async function settledOf(
  { journal }: VerbScope,
  marks: readonly { readonly name: string; readonly mark: StepMark }[],
): Promise<string[]> {
  const installation = await journal.installation();
  const ours = marks.filter(({ mark }) => mark.installation === installation);
  // Not always the same ones: some may stay for long.
  const from = Math.floor(journal.random() * ours.length);
  const asked = [...ours.slice(from), ...ours.slice(0, from)].slice(0, MAX_LOOKED_UP);
  const states = asked.length === 0 ? [] : await journal.statesOf(asked.map(({ mark }) => mark));
  const goes = (state: MarkState | undefined) =>
    state === "settled" || (state === "ended" && ours.length > MAX_KEPT);
  return asked.filter((_, index) => goes(states[index])).map(({ name }) => name);
}
