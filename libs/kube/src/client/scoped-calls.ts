import {
  defined,
  isJsonObject,
  KonvergeError,
  type CallVerb,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";
import type { CallScope } from "../contract/call-record.ts";
import type { Discovery } from "../contract/discovery.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { isKubeApiError, type ErrorRef } from "../errors/kube-api-error.ts";
import { isNotFound } from "../errors/error-predicates.ts";
import type { IsSensitive } from "../names/sensitive-kinds.ts";
import type { PageSizes } from "../wire/page-sizes.ts";
import type { Transport } from "../wire/transport.ts";

/** The parts that all scopes of one client share. */
export interface SharedClient {
  readonly server: string;
  readonly transport: Transport;
  readonly discovery: Discovery;
  readonly pageSizes: PageSizes;
  readonly isSensitive: IsSensitive;
  readonly userAgent: string;
  readonly random: () => number;
}

export type CallParts = Pick<ApiCall, "verb" | "method" | "path"> & Partial<ApiCall>;

/** A type's collection, or one object in it. */
export interface CallTarget {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Sends the calls of one scope. */
export class ScopedCalls {
  readonly shared: SharedClient;
  readonly scope: CallScope;

  constructor(shared: SharedClient, scope: CallScope) {
    this.shared = shared;
    this.scope = scope;
  }

  async send(parts: CallParts, signal: AbortSignal | undefined): Promise<ApiAnswer> {
    const { transport } = this.shared;
    const through = this.scope.plan ?? this.scope.hold;
    const call = this.#complete(parts, signal);
    try {
      if (through === undefined) return await transport.send(call);
      return await through.send(call, (sent) => transport.send({ ...call, ...sent }));
    } catch (error) {
      this.#forgetUnknown(parts.ref, error);
      throw error;
    }
  }

  /** Like `send`, for calls whose response must be a JSON object. */
  async json(parts: CallParts, signal?: AbortSignal): Promise<JsonObject> {
    return this.objectOf(await this.send(parts, signal), parts.path);
  }

  /** Returns the body of a response that must be a JSON object. */
  objectOf({ value, status }: ApiAnswer, requested: string): JsonObject {
    if (isJsonObject(value)) return value;
    const [path = ""] = requested.split("?", 1);
    throw new KonvergeError(
      "kube_unreachable",
      `${path} returned ${status} without a JSON object; check the server URL`,
    );
  }

  async stream(
    parts: CallParts,
    { silentMs, signal }: { readonly silentMs: number; readonly signal: AbortSignal | undefined },
  ): Promise<AsyncIterable<Uint8Array>> {
    try {
      return await this.shared.transport.stream(this.#complete(parts, signal), silentMs);
    } catch (error) {
      this.#forgetUnknown(parts.ref, error);
      throw error;
    }
  }

  /**
   * The reference of a call, for errors and records. A reference has no `sensitive` mark, so the type's own mark is
   * registered here.
   */
  refOf(type: ResourceType, { namespace, name }: CallTarget): ErrorRef {
    const { group, version, kind, resource } = type;
    this.shared.isSensitive(type);
    return { group, version, kind, resource, ...defined({ namespace, name }) };
  }

  get discovery(): Discovery {
    return this.scope.discovery ?? this.shared.discovery;
  }

  /** The query parameter of writes. */
  get dryRun(): "All" | undefined {
    return this.scope.dryRun === true ? "All" : undefined;
  }

  fieldManagerFor(verb: CallVerb): string | undefined {
    if (this.scope.fieldManager !== undefined || verb !== "apply") return this.scope.fieldManager;
    return this.shared.userAgent.split(/[/ ]/, 1)[0];
  }

  #complete(parts: CallParts, signal: AbortSignal | undefined): ApiCall {
    if (parts.body !== undefined) this.scope.checkBody?.(parts.body);
    const { cluster } = this.scope;
    const ref = cluster === undefined ? parts.ref : parts.ref && { ...parts.ref, cluster };
    return {
      scope: this.scope,
      signal: joinSignals(this.scope.signal, signal),
      sensitive: parts.ref !== undefined && this.shared.isSensitive(parts.ref),
      ...parts,
      ...defined({ ref }),
    };
  }

  /** A 404 for an unknown object names the object. A 404 for an unknown resource names nothing, or is plain text. */
  #forgetUnknown(ref: ErrorRef | undefined, error: unknown): void {
    if (ref === undefined || !isNotFound(error) || !isKubeApiError(error)) return;
    if (error.details["name"] === undefined) this.discovery.forget(ref.group, ref.version);
  }
}

/** Combines two optional signals; no new signal is created unless both exist. */
export function joinSignals(
  left: AbortSignal | undefined,
  right: AbortSignal | undefined,
): AbortSignal | undefined {
  if (left === undefined || left === right) return right;
  return right === undefined ? left : AbortSignal.any([left, right]);
}
