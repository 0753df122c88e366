import { closeSync, openSync, writeSync } from "node:fs";
import { KonvergeError, type JsonObject } from "@konverge/core";

/** One finished request. */
export interface AuditRecord {
  readonly auditId: string;
  readonly verb: string;
  readonly requestUri: string;
  readonly userAgent: string;
  readonly sourceIp: string;
  /** Absent for a request without a resource. */
  readonly object: AuditedObject | undefined;
  readonly code: number;
  /** Unix times in ms. */
  readonly receivedAtMs: number;
  readonly finishedAtMs: number;
}

interface AuditedObject {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly subresource: string;
}

/**
 * Writes one `audit.k8s.io/v1` Event per request, level Metadata, stage ResponseComplete, like kube-apiserver's log
 * backend, so that one reader can count both. A line is appended once the response has been sent.
 */
export class AuditLog {
  readonly #file: number;
  #closed = false;

  /** @throws KonvergeError `invalid_config` if the file cannot be opened */
  constructor(path: string) {
    try {
      this.#file = openSync(path, "a");
    } catch (cause) {
      throw new KonvergeError(
        "invalid_config",
        `auditLog ${path} cannot be opened for appending: give a path in a folder that exists`,
        { cause },
      );
    }
  }

  write(record: AuditRecord): void {
    // Connections closed by the server's shutdown may be recorded after it.
    if (this.#closed) return;
    writeSync(this.#file, `${JSON.stringify(toEvent(record))}\n`);
  }

  close(): void {
    this.#closed = true;
    closeSync(this.#file);
  }
}

function toEvent(record: AuditRecord): JsonObject {
  const { object } = record;
  return {
    kind: "Event",
    apiVersion: "audit.k8s.io/v1",
    level: "Metadata",
    auditID: record.auditId,
    stage: "ResponseComplete",
    requestURI: record.requestUri,
    verb: record.verb,
    // Without authentication on loopback, every caller is the administrator.
    user: { username: "kubernetes-admin", groups: ["system:masters", "system:authenticated"] },
    sourceIPs: [record.sourceIp],
    userAgent: record.userAgent,
    ...(object === undefined ? {} : { objectRef: toReference(object) }),
    responseStatus: { metadata: {}, code: record.code },
    requestReceivedTimestamp: formatMicroTime(record.receivedAtMs),
    stageTimestamp: formatMicroTime(record.finishedAtMs),
  };
}

function toReference({
  resource,
  namespace,
  name,
  group,
  version,
  subresource,
}: AuditedObject): JsonObject {
  return {
    resource,
    ...(namespace === "" ? {} : { namespace }),
    ...(name === "" ? {} : { name }),
    ...(group === "" ? {} : { apiGroup: group }),
    apiVersion: version,
    ...(subresource === "" ? {} : { subresource }),
  };
}

/** Six fractional digits, the format of metav1.MicroTime. */
const formatMicroTime = (ms: number): string => new Date(ms).toISOString().replace("Z", "000Z");
