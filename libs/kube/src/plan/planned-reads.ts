import { createHash } from "node:crypto";
import type { PlanRead } from "./planned-object.ts";

const MOST_READS = 2_000;
/** Of further reads, only digests are kept. */
const MOST_DIGESTS = 100_000;

/** The versions that a plan has read. */
export class PlannedReads {
  readonly #kept = new Map<string, PlanRead>();
  readonly #digests = new Map<string, string>();
  readonly #starts = new Map<string, Start>();
  #omitted = 0;

  get kept(): readonly PlanRead[] {
    const starts = [...this.#starts.values()].filter(({ isContinued }) => !isContinued);
    return [...this.#kept.values(), ...starts.map(({ read }) => read)];
  }

  /** The digests of the reads that are not kept. */
  get digests(): readonly string[] {
    return [...this.#digests].map(([id, version]) => `${id}@${version}`);
  }

  get omitted(): number {
    return this.#omitted;
  }

  /** Undefined if it was not read, or only its digest is kept. */
  find(id: string): PlanRead | undefined {
    return this.#kept.get(id);
  }

  /** Keeps the first version, because the handler has based its decisions on it. Returns false for another version. */
  note(id: string, read: PlanRead): boolean {
    const known = this.#kept.get(id);
    if (known !== undefined) return known.version === read.version;
    if (this.#kept.size < MOST_READS) {
      this.#kept.set(id, read);
      return true;
    }
    const short = digestOf(id);
    const version = digestOf(read.version ?? "");
    const digest = this.#digests.get(short);
    if (digest !== undefined) return digest === version;
    if (this.#digests.size < MOST_DIGESTS) this.#digests.set(short, version);
    else this.#omitted += 1;
    return true;
  }

  /** Returns the sum of the pages before this one. Their size may differ from plan to plan, so they count as one read. */
  sumBefore(token: string | null): bigint {
    const start = token === null ? undefined : this.#starts.get(token);
    if (start === undefined) return 0n;
    start.isContinued = true;
    return start.sum;
  }

  /** Notes a page that the token of its answer continues. */
  noteStart(token: string, sum: bigint, read: PlanRead): void {
    if (this.#starts.size >= MOST_READS) this.#omitted += 1;
    else this.#starts.set(token, { sum, read, isContinued: false });
  }
}

interface Start {
  readonly sum: bigint;
  readonly read: PlanRead;
  isContinued: boolean;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
