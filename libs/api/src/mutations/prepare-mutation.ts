import type { SubmitMutation } from "@konverge/contracts";
import {
  defined,
  findNameIssue,
  isJsonObject,
  KonvergeError,
  type ErrorIssue,
  type JsonObject,
} from "@konverge/core";
import {
  findRestrictions,
  MUTATIONS,
  type Changes,
  type NewMutation,
  type OpenKind,
  type Preconditions,
} from "@konverge/mutations";
import type { RequestedClass } from "@konverge/contracts";
import { classFor, demand, type Caller } from "../access/caller.ts";
import { placeNamed } from "../queues/place-of.ts";
import { apiVersionOf, findOpenKind, pathsFor } from "./find-open-kind.ts";

interface Submitting {
  readonly caller: Caller;
  /** The open kinds of the cluster of the mutation. */
  readonly kinds: readonly OpenKind[];
  readonly id: string;
  /** The class of a mutation that names none. */
  readonly standard: RequestedClass;
}

/** The place of an object in scopes. */
export function placeOfMutation(named: {
  readonly cluster: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}) {
  return placeNamed({ ...named, controller: MUTATIONS });
}

/**
 * Returns a mutation as it is stored, after the checks that need no object.
 * @throws KonvergeError `forbidden`, `kind_not_open`, `invalid_request`
 */
export function prepareMutation(
  body: SubmitMutation,
  { caller, kinds, id, standard }: Submitting,
): NewMutation {
  demand(caller, placeOfMutation(body));
  const kind = findOpenKind(kinds, body);
  const limits = pathsFor(caller, kind);
  const { namespace, name, subresource, uid, deadline: deadlineMs } = body;
  const nameIssue = findNameIssue(kind, body);
  if (nameIssue !== undefined) {
    const { field, detail } = nameIssue;
    throw invalid([{ pointer: `/${field}`, detail }]);
  }
  const identity = { kind, namespace, name };
  const changes = body.changes.map((change, at) =>
    change.kind === "apply"
      ? { ...change, object: identified(change.object, identity, `/changes/${at}/object`) }
      : change,
  ) as unknown as Changes;
  const create = isJsonObject(body.create)
    ? withoutIdentity(identified(body.create, identity, "/create"))
    : body.create;
  const mutation: NewMutation = {
    id,
    object: { ...typeOf(kind), name, ...defined({ namespace }) },
    changes,
    class: classFor(caller, body.class, standard),
    by: caller.via === "local" ? "http" : caller.name,
    ...defined({
      subresource,
      uid,
      preconditions: body.if as Preconditions | undefined,
      createIfMissing: create,
      deadlineMs,
      sensitive: kind.sensitive,
    }),
  };
  const issues = findRestrictions(kind, mutation, [limits]);
  if (issues.length > 0) throw invalid(issues);
  return mutation;
}

function typeOf({ group, version, kind, resource }: OpenKind) {
  return { group, version, kind, resource };
}

interface Identity {
  readonly kind: OpenKind;
  readonly namespace: string | undefined;
  readonly name: string;
}

/** Returns the content with the identity of the mutated object. @throws KonvergeError `invalid_request` if it has another */
function identified(
  content: Readonly<Record<string, unknown>>,
  { kind, namespace, name }: Identity,
  pointer: string,
): JsonObject {
  const object = content as JsonObject;
  const metadata = object["metadata"] ?? {};
  if (!isJsonObject(metadata)) {
    throw invalid([{ pointer: `${pointer}/metadata`, detail: "must be a JSON object" }]);
  }
  const top = { apiVersion: apiVersionOf(kind), kind: kind.kind };
  const own = { name, ...defined({ namespace }) };
  const issues = [
    ...differences(object, top, pointer),
    ...differences(metadata, { namespace: undefined, ...own }, `${pointer}/metadata`),
  ];
  if (issues.length > 0) throw invalid(issues);
  return { ...object, ...top, metadata: { ...metadata, ...own } };
}

function differences(
  object: JsonObject,
  expected: Readonly<Record<string, string | undefined>>,
  pointer: string,
): ErrorIssue[] {
  return Object.entries(expected).flatMap(([field, value]) =>
    object[field] === undefined || object[field] === value
      ? []
      : [
          {
            pointer: `${pointer}/${field}`,
            detail:
              value === undefined
                ? "must be omitted, as in the mutation"
                : `must be "${value}", as in the mutation, or omitted`,
          },
        ],
  );
}

function withoutIdentity(object: JsonObject): JsonObject {
  const metadata = isJsonObject(object["metadata"]) ? object["metadata"] : {};
  const other = omit(metadata, ["name", "namespace"]);
  const rest = omit(object, ["apiVersion", "kind", "metadata"]);
  return Object.keys(other).length === 0 ? rest : { ...rest, metadata: other };
}

function omit(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

function invalid(issues: readonly ErrorIssue[]): KonvergeError {
  const [first] = issues;
  const text =
    issues.length === 1 && first !== undefined
      ? `${first.pointer} ${first.detail}`
      : `${issues.length} invalid fields`;
  return new KonvergeError("invalid_request", text, { issues });
}
