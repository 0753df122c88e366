import type { NamespacedName } from "@konverge/kube";
import type { AnnouncedInbound } from "@konverge/queue";

/** The objects to reconcile for an event: one, several or none. */
export type RequestedObjects = NamespacedName | readonly NamespacedName[] | null | undefined;

/** What a poll returns: the complete list, or the changes since the cursor of the last call. */
export type PollResult<Item> =
  | readonly Item[]
  | {
      readonly items: readonly Item[];
      /** Passed to the next call, once the objects of the items are requested. At most 4 KiB. */
      readonly cursor: string;
      /** True to call `list` again immediately, if the cursor has changed. Default false. */
      readonly more?: boolean;
    };

/** The input of {@link PollOptions.list}. */
export interface PollContext {
  /** The cursor that the last call returned; undefined for the first one. */
  readonly cursor: string | undefined;
  /** Aborted after the timeout, and when the leadership of this process ends. */
  readonly signal: AbortSignal;
}

/** An event of a stream. */
export interface StreamEvent {
  /** The objects to reconcile. */
  readonly key: RequestedObjects;
  /**
   * Resumes the stream after this event. Stored once the objects of this and all earlier events are requested. At most 4 KiB.
   * Default: the cursor stays.
   */
  readonly cursor?: string;
}

/** A delivery of an inbound source. */
export interface Delivery {
  /** The ID from the sender; a generated one if the sender sent none. */
  readonly id: string;
  /** The body: parsed JSON, or text. For a CloudEvent, its `data`, or the text of `data_base64`. */
  readonly data: unknown;
  /** Attributes of a CloudEvent, by name; empty for other deliveries. */
  readonly event: Readonly<Record<string, string>>;
  /** The headers that the source names, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The time at which the HTTP API stored the delivery. */
  readonly receivedAt: Date;
}

/** A source that calls a function at an interval. */
export interface PollSource {
  readonly kind: "poll";
  readonly name: string;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly list: (context: PollContext) => Promise<PollResult<unknown>> | PollResult<unknown>;
  readonly key: (item: unknown) => RequestedObjects;
  readonly version: ((item: unknown) => string) | undefined;
}

/** A source that reads an async iterable. */
export interface StreamSource {
  readonly kind: "stream";
  readonly name: string;
  readonly idleTimeoutMs: number;
  readonly open: (
    cursor: string | undefined,
    signal: AbortSignal,
  ) => AsyncIterable<StreamEvent> | Promise<AsyncIterable<StreamEvent>>;
}

/** A source that other systems send deliveries to. */
export interface InboundSource {
  readonly kind: "inbound";
  readonly name: string;
  readonly timeoutMs: number;
  readonly inbound: AnnouncedInbound;
  readonly map: (delivery: Delivery) => RequestedObjects | Promise<RequestedObjects>;
}

/** A source of requests besides the watches of a controller: the result of `poll`, `stream` or `inbound`. */
export type EventSource = PollSource | StreamSource | InboundSource;
