import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];
/** Text of a table, and how it looks on a terminal; never by colour alone. */
export type Cell = string | { readonly text: string; readonly style: Style };

export interface ColumnsOptions {
  /** Columns of the terminal; what is too long is cut in the last cell of a row. Left out: nothing is cut. */
  readonly width?: number | undefined;
  /** Default true: the first row names the columns. */
  readonly hasHead?: boolean;
}

const GAP = "  ";
const ELLIPSIS = "…";

/** A table for people: as wide as its widest cells, the first row its head. */
export function columns(
  rows: readonly (readonly Cell[])[],
  { width = terminalWidth(), hasHead = true }: ColumnsOptions = {},
): string {
  const clean = rows.map((row) =>
    row.map((cell) => (typeof cell === "string" ? { text: plain(cell) } : cell)),
  );
  const widths = (clean[0] ?? []).map((_, column) =>
    Math.max(...clean.map((row) => row[column]?.text.length ?? 0)),
  );
  return clean
    .map((row, line) => {
      let left = width ?? Infinity;
      let text = "";
      for (const [column, cell] of row.entries()) {
        const isLast = column === row.length - 1;
        const shown = isLast ? cut(cell.text, left) : cell.text;
        const style = hasHead && line === 0 ? "bold" : "style" in cell ? cell.style : undefined;
        const painted = style === undefined ? shown : paint(style, shown);
        const pad = isLast ? "" : " ".repeat((widths[column] ?? 0) - shown.length) + GAP;
        text += painted + pad;
        left -= shown.length + pad.length;
      }
      return text.trimEnd();
    })
    .join("\n");
}

/** Names and values of one thing, for people; nothing is cut. */
export function fields(rows: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows
    .map(([name, value]) => `${plain(name).padEnd(width)}${GAP}${plain(value)}`.trimEnd())
    .join("\n");
}

/** What others wrote must not steer this terminal. */
export function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "?");
}

/** Only on a terminal that wants it: NO_COLOR, FORCE_COLOR and pipes are heeded. */
function paint(style: Style, text: string): string {
  return text === "" ? "" : styleText(style, text, { stream: process.stdout });
}

function cut(text: string, width: number): string {
  return text.length <= width || width < 2 ? text : text.slice(0, width - 1) + ELLIPSIS;
}

function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
