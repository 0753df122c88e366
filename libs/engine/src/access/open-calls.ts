/** The pending calls of an attempt, which must end before it does. */
export interface OpenCalls {
  readonly count: number;
  /** Errors of calls that ended after the handler had returned. */
  readonly lateErrors: readonly unknown[];
  begin(): void;
  end(error?: { readonly thrown: unknown }): void;
  /** Called after the handler has returned. Resolves when no call is pending. */
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
      // A call that ends may start another one, which must end as well.
      while (count > 0) {
        drained = Promise.withResolvers<void>();
        await drained.promise;
      }
    },
  };
}
