import { createHash } from "node:crypto";
import {
  defined,
  formatApiVersion,
  KonvergeError,
  type ResourceType,
  shortName,
} from "@konverge/core";
import type {
  AttemptSecrets,
  CallObserver,
  CallRecord,
  KubeClient,
  NamedTarget,
  NamespacedName,
  ObjectManifest,
  ObjectTarget,
  SentCall,
} from "@konverge/kube";
import type { RunJournal } from "../journal/run-journal.ts";
import { roundIdOf } from "../define/run-ref.ts";
import type { BodySpan } from "../journal/run-tracing.ts";
import { rememberSecret } from "../define/seen-secrets.ts";
import type { Log } from "../define/log.ts";
import type { EffectWatch } from "./effect-watch.ts";

/** The context of the verbs in one attempt of a body. */
export interface VerbScope {
  readonly journal: RunJournal;
  readonly step: string;
  /** Aborted when the attempt has ended; the client then sends nothing more. */
  readonly signal: AbortSignal;
  /** The client of the scope's cluster. @throws KonvergeError `invalid_config`, `invalid_request` */
  client(): Promise<KubeClient>;
  /** Resolves a kind. @throws as `reach` */
  reachKind(named: NamedKind): Promise<ReachedKind>;
  /** Resolves a target. @throws KonvergeError `invalid_config`, `invalid_request`, `not_found` */
  reach(target: ObjectTarget): Promise<Reached>;
  /**
   * Called between the read and the write of every verb. An execution that has read before a takeover of the run fails at the
   * precondition of its write; one that reads later fails here.
   * @throws FencedError
   */
  assertHeld(): Promise<void>;
  /**
   * Returns 64 hex digits that identify the call in all attempts of the step. Equal calls of an attempt are distinguished by
   * their order, so it is used when the verb is called, before anything is awaited.
   */
  identify(verb: string, target: ObjectTarget): string;
  /** Remembers an object that the body reads, if its kind is sensitive (P12). */
  noteSeen(reached: Pick<ReachedKind, "client"> & SeenType, object: object): void;
  on(cluster: string): VerbScope;
  /** Removes values of sensitive objects that the body has read (P12). */
  readonly scrub: (text: string) => string;
  /** Of the step. */
  readonly log: Log;
}

interface SeenType {
  readonly type: Parameters<KubeClient["isSensitive"]>[0];
}

type NamedKind = Pick<NamedTarget, "apiVersion" | "kind" | "cluster">;

/** A resolved kind. */
export interface ReachedKind {
  readonly client: KubeClient;
  readonly type: ResourceType;
  readonly subresources: readonly string[];
  /** Undefined for the cluster of the run. */
  readonly cluster: string | undefined;
}

/** A resolved object. */
export interface Reached extends ReachedKind {
  readonly at: NamespacedName;
  readonly uid: string | undefined;
  /** Whether the step of the verb that returned the target created the object; undefined for other targets. */
  readonly created: boolean | undefined;
  /** For messages. */
  readonly label: string;
}

export interface VerbScopeOptions {
  readonly journal: RunJournal;
  readonly step: string;
  readonly signal: AbortSignal;
  readonly effects: EffectWatch;
  /** Shared by the scopes of all clusters. */
  readonly counts: Map<string, number>;
  readonly secrets: Pick<AttemptSecrets, "note" | "scrub">;
  readonly log: Log;
  readonly span: BodySpan | undefined;
  /** Set by `on`. */
  readonly cluster?: string;
}

