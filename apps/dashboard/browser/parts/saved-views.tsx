import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { href, path, query, type Params } from "../state/router.ts";

/** A set of filters under a name. Kept in this browser alone: to a colleague the address is sent. */
interface SavedView {
  readonly name: string;
  /** Parameters of the address, without the page that is looked at. */
  readonly params: Readonly<Record<string, string>>;
}

const STORED = "konverge.views";
const views = signal(read());

/** Views by the page that they are of. */
function read(): Readonly<Record<string, readonly SavedView[]>> {
  try {
    return JSON.parse(window.localStorage.getItem(STORED) ?? "{}") as Record<string, SavedView[]>;
  } catch {
    // Somebody else wrote there, or nothing may be stored: then there are none.
    return {};
  }
}

function keep(page: string, kept: readonly SavedView[]): void {
  views.value = { ...views.value, [page]: kept };
  window.localStorage.setItem(STORED, JSON.stringify(views.value));
}

/** The saved views of this page as links, and a way to save the one that is looked at. */
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
              aria-label={`Forget the view ${view.name}`}
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
              Save this view
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
  // The click before asked for it; later the focus is left where it is.
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
        aria-label="Name of the view"
        placeholder="Name of the view"
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

/** Equal for equal filters, in whatever order they were chosen. */
function addressOf(page: string, params: Params): string {
  const sorted = Object.entries(params).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return href(page, Object.fromEntries(sorted));
}
