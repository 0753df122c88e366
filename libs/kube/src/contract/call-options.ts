import type { ApiObject } from "@konverge/core";
import type { DeleteOptions, ListOptions, MutateOptions, Patch } from "./kube-client.ts";

/** The option of all writes. */
export interface WriteCallOptions {
  /**
   * Sends the write with `dryRun=All`: the API server checks it and returns its result, but stores nothing. It is not recorded as
   * a write.
   */
  readonly dryRun?: boolean;
}

/** The options of `list`. */
export interface ListCallOptions {
  /** Only objects with an owner reference to this object. Default namespace: that of the owner. */
  readonly ownedBy?: ApiObject;
  /** Default: the reconciled object's namespace; in a step, all namespaces. */
  readonly namespace?: string;
  /** For example `app=web,tier!=cache`. */
  readonly labelSelector?: string;
  /** For example `spec.nodeName=a`. Each kind supports few fields; a CRD lists them as `selectableFields`. */
  readonly fieldSelector?: string;
}

/** The options of `list` in a handler. */
export interface HandlerListOptions extends ListCallOptions {
  /** Only objects with these values, by the names of `indexes` of a source of the controller. */
  readonly index?: Readonly<Record<string, string>>;
}

/** The options of `apply`. */
export interface ApplyCallOptions extends WriteCallOptions {
  /**
   * Takes over fields of other managers. Default: true for an object that the reconciled object or `ownedBy` controls, so that
   * changes of a child by other writers are reverted; else false.
   */
  readonly force?: boolean;
  /**
   * Default `konverge/<controller>` or `konverge/<workflow>`. Apply each part of an object under one manager only: fields that
   * the manager's last apply had and this one omits are removed.
   */
  readonly fieldManager?: string;
  /** For example `status`. */
  readonly subresource?: string;
  /** If set, a deleted object is not created again, and another object with its name is not changed. */
  readonly uid?: string;
}

/** The options of `patch`. */
export interface PatchCallOptions
  extends WriteCallOptions, Pick<ApplyCallOptions, "force" | "fieldManager"> {
  /** `json`: a list of operations; `merge` and `strategic`: an object; `apply`: as {@link KubeCalls.apply}. */
  readonly type: Patch["type"];
  /** For example `status`. */
  readonly subresource?: string;
}

/** The options of `extract`. */
export interface ExtractOptions {
  /** Default: the manager that `apply` uses by default. */
  readonly fieldManager?: string;
  /** For example `status`: the fields that were applied through it. Default: the object itself. */
  readonly subresource?: string;
}

/** The options of `mutate`. */
export interface MutateCallOptions
  extends WriteCallOptions, Pick<MutateOptions, "subresource" | "strategy"> {}

/** The options of `createOrUpdate`. */
export interface CreateOrUpdateOptions extends WriteCallOptions {
  /** Sets the controller reference, so that the owner is reconciled when the object changes. */
  readonly ownedBy?: ApiObject;
}

/** The options of `delete`. */
export interface DeleteCallOptions
  extends
    WriteCallOptions,
    Pick<DeleteOptions, "uid" | "resourceVersion" | "propagationPolicy" | "gracePeriodSeconds"> {}

/** The options of `deleteCollection`. */
export interface DeleteCollectionOptions
  extends
    WriteCallOptions,
    Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector">,
    Pick<DeleteOptions, "propagationPolicy" | "gracePeriodSeconds"> {
  /** Confirms a call without a selector, which deletes all objects of the kind in the namespace. */
  readonly all?: boolean;
}

/** The options of `pages`. */
export interface PageCallOptions extends Pick<
  ListCallOptions,
  "namespace" | "labelSelector" | "fieldSelector"
> {
  /** Objects per page. Default: by the size of the objects, at most 500. */
  readonly limit?: number;
}

/** The options of `evict`. */
export interface EvictOptions extends WriteCallOptions {
  /** Default: that of the Pod. */
  readonly gracePeriodSeconds?: number;
}

/** The options of `logs`. */
export interface LogOptions {
  /** Required for a Pod with several containers. */
  readonly container?: string;
  /** Reads the log of the container before its last restart. */
  readonly previous?: boolean;
  /** Only the last lines. */
  readonly tailLines?: number;
  /** Only lines of the last seconds. */
  readonly sinceSeconds?: number;
  /** Adds the time before each line. */
  readonly timestamps?: boolean;
  /** Maximum length of the text in bytes. Default 1 MiB. The worker keeps the text in memory. */
  readonly limitBytes?: number;
}

/** An event about an object. */
export interface EventInput {
  /** `Warning` for problems. */
  readonly type: "Normal" | "Warning";
  /** One CamelCase word for machines, at most 128 bytes. */
  readonly reason: string;
  /** For users, at most 1 KiB. Values of Secrets that the attempt has read are removed. */
  readonly message: string;
  /** What the controller did, in one CamelCase word. Default `Reconcile`. */
  readonly action?: string;
}
