export interface TextTableOptions {
  /** Columns of numbers, by index (default: none). */
  readonly alignRight?: readonly number[];
  /** Columns of the terminal. Longer lines lose the end of their last cell (default: nothing is cut). */
  readonly width?: number | undefined;
}

const GAP = "  ";

/** Renders rows of plain cells, each column as wide as its widest cell. */
export function textTable(
  rows: readonly (readonly string[])[],
  { alignRight = [], width = Infinity }: TextTableOptions = {},
): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) => {
      const cells = row.map((cell, column) =>
        alignRight.includes(column)
          ? cell.padStart(widths[column] ?? 0)
          : cell.padEnd(widths[column] ?? 0),
      );
      const line = cells.join(GAP).trimEnd();
      return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
    })
    .join("\n");
}

/** Columns of stdout; undefined if it is not a terminal. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
