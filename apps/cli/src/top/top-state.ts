import type { TopKey } from "./top-keys.ts";
import { TOP_VIEWS, type TopView } from "./read-top.ts";

/** The state of the view, apart from the data. */
export interface TopState {
  readonly view: TopView;
  /** Index of the selected row, among those that match the filter. */
  readonly selected: number;
  readonly filter: string;
  readonly isFiltering: boolean;
  readonly isHelp: boolean;
  /** The controller whose objects are shown. */
  readonly controller?: string | undefined;
  /** The text of the opened row. */
  readonly detail?: { readonly lines: readonly string[]; readonly offset: number } | undefined;
}

export const FIRST_STATE: TopState = {
  view: "controllers",
  selected: 0,
  filter: "",
  isFiltering: false,
  isHelp: false,
};

/** The effect of a key in addition to the new state. */
type TopEffect = "quit" | "interrupt" | "open" | undefined;

export interface TopStep {
  readonly state: TopState;
  readonly effect: TopEffect;
}

/** Applies a key. `rows` is the number of rows of the list, `page` that of the rows on the screen. */
export function pressKey(
  state: TopState,
  key: TopKey,
  { rows, page }: { readonly rows: number; readonly page: number },
): TopStep {
  if (key.kind === "named" && key.name === "interrupt") return { state, effect: "interrupt" };
  if (state.isFiltering) return step(typeFilter(state, key));
  if (key.kind === "char" && key.char === "q") return { state, effect: "quit" };
  if (state.isHelp) return step({ ...state, isHelp: false });
  if (state.detail !== undefined) return step(scrollDetail(state, state.detail, key, page));
  if (key.kind === "named") {
    if (key.name === "enter") return { state, effect: rows > 0 ? "open" : undefined };
    if (key.name === "escape") return step(back(state));
  } else {
    const view = TOP_VIEWS[Number(key.char) - 1];
    if (view !== undefined) return step({ ...FIRST_STATE, view });
    if (key.char === "/") return step({ ...state, isFiltering: true });
    if (key.char === "?") return step({ ...state, isHelp: true });
  }
  const selected = move(state.selected, key, { last: rows - 1, page });
  return step({ ...state, selected });
}

function step(state: TopState): TopStep {
  return { state, effect: undefined };
}

/** Escape first removes the filter, then leaves the objects of a controller. */
function back(state: TopState): TopState {
  if (state.filter !== "") return { ...state, filter: "", selected: 0 };
  return state.controller === undefined ? state : FIRST_STATE;
}

function typeFilter(state: TopState, key: TopKey): TopState {
  if (key.kind === "char") return { ...state, filter: state.filter + key.char, selected: 0 };
  switch (key.name) {
    case "enter":
      return { ...state, isFiltering: false };
    case "escape":
      return { ...state, isFiltering: false, filter: "", selected: 0 };
    case "backspace":
      return { ...state, filter: state.filter.slice(0, -1), selected: 0 };
    default:
      return state;
  }
}

function scrollDetail(
  state: TopState,
  detail: NonNullable<TopState["detail"]>,
  key: TopKey,
  page: number,
): TopState {
  if (key.kind === "named" && (key.name === "escape" || key.name === "enter")) {
    return { ...state, detail: undefined };
  }
  const last = Math.max(0, detail.lines.length - page);
  return { ...state, detail: { ...detail, offset: move(detail.offset, key, { last, page }) } };
}

/** Keys as in k9s and vi. */
function move(
  at: number,
  key: TopKey,
  { last, page }: { readonly last: number; readonly page: number },
): number {
  const to = {
    up: at - 1,
    k: at - 1,
    down: at + 1,
    j: at + 1,
    pageUp: at - page,
    pageDown: at + page,
    home: 0,
    g: 0,
    end: last,
    G: last,
  }[key.kind === "named" ? key.name : key.char];
  return Math.max(0, Math.min(last, to ?? at));
}
