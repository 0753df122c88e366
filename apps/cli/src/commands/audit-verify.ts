import type { AuditAnchor, AuditReport, VerifyOptions } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { ensureError, KonvergeError } from "@konverge/core";
import { InvalidArgumentError, type Command } from "commander";
import { once } from "node:events";
import { createReadStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { runWithAccess, runWithErrors } from "../ask/run-with-access.ts";
import { columns } from "../text/columns.ts";
import { print, withOutput, type Output } from "../text/output.ts";

type From = readonly [chain: AuditAnchor["chain"], sequence: number];

interface VerifyFlags {
  readonly output: Output;
  readonly file?: readonly string[];
  readonly from?: readonly From[];
  readonly anchors?: readonly AuditAnchor[];
}

const HELP = `
Without --file, the command needs access to Redis (KONVERGE_REDIS_URL, KONVERGE_PREFIX) and never uses HTTP. It prints
the first fault of each chain, and exits with 1 if there is one. KONVERGE_AUDIT_KEYS must have the keys of the chain.

Examples:
  konverge audit verify
  konverge audit verify -o name > anchors
  konverge audit verify --anchors anchors
  konverge audit export > audit.jsonl
  konverge audit verify --file audit.jsonl
Exit codes: 0 no fault, 1 fault found, 2 invalid input or configuration, 6 Redis unavailable.`;

export function addVerifyCommand(audit: Command): void {
  withOutput(
    audit.command("verify").description("Find removed, altered, reordered and inserted entries"),
  )
    .option("--file <path...>", "Files with exported entries, oldest first (default: Redis)")
    .option("--anchors <file>", "File with known entries, as -o name prints them", readAnchors)
    .option("--from <chain:sequence...>", "First entry to check (default: the oldest)", addFrom)
    .addHelpText("after", HELP)
    .action(async ({ output, file, from = [], anchors = [] }: VerifyFlags) => {
      const options = { from: Object.fromEntries(from), anchors };
      const show = (reports: readonly AuditReport[]) => showReports(output, reports);
      await (file === undefined
        ? runWithAccess(async (access) => show(await access.audit.verify(options)))
        : runWithErrors(async () => show(await verifyFiles(file, options))));
    });
}

const EXPORT_HELP = `
The command needs access to Redis (KONVERGE_REDIS_URL, KONVERGE_PREFIX) and never uses HTTP. It prints one line of JSON
per entry, with its sequence and hash.

Examples:
  konverge audit export > audit.jsonl
  konverge audit export --after anchors >> audit.jsonl
Exit codes: 0 success, 2 invalid input or configuration, 6 Redis unavailable.`;

export function addExportCommand(audit: Command): void {
  audit
    .command("export")
    .description("Print all entries with their hashes, oldest first")
    .option("--after <file>", "File with the last exported entries (default: none)", readAnchors)
    .addHelpText("after", EXPORT_HELP)
    .action(async ({ after = [] }: { readonly after?: readonly AuditAnchor[] }) => {
      const last = Object.fromEntries(after.map(({ chain, sequence }) => [chain, sequence]));
      await runWithAccess(async ({ audit: log }) => {
        for await (const line of log.lines(last)) {
          if (!process.stdout.write(`${line}\n`)) await once(process.stdout, "drain");
        }
      });
    });
}

async function verifyFiles(
  paths: readonly string[],
  options: Omit<VerifyOptions, "keys">,
): Promise<AuditReport[]> {
  const { auditKeys: keys = [] } = readSettings({ env: process.env });
  const { verifyAuditLines } = await import("@konverge/api");
  return await verifyAuditLines(linesOf(paths), { ...options, keys });
}

async function* linesOf(paths: readonly string[]): AsyncGenerator<string> {
  for (const path of paths) {
    try {
      yield* createInterface({ input: createReadStream(path), crlfDelay: Infinity });
    } catch (error) {
      const detail = `${path} cannot be read: ${ensureError(error).message}`;
      throw new KonvergeError("invalid_request", `--file: ${detail}`, { cause: error });
    }
  }
}

function showReports(output: Output, items: readonly AuditReport[]): void {
  const rows = items.map(({ chain, entries, first, last, fault }) => {
    const found = fault === undefined ? "no fault" : `${fault.kind} ${fault.sequence}`;
    return [chain, String(entries), String(first), String(last), found, fault?.detail ?? "-"];
  });
  const head = ["CHAIN", "ENTRIES", "FIRST", "LAST", "RESULT", "DETAIL"];
  print(output, {
    document: { items },
    items,
    names: items
      .filter(({ last }) => last > 0)
      .map(({ chain, last, hash }) => `${chain}:${last}:${hash}`),
    table: () => columns([head, ...rows]),
  });
  if (items.some(({ fault }) => fault !== undefined)) process.exitCode = 1;
}

/** Reads lines such as `changes:120:sha256:...`. */
function readAnchors(path: string): AuditAnchor[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new InvalidArgumentError(`cannot be read: ${ensureError(error).message}`);
  }
  return text.split(/\s+/).flatMap((line) => {
    if (line === "") return [];
    const [, chain, sequence, hash] = /^(changes|refused):(\d{1,15}):(\S+)$/.exec(line) ?? [];
    if (chain === undefined || hash === undefined) {
      throw new InvalidArgumentError("must have lines chain:sequence:hash, as -o name prints them");
    }
    return [{ chain: chain as AuditAnchor["chain"], sequence: Number(sequence), hash }];
  });
}

function addFrom(text: string, others: readonly From[] = []): From[] {
  const [, chain, sequence] = /^(changes|refused):([1-9]\d{0,14})$/.exec(text) ?? [];
  if (chain === undefined) {
    throw new InvalidArgumentError("must be chain:sequence, such as changes:120");
  }
  return [...others, [chain as From[0], Number(sequence)]];
}
