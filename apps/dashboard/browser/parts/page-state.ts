import { computed, effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Tone } from "./status.tsx";
import { freshness } from "../state/freshness.ts";

/** The state of a page's content, for the title and the icon of its tab. */
export interface PageState {
  /** Default: the title of the view. */
  readonly title?: string | undefined;
  /** Default: no state. */
  readonly tone?: Tone | undefined;
}

const viewTitle = signal("Konverge");
const state = signal<PageState>({});

const MARKS: Partial<Record<Tone, string>> = { bad: "✕ ", warn: "! ", good: "✓ " };
const COLORS: Partial<Record<Tone, string>> = {
  bad: "#d9551f",
  warn: "#d99b00",
  good: "#2fa37f",
};

const tone = computed<Tone | "unknown" | undefined>(() =>
  freshness.value?.level === "stale" ? "unknown" : state.value.tone,
);

/** Sets the title of the tab until the view shows a state of its own. */
export function setViewTitle(title: string): void {
  viewTitle.value = title;
}

/** Shows the state of a page in the title and the icon of its tab while the component is shown. */
export function usePageState({ title, tone: shown }: PageState): void {
  useEffect(() => {
    const mine: PageState = { title, tone: shown };
    state.value = mine;
    return () => {
      if (state.value === mine) state.value = {};
    };
  }, [title, shown]);
}

/** Keeps title and icon of the tab up to date. */
export function watchPageState(): void {
  effect(() => {
    const now = tone.value;
    const mark = now === undefined ? "" : now === "unknown" ? "? " : (MARKS[now] ?? "");
    document.title = `${mark}${state.value.title ?? viewTitle.value} · Konverge`;
    const color = now === undefined ? undefined : now === "unknown" ? "#8a93a3" : COLORS[now];
    document.querySelector('link[rel="icon"]')?.setAttribute("href", iconOf(color));
  });
}

function iconOf(color: string | undefined): string {
  const dot = color === undefined ? "" : `<circle cx="24" cy="24" r="8" fill="${color}"/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path fill="none" stroke="#4655d4" stroke-width="3.6" stroke-linecap="round" d="M4 6c10 0 9 10 18 10M4 26c10 0 9-10 18-10M4 16h22"/>${dot}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
