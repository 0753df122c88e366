import { isJsonObject, type JsonValue } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { hasConnection } from "../names/connections.ts";
import { textOf } from "./object-fields.ts";
import { isTrial, placeOf } from "./planned-call.ts";
import { shownDigest, writeDigest, writeTarget } from "./write-digest.ts";

/** A write of a plan, as the attempt that follows the plan sends it. */
export interface PlannedSend {
  readonly digest: string;
  /** For the hash of the plan. */
  readonly shown: string;
  /** The object that it writes. */
  readonly target: string;
  /** True if the API server, or the plan in its place, has rejected it. */
  readonly failed: boolean;
  /** The name and the uid in the answer; placeholders for a new object. */
  readonly made: { readonly name: string; readonly uid: string } | undefined;
}

const NONE: ReadonlyMap<string, string> = new Map();

/** All writes of a plan, in order. */
export class PlannedWrites {
  readonly #sends: PlannedSend[] = [];
  readonly #sinceMs = Date.now();
  readonly #salt: string | undefined;

  constructor(salt: string | undefined) {
    this.#salt = salt;
  }

  get sends(): readonly PlannedSend[] {
    return this.#sends;
  }

  /** Notes a write once it has ended. `values`: the values that the server has drawn for earlier writes. */
  async note(
    call: PlannedCall,
    answered: Promise<ApiAnswer>,
    {
      isSensitive,
      values,
    }: { readonly isSensitive: boolean; readonly values: ReadonlySet<JsonValue> },
  ): Promise<ApiAnswer> {
    if (!isHeld(call)) return await answered;
    const options = { drawn: NONE, sinceMs: this.#sinceMs };
    const noted = {
      digest: writeDigest(call, options),
      shown: shownDigest(call, { ...options, values }, { salt: this.#salt, isSensitive }),
      target: writeTarget(call, options),
    };
    try {
      const answer = await answered;
      this.#sends.push({ ...noted, failed: false, made: madeOf(answer) });
      return answer;
    } catch (error) {
      this.#sends.push({ ...noted, failed: true, made: undefined });
      throw error;
    }
  }
}

/** True for a call that may change something. */
export function isHeld(call: PlannedCall): boolean {
  if (hasConnection(placeOf(call)?.subresource)) return true;
  return call.method !== "GET" && !isTrial(call);
}

export function madeOf({ value }: ApiAnswer): PlannedSend["made"] {
  if (!isJsonObject(value)) return undefined;
  const name = textOf(value, "name");
  const uid = textOf(value, "uid");
  return name === undefined || uid === undefined ? undefined : { name, uid };
}
