import type { AuditHead } from "./append-audit.ts";
import { isChained, type StoredEntry } from "./audit-chain.ts";
import {
  hasOwnHash,
  isKeyed,
  type AuditChain,
  type AuditKeys,
  type ChainedEntry,
} from "./audit-hash.ts";

/** The first place at which a chain is broken. */
export interface AuditFault {
  readonly kind: "removed" | "altered" | "reordered" | "inserted";
  readonly sequence: number;
  readonly detail: string;
}

/** An entry that was read or verified earlier and stored elsewhere. */
export interface AuditAnchor {
  readonly chain: AuditChain;
  readonly sequence: number;
  readonly hash: string;
}

/** The result for one chain. */
export interface AuditReport {
  readonly chain: AuditChain;
  /** Number of entries of the chain, including those before `from`. */
  readonly entries: number;
  /** The first and last sequence that were read; 0 if there is none. */
  readonly first: number;
  readonly last: number;
  /** The hash of the last entry. With its sequence, it is an anchor for a later verification. */
  readonly hash: string;
  /** Entries of earlier versions, which have no hash, before the chain. */
  readonly unchained: number;
  readonly fault?: AuditFault;
}

export interface ChainCheckOptions {
  readonly chain: AuditChain;
  readonly keys: AuditKeys;
  /** Earlier entries are not checked. */
  readonly from?: number | undefined;
  readonly anchors?: readonly AuditAnchor[];
  /** True if the first entry has sequence 1. */
  readonly isWhole?: boolean;
  /** True for a file, to which an entry can be written more than once. It has no entries without a hash. */
  readonly isFile?: boolean;
}

/** What Redis knows of the ends of a chain. */
export interface ChainBounds {
  /** The head before and after the entries were read. */
  readonly before: AuditHead;
  readonly after: AuditHead;
  /** Retention removes entries only if more remain. */
  readonly kept: number;
}

/** Entries that a repeated delivery can repeat. */
const MOST_REPEATED = 2_000;

/** A fault whose kind depends on later entries. */
interface Pending {
  /** Undefined for the first entry of a file. */
  readonly sequence: number | undefined;
  readonly previous: string;
  /** The sequence in the entry, which can be wrong. */
  readonly claimed: number | undefined;
  /** The kind if a later entry has the expected sequence. */
  readonly otherwise: "reordered" | "inserted";
  readonly detail: string;
}

const KINDS = { reordered: "removed", inserted: "altered" } as const;

/** Verifies the entries of one chain, oldest first. */
export class ChainCheck {
  readonly #options: ChainCheckOptions;
  #entries = 0;
  #unchained = 0;
  #first = 0;
  /** The sequence of the next entry; undefined before the first one that is checked. */
  #next: number | undefined;
  #skipped = 0;
  #hash = "";
  #fault: AuditFault | undefined;
  #pending: Pending | undefined;
  /** Entries since the pending fault. */
  #since = 0;
  /** Hashes of the latest entries by sequence. */
  readonly #latest = new Map<number, string>();

  constructor(options: ChainCheckOptions) {
    this.#options = options;
  }

