import type { AuditStream } from "./audit-chain.ts";
import { parseLine } from "./audit-line.ts";
import {
  ChainCheck,
  type AuditAnchor,
  type AuditReport,
  type ChainCheckOptions,
} from "./chain-check.ts";
import { AUDIT_CHAINS, type AuditChain, type AuditKeys } from "./audit-hash.ts";

export interface VerifyOptions {
  readonly keys: AuditKeys;
  /** The first checked entry, by chain. */
  readonly from?: Readonly<Partial<Record<AuditChain, number>>>;
  readonly anchors?: readonly AuditAnchor[];
}

/** Verifies a chain in Redis. Entries that are appended meanwhile are accepted. */
export async function verifyStream(
  stream: AuditStream,
  options: VerifyOptions,
): Promise<AuditReport> {
  const before = await stream.head();
  const isWhole = before.sequence <= stream.kept;
  const check = checkOf(stream.chain, options, { isFile: false, isWhole });
  for await (const entry of stream.readAll()) check.add(entry);
  const after = await stream.head();
  return check.finish({ before, after, kept: stream.kept });
}

/** Verifies exported lines, oldest first. */
export async function verifyAuditLines(
  lines: AsyncIterable<string>,
  options: VerifyOptions,
): Promise<AuditReport[]> {
  const checks = new Map(
    AUDIT_CHAINS.map((chain) => [chain, checkOf(chain, options, { isFile: true, isWhole: false })]),
  );
  let last: AuditChain = "changes";
  for await (const line of lines) {
    const entry = parseLine(line);
    // A damaged line belongs to the chain of the line before.
    last = entry.chain ?? last;
    checks.get(last)?.add(entry);
  }
  return [...checks.values()].map((check) => check.finish());
}

function checkOf(
  chain: AuditChain,
  { keys, from = {}, anchors = [] }: VerifyOptions,
  kind: Pick<ChainCheckOptions, "isFile" | "isWhole">,
): ChainCheck {
  const own = anchors.filter((anchor) => anchor.chain === chain);
  return new ChainCheck({ chain, keys, from: from[chain], anchors: own, ...kind });
}
