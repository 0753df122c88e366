import { createHash } from "node:crypto";
import type { PlanRead } from "./planned-object.ts";

const MOST_READS = 2_000;
/** Of further reads, only digests are kept. */
const MOST_DIGESTS = 100_000;

/** The versions that a plan has read. */
export class PlannedReads {
  readonly #kept = new Map<string, PlanRead>();
  readonly #digests = new Map<string, string>();
  readonly #pages = new Map<string, number>();
  #omitted = 0;

  get kept(): readonly PlanRead[] {
    return [...this.#kept.values()];
  }

  /** The digests of the reads that are not kept. */
  get digests(): readonly string[] {
    return [...this.#digests].map(([id, version]) => `${id}@${version}`);
  }

  get omitted(): number {
    return this.#omitted;
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

  /** The number of a page of a list: its token is different for each plan. */
  pageOf(token: string | null): number {
    return token === null ? 0 : (this.#pages.get(token) ?? 0);
  }

  notePage(token: string, page: number): void {
    if (this.#pages.size < MOST_DIGESTS) this.#pages.set(token, page);
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
