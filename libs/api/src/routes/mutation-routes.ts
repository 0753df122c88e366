import {
  clusterQuerySchema,
  mutationKindListSchema,
  mutationListSchema,
  mutationQuerySchema,
  mutationResultsSchema,
  mutationSchema,
  submitMutationSchema,
  submitMutationsSchema,
  waitQuerySchema,
  type MutationList,
  type MutationListQuery,
} from "@konverge/contracts";
import { defined, KonvergeError, namespaceSegment } from "@konverge/core";
import { MUTATIONS, type MutationView } from "@konverge/mutations";
import { covers, demand, demandSome, type Caller } from "../access/caller.ts";
import { route, type Route } from "../http/route.ts";
import type { RunScan } from "../http/scans.ts";
import { findOpenKind, seesKind } from "../mutations/find-open-kind.ts";
import { kindView, mutationView, parseMutationId } from "../mutations/mutation-view.ts";
import { placeOfMutation } from "../mutations/prepare-mutation.ts";
import { hasEnded, readMutation, submitMany, submitOne } from "../mutations/submit-mutations.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";

/** A mutation of 256 KiB and the space between its values. */
const MAX_BODY_KIB = 512;
const MAX_BATCH_KIB = 8_192;
/** Items that are as much work as a simple request. */
const ITEMS_PER_TOKEN = 20;
const PREFER = { prefer: "wait=20 waits up to 20 s (maximum 60) for the end" };

/** Changes of objects that other systems request. */
export function mutationRoutes(access: QueueAccess, home: string): Route[] {
  return [
    route({
      id: "submitMutation",
      method: "post",
      path: "/v1/mutations",
      summary: "Change an object exactly once; `Prefer: wait=20` waits for the outcome",
      role: "operator",
      body: submitMutationSchema,
      keepsDigits: true,
      maxBodyKiB: MAX_BODY_KIB,
      headers: PREFER,
      answer: mutationSchema,
      status: 202,
      problems: ["not_found", "kind_not_open", "mutation_mismatch", "queue_full"],
      handle: ({ body, ...asked }) => submitOne(access, body, asked),
    }),
    route({
      id: "submitMutations",
      method: "post",
      path: "/v1/mutations/batch",
      summary: "Submit up to 1,000 mutations, with one result per item",
      role: "operator",
      body: submitMutationsSchema,
      keepsDigits: true,
      maxBodyKiB: MAX_BATCH_KIB,
      headers: PREFER,
      answer: mutationResultsSchema,
      status: 202,
      price: ({ body: { items } }) => items.length / ITEMS_PER_TOKEN,
      handle: ({ body: { items }, ...asked }) => submitMany(access, items, asked),
    }),
    route({
      id: "listMutations",
      method: "get",
      path: "/v1/mutations",
      summary: "List mutations by object, kind, namespace or state, newest first",
      role: "viewer",
      query: mutationQuerySchema,
      answer: mutationListSchema,
      problems: ["not_found", "kind_not_open"],
      price: ({ query: { limit } }) => limit / ITEMS_PER_TOKEN,
      handle: ({ query, caller, scan }) => listMutations(access, { caller, scan }, query),
    }),
    route({
      id: "listMutationKinds",
      method: "get",
      path: "/v1/mutation-kinds",
      summary: "List the kinds that mutations may change",
      role: "viewer",
      query: clusterQuerySchema,
      answer: mutationKindListSchema,
      problems: ["not_found"],
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster, controller: MUTATIONS });
        const { kinds } = await access.mutations(cluster);
        const seen = kinds.filter(({ kind }) => seesKind(caller, kind));
        return { items: seen.map((kind) => kindView(kind, cluster)) };
      },
    }),
    route({
      id: "getMutation",
      method: "get",
      path: "/v1/mutations/{id}",
      summary: "Get a mutation with its outcome; `wait` or `Prefer: wait=20` waits for its end",
      role: "viewer",
      query: waitQuerySchema,
      headers: PREFER,
      answer: mutationSchema,
      problems: ["not_found"],
      async handle({ params, query, caller, context, openWait }) {
        const { cluster, id, mutations, kinds } = await find(access, caller, params.id);
        using wait = openWait(query.wait ?? preferredWaitMs(context));
        const view = await wait.until({
          id: `mutation ${cluster}/${id}`,
          read: () => readMutation(mutations, id),
          isEnd: hasEnded,
        });
        return mutationView(view, cluster, kinds);
      },
    }),
    cancelRoute(access),
  ];
}

function cancelRoute(access: QueueAccess): Route {
  return route({
    id: "cancelMutation",
    method: "delete",
    path: "/v1/mutations/{id}",
    summary: "Cancel a waiting mutation",
    role: "operator",
    answer: mutationSchema,
    problems: ["not_found", "mutation_not_waiting"],
    async handle({ params, caller, audit }) {
      const { cluster, id, mutations, kinds, object } = await find(access, caller, params.id);
      const effect = await mutations.cancel(id, caller.via === "local" ? undefined : caller.name);
      const view = await readMutation(mutations, id);
      if (effect === "cancelled") {
        const { kind: filter, namespace, name } = object;
        const place = { cluster, controller: MUTATIONS, namespace: namespaceSegment(namespace) };
        audit({ action: "mutation.cancel", ...place, name, filter });
      } else if (view.state !== "cancelled") {
        const detail = `mutation ${params.id} is ${view.state}; only a waiting mutation can be cancelled`;
        throw new KonvergeError("mutation_not_waiting", detail);
      }
      return mutationView(view, cluster, kinds);
    },
  });
}

/** Finds a mutation in the scope of the caller. @throws KonvergeError `invalid_key`, `not_found`, `forbidden` */
async function find(access: QueueAccess, caller: Caller, text: string) {
  const { cluster, id } = parseMutationId(text);
  demandSome(caller, { cluster, controller: MUTATIONS });
  const { mutations, kinds } = await access.mutations(cluster);
  const { object } = await readMutation(mutations, id);
  demand(caller, placeOfMutation({ cluster, ...object }));
  if (!seesKind(caller, object.kind)) {
    throw new KonvergeError("forbidden", "the token is limited to other kinds");
  }
  return { cluster, id, mutations, kinds, object };
}

async function listMutations(
  access: QueueAccess,
  { caller, scan }: { readonly caller: Caller; readonly scan: RunScan },
  { cluster, kind, apiVersion, namespace, name, state, limit, cursor }: MutationListQuery,
): Promise<MutationList> {
  demandSome(caller, placeOfMutation({ cluster, namespace, name }));
  const { mutations, kinds } = await access.mutations(cluster);
  const open = kind === undefined ? undefined : findOpenKind(kinds, { cluster, kind, apiVersion });
  const object =
    open === undefined || name === undefined
      ? undefined
      : { ...open, name, ...defined({ namespace }) };
  const page = await scan((options) =>
    mutations.list({ limit, ...defined({ object, state, cursor }) }, options),
  );
  const isWanted = ({ object: found }: MutationView) =>
    (open === undefined || (found.kind === open.kind && found.group === open.group)) &&
    (namespace === undefined || namespaceSegment(found.namespace) === namespace) &&
    covers(caller.scope, placeOfMutation({ cluster, ...found })) &&
    seesKind(caller, found.kind);
  const items = page.mutations.filter(isWanted).map((view) => mutationView(view, cluster, kinds));
  return { items, ...defined({ next: page.cursor }) };
}
