import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { href, path, query, type Params } from "../state/router.ts";

/** A named set of filters, stored in this browser only. The address is the way to share it. */
interface SavedView {
  readonly name: string;
  /** Query parameters without the cursor. */
  readonly params: Readonly<Record<string, string>>;
}

const STORED = "konverge.views";
const views = signal(read());

/** Reads the saved views by page. */
function read(): Readonly<Record<string, readonly SavedView[]>> {
  try {
    return JSON.parse(window.localStorage.getItem(STORED) ?? "{}") as Record<string, SavedView[]>;
  } catch {
    // Foreign content or a forbidden storage counts as no saved views.
    return {};
  }
}

function keep(page: string, kept: readonly SavedView[]): void {
  views.value = { ...views.value, [page]: kept };
  window.localStorage.setItem(STORED, JSON.stringify(views.value));
}

/** Links to the saved views of this page, and a form that saves the current filters. */
export function SavedViews() {
  const [naming, setNaming] = useState(false);
  const page = path.value;
  const saved = views.value[page] ?? [];
  const { cursor: _, ...params } = Object.fromEntries(query.value);
  const here = addressOf(page, params);
  const isSaved = saved.some((view) => addressOf(page, view.params) === here);
  const canSave = !isSaved && Object.keys(params).some((name) => name !== "cluster");
  if (saved.length === 0 && !canSave) return null;
  const save = (name: string) => {
    keep(page, [...saved.filter((view) => view.name !== name), { name, params }]);
    setNaming(false);
  };
  return (
    <ul class="chips views" aria-label="Saved views">
      {saved.map((view) => {
        const address = addressOf(page, view.params);
        return (
          <li key={view.name} class="view">
            <a class="chip" href={address} aria-current={address === here ? "true" : undefined}>
              {view.name}
            </a>
            <button
              type="button"
              class="quiet"
              aria-label={`Delete view ${view.name}`}
              onClick={() =>
                keep(
                  page,
                  saved.filter(({ name }) => name !== view.name),
                )
              }
            >
              ×
            </button>
          </li>
        );
      })}
      {!canSave ? null : (
        <li>
          {naming ? (
            <NameForm save={save} leave={() => setNaming(false)} />
          ) : (
            <button type="button" class="quiet" onClick={() => setNaming(true)}>
              Save view
            </button>
          )}
        </li>
      )}
    </ul>
  );
}

function NameForm({
  save,
  leave,
}: {
  readonly save: (name: string) => void;
  readonly leave: () => void;
}) {
  const [name, setName] = useState("");
  const input = useRef<HTMLInputElement>(null);
  // Focuses once, after the click that opened the form.
  useLayoutEffect(() => input.current?.focus(), []);
  return (
    <form
      class="view"
      onSubmit={(event) => {
        event.preventDefault();
        save(name.trim());
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") leave();
      }}
    >
      <input
        aria-label="View name"
        placeholder="View name"
        required
        pattern=".*\S.*"
        maxLength={60}
        ref={input}
        value={name}
        onInput={({ currentTarget }) => setName(currentTarget.value)}
      />
      <button type="submit">Save</button>
    </form>
  );
}

/** Returns the same address for the same filters in any order. */
function addressOf(page: string, params: Params): string {
  const sorted = Object.entries(params).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return href(page, Object.fromEntries(sorted));
}
