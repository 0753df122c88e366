import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { KonvergeError } from "@konverge/core";

/** Shorter secrets can be guessed. */
const MIN_LENGTH = 16;
/** Time for which a file is cached, in ms. */
const READ_EVERY_MS = 1_000;
/** How long the secrets of a file that cannot be read are used, in ms: while a Secret is replaced, it may be missing. */
const MISSING_MS = 10_000;
const SETTINGS = "KONVERGE_INBOUND_SECRETS or KONVERGE_INBOUND_SECRETS_DIR";

/** The secrets of inbound sources. */
export interface InboundSecrets {
  /** Returns the accepted secrets of a source. @throws KonvergeError `inbound_closed` without any */
  of(name: string): readonly string[];
}

export interface InboundSecretsOptions {
  /** The secrets by name. */
  readonly given?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Folder with one file per source, with one secret per line. Read again while the process runs. */
  readonly folder?: string | undefined;
}

export function createInboundSecrets({
  given = {},
  folder,
}: InboundSecretsOptions): InboundSecrets {
  const files = new Map<
    string,
    { readonly secrets: readonly string[]; readonly checkedMs: number; readonly readMs: number }
  >();
  const ofFile = (name: string): readonly string[] => {
    if (folder === undefined) return [];
    const known = files.get(name);
    const now = performance.now();
    if (known !== undefined && now - known.checkedMs < READ_EVERY_MS) return known.secrets;
    const read = readSecrets(join(folder, name));
    const readMs = read === undefined ? (known?.readMs ?? -Infinity) : now;
    const secrets = read ?? (now - readMs < MISSING_MS ? known?.secrets : undefined) ?? [];
    files.set(name, { secrets, checkedMs: now, readMs });
    return secrets;
  };
  return {
    of(name) {
      const found = [...(Object.hasOwn(given, name) ? (given[name] ?? []) : []), ...ofFile(name)];
      const usable = found.filter((secret) => secret.length >= MIN_LENGTH);
      if (usable.length > 0) return usable;
      const why = found.length > 0 ? `is shorter than ${MIN_LENGTH} characters` : "is not set";
      const detail = `the secret of the inbound source "${name}" ${why}; set it for the HTTP API in ${SETTINGS}`;
      throw new KonvergeError("inbound_closed", detail, { retryAfterMs: 60_000 });
    },
  };
}

/** Undefined if the file cannot be read. */
function readSecrets(path: string): readonly string[] | undefined {
  try {
    if (!statSync(path).isFile()) return undefined;
    const lines = readFileSync(path, "utf8").split(/\r?\n/);
    return lines.map((line) => line.trim()).filter((line) => line !== "");
  } catch {
    return undefined;
  }
}
