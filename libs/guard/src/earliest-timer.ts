import type { TokenPoolOptions } from "./token-pool-options.ts";

/** One timer, which keeps the earliest of the requested times. */
export class EarliestTimer {
  readonly #options: Pick<TokenPoolOptions, "clock" | "schedule">;
  readonly #call: () => void;
  #set: { readonly atMs: number; readonly cancel: () => void } | undefined;

  constructor(options: Pick<TokenPoolOptions, "clock" | "schedule">, call: () => void) {
    this.#options = options;
    this.#call = call;
  }

  in(ms: number): void {
    const atMs = this.#options.clock() + ms;
    if (this.#set !== undefined && this.#set.atMs <= atMs) return;
    this.#set?.cancel();
    const cancel = this.#options.schedule(ms, () => {
      this.#set = undefined;
      this.#call();
    });
    this.#set = { atMs, cancel };
  }

  cancel(): void {
    this.#set?.cancel();
    this.#set = undefined;
  }
}
