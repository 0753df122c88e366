import type { NewMutation } from "@konverge/mutations";

export const NAMESPACE = "default";
export const OBJECTS = 20;
export const CLIENTS = 50;

/** The increments of one client, in order, the same in every process. */
export interface MutationLoad {
  readonly test: string;
  readonly perClient: number;
}

export function objectName(test: string, object: number): string {
  return `${test}-${object}`;
}

/** Spreads the increments unevenly: half of them are for a quarter of the objects. */
function objectOf(client: number, at: number): number {
  const mixed = Math.imul(client * 7_919 + at, 2_654_435_761) >>> 8;
  return mixed % 2 === 0 ? mixed % (OBJECTS / 4) : mixed % OBJECTS;
}

export function idOf(client: number, at: number): string {
  return `${client}-${at}`;
}

/** Adds `client + 1`, so that a lost and a repeated increment cannot cancel each other out. */
export function incrementOf(test: string, client: number, at: number): NewMutation {
  return {
    id: idOf(client, at),
    object: {
      group: "",
      version: "v1",
      kind: "ConfigMap",
      resource: "configmaps",
      namespace: NAMESPACE,
      name: objectName(test, objectOf(client, at)),
    },
    changes: [{ kind: "increment", path: "/data/n", by: client + 1 }],
  };
}

/** The value of each object when all increments were made once. */
export function expectedSums(perClient: number): number[] {
  const sums = Array.from({ length: OBJECTS }, () => 0);
  for (let client = 0; client < CLIENTS; client += 1) {
    for (let at = 0; at < perClient; at += 1) {
      const object = objectOf(client, at);
      sums[object] = (sums[object] ?? 0) + client + 1;
    }
  }
  return sums;
}
