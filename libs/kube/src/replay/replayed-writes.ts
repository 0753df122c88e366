import type { PlannedCall } from "../contract/call-plan.ts";
import { aboutOf } from "./about-call.ts";
import { bodyDifferences, type FieldDifference, type SameOptions } from "./body-differences.ts";
import { givenVersion } from "../plan/write-version.ts";
import { placeOf, pathOnly, queryOf, type Place } from "../plan/planned-call.ts";
import type { RecordedCall, SentRequest } from "./recorded-call.ts";
import { writeKey, writtenPlace, type RecordedEntry } from "./recorded-entry.ts";

/**
 * A write of a replay beside that of the recorded attempt. `missing`: only the attempt has sent it; `extra`: only the replay has.
 */
export interface ComparedWrite {
  readonly kind: "same" | "other" | "missing" | "extra";
  readonly method: RecordedCall["method"];
  /** For example `ConfigMap prod/settings`. */
  readonly about: string;
  readonly path: string;
  /** The status of the recorded response; missing without one. */
  readonly status?: number | undefined;
  readonly differences: readonly FieldDifference[];
  /** The body in the attempt, if it differs. */
  readonly recorded?: string | undefined;
  /** The body in the replay. */
  readonly replayed?: string | undefined;
}

/** A write of the replay, and the recorded write that it is compared with. */
export type PairedWrite =
  | { readonly kind: "same" | "other"; readonly entry: RecordedEntry }
  | { readonly kind: "other"; readonly entry: undefined };

/** Most fields that are listed of one write. */
const MOST_FIELDS = 50;

/** Compares the writes of a replay with recorded ones. */
export class ReplayedWrites {
  readonly #entries: readonly RecordedEntry[];
  readonly #same: (withVersions: boolean) => SameOptions;
  readonly #compared: ComparedWrite[] = [];

  constructor(entries: readonly RecordedEntry[], same: (withVersions: boolean) => SameOptions) {
    this.#entries = entries;
    this.#same = same;
  }

  /**
   * Finds the recorded write that a write repeats or replaces.
   * @param isDifferent true if its object differs already, so that its versions differ as well
   */
  pair(call: PlannedCall, isDifferent: boolean): PairedWrite {
    const key = writeKey(call);
    const open = this.#entries.filter(
      (entry) => entry.isWrite && !entry.isUsed && writeKey(entry.call) === key,
    );
    const exact = isDifferent ? undefined : open.find((entry) => this.#isSame(entry, call, true));
    const entry = exact ?? open.find((each) => this.#isSame(each, call, false)) ?? open[0];
    const differences = entry === undefined ? [] : this.#differencesOf(entry, call);
    const isSame = entry !== undefined && differences.length === 0;
    const kind = isSame ? "same" : entry === undefined ? "extra" : "other";
    this.#compared.push({
      kind,
      method: call.method,
      about: aboutOf(call, placeOfWrite(call)),
      path: call.path,
      status: entry?.call.answer?.status,
      differences: differences.slice(0, MOST_FIELDS),
      ...(isSame ? {} : { recorded: entry?.call.body }),
      replayed: call.body,
    });
    if (entry === undefined) return { kind: "other", entry };
    return { kind: exact === undefined ? "other" : "same", entry };
  }

  /** True if the recorded rejection does not depend on the content in which the write differs. */
  failsAlike(call: PlannedCall, { call: recorded }: RecordedEntry): boolean {
    const { answer, error } = recorded;
    if (error !== undefined) return true;
    if (answer === undefined || answer.status < 300) return false;
    if (answer.status === 409) {
      const version = givenVersion({ ...recorded, verb: call.verb, sensitive: false });
      return (
        recorded.method === "POST" || (version !== undefined && version === givenVersion(call))
      );
    }
    return answer.status !== 400 && answer.status !== 413 && answer.status !== 422;
  }

  compared(): readonly ComparedWrite[] {
    const missing = this.#entries
      .filter(({ isWrite, isUsed }) => isWrite && !isUsed)
      .map(({ call, place }): ComparedWrite => {
        const { method, path, answer, body } = call;
        const shown = { verb: "get", method, path, sensitive: false } as const;
        const about = aboutOf(shown, place && { ...place, ...writtenPlace(call) });
        const status = answer?.status;
        return { kind: "missing", method, about, path, status, differences: [], recorded: body };
      });
    return [...this.#compared, ...missing];
  }

  #isSame({ call }: RecordedEntry, now: PlannedCall, withVersions: boolean): boolean {
    const options = this.#same(withVersions);
    return isSameRequest(call, now) && bodyDifferences(call.body, now.body, options).length === 0;
  }

  #differencesOf({ call }: RecordedEntry, now: PlannedCall): FieldDifference[] {
    const found = bodyDifferences(call.body, now.body, this.#same(false));
    if (found.length > 0 || isSameRequest(call, now)) return found;
    const [recorded, replayed] = [requestOf(call), requestOf(now)];
    return [{ path: "(request)", recorded, replayed }];
  }
}

/** With the name of a new object, and the subresource. */
function placeOfWrite(call: PlannedCall): Place | undefined {
  const place = placeOf(call);
  return place === undefined ? undefined : { ...place, ...writtenPlace(call) };
}

/** True if the parameters and the form of the body are equal. */
function isSameRequest(recorded: RecordedCall, now: PlannedCall): boolean {
  return requestOf(recorded) === requestOf(now);
}

function requestOf({ path, contentType = "" }: SentRequest): string {
  const query = queryOf(path);
  query.sort();
  return `${pathOnly(path)}?${query.toString()} ${contentType}`;
}
