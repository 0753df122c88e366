import type { JsonObject, JsonValue } from "@konverge/core";

/** One answer, parsed. A body that is not JSON is its text. */
export interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: JsonValue;
}

/** Answers of earlier steps, by the name that the step gave them. */
export type Seen = Readonly<Record<string, Answer>>;

type Body = JsonValue | ((seen: Seen) => JsonValue);

/** What every server must answer: written down from facts, so that two servers cannot be wrong alike. */
export interface Expectation {
  readonly code: number;
  readonly reason?: string;
  readonly message?: RegExp | string;
  /** All causes of a Status in any order, each with at least these members. */
  readonly causes?: readonly JsonObject[];
  /** Members that the body has, at any depth. */
  readonly body?: JsonObject;
  /** Dotted paths that the body has not. */
  readonly absent?: readonly string[];
  /** Against an earlier answer about the same object. */
  readonly version?: { readonly sameAs: string } | { readonly newSince: string };
  readonly generation?: number;
  /** Names of a list's items, in order. */
  readonly items?: readonly string[];
  readonly warnings?: readonly string[];
  readonly headers?: Readonly<Record<string, RegExp>>;
}

/** A request and what must come back. `{ns}` and `{o}` are the namespace of the run and an object name of the case. */
export interface SendStep {
  readonly send: string | ((seen: Seen) => string);
  readonly body?: Body;
  /** Sent as it is, for bodies that are no JSON. */
  readonly text?: string;
  /** Content type; default `application/json` where there is a body. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: string;
  readonly expect: Expectation;
  /** Dotted paths of the answer that servers may differ in, each with a reason beside it in the case. */
  readonly ignore?: readonly string[];
  /** Sends again until the code is that of the expectation: for what controllers do a moment later. */
  readonly retry?: boolean;
}

/** Opens a watch that later steps read. */
export interface WatchStep {
  readonly watch: string;
  readonly path: string | ((seen: Seen) => string);
}

/** Reads events of a watch; the order of initial events is the server's. */
export interface EventsStep {
  readonly events: string;
  readonly count: number;
  readonly expect: readonly JsonObject[];
  /** The stream must be over after these. */
  readonly ends?: boolean;
  /** Initial events come in any order. */
  readonly unordered?: boolean;
}

/** Asks the embedded server for what a real one does in its own time. Only in cases that say `only: "embedded"`. */
export interface ActStep {
  readonly act: "bookmark" | "compact" | "cut";
}

export type Step = ActStep | EventsStep | SendStep | WatchStep;

export interface Case {
  /** What it shows; the difference report names it. */
  readonly name: string;
  readonly steps: readonly Step[];
  /** A case that a real server cannot be brought to in seconds. */
  readonly only?: "embedded";
}

/** A property of an object in an answer, for bodies of later steps. */
function metadataIn(seen: Seen, name: string): { readonly version: string; readonly uid: string } {
  const body = seen[name]?.body as JsonObject | undefined;
  const metadata = (body?.["metadata"] ?? {}) as JsonObject;
  return { version: String(metadata["resourceVersion"]), uid: String(metadata["uid"]) };
}

/** The resourceVersion in an earlier answer. */
export const versionIn = (seen: Seen, name: string): string => metadataIn(seen, name).version;

/** The uid in an earlier answer. */
export const uidIn = (seen: Seen, name: string): string => metadataIn(seen, name).uid;
