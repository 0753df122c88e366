import { styleText } from "node:util";
import { plain } from "./plain-text.ts";

type Style = Parameters<typeof styleText>[0];
/** A cell of a table with its style on a terminal. The style only repeats the text. */
export type Cell = string | { readonly text: string; readonly style: Style };

export interface ColumnsOptions {
  /** Width that longer lines are cut to. Default: the width of the terminal, or unlimited in a pipe. */
  readonly width?: number | undefined;
  /** Whether the first row has the column names. Default true. */
  readonly hasHead?: boolean;
  /** Whether the last column continues on the next line instead of being cut; the others are not cut. */
  readonly wraps?: boolean;
}

const GAP = "  ";
const ELLIPSIS = "…";
/** Minimum width of a cut name. */
const LEAST = 14;

/** Formats a table, with columns as wide as their widest cells. */
export function columns(
  rows: readonly (readonly Cell[])[],
  { width = terminalWidth(), hasHead = true, wraps = false }: ColumnsOptions = {},
): string {
  const clean = rows.map((row) =>
    row.map((cell) =>
      typeof cell === "string" ? { text: plain(cell) } : { ...cell, text: plain(cell.text) },
    ),
  );
  const natural = (clean[0] ?? []).map((_, column) =>
    Math.max(...clean.map((row) => row[column]?.text.length ?? 0)),
  );
  const widths = fit(natural, wraps ? Infinity : (width ?? Infinity));
  const indent = widths.slice(0, -1).reduce((sum, each) => sum + each + GAP.length, 0);
  const lastOf = (text: string, most: number) =>
    wraps ? wrapWords(text, (width ?? Infinity) - indent, indent) : cutEnd(text, most);
  return clean
    .map((row, line) => {
      let text = "";
      for (const [column, cell] of row.entries()) {
        const isLast = column === row.length - 1;
        const most = widths[column] ?? 0;
        const shown = isLast ? lastOf(cell.text, most) : cutMiddle(cell.text, most);
        const style = hasHead && line === 0 ? "bold" : "style" in cell ? cell.style : undefined;
        text += style === undefined ? shown : paint(style, shown);
        if (!isLast) text += " ".repeat(most - shown.length) + GAP;
      }
      return text.trimEnd();
    })
    .join("\n");
}

/** Shortens the last column first, which is prose, and then the widest one. */
function fit(natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const last = widths.length - 1;
  let excess = widths.reduce((sum, each) => sum + each, 0) + GAP.length * last - width;
  while (excess > 0) {
    const isProse = (widths[last] ?? 0) > LEAST;
    const column = isProse ? last : widths.indexOf(Math.max(...widths));
    const most = widths[column] ?? 0;
    if (most <= LEAST) break;
    widths[column] = most - 1;
    excess -= 1;
  }
  return widths;
}

/** Formats names and values, uncut. */
export function fields(rows: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows
    .map(([name, value]) => `${plain(name).padEnd(width)}${GAP}${plain(value)}`.trimEnd())
    .join("\n");
}

/** Applies a style if the terminal supports it; respects NO_COLOR, FORCE_COLOR and pipes. */
function paint(style: Style, text: string): string {
  return text === "" ? "" : styleText(style, text, { stream: process.stdout });
}

function cutEnd(text: string, width: number): string {
  return text.length <= width ? text : text.slice(0, width - 1) + ELLIPSIS;
}

/** Breaks a text between words. Continuation lines are indented below its start. */
function wrapWords(text: string, width: number, indent: number): string {
  if (text.length <= width || width < LEAST) return text;
  const start = " ".repeat(text.length - text.trimStart().length);
  const lines = [""];
  for (const word of text.trimStart().split(" ")) {
    const line = lines.at(-1) ?? "";
    const longer =
      line === "" ? `${start}${lines.length > 1 ? GAP : ""}${word}` : `${line} ${word}`;
    if (line !== "" && longer.length > width) lines.push(`${start}${GAP}${word}`);
    else lines[lines.length - 1] = longer;
  }
  return lines.join(`\n${" ".repeat(indent)}`);
}

/** Keeps both ends, where names usually differ. */
function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  return text.slice(0, width - 1 - tail) + ELLIPSIS + text.slice(text.length - tail);
}

function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
