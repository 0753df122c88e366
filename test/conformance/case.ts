import type { JsonObject, JsonValue } from "@konverge/core";

/** One parsed response. A body that is not JSON is its text. */
export interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: JsonValue;
}

/** Responses of earlier steps, by the name in `as`. */
export type Seen = Readonly<Record<string, Answer>>;

type Body = JsonValue | ((seen: Seen) => JsonValue);

/** The expected response of every server, written down independently, so that two servers cannot share an error. */
export interface Expectation {
  readonly code: number;
  readonly reason?: string;
  readonly message?: RegExp | string;
  /** All causes of a Status in any order, each with at least these members. */
  readonly causes?: readonly JsonObject[];
  /** Members that the body must have, at any depth. */
  readonly body?: JsonObject;
  /** Dotted paths that the body must not have. */
  readonly absent?: readonly string[];
  /** Compared with an earlier response for the same object. */
  readonly version?: { readonly sameAs: string } | { readonly newSince: string };
  readonly generation?: number;
  /** Names of a list's items, in order. */
  readonly items?: readonly string[];
  readonly warnings?: readonly string[];
  readonly headers?: Readonly<Record<string, RegExp>>;
}

/**
 * A request and its expected response. `{ns}` and `{o}` are the namespace of the run and an object name of the case.
 */
export interface SendStep {
  readonly send: string | ((seen: Seen) => string);
  readonly body?: Body;
  /** Sent unchanged, for bodies that are not JSON. */
  readonly text?: string;
  /** Content type; default `application/json` with a body. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: string;
  readonly expect: Expectation;
  /** Dotted paths that may differ between servers, each with its reason in the case. */
  readonly ignore?: readonly string[];
  /** Repeats the request until it gets the expected response, for asynchronous work of controllers. */
  readonly retry?: boolean;
}

/** Opens a watch that later steps read. */
export interface WatchStep {
  readonly watch: string;
  readonly path: string | ((seen: Seen) => string);
}

/** Reads events of a watch; the server chooses the order of initial events. */
export interface EventsStep {
  readonly events: string;
  readonly count: number;
  readonly expect: readonly JsonObject[];
  /** The stream must end after these. */
  readonly ends?: boolean;
  /** Initial events come in any order. */
  readonly unordered?: boolean;
}

/**
 * Triggers an action of the embedded server that a real one takes in its own time. Only in cases with `only:
 * "embedded"`.
 */
export interface ActStep {
  readonly act: "bookmark" | "compact" | "cut";
}

export type Step = ActStep | EventsStep | SendStep | WatchStep;

export interface Case {
  /** The tested behavior, used in the difference report. */
  readonly name: string;
  readonly steps: readonly Step[];
  /** For states that a real server cannot reach within seconds. */
  readonly only?: "embedded";
  /** True if it waits for the server for a second or more. These cases run first, beside each other. */
  readonly waits?: true;
}

/** Metadata of an object in a response, for bodies of later steps. */
function metadataIn(seen: Seen, name: string): { readonly version: string; readonly uid: string } {
  const body = seen[name]?.body as JsonObject | undefined;
  const metadata = (body?.["metadata"] ?? {}) as JsonObject;
  return { version: String(metadata["resourceVersion"]), uid: String(metadata["uid"]) };
}

/** Returns the resourceVersion in an earlier response. */
export const versionIn = (seen: Seen, name: string): string => metadataIn(seen, name).version;

/** Returns the uid in an earlier response. */
export const uidIn = (seen: Seen, name: string): string => metadataIn(seen, name).uid;
