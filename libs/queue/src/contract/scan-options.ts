/** Limits of a scan that reads its data in several round trips. */
export interface ScanOptions {
  /** Runs each round trip, so that scans can take turns. Default: at once. */
  readonly turn?: (<T>(read: () => Promise<T>) => Promise<T>) | undefined;
  /** Time in ms after which a scan ends with a cursor. At least one round trip is made. Default: unlimited. */
  readonly budgetMs?: number | undefined;
  /** Receives the number of rows after each round trip. */
  readonly onScanned?: ((rows: number) => void) | undefined;
}
