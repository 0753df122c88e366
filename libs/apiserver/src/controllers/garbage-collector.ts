import { cloneJson, parseApiVersion, resourceId, type JsonObject } from "@konverge/core";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import {
  finalizersOf,
  isTerminating,
  metadataOf,
  objectsOf,
  textOf,
  uidOf,
} from "../objects/metadata.ts";
import type { ObjectTable } from "../storage/object-table.ts";
import type { Change } from "../storage/stored-object.ts";
import type { ServerState } from "../verbs/call.ts";
import { kindOfTable, remove, replace, type KnownObject } from "./object-writes.ts";

const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

interface Place {
  readonly table: ObjectTable;
  readonly key: string;
}

/** What an owner reference refers to. An `unknown` owner is of a kind that is not served here. */
type Owner = "solid" | "waiting" | "absent" | "unknown";

/**
 * Deletes objects whose owners are deleted, and ends foreground deletions and orphaning, by the rules of the garbage collector of
 * Kubernetes.
 */
export class GarbageCollector {
  readonly #state: ServerState;
  /** Objects by the uid of an owner. */
  readonly #dependents = new Map<string, Map<string, Place>>();

  constructor(state: ServerState) {
    this.#state = state;
    for (const table of state.store.tables()) {
      for (const { key, object } of table.list()) this.#index({ table, key }, object);
    }
  }

  /** Records a change. Returns the objects to collect. */
  note(table: ObjectTable, { type, current, previous }: Change): readonly Place[] {
    const place = { table, key: current.key };
    const before = previous === undefined ? [] : ownersOf(previous.object);
    for (const { uid } of before) this.#dependents.get(textOfUid(uid))?.delete(idOf(place));
    if (type !== "DELETED") this.#index(place, current.object);
    const uid = uidOf(current.object);
    const dependents = type === "DELETED" || isTerminating(current.object) ? this.#of(uid) : [];
    return [place, ...dependents, ...before.flatMap((owner) => this.#find(current.object, owner))];
  }

  /** Everything that is stored, for a start on existing data. */
  all(): readonly Place[] {
    return [...this.#state.store.tables()].flatMap((table) =>
      table.list().map(({ key }) => ({ table, key })),
    );
  }

  /** Does what is due for one object. */
  collect({ table, key }: Place): void {
    const stored = table.get(key);
    if (stored === undefined) return;
    const owners = ownersOf(stored.object);
    const isEnding = isTerminating(stored.object);
    if (!isEnding && owners.length === 0) return;
    const kind = kindOfTable(this.#state, table.id);
    if (kind === undefined) return;
    const known = { kind, stored };
    if (isEnding) {
      this.#finish(known);
      return;
    }
    const states = owners.map((owner) => this.#ownerState(known, owner));
    if (states.includes("unknown")) return;
    if (states.includes("solid")) {
      if (states.every((state) => state === "solid")) return;
      const next = cloneJson(stored.object);
      metadataOf(next)["ownerReferences"] = owners.filter((_, at) => states[at] === "solid");
      replace(this.#state, known, next);
      return;
    }
    // A dependent of a foreground deletion that has dependents itself waits for them.
    const isDeep = states.includes("waiting") && this.#of(uidOf(stored.object)).length > 0;
    remove(this.#state, known, {
      propagationPolicy: isDeep ? "Foreground" : policyOf(stored.object),
      preconditions: { uid: uidOf(stored.object) },
    });
  }

  /** Ends the deletion of an owner that nothing holds. */
  #finish(known: KnownObject): void {
    const { object } = known.stored;
    const finalizers = finalizersOf(object);
    const uid = uidOf(object);
    const dependents = this.#of(uid);
    if (finalizers.includes(ORPHAN)) {
      for (const place of dependents) this.#release(place, uid);
      this.#dropFinalizer(known, ORPHAN);
    } else if (finalizers.includes(FOREGROUND)) {
      const blocks = dependents.some(({ table, key }) =>
        ownersOf(table.get(key)?.object ?? {}).some(
          (owner) => owner["uid"] === uid && owner["blockOwnerDeletion"] === true,
        ),
      );
      if (!blocks) this.#dropFinalizer(known, FOREGROUND);
    }
  }

  #release({ table, key }: Place, uid: string): void {
    const stored = table.get(key);
    const kind = kindOfTable(this.#state, table.id);
    if (stored === undefined || kind === undefined) return;
    const next = cloneJson(stored.object);
    const metadata = metadataOf(next);
    metadata["ownerReferences"] = ownersOf(next).filter((owner) => owner["uid"] !== uid);
    replace(this.#state, { kind, stored }, next);
  }

  #dropFinalizer(known: KnownObject, finalizer: string): void {
    const next = cloneJson(known.stored.object);
    metadataOf(next)["finalizers"] = finalizersOf(next).filter((one) => one !== finalizer);
    replace(this.#state, known, next);
  }

  #ownerState({ stored, kind }: KnownObject, owner: JsonObject): Owner {
    const ownerKind = this.#kindOf(owner);
    // A namespaced owner of a cluster-scoped object cannot be found.
    if (ownerKind === undefined || (ownerKind.namespaced && !kind.namespaced)) return "unknown";
    const [place] = this.#find(stored.object, owner);
    const found = place?.table.get(place.key)?.object;
    if (found === undefined || uidOf(found) !== owner["uid"]) return "absent";
    return isTerminating(found) && finalizersOf(found).includes(FOREGROUND) ? "waiting" : "solid";
  }

  /** The place at which an owner is, or was. */
  #find(object: JsonObject, owner: JsonObject): Place[] {
    const kind = this.#kindOf(owner);
    if (kind === undefined) return [];
    const name = textOf(owner, "name");
    const namespace = textOf(metadataOf(object), "namespace");
    const table = this.#state.store.table(resourceId(kind.storedAs ?? kind));
    return [{ table, key: kind.namespaced ? `${namespace}/${name}` : name }];
  }

  #kindOf(owner: JsonObject): ResourceKind | undefined {
    const { group } = parseApiVersion(textOf(owner, "apiVersion"));
    return this.#state.kinds
      .all()
      .find((kind) => kind.group === group && kind.kind === owner["kind"]);
  }

  #of(uid: string): readonly Place[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  #index(place: Place, object: JsonObject): void {
    for (const { uid } of ownersOf(object)) {
      const known = this.#dependents.get(textOfUid(uid)) ?? new Map<string, Place>();
      this.#dependents.set(textOfUid(uid), known.set(idOf(place), place));
    }
  }
}

const ownersOf = (object: JsonObject): JsonObject[] =>
  objectsOf(metadataOf(object), "ownerReferences");
const idOf = ({ table, key }: Place): string => `${table.id} ${key}`;
const textOfUid = (uid: JsonObject[string] | undefined): string => String(uid);

/** A dependent keeps the policy that its finalizers name. */
function policyOf(object: JsonObject): string {
  const finalizers = finalizersOf(object);
  if (finalizers.includes(ORPHAN)) return "Orphan";
  return finalizers.includes(FOREGROUND) ? "Foreground" : "Background";
}
