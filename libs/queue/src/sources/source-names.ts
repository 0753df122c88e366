import { clusterRoot } from "@konverge/redis";

/** A source of a controller. */
export interface SourcePlace {
  readonly controller: string;
  readonly source: string;
}

/**
 * Redis names of a cluster's sources. They have the hash tag of an unsharded queue: a Redis that lost its last writes then never has
 * a cursor without the requests before it.
 */
export interface SourceNames {
  /** Hash of a source: its epoch and its cursor. */
  readonly state: (place: SourcePlace) => string;
  /** Hash of the versions of the items of a poll, by object. */
  readonly versions: (place: SourcePlace) => string;
  /** Hash of the last reports of all sources. */
  readonly reports: string;
  /** Prefix of the names of an inbound source. */
  readonly inbound: (name: string) => string;
  /** Channel with the names of inbound sources that have a new delivery. */
  readonly arrived: string;
}

export function sourceNames(prefix: string, cluster: string): SourceNames {
  const root = clusterRoot(prefix, cluster);
  const of = ({ controller, source }: SourcePlace) => `${controller}/${source}`;
  return {
    state: (place) => `${root}/source/${of(place)}`,
    versions: (place) => `${root}/versions/${of(place)}`,
    reports: `${root}/sources`,
    inbound: (name) => `${root}/inbound/${name}`,
    arrived: `${root}/arrived`,
  };
}
