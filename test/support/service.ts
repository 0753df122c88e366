const PROBE_EVERY_MS = 50;

/** A response whose body has been read. */
interface Answer {
  readonly ok: boolean;
  readonly status: number;
  readonly text: string;
}

/** A Service: it sends calls to the processes that were ready at its last probe. */
export class Service {
  readonly #processes = new Set<string>();
  #ready: string[] = [];
  #next = 0;
  readonly #calls = new Map<string, number>();
  readonly #timer = setInterval(() => void this.probe(), PROBE_EVERY_MS);

  add(url: string): void {
    this.#processes.add(url);
  }

  remove(url: string): void {
    this.#processes.delete(url);
  }

  isReady(url: string): boolean {
    return this.#ready.includes(url);
  }

  async probe(): Promise<void> {
    const probes = [...this.#processes].map(async (url) => {
      const { ok } = await fetch(`${url}/readyz`);
      return ok ? [url] : [];
    });
    // A process that ended during the probe has left the list.
    const answers = await Promise.allSettled(probes);
    this.#ready = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  }

  async call(path: string, init?: RequestInit): Promise<Answer> {
    this.#next += 1;
    const url = this.#ready[this.#next % this.#ready.length] ?? "";
    this.#calls.set(url, this.callsTo(url) + 1);
    try {
      const response = await fetch(`${url}${path}`, init);
      const { ok, status } = response;
      return { ok, status, text: await response.text() };
    } finally {
      this.#calls.set(url, this.callsTo(url) - 1);
    }
  }

  /** Returns the number of calls that have not been answered. */
  callsTo(url: string): number {
    return this.#calls.get(url) ?? 0;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
