import type { KeyList, RunList } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { partsOf, shortName } from "./api/object-key.ts";
import { useQuery } from "./api/use-query.ts";
import { Icon } from "./parts/icon.tsx";
import { apiPath, viewHref } from "./state/cluster.ts";
import { idOf } from "./api/run-id.ts";
import { go, objectHref, runHref, type Params } from "./state/router.ts";

const NOT_OF_THE_PAGE = { isPartOfPage: false };
const SHOWN = 8;
const SHOWN_RUNS = 5;
const PAUSE_MS = 150;

interface Match {
  readonly kind: "object" | "run";
  readonly to: string;
  readonly name: string;
  readonly note: string;
}

/** Finds objects and runs by any part of their names. Enter opens the selected match, otherwise the list of matches. */
export function Search() {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(-1);
  const [isFocused, setFocused] = useState(false);
  const { matches, isLoaded, reset } = useMatches(text);
  const isOpen = isFocused && isLoaded;

  const leave = (to: string) => {
    setText("");
    reset();
    setFocused(false);
    go(to);
  };
  const submit = () => {
    const only = matches.length === 1 ? matches[0] : undefined;
    const to = (matches[chosen] ?? only)?.to ?? listOf(nameIn(text), matches);
    if (to !== undefined) leave(to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    switch (event.key) {
      case "ArrowDown":
      case "ArrowUp": {
        event.preventDefault();
        const step = event.key === "ArrowDown" ? 1 : -1;
        setChosen((before) => Math.max(-1, Math.min(matches.length - 1, before + step)));
        break;
      }
      case "Escape":
        setFocused(false);
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
        submit();
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
          setFocused(true);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => setFocused(false)}
        onFocus={() => setFocused(true)}
      />
      <kbd aria-hidden="true">/</kbd>
      <MatchList matches={matches} chosen={chosen} isOpen={isOpen} onChoose={leave} />
    </form>
  );
}

interface Matches {
  readonly matches: readonly Match[];
  readonly isLoaded: boolean;
  readonly reset: () => void;
}

/** Searches once the user stops typing. */
function useMatches(text: string): Matches {
  const [name, setName] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => setName(nameIn(text)), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  const find = (route: string, params: Params) =>
    name === "" ? undefined : apiPath(route, params);
  const { data: keys } = useQuery<KeyList>(
    find("keys", { name, limit: String(SHOWN) }),
    0,
    NOT_OF_THE_PAGE,
  );
  const { data: runs } = useQuery<RunList>(
    find("runs", { search: name, limit: String(SHOWN_RUNS) }),
    0,
    NOT_OF_THE_PAGE,
  );
  const matches = [
    ...(keys?.items ?? []).map(({ key, phase }): Match => {
      const parts = partsOf(key);
      const note = `${parts.controller} · ${phase}`;
      return { kind: "object", to: objectHref(key), name: shortName(parts), note };
    }),
    ...(runs?.items ?? []).map(({ id, workflow, status }): Match => {
      const note = `run of ${workflow} · ${status}`;
      return { kind: "run", to: runHref(id), name: idOf(id), note };
    }),
  ];
  return { matches, isLoaded: name !== "" && keys !== undefined, reset: () => setName("") };
}

/** Returns the address of the list with all matches: runs if only runs match, else objects. */
function listOf(name: string, matches: readonly Match[]): string | undefined {
  if (name === "") return undefined;
  return matches.length > 0 && matches.every(({ kind }) => kind === "run")
    ? viewHref("/workflows", { search: name })
    : viewHref("/objects", { name });
}

function MatchList({
  matches,
  chosen,
  isOpen,
  onChoose,
}: {
  readonly matches: readonly Match[];
  readonly chosen: number;
  readonly isOpen: boolean;
  readonly onChoose: (to: string) => void;
}) {
  return (
    <>
      <ul
        id="found"
        role="listbox"
        aria-label="Objects and runs"
        hidden={!isOpen || matches.length === 0}
      >
        {matches.map(({ to, name, note }, index) => (
          <li
            key={to}
            id={`found-${index}`}
            role="option"
            aria-selected={index === chosen}
            // Keeps the focus in the input; otherwise the list closes before the click.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onChoose(to)}
          >
            <span>{name}</span>
            <span class="dim">{note}</span>
          </li>
        ))}
      </ul>
      {isOpen && matches.length === 0 ? (
        <p class="found-none">No matching objects or runs</p>
      ) : null}
    </>
  );
}

/** Returns the name in `namespace/name` or `kind/name`, which users paste. */
function nameIn(text: string): string {
  return text.trim().split("/").at(-1) ?? "";
}
