import { shortName } from "@konverge/core";
import type { KeyList, QueueList, RunList } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { partsOf } from "./api/object-key.ts";
import { useQuery } from "./api/use-query.ts";
import { Icon } from "./parts/icon.tsx";
import type { NavigationPage } from "./parts/navigation.tsx";
import { textOfPhase } from "./parts/status.tsx";
import { apiPath, viewHref } from "./state/cluster.ts";
import { idOf } from "./api/run-id.ts";
import { go, objectHref, runHref, type Params } from "./state/router.ts";
import { switchZone } from "./state/zone.ts";

const NOT_OF_THE_PAGE = { isPartOfPage: false };
const SHOWN = 8;
const SHOWN_RUNS = 5;
const SHOWN_COMMANDS = 12;
const PAUSE_MS = 150;

interface Match {
  /** `command`: a view, a controller, a workflow or an action. */
  readonly kind: "object" | "run" | "command";
  readonly id: string;
  readonly name: string;
  readonly note: string;
  /** The address of the match. */
  readonly to?: string;
  readonly run?: () => void;
}

export interface SearchProps {
  readonly pages: readonly NavigationPage[];
}

/**
 * Finds objects and runs by any part of their names, views, controllers, workflows and the actions of the page. Enter opens the
 * selected match, otherwise the list of matching objects.
 */
export function Search({ pages }: SearchProps) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(-1);
  const [isFocused, setFocused] = useState(false);
  const { matches: found, isLoaded, reset } = useMatches(text);
  const commands = useCommands(text, pages, isFocused);
  const matches = text === "" ? commands : [...found, ...commands];
  const isOpen = isFocused && (text === "" || isLoaded || commands.length > 0);

  const leave = () => {
    setText("");
    setChosen(-1);
    reset();
    setFocused(false);
    const focused = document.activeElement;
    if (focused instanceof HTMLElement) focused.blur();
  };
  const choose = ({ to, run }: Match) => {
    leave();
    if (to !== undefined) go(to);
    run?.();
  };
  const submit = () => {
    const only = matches.length === 1 ? matches[0] : undefined;
    const match = matches[chosen] ?? only;
    if (match !== undefined) return choose(match);
    const to = listOf(nameIn(text), found);
    if (to === undefined) return;
    leave();
    go(to);
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
        placeholder="Search or run a command"
        aria-label="Search objects and runs by any part of the name, or run a command"
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
      <MatchList
        matches={matches}
        chosen={chosen}
        isOpen={isOpen}
        isLoaded={isLoaded}
        onChoose={choose}
      />
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
      const note = `${parts.controller} · ${textOfPhase(phase)}`;
      return { kind: "object", id: key, to: objectHref(key), name: shortName(parts), note };
    }),
    ...(runs?.items ?? []).map(({ id, workflow, status }): Match => {
      const note = `run of ${workflow} · ${status}`;
      return { kind: "run", id, to: runHref(id), name: idOf(id), note };
    }),
  ];
  return { matches, isLoaded: name !== "" && keys !== undefined, reset: () => setName("") };
}

/** Returns the matching views, controllers, workflows and actions: all of them for an empty text. */
function useCommands(
  text: string,
  pages: readonly NavigationPage[],
  isFocused: boolean,
): readonly Match[] {
  const [isUsed, setUsed] = useState(false);
  if (isFocused && !isUsed) setUsed(true);
  const { data } = useQuery<QueueList>(isUsed ? apiPath("queues") : undefined, 0, NOT_OF_THE_PAGE);
  if (!isFocused) return [];
  const command = (name: string, note: string, rest: Pick<Match, "to" | "run">): Match => ({
    kind: "command",
    id: `${note}: ${name}`,
    name,
    note,
    ...rest,
  });
  const all = [
    ...actionsOfPage().map((button) =>
      command(button.innerText, "action of this page", { run: () => button.click() }),
    ),
    ...pages.map(({ to, title }) => command(title, "view", { to: viewHref(to) })),
    ...(data?.items ?? []).map(({ controller }) =>
      command(controller, "controller", {
        to: viewHref(`/controllers/${encodeURIComponent(controller)}`),
      }),
    ),
    ...(data?.workflows ?? []).map(({ workflow }) =>
      command(workflow, "workflow", { to: viewHref("/workflows", { workflow }) }),
    ),
    command("Switch between UTC and local time", "setting", { run: switchZone }),
  ];
  const part = text.trim().toLowerCase();
  return all.filter(({ name }) => name.toLowerCase().includes(part)).slice(0, SHOWN_COMMANDS);
}

/** The buttons at the top of the page. */
function actionsOfPage(): HTMLButtonElement[] {
  const places = "main .object-head .buttons button, main .title-row button";
  return [...document.querySelectorAll<HTMLButtonElement>(places)].filter(
    ({ disabled }) => !disabled,
  );
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
  isLoaded,
  onChoose,
}: {
  readonly matches: readonly Match[];
  readonly chosen: number;
  readonly isOpen: boolean;
  readonly isLoaded: boolean;
  readonly onChoose: (match: Match) => void;
}) {
  return (
    <>
      <ul id="found" role="listbox" aria-label="Matches" hidden={!isOpen || matches.length === 0}>
        {matches.map((match, index) => (
          <li
            key={match.id}
            id={`found-${index}`}
            role="option"
            aria-selected={index === chosen}
            // Keeps the focus in the input; otherwise the list closes before the click.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onChoose(match)}
          >
            <span>{match.name}</span>
            <span class="dim">{match.note}</span>
          </li>
        ))}
      </ul>
      {isOpen && isLoaded && matches.length === 0 ? (
        <p class="found-none">No matching objects, runs or commands</p>
      ) : null}
    </>
  );
}

/** Returns the name in `namespace/name` or `kind/name`, which users paste. */
function nameIn(text: string): string {
  return text.trim().split("/").at(-1) ?? "";
}
