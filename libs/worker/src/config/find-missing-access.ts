import { defined, isJsonObject } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { AccessRule, RequiredAccess } from "./controller-access.ts";

/**
 * Returns the part of `access` that the API server denies, as rules to add. Makes one call per verb and resource, which every
 * account is allowed to make. Used on user request and after a denied call, not on each startup.
 * @throws KubeApiError if the API server cannot be queried
 */
export async function findMissingAccess(
  client: KubeClient,
  access: RequiredAccess,
  leaseNamespace: string,
): Promise<RequiredAccess> {
  const [cluster, leases] = await Promise.all([
    Promise.all(
      (access.namespaces ?? [undefined]).map((namespace) =>
        missingOf(client, access.cluster, namespace),
      ),
    ),
    missingOf(client, access.leases, leaseNamespace),
  ]);
  return { cluster: distinct(cluster.flat()), leases, namespaces: access.namespaces };
}

/** Several namespaces may lack the same rule. */
function distinct(rules: readonly AccessRule[]): AccessRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

async function missingOf(
  client: KubeClient,
  rules: readonly AccessRule[],
  namespace: string | undefined,
): Promise<AccessRule[]> {
  const missing = await Promise.all(
    rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.map(async (resource): Promise<AccessRule> => {
          const isRefused = async (verb: string) => {
            const names = resourceNames ?? [undefined];
            const about = { group, resource, verb, namespace };
            const answers = names.map((name) => isAllowed(client, { ...about, name }));
            return (await Promise.all(answers)).includes(false);
          };
          const refused = await Promise.all(verbs.map(isRefused));
          return {
            apiGroups: [group],
            resources: [resource],
            ...defined({ resourceNames }),
            verbs: verbs.filter((_, index) => refused[index]),
          };
        }),
      ),
    ),
  );
  return missing.filter(({ verbs }) => verbs.length > 0);
}

interface Asked {
  readonly group: string;
  /** Includes the subresource, as in a rule. */
  readonly resource: string;
  readonly verb: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

async function isAllowed(client: KubeClient, asked: Asked): Promise<boolean> {
  const { group, verb, namespace, name } = asked;
  const [resource = "", subresource] = asked.resource.split("/");
  const { body } = await client.raw({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: {
        resourceAttributes: {
          group,
          resource,
          verb,
          ...defined({ subresource, namespace, name }),
        },
      },
    },
  });
  const status = isJsonObject(body) ? body["status"] : undefined;
  return isJsonObject(status) && status["allowed"] === true;
}
