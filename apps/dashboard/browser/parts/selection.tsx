import { shortName } from "@konverge/core";
import { useState } from "preact/hooks";
import { partsOf } from "../api/object-key.ts";
import { mayOperate } from "../state/session.ts";
import { plural } from "./format.ts";
import { ObjectBulk, type ObjectBulkProps } from "./object-bulk.tsx";

export interface Selection {
  readonly keys: ReadonlySet<string>;
  readonly set: (keys: readonly string[]) => void;
  readonly toggle: (key: string) => void;
}

/** The selected objects of a list. */
export function useSelection(): Selection {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  return {
    keys,
    set: (given) => setKeys(new Set(given)),
    toggle: (key) =>
      setKeys((before) => {
        const after = new Set(before);
        if (!after.delete(key)) after.add(key);
        return after;
      }),
  };
}

/** Selects an object of a list. */
export function SelectBox({
  objectKey,
  selection,
}: {
  readonly objectKey: string;
  readonly selection: Selection;
}) {
  if (!mayOperate) return null;
  return (
    <input
      type="checkbox"
      class="select"
      aria-label={`Select ${shortName(partsOf(objectKey))}`}
      checked={selection.keys.has(objectKey)}
      onChange={() => selection.toggle(objectKey)}
    />
  );
}

/** The actions on the selected objects, and the selection of all on the page. */
export function SelectionBar({
  selection,
  shown,
  onDone,
  ...bulk
}: Omit<ObjectBulkProps, "keys" | "label"> & {
  readonly selection: Selection;
  /** Keys of the page. */
  readonly shown: readonly string[];
}) {
  if (!mayOperate) return null;
  // Objects that left the page are not acted on.
  const keys = shown.filter((key) => selection.keys.has(key));
  return (
    <div class="selection" role="group" aria-label="Selected objects">
      <span class="dim">{keys.length === 0 ? "None selected" : `${keys.length} selected`}</span>
      {keys.length === shown.length ? null : (
        <button type="button" class="quiet" onClick={() => selection.set(shown)}>
          Select all {plural(shown.length, "object")} on this page
        </button>
      )}
      {keys.length === 0 ? null : (
        <>
          <button type="button" class="quiet" onClick={() => selection.set([])}>
            Clear
          </button>
          <ObjectBulk
            {...bulk}
            keys={keys}
            onDone={() => {
              selection.set([]);
              onDone();
            }}
          />
        </>
      )}
    </div>
  );
}
