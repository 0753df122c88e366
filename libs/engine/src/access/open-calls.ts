/** The calls of an attempt that are under way, so that it does not end before them. */
export interface OpenCalls {
  readonly count: number;
  /** Failures of calls that ended after `close`: the handler did not wait for them. */
  readonly lateErrors: readonly unknown[];
  begin(): void;
  end(error?: { readonly thrown: unknown }): void;
  /** The handler has returned: resolves when no call is under way. */
  drain(): Promise<void>;
}

export function createOpenCalls(): OpenCalls {
  const lateErrors: unknown[] = [];
  let count = 0;
  let drained: PromiseWithResolvers<void> | undefined;
  return {
    get count() {
      return count;
    },
    lateErrors,
    begin() {
      count += 1;
    },
    end(error) {
      count -= 1;
      if (drained === undefined) return;
      if (error !== undefined) lateErrors.push(error.thrown);
      if (count === 0) drained.resolve();
    },
    async drain() {
      // What a call that ends now may begin is waited for as well.
      while (count > 0) {
        drained = Promise.withResolvers<void>();
        await drained.promise;
      }
    },
  };
}
