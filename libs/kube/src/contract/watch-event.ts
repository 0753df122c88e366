export interface WatchOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Changes after this version. Without it the server first sends all objects as `added`. */
  readonly resourceVersion?: string;
  /** When the server ends the watch. Default: random in [300, 600), so that watches do not end together. */
  readonly timeoutSeconds?: number;
  /** A stream that says nothing for this long is cut. Default: 5 s after the server should have ended it. */
  readonly silentMs?: number;
  readonly signal?: AbortSignal;
}

export type WatchEvent<T> =
  | { readonly kind: "added" | "changed" | "deleted"; readonly object: T }
  /** Nothing changed up to this version. */
  | { readonly kind: "bookmark"; readonly resourceVersion: string };
