import type { KeyList, RunList } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { partsOf, shortName } from "./api/object-key.ts";
import { useQuery } from "./api/use-query.ts";
import { Icon } from "./parts/icon.tsx";
import { apiPath, viewHref } from "./state/cluster.ts";
import { idOf } from "./api/run-id.ts";
import { go, objectHref, runHref } from "./state/router.ts";

const SHOWN = 8;
const SHOWN_RUNS = 5;
const PAUSE_MS = 150;

interface Found {
  readonly to: string;
  readonly name: string;
  readonly note: string;
}

/** Finds objects and runs by any part of their names. Enter opens the selected match, otherwise the list of matches. */
export function Search() {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const [chosen, setChosen] = useState(-1);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setAsked(nameIn(text)), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  const { data } = useQuery<KeyList>(
    asked === "" ? undefined : apiPath("keys", { name: asked, limit: String(SHOWN) }),
  );
  const { data: runs } = useQuery<RunList>(
    asked === "" ? undefined : apiPath("runs", { search: asked, limit: String(SHOWN_RUNS) }),
  );
  const found: readonly Found[] = [
    ...(data?.items ?? []).map(({ key, phase }) => {
      const parts = partsOf(key);
      const note = `${parts.controller} · ${phase}`;
      return { to: objectHref(key), name: shortName(parts), note };
    }),
    ...(runs?.items ?? []).map(({ id, workflow, status }) => {
      const note = `run of ${workflow} · ${status}`;
      return { to: runHref(id), name: idOf(id), note };
    }),
  ];
  const isOpen = open && asked !== "" && data !== undefined;

  const leave = (to: string) => {
    setText("");
    setAsked("");
    setOpen(false);
    go(to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    switch (event.key) {
      case "ArrowDown":
      case "ArrowUp": {
        event.preventDefault();
        const step = event.key === "ArrowDown" ? 1 : -1;
        setChosen((before) => Math.max(-1, Math.min(found.length - 1, before + step)));
        break;
      }
      case "Escape":
        setOpen(false);
        if (event.target instanceof HTMLElement) event.target.blur();
        break;
      default:
    }
  };
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const to = (found[chosen] ?? (found.length === 1 ? found[0] : undefined))?.to;
        if (to !== undefined) leave(to);
        else if (data?.items.length === 0 && found.length > 0) {
          leave(viewHref("/workflows", { search: nameIn(text) }));
        } else if (nameIn(text) !== "") leave(viewHref("/objects", { name: nameIn(text) }));
      }}
    >
      <Icon name="search" />
      <input
        id="search"
        type="text"
        placeholder="Search objects and runs"
        aria-label="Search objects and runs by any part of the name"
        role="combobox"
        aria-expanded={isOpen}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={isOpen && chosen >= 0 ? `found-${chosen}` : undefined}
        autoComplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setChosen(-1);
          setOpen(true);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => setOpen(false)}
        onFocus={() => setOpen(true)}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul
        id="found"
        role="listbox"
        aria-label="Objects and runs"
        hidden={!isOpen || found.length === 0}
      >
        {found.map(({ to, name, note }, index) => (
          <li
            key={to}
            id={`found-${index}`}
            role="option"
            aria-selected={index === chosen}
            // Keeps the focus in the input; otherwise the list closes before the click.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => leave(to)}
          >
            <span>{name}</span>
            <span class="dim">{note}</span>
          </li>
        ))}
      </ul>
      {isOpen && found.length === 0 ? <p class="found-none">No matching objects or runs</p> : null}
    </form>
  );
}

/** Returns the name in `namespace/name` or `kind/name`, which users paste. */
function nameIn(text: string): string {
  return text.trim().split("/").at(-1) ?? "";
}
