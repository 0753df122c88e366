export interface WatchOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Deliver changes after this version. Without it, the server first sends all objects as `added`. */
  readonly resourceVersion?: string;
  /** When the server ends the watch. Default: random in [300, 600), so that watches do not end at the same time. */
  readonly timeoutSeconds?: number;
  /** A stream without data for this long is aborted, in ms. Default 90 s: bookmarks arrive about once a minute. */
  readonly silentMs?: number;
  readonly signal?: AbortSignal;
}

export type WatchEvent<T> =
  | { readonly kind: "added" | "changed" | "deleted"; readonly object: T }
  /** No changes up to this version. */
  | { readonly kind: "bookmark"; readonly resourceVersion: string };
