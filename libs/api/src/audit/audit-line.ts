import { z } from "zod";
import { AUDIT_CHAINS, canonicalText, type AuditChain, type ChainedEntry } from "./audit-hash.ts";
import { partsOf } from "./audit-id.ts";
import type { StoredEntry } from "./audit-chain.ts";

/** Entries have no nested values, so that the canonical text contains each of them. */
const lineSchema = z.strictObject({
  chain: z.enum(AUDIT_CHAINS),
  sequence: z.int().min(1),
  id: z.string().regex(/^\d{1,15}-\d{1,15}$/),
  at: z.string(),
  entry: z.record(z.string(), z.union([z.string(), z.number()])),
  previous: z.string(),
  hash: z.string(),
});

/** Returns an entry as one line of JSON, without the line break. */
export function lineOf({ chain, sequence, id, text, previous, hash }: ChainedEntry): string {
  // A text that was changed in Redis is no entry, which the verification finds.
  const entry = parseJson(text) ?? { text };
  return JSON.stringify({ chain, sequence, id, at: timeOf(id), entry, previous, hash });
}

/** Parses a line. A line that is no entry has no hash. */
export function parseLine(line: string): StoredEntry & { readonly chain?: AuditChain } {
  const parsed = lineSchema.safeParse(parseJson(line)).data;
  if (parsed === undefined || parsed.at !== timeOf(parsed.id)) return { id: "", text: line };
  const { entry, at: _at, ...rest } = parsed;
  return { ...rest, text: canonicalText(entry) };
}

function timeOf(id: string): string {
  return new Date(partsOf(id).ms).toISOString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
