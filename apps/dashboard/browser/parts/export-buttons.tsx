import { useState } from "preact/hooks";
import { call } from "../api/call.ts";
import { announce } from "../frame/announcer.tsx";
import { plural } from "./format.ts";

type Row = Readonly<Record<string, unknown>>;

interface Page {
  readonly items: readonly Row[];
  readonly next?: string;
}

/** Most rows of a file. */
const MOST_ROWS = 5_000;

export interface ExportProps {
  /** File name without its extension. */
  readonly name: string;
  /** The request of a page; `cursor` is that of the page before. */
  readonly pathOf: (cursor: string | undefined) => string;
}

/** Downloads all rows of a list, up to 5,000, as CSV or JSON. */
export function ExportButtons({ name, pathOf }: ExportProps) {
  const [isBusy, setBusy] = useState(false);
  const save = async (format: "csv" | "json") => {
    setBusy(true);
    try {
      const { rows, isCut } = await readAll(pathOf);
      const text = format === "json" ? `${JSON.stringify(rows, undefined, 2)}\n` : csvOf(rows);
      download(`${name}.${format}`, text, format === "json" ? "application/json" : "text/csv");
      announce(
        `${plural(rows.length, "row")} exported${isCut ? "; more match, narrow the filters" : ""}`,
      );
    } catch (error) {
      announce(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void save("csv")}>
        Export CSV
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void save("json")}>
        Export JSON
      </button>
    </>
  );
}

async function readAll(
  pathOf: ExportProps["pathOf"],
): Promise<{ readonly rows: readonly Row[]; readonly isCut: boolean }> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  do {
    const { items, next } = await call<Page>(pathOf(cursor));
    rows.push(...items);
    cursor = next;
  } while (cursor !== undefined && rows.length < MOST_ROWS);
  return { rows: rows.slice(0, MOST_ROWS), isCut: cursor !== undefined || rows.length > MOST_ROWS };
}

/** Returns RFC 4180, with a column for each field of any row. */
function csvOf(rows: readonly Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = rows.map((row) => columns.map((column) => cellOf(row[column])).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  // Spreadsheets run cells that begin with these characters as formulas.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(name: string, text: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
