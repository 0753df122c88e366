import { sharedRoot } from "@konverge/redis";

/** The names of one key of a limit in Redis. */
export interface LimitNames {
  readonly limit: string;
  readonly keys: string;
  readonly state: string;
  readonly slots: string;
  readonly line: string;
  readonly turns: string;
  readonly late: string;
}

/** Set of the names of all limits. @throws KonvergeError `invalid_config` */
export function limitsRoot(prefix: string): string {
  return sharedRoot(prefix, "limits");
}

export function limitName(prefix: string, limit: string): string {
  return `${limitsRoot(prefix)}/${limit}`;
}

export function limitNames(prefix: string, limit: string, key: string): LimitNames {
  const name = limitName(prefix, limit);
  const root = `${name}/=${encodeURIComponent(key)}`;
  return {
    limit: name,
    keys: `${name}/keys`,
    state: root,
    slots: `${root}/slots`,
    line: `${root}/line`,
    turns: `${root}/turns`,
    late: `${root}/late`,
  };
}
