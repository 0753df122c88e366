import { createHash, createHmac } from "node:crypto";

/** Refused changes have a chain of their own, because they are kept for a shorter time. */
export const AUDIT_CHAINS = ["changes", "refused"] as const;
export type AuditChain = (typeof AUDIT_CHAINS)[number];

/** An entry of the audit log with its place in a hash chain. */
export interface ChainedEntry {
  readonly chain: AuditChain;
  /** From 1, without gaps. */
  readonly sequence: number;
  /** The ID in Redis, which begins with the time in ms. */
  readonly id: string;
  /** Canonical JSON of the entry. */
  readonly text: string;
  /** The hash of the previous entry; empty for the first. */
  readonly previous: string;
  readonly hash: string;
}

/** Keys of the chain. The first one hashes new entries; the others are accepted by the verification. */
export type AuditKeys = readonly string[];

/** Distinguishes these hashes from those of other formats. */
const FORMAT = "konverge-audit-1";
const KEYED = "hmac-sha256:";
const PLAIN = "sha256:";

/** Returns the hash of an entry, which covers the hash of the previous one. */
export function hashEntry(entry: Omit<ChainedEntry, "hash">, key: string | undefined): string {
  const { chain, sequence, id, previous, text } = entry;
  const hashed = JSON.stringify([FORMAT, chain, sequence, id, previous, text]);
  return key === undefined
    ? `${PLAIN}${createHash("sha256").update(hashed).digest("base64url")}`
    : `${KEYED}${createHmac("sha256", key).update(hashed).digest("base64url")}`;
}

/** Returns true if the hash belongs to the entry. With keys, a hash without a key is wrong. */
export function hasOwnHash({ hash, ...entry }: ChainedEntry, keys: AuditKeys): boolean {
  if (keys.length === 0) return hash === hashEntry(entry, undefined);
  return keys.some((key) => hash === hashEntry(entry, key));
}

/** Returns true if the hash was made with a key. */
export function isKeyed(hash: string): boolean {
  return hash.startsWith(KEYED);
}

/** Returns the JSON of a flat entry with sorted fields. */
export function canonicalText(note: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(note, Object.keys(note).toSorted());
}
