import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalText, hashEntry, type AuditChain, type ChainedEntry } from "./audit-hash.ts";
import { lineOf, parseLine } from "./audit-line.ts";
import type { AuditReport } from "./chain-check.ts";
import { verifyAuditLines, type VerifyOptions } from "./verify-audit.ts";

const KEY = "k".repeat(32);

/** A chain from `first` on. */
function chainOf(
  length: number,
  {
    first = 1,
    chain = "changes",
    key,
  }: { first?: number; chain?: AuditChain; key?: string | undefined },
): ChainedEntry[] {
  const entries: ChainedEntry[] = [];
  let previous = first === 1 ? "" : "sha256:before";
  for (let sequence = first; sequence < first + length; sequence++) {
    const text = canonicalText({ by: "ada", action: "pause", name: `n-${sequence}`, count: 2 });
    const entry = { chain, sequence, id: `${1_000 + sequence}-0`, text, previous };
    previous = hashEntry(entry, key);
    entries.push({ ...entry, hash: previous });
  }
  return entries;
}

function entryAt(entries: readonly ChainedEntry[], index: number): ChainedEntry {
  const entry = entries.at(index);
  if (entry === undefined) throw new RangeError(`no entry ${index}`);
  return entry;
}

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

async function verify(
  lines: readonly string[],
  options: Partial<VerifyOptions> = {},
): Promise<AuditReport> {
  const [report] = await verifyAuditLines(each(lines), { keys: [], ...options });
  if (report === undefined) throw new Error("no report");
  return report;
}

/** A change of the lines, and the faults that name it. */
interface Tampering {
  readonly lines: readonly string[];
  readonly expected: readonly (readonly [kind: string, sequence: number])[];
}

/** Changes one value of a line, without a change of its hash. */
function altered(line: string, field: number): string {
  const entry = JSON.parse(line) as Record<string, unknown>;
  const names = ["sequence", "id", "entry", "previous", "hash", "at", "junk"];
  const name = names[field % names.length] ?? "";
  const wrong: Readonly<Record<string, unknown>> = {
    sequence: Number(entry["sequence"]) + 1,
    id: "5-5",
    entry: { ...(entry["entry"] as object), by: "eve" },
    previous: "sha256:other",
    hash: "sha256:other",
    at: "2000-01-01T00:00:00.000Z",
    junk: { deep: 1 },
  };
  // Another time, in both fields that have it.
  const at = name === "id" ? { at: new Date(5).toISOString() } : {};
  return JSON.stringify({ ...entry, [name]: wrong[name], ...at });
}

const scenario = fc
  .record({
    length: fc.integer({ min: 3, max: 12 }),
    first: fc.constantFrom(1, 40),
    key: fc.constantFrom(undefined, KEY),
    at: fc.nat(),
    other: fc.nat(),
    kind: fc.constantFrom("none", "remove", "alter", "swap", "insert", "forge", "start", "end"),
  })
  .map((given) => {
    const entries = chainOf(given.length, given);
    const lines = entries.map(lineOf);
    return { ...given, entries, lines, tampering: tamper({ ...given, entries, lines }) };
  });

function tamper(given: {
  readonly kind: string;
  readonly at: number;
  readonly other: number;
  readonly first: number;
  readonly key: string | undefined;
  readonly entries: readonly ChainedEntry[];
  readonly lines: readonly string[];
}): Tampering {
  const { kind, other, first, entries, lines } = given;
  // The first and the last line have tests of their own below.
  const at = 1 + (given.at % (lines.length - 2));
  const sequence = first + at;
  const line = lines[at] ?? "";
  switch (kind) {
    case "remove":
      return { lines: lines.toSpliced(at, 1), expected: [["removed", sequence]] };
    case "alter":
      return { lines: lines.with(at, altered(line, other)), expected: [["altered", sequence]] };
    case "swap": {
      const to = at + 1 + (other % (lines.length - at - 1));
      const swapped = lines.with(at, lines[to] ?? "").with(to, line);
      return { lines: swapped, expected: [["reordered", sequence]] };
    }
    case "insert": {
      const inserted = altered(line, 2);
      return { lines: lines.toSpliced(at, 0, inserted), expected: [["inserted", sequence]] };
    }
    case "forge": {
      // Without the key, an attacker computes a hash without it.
      const entry = { ...entryAt(entries, at), text: canonicalText({ by: "eve" }) };
      const forged = lineOf({ ...entry, hash: hashEntry(entry, undefined) });
      return { lines: lines.toSpliced(at, 0, forged), expected: [["inserted", sequence]] };
    }
    case "start":
      return { lines: lines.slice(at), expected: [["removed", first]] };
    case "end":
      return { lines: lines.slice(0, at), expected: [["removed", sequence]] };
    default:
      return { lines, expected: [] };
  }
}

