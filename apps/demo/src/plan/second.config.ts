import { defineConfig, defineController } from "konverge";
import { Deployment, Service } from "konverge/kinds";
import { serviceOf } from "./shop.ts";

/**
 * Version 2 of the operator: another label, and no Service for a stopped app. Its author has not considered that the app loses its
 * address.
 */
const services = defineController({
  name: "services",
  for: Deployment,
  approval: { when: ({ deletes }) => deletes > 0, role: "operator", by: 1 },
  async reconcile({ object, kube }) {
    if (object.spec?.replicas !== 0) {
      await kube.apply(Service, serviceOf(object.metadata, "2"));
      return;
    }
    const { namespace = "", name } = object.metadata;
    const service = await kube.find(Service, { namespace, name });
    if (service !== undefined) await kube.delete(service);
  },
});

export default defineConfig({ controllers: [services] });