  add(stored: StoredEntry): void {
    const entry = isChained(stored) ? stored : undefined;
    const hasBegun = this.#next !== undefined || this.#pending !== undefined;
    if (entry === undefined && !hasBegun && this.#options.isFile !== true) {
      this.#unchained += 1;
      return;
    }
    this.#entries += 1;
    if (this.#fault !== undefined) return;
    if (this.#pending !== undefined) return this.#decide(entry);
    if (entry === undefined) return this.#suspect("inserted", "an entry has no hash");
    const { from = 0, keys } = this.#options;
    if (!hasBegun && entry.sequence < from) return this.#skip(entry);
    if (!hasOwnHash(entry, keys)) return this.#suspect("inserted", this.#wrongHash(entry), entry);
    this.#begin(entry);
    this.#check(entry);
  }

  /** Entries before `from` are only counted. */
  #skip({ sequence, hash }: ChainedEntry): void {
    if (this.#first === 0) this.#first = sequence;
    this.#skipped = sequence;
    this.#hash = hash;
  }

  #begin(entry: ChainedEntry): void {
    if (this.#first === 0) this.#first = entry.sequence;
    if (this.#next !== undefined) return;
    this.#next = this.#options.from ?? entry.sequence;
    this.#hash = entry.sequence === 1 ? "" : entry.previous;
  }

  #check(entry: ChainedEntry): void {
    const { sequence, previous, hash } = entry;
    const next = this.#next ?? sequence;
    if (sequence > next) {
      return this.#suspect("reordered", `entry ${next} is not in its place`, entry);
    }
    if (sequence < next) {
      if (this.#options.isFile === true && this.#latest.get(sequence) === hash) return;
      this.#fault = { kind: "inserted", sequence, detail: `entry ${sequence} occurs again` };
      return;
    }
    if (previous !== this.#hash) {
      const at = Math.max(1, sequence - 1);
      const detail = `entry ${sequence} continues an entry with another hash`;
      this.#fault = { kind: "altered", sequence: at, detail };
      return;
    }
    const anchor = this.#options.anchors?.find((each) => each.sequence === sequence);
    if (anchor !== undefined && anchor.hash !== hash) {
      const detail = `entry ${sequence} differs from the anchor`;
      this.#fault = { kind: "altered", sequence, detail };
      return;
    }
    this.#next = sequence + 1;
    this.#hash = hash;
    this.#remember(sequence, hash);
  }

  #remember(sequence: number, hash: string): void {
    if (this.#options.isFile !== true) return;
    this.#latest.set(sequence, hash);
    this.#latest.delete(sequence - MOST_REPEATED);
  }

  #suspect(otherwise: Pending["otherwise"], detail: string, entry?: ChainedEntry): void {
    const start = this.#options.isWhole === true ? 1 : undefined;
    const sequence = this.#next ?? this.#options.from ?? start;
    const previous = this.#next === undefined ? "" : this.#hash;
    this.#pending = { otherwise, detail, sequence, previous, claimed: entry?.sequence };
    this.#since = 1;
  }

  /** Looks for the expected entry after the place of a fault. */
  #decide(entry: ChainedEntry | undefined): void {
    const pending = this.#pending;
    if (pending === undefined) return;
    const { otherwise, detail, sequence, previous } = pending;
    if (entry === undefined || !hasOwnHash(entry, this.#options.keys)) {
      this.#since += 1;
      return;
    }
    if (sequence === undefined) {
      // The first entries of a file. The first valid one shows their numbers.
      const at = Math.max(1, entry.sequence - this.#since);
      const isFirst = entry.sequence === 1;
      this.#fault = { kind: isFirst ? otherwise : KINDS[otherwise], sequence: at, detail };
      return;
    }
    if (entry.sequence !== sequence || entry.previous !== previous) return;
    this.#fault = { kind: otherwise, sequence, detail };
  }

  /** Returns the result after the last entry. */
  finish(bounds?: ChainBounds): AuditReport {
    const last = this.#next === undefined ? this.#skipped : this.#next - 1;
    const report = {
      chain: this.#options.chain,
      entries: this.#entries,
      unchained: this.#unchained,
      first: this.#first,
      last,
      hash: this.#hash,
    };
    const fault = this.#faultAtStart(bounds) ?? this.#found() ?? this.#faultAtEnd(last, bounds);
    return fault === undefined ? report : { ...report, fault };
  }

  #found(): AuditFault | undefined {
    if (this.#fault !== undefined || this.#pending === undefined) return this.#fault;
    const { otherwise, detail, claimed = 1, sequence = claimed } = this.#pending;
    return { kind: KINDS[otherwise], sequence, detail };
  }

  #faultAtStart(bounds: ChainBounds | undefined): AuditFault | undefined {
    const first = this.#first;
    if (bounds === undefined || first <= (this.#options.from ?? 1)) return undefined;
    const sequence = oldestKept(bounds);
    if (first <= sequence) return undefined;
    const detail = `entries before ${first} are missing, but the last ${bounds.kept} are kept`;
    return { kind: "removed", sequence, detail };
  }

  #faultAtEnd(last: number, bounds: ChainBounds | undefined): AuditFault | undefined {
    const anchor = this.#options.anchors?.find((each) => each.sequence > last);
    const known = Math.max(anchor?.sequence ?? 0, bounds?.before.sequence ?? 0);
    if (known > last) {
      const detail = `the log ends with entry ${last}, but entry ${known} was written`;
      const isEmpty = last === 0 && bounds !== undefined;
      return { kind: "removed", sequence: isEmpty ? oldestKept(bounds) : last + 1, detail };
    }
    if (bounds === undefined) return undefined;
    const { sequence, hash } = bounds.after;
    if (last > sequence) {
      const detail = `the log has entry ${last}, but its head is entry ${sequence}`;
      return { kind: "inserted", sequence: sequence + 1, detail };
    }
    if (last === sequence && hash !== this.#hash) {
      const detail = `the head has another hash than entry ${last}`;
      return { kind: "altered", sequence: last, detail };
    }
    return undefined;
  }

  #wrongHash({ hash, sequence }: ChainedEntry): string {
    const isPlain = this.#options.keys.length > 0 && !isKeyed(hash);
    return isPlain
      ? `entry ${sequence} has a hash without the key`
      : `entry ${sequence} has another hash than its content`;
  }
}

/** Returns the oldest entry that retention certainly keeps. */
function oldestKept({ after, kept }: ChainBounds): number {
  return Math.max(1, after.sequence - kept + 1);
}
