/** Observes the mutations that this process applies. Callbacks must not throw. */
export interface MutationObserver {
  /** A write was made that contains so many mutations. */
  mutationsWritten(mutations: number): void;
  /** A write ended in a conflict. */
  mutationConflicted(): void;
  /** A mutation has ended with its change on the object, `durationMs` after its submission. */
  mutationLanded(durationMs: number): void;
  /** An attempt has failed; its mutations are tried again. */
  mutationsFailed(): void;
}
