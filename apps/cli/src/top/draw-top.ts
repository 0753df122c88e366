import { stripVTControlCharacters, styleText } from "node:util";
import { age } from "../text/age.ts";
import { columns } from "../text/columns.ts";
import { plain } from "../text/plain-text.ts";
import { toneCell } from "../text/tone.ts";
import { TOP_VIEWS, type TopData } from "./read-top.ts";
import { tableOf, type TopTable } from "./top-rows.ts";
import type { TopState } from "./top-state.ts";

export interface TopSize {
  readonly columns: number;
  readonly rows: number;
}

export interface TopFrame {
  readonly data: TopData;
  readonly state: TopState;
  /** The error of the last read. */
  readonly failure: string | undefined;
  readonly nowMs: number;
}

const HELP = [
  "1 to 5        controllers, problems, objects, runs, workers",
  "j, k, arrows  select a row",
  "g, G          first and last row",
  "Ctrl-F, Ctrl-B, Page Up, Page Down",
  "Enter         open: the objects of a controller, or the details of a row",
  "/             filter the rows; Enter keeps it, Esc removes it",
  "Esc           back",
  "q, Ctrl-C     quit",
];
/** A read takes less than this. */
const OLD_MS = 8_000;
/** Problems above the list of controllers. */
const MOST_PROBLEMS = 5;
/** Lines that a list keeps on a small terminal, before the header is shortened. */
const LEAST_ROWS = 4;

/** Returns the lines of the screen; none is longer than the screen is wide. */
export function drawTop(frame: TopFrame, size: TopSize): string[] {
  const { state } = frame;
  const footer = footerLine(state);
  const room = Math.max(0, size.rows - 1 - LEAST_ROWS);
  const header = headerLines(frame).slice(0, Math.max(1, room));
  const rows = Math.max(0, size.rows - header.length - 1);
  const body = bodyLines(frame, { ...size, rows });
  const filled = [...body, ...Array<string>(Math.max(0, rows - body.length)).fill("")];
  return [...header, ...filled.slice(0, rows), footer]
    .slice(0, size.rows)
    .map((line) => clip(line, size.columns));
}

/** Returns the number of rows of a list that fit on the screen. */
export function pageOf(frame: TopFrame, size: TopSize): number {
  const room = Math.max(0, size.rows - 1 - LEAST_ROWS);
  const header = Math.min(headerLines(frame).length, Math.max(1, room));
  return Math.max(1, size.rows - header - 2);
}

function headerLines({ data, state, failure, nowMs }: TopFrame): string[] {
  const { overview, guards } = data;
  const updated = new Date(data.atMs).toISOString();
  const isOld = nowMs - data.atMs > OLD_MS;
  const problem = failure ?? (isOld ? "no response" : undefined);
  const asOf =
    problem === undefined
      ? nowMs - data.atMs < 1_000
        ? "updated now"
        : `updated ${age(updated, nowMs)} ago`
      : paint("red", `not updated since ${updated.slice(11, 19)} UTC: ${problem}`);
  const lines = [
    `${paint("bold", `konverge top  ${overview.cluster}`)}  ${asOf}`,
    paint(
      summaryStyle(data),
      problem === undefined ? overview.summary : `Unknown. ${overview.summary}`,
    ),
    ...guards.map(guardLine),
    totalsLine(data),
  ];
  if (state.view === "controllers") {
    const shown = overview.problems.slice(0, MOST_PROBLEMS);
    const rest = overview.problems.length - shown.length;
    const rows = shown.map(({ level, since, message }) => [
      toneCell(level),
      since === undefined ? "" : age(since, nowMs),
      message,
    ]);
    if (rows.length > 0)
      lines.push(...columns(rows, { width: Infinity, hasHead: false }).split("\n"));
    if (rest > 0) lines.push(`and ${rest} more: press 2`);
  }
  return [...lines, ""];
}

function summaryStyle({ overview }: TopData): "red" | "yellow" | "green" {
  const levels = overview.problems.map(({ level }) => level);
  if (levels.includes("error")) return "red";
  return levels.includes("warning") ? "yellow" : "green";
}

function guardLine({ cluster, breaker, rate }: TopData["guards"][number]): string {
  const { state, recent } = breaker;
  const cell = toneCell(state);
  const shown = typeof cell === "string" ? cell : paint(cell.style, cell.text);
  const { current, limits } = rate;
  const calls = `${Math.round(recent.calls)} recent calls, ${Math.round(recent.failed)} failed`;
  return `API server ${plain(cluster)}: breaker ${shown}, ${Math.round(current)} of ${Math.round(limits.ratePerSecond)} calls/s allowed, ${calls}`;
}

function totalsLine({ overview: { controllers, workers, workflows } }: TopData): string {
  const sum = (of: (row: (typeof controllers)[number]) => number) =>
    controllers.reduce((total, row) => total + of(row), 0);
  const runs = workflows.reduce(
    (total, { runs: { running, waiting } }) => total + running + waiting,
    0,
  );
  const parts = [
    `${workers} ${workers === 1 ? "worker" : "workers"}`,
    `${sum((row) => row.waiting)} waiting`,
    `${sum((row) => row.active)} running`,
    `${sum((row) => row.delayed)} delayed`,
    `${sum((row) => row.deadLetters)} dead-lettered`,
    `${runs} runs active`,
  ];
  return parts.join(", ");
}

function bodyLines(frame: TopFrame, size: TopSize): string[] {
  const { data, state } = frame;
  if (state.isHelp) return HELP;
  if (state.detail !== undefined) {
    const { lines, offset } = state.detail;
    return lines.slice(offset, offset + size.rows);
  }
  return tableLines(tableOf(data, state), state, size);
}

function tableLines({ head, rows, empty }: TopTable, state: TopState, size: TopSize): string[] {
  if (rows.length === 0) return [empty];
  const page = Math.max(1, size.rows - 1);
  const selected = Math.min(state.selected, rows.length - 1);
  const first = Math.max(0, Math.min(rows.length - page, selected - Math.floor(page / 2)));
  const shown = rows.slice(first, first + page);
  const text = columns([head, ...shown.map(({ cells }) => cells)], { width: size.columns });
  return text.split("\n").map((line, index) => {
    if (index !== selected - first + 1) return line;
    return paint("inverse", stripVTControlCharacters(line).padEnd(size.columns));
  });
}

function footerLine({ view, filter, isFiltering, controller }: TopState): string {
  const views = TOP_VIEWS.map((name, index) =>
    name === view ? paint("bold", `<${index + 1} ${name}>`) : `${index + 1} ${name}`,
  );
  const of = controller === undefined ? "" : `  of ${controller}`;
  if (isFiltering) return `filter: ${plain(filter)}_`;
  const kept = filter === "" ? "" : `  filter: ${plain(filter)}`;
  return `${views.join("  ")}${of}${kept}  / filter  Enter open  ? keys  q quit`;
}

function paint(style: Parameters<typeof styleText>[0], text: string): string {
  return text === "" ? "" : styleText(style, plain(text), { stream: process.stdout });
}

/** Cuts a line to the width of the screen. A cut line loses its colors, which only repeat its text. */
function clip(line: string, width: number): string {
  const bare = stripVTControlCharacters(line);
  if (bare.length <= width) return line;
  return width < 1 ? "" : `${bare.slice(0, width - 1)}…`;
}
