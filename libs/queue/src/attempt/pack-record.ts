/** Texts of records, by their code. Stored records contain the codes, so a text is only ever appended. */
const TEXTS: readonly string[] = [
  '{"id":"',
  '","key":"',
  '","epoch":',
  ',"controller":"',
  '","attempt":',
  ',"worker":"',
  '","triggers":[{"kind":"watch","by":"',
  '","resourceVersion":"',
  '}],"requestedAt":"',
  '","startedAt":"',
  '","finishedAt":"',
  '","durationMs":',
  ',"waits":{"queueMs":',
  ',"rateLimitMs":0,"laneMs":0,"conflictMs":0,"backoffMs":0}',
  ',"uid":"',
  ',"generation":',
  ',"versionBefore":"',
  '","versionAfter":"',
  '","outcome":"',
  '","writes":[',
  '],"conflicts":[],"calls":{"count":',
  ',"durationMs":',
  '{"verb":"patch","resource":"',
  '","fieldManager":"konverge/',
];
/** Control characters, which JSON escapes, without those that can stand between its values. */
const CODES: readonly string[] = Array.from({ length: 31 }, (_, at) =>
  String.fromCodePoint(at + 1),
).filter((code) => !/\s/.test(code));
const ANY_CODE = new RegExp(`[${CODES.join("")}]`, "g");
const OWN = 4;
const CODE_OF: ReadonlyMap<string, string> = new Map(
  TEXTS.map((text, at) => [text, CODES[at + OWN] ?? text]),
);
/** The longest text first. */
const ANY_TEXT = new RegExp(
  TEXTS.toSorted((a, b) => b.length - a.length)
    .map((text) => text.replaceAll(/[[\]{}]/g, String.raw`\$&`))
    .join("|"),
  "g",
);
const MINUTE_CHARS = "2026-01-01T00:00:".length;

/** What the entry of a record contains besides it. */
export interface EntryOfRecord {
  readonly id: string;
  readonly worker: string;
  readonly startedAtMs: number;
}

/** Returns a JSON text with codes for the texts that most records share, and for those that are known without it. */
export function packRecord(record: string, of: EntryOfRecord): string {
  if (record.search(ANY_CODE) >= 0) return record;
  let packed = record.replace(ANY_TEXT, (text) => CODE_OF.get(text) ?? text);
  for (const [at, text] of ownTexts(of).entries())
    if (text.length > 1) packed = packed.replaceAll(text, CODES[at] ?? text);
  return packed;
}

/** Returns the text that was packed. A text without codes remains as it is. */
export function unpackRecord(packed: string, of: EntryOfRecord): string {
  if (packed.search(ANY_CODE) < 0) return packed;
  const texts = [...ownTexts(of), ...TEXTS];
  return packed.replace(ANY_CODE, (code) => texts[CODES.indexOf(code)] ?? code);
}

function ownTexts({ id, worker, startedAtMs }: EntryOfRecord): readonly string[] {
  const startedAt = new Date(startedAtMs).toISOString();
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
  return [inJson(id), inJson(worker), startedAt, startedAt.slice(0, MINUTE_CHARS)];
}
