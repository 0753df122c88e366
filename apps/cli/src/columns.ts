/** A table for people: as wide as its widest cells, the first row its head. */
export function columns(rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(plain));
  const widths = (clean[0] ?? []).map((_, column) =>
    Math.max(...clean.map((row) => row[column]?.length ?? 0)),
  );
  return clean
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("   ")
        .trimEnd(),
    )
    .join("\n");
}

/** What others wrote must not steer this terminal. */
export function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "?");
}
