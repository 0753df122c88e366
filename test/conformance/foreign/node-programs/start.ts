import { AuthorizationV1Api, CoreV1Api, Health, VersionApi } from "@kubernetes/client-node";
import { format, type World } from "./world.ts";

/** The calls that programs make when they start. */
export async function start({ config, namespace, say }: World): Promise<void> {
  const health = new Health(config);
  say(`livez ${await health.livez({})}, readyz ${await health.readyz({})}`);
  const { major, minor } = await config.makeApiClient(VersionApi).getCode();
  say(`version ${major}.${minor}`);
  const resourceAttributes = { namespace, verb: "list", resource: "pods" };
  const review = await config
    .makeApiClient(AuthorizationV1Api)
    .createSelfSubjectAccessReview({ body: { spec: { resourceAttributes } } });
  say(`allowed ${review.status?.allowed}`);
  const resources = await config.makeApiClient(CoreV1Api).getAPIResources();
  const configMaps = resources.resources.find(({ name }) => name === "configmaps");
  say(`configmaps ${format({ ...configMaps, storageVersionHash: undefined })}`);
}
