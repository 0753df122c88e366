import { defined } from "@konverge/core";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { KubeconfigCluster, KubeconfigUser } from "./kubeconfig-entries.ts";

/** TLS options. The same object is returned until one of them changes. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** Interval between checks of certificate files, as in client-go for tokens. */
export const REREAD_MS = 60_000;
/** Interval between checks of a pair that does not match: one of its files is still being written. */
const HALF_WRITTEN_MS = 1_000;

interface Files {
  readonly ca: Buffer | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
  /** False while a new pair is incomplete. */
  readonly isWhole?: boolean;
}

export interface TlsReader {
  /** @param issued a certificate of a plugin, which takes precedence */
  read(issued: Pick<TlsMaterial, "cert" | "key">): TlsMaterial;
  /** How long the result stays valid. */
  readonly againMs: number;
  /** Makes the next `read` check the files. */
  forget(): void;
}

export function createTlsReader(cluster: KubeconfigCluster, user: KubeconfigUser): TlsReader {
  let current: TlsMaterial = {};
  let files: Files | undefined;
  let againMs = REREAD_MS;
  let readAtMs = -Infinity;
  const readFiles = (): Files => ({
    ca: readCa(cluster),
    cert: fileOrData(user.certFile, user.certData),
    key: fileOrData(user.keyFile, user.keyData),
  });
  const look = (): Files => {
    const found = files === undefined ? readFiles() : renewed(files, readFiles);
    readAtMs = performance.now();
    againMs = (found.isWhole ?? isPair(found)) ? REREAD_MS : HALF_WRITTEN_MS;
    files = found;
    return found;
  };
  return {
    read(issued) {
      const isDue = performance.now() - readAtMs >= againMs;
      const { ca, ...own } = files === undefined || isDue ? look() : files;
      const cert = issued.cert ?? own.cert;
      const key = issued.key ?? own.key;
      const next: TlsMaterial = {
        ...defined({ ca, cert, key }),
        ...(cluster.tlsServerName ? { servername: cluster.tlsServerName } : {}),
        ...(cluster.skipTLSVerify ? { rejectUnauthorized: false } : {}),
      };
      if (!sameTls(current, next)) current = next;
      return current;
    },
    get againMs() {
      return againMs;
    },
    forget() {
      readAtMs = -Infinity;
    },
  };
}

/** Returns the files on disk, or the previous ones while these are being replaced. */
function renewed(before: Files, readFiles: () => Files): Files {
  let now: Files;
  try {
    now = readFiles();
  } catch {
    // Removed, to be replaced. The previous certificate is still valid for a while.
    return { ...before, isWhole: false };
  }
  const isSame = sameBytes(before.cert, now.cert) && sameBytes(before.key, now.key);
  if (isSame) return { ...now, isWhole: true };
  return isPair(now) ? { ...now, isWhole: true } : { ...before, ca: now.ca, isWhole: false };
}

export function readCa({
  caFile,
  caData,
}: Pick<KubeconfigCluster, "caFile" | "caData">): Buffer | undefined {
  return fileOrData(caFile, caData);
}

function fileOrData(file: string | undefined, data: string | undefined): Buffer | undefined {
  if (data) return Buffer.from(data, "base64");
  return file ? readFileSync(file) : undefined;
}

function isPair({ cert, key }: Files): boolean {
  if (cert === undefined || key === undefined) return true;
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    // Truncated, or of an unknown format. If it stays so, TLS reports the reason.
    return false;
  }
}

function sameTls(left: TlsMaterial, right: TlsMaterial): boolean {
  return (
    (["ca", "cert", "key"] as const).every((field) => sameBytes(left[field], right[field])) &&
    left.servername === right.servername &&
    left.rejectUnauthorized === right.rejectUnauthorized
  );
}

function sameBytes(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && Buffer.from(a).equals(Buffer.from(b)));
}