export function createVerbScope(options: VerbScopeOptions): VerbScope {
  const { journal, step, signal, effects, counts, secrets, span, cluster: chosen } = options;
  const { held, clusters } = journal;
  const reachCluster = async (named: string | undefined) => {
    if (clusters === undefined) {
      throw new KonvergeError(
        "invalid_config",
        `step "${step}" calls Kubernetes, but no cluster is configured; run \`konverge worker\`, or pass \`clusters\` to work() of openWorkflows, or \`kube\` to testWorkflow`,
      );
    }
    const cluster = named ?? chosen ?? clusters.home;
    const whole = await clusters.client(cluster);
    const onSend = (call: SentCall): CallObserver => {
      journal.checkLease();
      const observer = effects.onSend(call);
      const traced = span?.startCall(call, whole.server);
      if (traced === undefined) return observer;
      const ended = (record: CallRecord) => {
        observer.ended(record);
        traced.ended(record);
      };
      return { headers: traced.headers, ended };
    };
    const client = whole.scoped({ signal, fieldManager: `konverge/${held.workflow}`, onSend });
    return { client, cluster: cluster === clusters.home ? undefined : cluster };
  };
  const reachKind = async (named: NamedKind): Promise<ReachedKind> => {
    const { client, cluster } = await reachCluster(named.cluster);
    const { group, version, resource, scope, subresources, kind } = await client.resolveType(
      named.apiVersion,
      named.kind,
    );
    return {
      client,
      type: { group, version, kind, resource, scope },
      subresources,
      cluster,
    };
  };
  return {
    journal,
    step,
    signal,
    client: async () => (await reachCluster(undefined)).client,
    reachKind,
    async reach(target) {
      const named = nameOf(target);
      const { name, namespace, uid, created, kind } = named;
      if (chosen !== undefined && named.cluster !== undefined && named.cluster !== chosen) {
        throw new KonvergeError(
          "invalid_request",
          `step "${step}": ${kind} ${name} is on cluster "${named.cluster}", but the verb uses "${chosen}"; use on("${named.cluster}")`,
        );
      }
      const reached = await reachKind(named);
      return {
        ...reached,
        at: namespace === undefined ? { name } : { namespace, name },
        uid,
        created,
        label: labelOf({ ...named, ...defined({ cluster: reached.cluster }) }),
      };
    },
    assertHeld: () => journal.assertHeld(),
    identify(verb, target) {
      const { apiVersion, kind, metadata, ...rest } = asIntent(target);
      const { name, generateName, namespace } = metadata;
      const cluster = rest.cluster ?? chosen;
      const call = [verb, cluster, apiVersion, kind, namespace, name, generateName];
      const count = (counts.get(JSON.stringify(call)) ?? 0) + 1;
      counts.set(JSON.stringify(call), count);
      const { workflow, run } = held;
      // Includes the creation time, because an id may be reused after its run has expired.
      const runId = roundIdOf(run);
      const whole = [journal.scope, workflow, runId, run.createdAtMs, step, ...call, count];
      return createHash("sha256").update(JSON.stringify(whole)).digest("hex");
    },
    noteSeen({ client, type }, object) {
      if (!client.isSensitive(type)) return;
      secrets.note(object);
      rememberSecret(object);
    },
    on: (cluster) => createVerbScope({ ...options, cluster }),
    scrub: (text) => secrets.scrub(text),
    log: options.log,
  };
}

/** Returns the target of a call that may be a dry run. */
export function dryRunOf(reached: Reached, dryRun: boolean | undefined): Reached {
  return dryRun === true ? { ...reached, client: reached.client.scoped({ dryRun }) } : reached;
}

/** Formats an object for messages. */
export function labelOf(target: ObjectTarget): string {
  const { kind, namespace, name, cluster } = nameOf(target);
  const place = shortName({ namespace, name });
  return `${kind} ${place}${cluster === undefined ? "" : ` on ${cluster}`}`;
}

/** @throws KonvergeError `invalid_request` naming the field */
function nameOf(target: ObjectTarget): NamedTarget {
  const named: NamedTarget =
    "metadata" in target
      ? namesIn(target)
      : "type" in target
        ? withKind(target.type, target)
        : target;
  for (const field of ["apiVersion", "kind", "name"] as const) {
    if (typeof named[field] === "string" && named[field] !== "") continue;
    throw new KonvergeError("invalid_request", `the object's ${field} is missing; set it`, {
      issues: [{ pointer: `/${field}`, detail: "is missing; set it" }],
    });
  }
  return named;
}

function asIntent(target: ObjectTarget): ObjectManifest & { readonly cluster?: string } {
  if ("metadata" in target) return target;
  const named: NamedTarget = "type" in target ? withKind(target.type, target) : target;
  const { apiVersion, kind, name, namespace, cluster } = named;
  const metadata = namespace === undefined ? { name } : { name, namespace };
  return { apiVersion, kind, metadata, ...defined({ cluster }) };
}

/** Names an object of a type as references do. */
export function withKind(
  { group, version, kind }: ResourceType,
  { name, namespace }: NamespacedName,
): NamedTarget {
  return { apiVersion: formatApiVersion(group, version), kind, name, ...defined({ namespace }) };
}

function namesIn({ apiVersion, kind, metadata }: Extract<ObjectTarget, { metadata: unknown }>) {
  const { name = "", namespace, uid } = metadata as { readonly [field: string]: string };
  return {
    apiVersion,
    kind,
    name,
    ...defined({ namespace, uid }),
  };
}