test("names the first removed, altered, reordered or inserted entry", async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ first, key, entries, tampering }) => {
      const last = entries.at(-1) as ChainedEntry;
      const { fault } = await verify(tampering.lines, {
        keys: key === undefined ? [] : [key],
        from: { changes: first },
        anchors: [last],
      });
      const found = fault === undefined ? [] : [[fault.kind, fault.sequence]];
      expect(found).toEqual(tampering.expected);
    }),
    { numRuns: 500 },
  );
});

test("accepts the entries of a repeated delivery, and two chains in one file", async () => {
  const changes = chainOf(6, {}).map(lineOf);
  const refused = chainOf(4, { chain: "refused" }).map(lineOf);
  const lines = [...changes.slice(0, 4), ...refused, ...changes.slice(1), ...refused.slice(2)];
  const reports = await verifyAuditLines(each(lines), { keys: [] });
  expect(reports).toMatchObject([
    { chain: "changes", first: 1, last: 6 },
    { chain: "refused", first: 1, last: 4 },
  ]);
  expect(reports.every(({ fault }) => fault === undefined)).toBe(true);
});

test("an anchor finds a chain whose hashes were computed again", async () => {
  const written = chainOf(5, {});
  const lines = written.map(lineOf);
  const rest = written.slice(2).map(({ text }) => text);
  let [, { hash: previous }] = written as [ChainedEntry, ChainedEntry];
  const forged = rest.map((text, at) => {
    const changed = at === 0 ? canonicalText({ by: "eve" }) : text;
    const entry = { ...entryAt(written, at + 2), text: changed, previous };
    previous = hashEntry(entry, undefined);
    return lineOf({ ...entry, hash: previous });
  });
  const tampered = [...lines.slice(0, 2), ...forged];
  expect((await verify(tampered)).fault).toBeUndefined();
  const { fault } = await verify(tampered, { anchors: [entryAt(written, 3)] });
  expect(fault).toMatchObject({ kind: "altered", sequence: 4 });
});

test("a successor finds an entry whose own hash was computed again", async () => {
  const written = chainOf(5, {});
  const entry = { ...entryAt(written, 2), text: canonicalText({ by: "eve" }) };
  const lines = written
    .map(lineOf)
    .with(2, lineOf({ ...entry, hash: hashEntry(entry, undefined) }));
  expect((await verify(lines)).fault).toMatchObject({ kind: "altered", sequence: 3 });
});

test.each([
  ["a rotated key is accepted", [KEY, "o".repeat(32)], undefined],
  ["an unknown key is not", ["x".repeat(32)], { kind: "altered", sequence: 1 }],
  ["no key is not", [], { kind: "altered", sequence: 1 }],
])("hashes with keys: %s", async (_, keys, expected) => {
  const lines = chainOf(3, { key: KEY }).map(lineOf);
  const { fault } = await verify(lines, { keys });
  if (expected === undefined) expect(fault).toBeUndefined();
  else expect(fault).toMatchObject(expected);
});

test("hashes without the key are faults, unless they are before the first checked entry", async () => {
  const before = chainOf(3, {});
  const lines = before.map(lineOf);
  let previous = before.at(-1)?.hash ?? "";
  for (let sequence = 4; sequence < 7; sequence++) {
    const entry = {
      chain: "changes",
      sequence,
      id: `${sequence}-9`,
      text: "{}",
      previous,
    } as const;
    previous = hashEntry(entry, KEY);
    lines.push(lineOf({ ...entry, hash: previous }));
  }
  expect((await verify(lines, { keys: [KEY] })).fault).toMatchObject({ sequence: 1 });
  const report = await verify(lines, { keys: [KEY], from: { changes: 4 } });
  expect(report).toMatchObject({ entries: 6, first: 1, last: 6 });
  expect(report.fault).toBeUndefined();
});

test("a line keeps all values of its entry", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.oneof(fc.string({ unit: "binary" }), fc.integer()), {
        maxKeys: 4,
      }),
      (note) => {
        const text = canonicalText(note);
        const entry = { ...entryAt(chainOf(1, {}), 0), text };
        expect(parseLine(lineOf(entry))).toEqual(entry);
      },
    ),
  );
});
