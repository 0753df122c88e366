import type { MutationDetail, MutationKindList, MutationResults } from "@konverge/contracts";
import { defined, formatApiVersion, KonvergeError, isoTime } from "@konverge/core";
import type { Change, MutationView, OpenKind, Preconditions } from "@konverge/mutations";
import { apiVersionOf } from "./find-open-kind.ts";

export function mutationView(
  view: MutationView,
  cluster: string,
  kinds: readonly OpenKind[],
): MutationDetail {
  const { object, preconditions, createdAtMs, endedAtMs, deadlineMs, createIfMissing } = view;
  const { subresource, uid, by } = view;
  const { group, version, kind, namespace, name } = object;
  const isSensitive = isOfSensitive(view, kinds);
  return {
    ...mutationResult(view, cluster, kinds),
    cluster,
    kind,
    apiVersion: formatApiVersion(group, version),
    name,
    changes: view.changes.map((change) => (isSensitive ? withoutValues(change) : { ...change })),
    createdAt: isoTime(createdAtMs),
    ...defined({
      namespace,
      subresource,
      uid,
      by,
      class: view.class === "retry" ? undefined : view.class,
      if: isSensitive || preconditions === undefined ? undefined : conditionsOf(preconditions),
      create: createIfMissing === undefined ? undefined : true,
      expiresAt: deadlineMs === undefined ? undefined : isoTime(createdAtMs + deadlineMs),
      endedAt: isoTime(endedAtMs),
    }),
  };
}

/** Returns the state of a mutation, without its content. */
export function mutationResult(
  view: MutationView,
  cluster: string,
  kinds: readonly OpenKind[],
): Extract<MutationResults["items"][number], { id: string }> {
  const { id, state, resourceVersion, error } = isOfSensitive(view, kinds)
    ? withoutText(view)
    : view;
  return { id: formatMutationId(cluster, id), state, ...defined({ resourceVersion, error }) };
}

/** The values of a kind that is no longer open could be secrets, too. */
function isOfSensitive({ object }: MutationView, kinds: readonly OpenKind[]): boolean {
  const known = kinds.find(({ kind, group }) => kind === object.kind && group === object.group);
  return known === undefined || known.sensitive === true;
}

export function kindView(open: OpenKind, cluster: string): MutationKindList["items"][number] {
  const { kind, resource, scope, sensitive, paths, role = "operator" } = open;
  return {
    cluster,
    kind,
    apiVersion: apiVersionOf(open),
    resource,
    scope,
    role,
    ...defined({ sensitive, paths: paths && [...paths] }),
  };
}

/** Returns `<cluster>/<id>`. */
export function formatMutationId(cluster: string, id: string): string {
  return `${encodeURIComponent(cluster)}/${id}`;
}

/** The inverse of {@link formatMutationId}. @throws KonvergeError `invalid_key` */
export function parseMutationId(text: string): { readonly cluster: string; readonly id: string } {
  const [, cluster = "", id = ""] = /^([^/]{1,800})\/([\w.:-]{1,128})$/.exec(text) ?? [];
  try {
    if (cluster !== "") return { cluster: decodeURIComponent(cluster), id };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
  }
  throw new KonvergeError(
    "invalid_key",
    `mutation ID "${text}" is not of the form <cluster>/<id>, such as default/order-7`,
  );
}

function conditionsOf({ fields, ...rest }: Preconditions) {
  return { ...rest, ...defined({ fields: fields?.map((field) => ({ ...field })) }) };
}

/** The API server repeats values of the object in its messages. */
function withoutText(view: MutationView): MutationView {
  const { error } = view;
  if (error?.code !== "kube_api") return view;
  return { ...view, error: { ...error, message: "the API server rejected the change" } };
}

function withoutValues(change: Change) {
  return { kind: change.kind, ...("path" in change ? { path: change.path } : {}) };
}
